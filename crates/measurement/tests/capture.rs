//! Captures of a flow on a real device; skipped without the privilege.

#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use measurement::capture::{Capture, Direction, Filter, Frame, Protocol, Transport};
use measurement::{Error, Stamp};
use testing::Requirement;
use transport::tcp::Flags;

fn open(filter: Filter) -> Option<Capture> {
    match Capture::open(Some("lo"), filter) {
        Ok(capture) => Some(capture),
        Err(error @ Error::Permission { .. }) => {
            testing::skip(Requirement::Raw, error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Takes frames until there are `count`.
fn frames(capture: &mut Capture, count: usize) -> Vec<Frame> {
    let (mut frames, end) = (Vec::new(), Instant::now() + Duration::from_secs(60));
    while frames.len() < count {
        assert!(Instant::now() < end, "{frames:?}");
        capture.take(&mut frames).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    frames
}

fn filter(protocol: Protocol, near: std::net::SocketAddr, far: std::net::SocketAddr) -> Filter {
    Filter {
        protocol,
        near: near.ip(),
        far: far.ip(),
        near_port: Some(near.port()),
        far_port: Some(far.port()),
    }
}

#[test]
fn counts_each_datagram_of_the_flow_on_loopback_once() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let [near, far, other] = [(); 3].map(|()| UdpSocket::bind(address).unwrap());
        let ends = (near.local_addr().unwrap(), far.local_addr().unwrap());
        let Some(mut capture) = open(filter(Protocol::Udp, ends.0, ends.1)) else {
            return;
        };
        let before = Stamp::now();
        near.send_to(&[0; 100], ends.1).unwrap();
        other.send_to(&[0; 70], ends.1).unwrap();
        far.send_to(&[0; 30], ends.0).unwrap();
        let frames = frames(&mut capture, 2);
        let seen: Vec<_> = frames
            .iter()
            .map(|frame| (frame.direction, frame.packet.transport))
            .collect();
        let datagram = |from: std::net::SocketAddr, to: std::net::SocketAddr, payload| Transport::Udp {
            source: from.port(),
            destination: to.port(),
            payload,
        };
        let expected = [
            (Direction::Out, datagram(ends.0, ends.1, 100)),
            (Direction::In, datagram(ends.1, ends.0, 30)),
        ];
        assert_eq!(seen, expected);
        assert!(before <= frames[0].stamp && frames[0].stamp <= frames[1].stamp);
        assert_eq!(capture.counts().unwrap().dropped, 0);
    }
}

#[test]
fn captures_all_segments_of_a_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let far = listener.local_addr().unwrap();
    let filter = Filter {
        near_port: None,
        ..filter(Protocol::Tcp, far, far)
    };
    let Some(mut capture) = open(filter) else { return };
    let mut client = TcpStream::connect(far).unwrap();
    let mut server = listener.accept().unwrap().0;
    client.write_all(&[1; 500]).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut read = Vec::new();
    server.read_to_end(&mut read).unwrap();
    drop(server);
    client.read_to_end(&mut read).unwrap();
    // SYN, SYN and ACK, ACK, data and FIN in one or two, their ACK, FIN, ACK.
    let seen = frames(&mut capture, 7);
    let tcp = |frame: &Frame| match frame.packet.transport {
        Transport::Tcp { flags, payload, .. } => (
            frame.direction,
            flags.contains(Flags::SYN),
            flags.contains(Flags::FIN),
            payload,
        ),
        other => panic!("{other:?}"),
    };
    assert_eq!(tcp(&seen[0]), (Direction::Out, true, false, 0));
    assert_eq!(tcp(&seen[1]), (Direction::In, true, false, 0));
    let bytes: u32 = seen.iter().map(|frame| tcp(frame).3).sum();
    assert_eq!(bytes, 500);
    for direction in [Direction::Out, Direction::In] {
        assert_eq!(
            seen.iter()
                .filter(|frame| tcp(frame).0 == direction && tcp(frame).2)
                .count(),
            1
        );
    }
}

#[test]
fn captures_fragments() {
    let [near, far] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let ends = (near.local_addr().unwrap(), far.local_addr().unwrap());
    let Some(mut capture) = open(filter(Protocol::Udp, ends.0, ends.1)) else {
        return;
    };
    // No loopback has an MTU that takes the largest datagram (65536 with its headers of 28).
    near.send_to(&[0; 65_507], ends.1).unwrap();
    let mtu = std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap();
    let mtu: usize = mtu.trim().parse().unwrap();
    let expected = match mtu >= 65_535 {
        true => 1,
        false => 65_515_usize.div_ceil((mtu - 20) / 8 * 8),
    };
    let seen = frames(&mut capture, expected);
    assert_eq!(seen.len(), expected);
    assert_eq!(seen[0].packet.is_fragment, expected > 1);
}

#[test]
fn names_a_missing_device() {
    let end: std::net::SocketAddr = "127.0.0.1:9".parse().unwrap();
    if open(filter(Protocol::Udp, end, end)).is_some() {
        let reported = Capture::open(Some("longfat-none"), filter(Protocol::Udp, end, end));
        assert!(reported.unwrap_err().to_string().contains("longfat-none"));
    }
}
