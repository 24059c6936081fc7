//! Segmentation offload between two kernels.

#![cfg(target_os = "linux")]

use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use emulation::{Emulation, EmulationOptions, IpPacket};
use foundation::checksum;
use network::{HostId, LinkId};
use socket::datagrams::{Datagrams, Peer};

use crate::common::{FAR, NEAR, data, options, path, start, transfer};

const MTU: usize = 1500;
const UNLIMITED: &str = r#"{"delay": "2ms"}"#;

/// Sends data over TCP from one host to the other; returns whether it arrived intact.
fn transfers(emulation: &Emulation, length: usize) -> bool {
    let data = data(length);
    transfer(emulation, &data) == data
}

/// A column of the line of a host's device in `/proc/net/dev`.
fn device_counter(emulation: &Emulation, host: HostId, column: usize) -> u64 {
    let text = emulation
        .in_host(host, || std::fs::read_to_string("/proc/thread-self/net/dev"))
        .unwrap();
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("longfat0:"));
    let value = line.and_then(|line| line.split_whitespace().nth(column));
    value.unwrap().parse().unwrap()
}

/// Packets that a host's device has received and sent, large ones counted once.
fn device_packets(emulation: &Emulation, host: HostId) -> (u64, u64) {
    const COLUMNS: (usize, usize) = (1, 9);
    (
        device_counter(emulation, host, COLUMNS.0),
        device_counter(emulation, host, COLUMNS.1),
    )
}

/// A counter of `/proc/net/snmp` at a host.
fn counter(emulation: &Emulation, host: HostId, protocol: &str, name: &str) -> u64 {
    let text = emulation
        .in_host(host, || std::fs::read_to_string("/proc/thread-self/net/snmp"))
        .unwrap();
    let prefix = format!("{protocol}: ");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(&prefix));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let place = names.split(' ').position(|word| word == name).unwrap();
    values.split(' ').nth(place).unwrap().parse().unwrap()
}

fn is_complete(packet: &IpPacket) -> bool {
    let bytes = packet.bytes();
    let octets = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    let length = (bytes.len() - 20) as u16;
    let pseudo = checksum::pseudo_header(octets(12), octets(16), packet.protocol(), length);
    checksum::of(&bytes[..20]) == 0 && pseudo.with(&bytes[20..]).checksum() == 0
}

fn delivered(emulation: &Emulation) -> u64 {
    emulation.with_network(|network, _| network.counters(LinkId(0)).delivered.packets)
}

#[test]
fn the_network_handles_single_packets_that_hosts_pass_as_one() {
    let Some(emulation) = start(options(path(UNLIMITED))) else {
        return;
    };
    emulation.record_packets();
    assert!(transfers(&emulation, 3_000_000));
    let events = emulation.take_packets();
    let packets: Vec<&IpPacket> = events.iter().filter_map(|event| event.packet.as_ref()).collect();
    assert!(packets.len() > 2000);
    assert!(packets.iter().all(|packet| packet.bytes().len() <= MTU));
    assert!(packets.iter().all(|packet| is_complete(packet)));
    let single = delivered(&emulation);
    let ((received, _), (_, sent)) = (device_packets(&emulation, FAR), device_packets(&emulation, NEAR));
    assert!(single >= 2000 && sent * 2 < single, "{sent} of {single}");
    assert!(received * 2 < single, "{received} of {single}");
}

#[test]
fn without_offload_hosts_pass_single_packets() {
    let slow = path(r#"{"rate": "200Mbit/s", "delay": "2ms"}"#);
    let switched_off = EmulationOptions {
        offload: false,
        ..options(path(UNLIMITED))
    };
    for options in [options(slow), switched_off] {
        let Some(emulation) = start(options) else {
            return;
        };
        assert!(transfers(&emulation, 1_000_000));
        // The last packets of the connection may still be in flight.
        let counts = || {
            let counters = emulation.with_network(|network, _| network.counters(LinkId(0)));
            let (received, sent) = (
                device_packets(&emulation, FAR).0,
                device_packets(&emulation, NEAR).1,
            );
            [
                (received, counters.delivered.packets),
                (sent, counters.entered.packets),
            ]
        };
        let are_equal = |counts: [(u64, u64); 2]| counts.iter().all(|(device, link)| device == link);
        let deadline = Instant::now() + Duration::from_secs(5);
        let mut found = counts();
        while !are_equal(found) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
            found = counts();
        }
        assert!(are_equal(found), "{found:?}");
    }
}

#[test]
fn corrupted_packets_arrive_with_a_wrong_checksum() {
    let Some(emulation) = start(options(path(
        r#"{"delay": "2ms", "corrupt": "2%", "duplicate": "1%"}"#,
    ))) else {
        return;
    };
    assert!(transfers(&emulation, 3_000_000));
    let counters = emulation.with_network(|network, _| network.counters(LinkId(0)));
    assert!(
        counters.corrupted.packets > 10 && counters.duplicated.packets > 0,
        "{counters:?}"
    );
    // Some flips are in the IP header.
    let noticed = counter(&emulation, FAR, "Tcp", "InCsumErrors");
    assert!(noticed > 0 && noticed <= counters.corrupted.packets, "{noticed}");
}

#[test]
fn trains_of_datagrams_arrive_as_single_datagrams() {
    const SIZE: usize = 100;
    const COUNT: usize = 30;
    let Some(emulation) = start(options(path(UNLIMITED))) else {
        return;
    };
    let receiver = emulation.in_host(FAR, || UdpSocket::bind("0.0.0.0:9")).unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let any = SocketAddr::from(([0, 0, 0, 0], 0));
    let sender = emulation.in_host(NEAR, || Datagrams::bind(any)).unwrap();
    let to = Peer::new(SocketAddrV4::new(emulation.host_address(FAR), 9).into());
    // The last datagram is shorter.
    let train = data(SIZE * COUNT - 7);
    sender.send(to, &train, SIZE).unwrap();
    let mut buffer = [0; 2 * SIZE];
    for expected in train.chunks(SIZE) {
        let length = receiver.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], expected);
    }
    assert_eq!(delivered(&emulation), COUNT as u64);
    assert_eq!(counter(&emulation, FAR, "Udp", "InErrors"), 0);
}
