//! The TCP packet in frames of each link, whole and truncated.

use std::net::{IpAddr, Ipv6Addr};

use explanation::{CaptureFile, Parsed, TcpPacket, parse};

use crate::captures::{HOSTS, Order, Packet, link, pcap};

fn parsed(kind: u32, data: &[u8], cut: usize) -> Parsed {
    let file = pcap(Order::Little, false, kind, &[(1, 0, data.to_vec())], cut);
    let mut file = CaptureFile::open(std::io::Cursor::new(file)).expect("capture");
    parse(&file.next_frame().expect("frame").expect("frame"))
}

fn tcp(kind: u32, data: &[u8], cut: usize) -> TcpPacket {
    match parsed(kind, data, cut) {
        Parsed::Tcp(packet) => packet,
        other => panic!("{kind}: {other:?}"),
    }
}

fn check(packet: &TcpPacket, length: u32) {
    assert_eq!((packet.source.port(), packet.destination.port()), (1000, 80));
    assert_eq!((packet.sequence, packet.acknowledgement), (5, Some(1)));
    assert_eq!(packet.length, length);
}

#[test]
fn reads_each_link() {
    let ip = Packet::data(5, 300).ip();
    let ethernet = [0; 12];
    let cases = [
        (1, [&ethernet[..], &[8, 0]].concat()),
        // VLANs: one tag, and a service tag before it.
        (1, [&ethernet[..], &[0x81, 0, 0, 7, 8, 0]].concat()),
        (
            1,
            [&ethernet[..], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9, 8, 0]].concat(),
        ),
        (113, [&[0; 14][..], &[8, 0]].concat()),
        (276, [&[8, 0][..], &[0; 18]].concat()),
        (0, vec![2, 0, 0, 0]),
        (108, vec![0, 0, 0, 2]),
        (101, vec![]),
        (12, vec![]),
        (228, vec![]),
    ];
    for (kind, header) in cases {
        let packet = tcp(kind, &link(&header, &ip), 65535);
        check(&packet, 300);
        assert_eq!(packet.source.ip(), IpAddr::from(HOSTS[0]));
    }
    assert!(matches!(parsed(147, &ip, 65535), Parsed::Unreadable));
    assert!(matches!(parsed(1, &ip[..10], 65535), Parsed::Unreadable));
}

#[test]
fn padding_of_short_frames_is_no_payload() {
    let mut frame = Packet::data(5, 2).ethernet();
    frame.resize(60, 0);
    check(&tcp(1, &frame, 65535), 2);
}

#[test]
fn reads_ip_options_and_extension_headers() {
    let ip = Packet::data(5, 300).ip();
    let mut with_options = ip.clone();
    with_options.splice(20..20, [1; 8]);
    with_options[0] = 0x47;
    with_options[2..4].copy_from_slice(&(ip.len() as u16 + 8).to_be_bytes());
    check(&tcp(101, &with_options, 65535), 300);

    let hosts = [Ipv6Addr::LOCALHOST, Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1)];
    let segment = &ip[20..];
    // Hop-by-hop options, then destination options, then TCP.
    let extensions = [60, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0];
    let mut six = vec![0x60, 0, 0, 0];
    six.extend((segment.len() as u16 + 16).to_be_bytes());
    six.extend([0, 64]);
    six.extend(hosts[0].octets());
    six.extend(hosts[1].octets());
    six.extend(extensions);
    six.extend(segment);
    let packet = tcp(101, &six, 65535);
    check(&packet, 300);
    assert_eq!(packet.destination.ip(), IpAddr::from(hosts[1]));
}

#[test]
fn only_the_first_fragment_has_a_tcp_header() {
    let mut first = Packet::data(5, 300).ip();
    first[6..8].copy_from_slice(&0x2000u16.to_be_bytes());
    check(&tcp(101, &first, 65535), 300);
    let mut second = first.clone();
    second[6..8].copy_from_slice(&40u16.to_be_bytes());
    assert!(matches!(parsed(101, &second, 65535), Parsed::Other));
}

#[test]
fn a_truncated_packet_has_the_length_on_the_wire() {
    let frame = Packet::data(5, 300).ethernet();
    for cut in [54, 55, 100, 353] {
        check(&tcp(1, &frame, cut), 300);
    }
    for cut in 14..54 {
        assert!(matches!(parsed(1, &frame, cut), Parsed::Unreadable), "{cut}");
    }
}

#[test]
fn a_header_cut_in_its_options_keeps_the_whole_options() {
    let ip = Packet::data(5, 300).ip();
    let mut long = ip.clone();
    // MSS, timestamps, and a SACK block.
    let options = [
        2, 4, 5, 180, 1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8, 1, 1, 5, 10, 0, 0, 1, 0, 0, 0, 2, 0,
    ];
    long.splice(40..40, options);
    long[2..4].copy_from_slice(&(ip.len() as u16 + 28).to_be_bytes());
    long[32] = 12 << 4;
    let whole = tcp(101, &long, 65535);
    check(&whole, 300);
    assert_eq!((whole.mss, whole.timestamps), (Some(1460), Some((9, 8))));
    assert_eq!(whole.sack_blocks(), [(256, 512)]);
    for (cut, mss, timestamps) in [
        (40, false, false),
        (43, false, false),
        (50, true, false),
        (60, true, true),
    ] {
        let packet = tcp(101, &long, cut);
        check(&packet, 300);
        assert_eq!(
            (packet.mss.is_some(), packet.timestamps.is_some()),
            (mss, timestamps),
            "{cut}"
        );
        assert!(packet.sack_blocks().is_empty());
    }
}

#[test]
fn a_total_length_of_zero_is_that_of_the_frame() {
    let mut frame = Packet::data(5, 30_000).ethernet();
    frame[16..18].copy_from_slice(&[0, 0]);
    check(&tcp(1, &frame, 65535), 30_000);
    check(&tcp(1, &frame, 96), 30_000);
}

#[test]
fn other_protocols_are_counted_apart() {
    let mut udp = Vec::new();
    etherparse::PacketBuilder::ipv4(HOSTS[0], HOSTS[1], 64)
        .udp(53, 54)
        .write(&mut udp, &[0; 20])
        .expect("packet");
    assert!(matches!(parsed(101, &udp, 65535), Parsed::Udp(packet) if packet.length == 20));
    let arp = [&[0; 12][..], &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &[0; 20]].concat();
    assert!(matches!(parsed(1, &arp, 65535), Parsed::Other));
}
