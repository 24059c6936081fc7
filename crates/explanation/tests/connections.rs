//! Captures of very many connections.

use std::io::Cursor;

use explanation::causes::Cause;
use explanation::report::CaptureReport;
use explanation::round_trips::Position;
use explanation::{CaptureFile, Connections};

use crate::captures::{Order, Packet, enhanced, interface, pcap, section};

#[test]
fn the_largest_of_many_connections_are_kept() {
    let many = 40_000;
    let mut frames = Vec::new();
    for number in 0..many {
        // Each 100th connection has data; the first one receives some until the end.
        for (place, length) in [(number, if number % 100 == 0 { 1000 } else { 1 }), (0, 5)] {
            let mut packet = Packet::data(1, length);
            packet.sequence = if place == 0 { 1 + 5 * number } else { 1 };
            let mut bytes = packet.ip();
            bytes[12..16].copy_from_slice(&(0x0a00_0000 + place).to_be_bytes());
            frames.push((number, 0, bytes));
        }
    }
    let mut file =
        CaptureFile::open(Cursor::new(pcap(Order::Little, false, 101, &frames, 100))).expect("capture");
    let found = Connections::read(&mut file, |_| true).expect("read");
    let report = CaptureReport::of(&file, &found);
    assert_eq!(report.connections.len(), 1000);
    assert_eq!(report.omitted.connections, u64::from(many) - 1000);
    let largest = &report.connections[0];
    assert_eq!(
        (largest.stream, largest.directions[0].packets),
        (0, u64::from(many) + 1)
    );
    let with_data = report
        .connections
        .iter()
        .filter(|one| one.directions[0].bytes >= 1000);
    assert_eq!(with_data.count(), 400);
    let packets: u64 = report
        .connections
        .iter()
        .map(|one| one.directions[0].packets)
        .sum();
    assert_eq!(packets + report.omitted.packets, report.frames);
}

#[test]
fn a_capture_of_both_hosts_has_each_connection_once() {
    let order = Order::Little;
    let mut file = [section(order), interface(order, 1, &[]), interface(order, 1, &[])].concat();
    for number in 0..10_u32 {
        let sent = u64::from(number) * 1000;
        let data = Packet::data(1 + number * 100, 100).ethernet();
        let ack = Packet::ack(101 + number * 100).ethernet();
        for (interface, time, packet) in [(0, 0, &data), (1, 400, &data), (1, 400, &ack), (0, 800, &ack)] {
            file.extend(enhanced(order, interface, sent + time, packet));
        }
    }
    let mut file = CaptureFile::open(Cursor::new(file)).expect("capture");
    let found = Connections::read(&mut file, |_| true).expect("read");
    let report = CaptureReport::of(&file, &found);
    assert_eq!(
        (report.connections.len(), report.others.other_interfaces),
        (1, 20)
    );
    let client = &report.connections[0].directions[0];
    assert_eq!(
        (client.packets, client.bytes, client.repeated_packets),
        (10, 1000, 0)
    );
}

#[test]
fn packets_of_every_further_interface_are_counted() {
    let order = Order::Little;
    let mut file = section(order);
    for _ in 0..6 {
        file.extend(interface(order, 1, &[]));
    }
    for number in 0..10_u32 {
        let data = Packet::data(1 + number * 100, 100).ethernet();
        for place in 0..6 {
            file.extend(enhanced(order, place, u64::from(number) * 1000, &data));
        }
    }
    let mut file = CaptureFile::open(Cursor::new(file)).expect("capture");
    let found = Connections::read(&mut file, |_| true).expect("read");
    let report = CaptureReport::of(&file, &found);
    assert_eq!(
        (report.connections.len(), report.others.other_interfaces),
        (1, 50)
    );
    assert_eq!(report.connections[0].directions[0].packets, 10);
}

#[test]
fn a_capture_of_both_hosts_is_that_of_the_sender() {
    let order = Order::Little;
    let way = 20_000;
    // The client opens the connection and is captured first; the server sends the data.
    let mut syn = Packet::data(0, 0);
    (syn.is_syn, syn.acknowledgement) = (true, None);
    let mut answer = Packet::ack(1);
    (answer.is_syn, answer.sequence) = (true, 0);
    let mut frames = vec![
        (0, 0, syn),
        (way, 1, syn),
        (way, 1, answer),
        (2 * way, 0, answer),
        (2 * way, 0, Packet::data(1, 0)),
        (3 * way, 1, Packet::data(1, 0)),
    ];
    for number in 0..50_u32 {
        let sent = 3 * way + u64::from(number) * 1000;
        let mut data = Packet::ack(1);
        (data.sequence, data.length) = (1 + number * 1000, 1000);
        let mut ack = Packet::data(1, 0);
        ack.acknowledgement = Some(data.sequence + 1000);
        frames.extend([
            (sent, 1, data),
            (sent + way, 0, data),
            (sent + way, 0, ack),
            (sent + 2 * way, 1, ack),
        ]);
    }
    frames.sort_by_key(|&(time, interface, _)| (time, interface));
    let mut file = [section(order), interface(order, 1, &[]), interface(order, 1, &[])].concat();
    for (time, interface, packet) in &frames {
        file.extend(enhanced(order, *interface, *time, &packet.ethernet()));
    }
    let mut file = CaptureFile::open(Cursor::new(file)).expect("capture");
    let found = Connections::read(&mut file, |_| true).expect("read");
    let report = CaptureReport::of(&file, &found);
    let [one] = &report.connections[..] else {
        panic!("{} connections", report.connections.len());
    };
    assert_eq!(
        (one.interface, one.stream, report.others.other_interfaces),
        (1, 0, 103)
    );
    let server = &one.directions[1];
    assert_eq!((server.bytes, server.path.position), (50_000, Position::Sender));
    assert!((server.path.base_rtt_s.unwrap_or_default() - 0.04).abs() < 1e-6);
}

/// Returns the data of the client in a capture of packets, each with its time in microseconds.
fn explained(packets: &[(u32, Packet)]) -> explanation::report::DirectionReport {
    let frames: Vec<(u32, u32, Vec<u8>)> = packets
        .iter()
        .map(|(time, packet)| (time / 1_000_000, time % 1_000_000, packet.ethernet()))
        .collect();
    let bytes = pcap(Order::Little, false, 1, &frames, 200);
    let mut file = CaptureFile::open(Cursor::new(bytes)).expect("capture");
    let found = Connections::read(&mut file, |_| true).expect("read");
    let mut report = CaptureReport::of(&file, &found);
    let [client, _] = report.connections.remove(0).directions;
    client
}

fn time_of(found: &explanation::report::DirectionReport, cause: Cause) -> f64 {
    let spent = found.causes.iter().find(|one| one.cause == cause);
    spent.map_or(0.0, |one| one.time_s)
}

/// Returns small writes over a path of 10 ms, whose receiver delays each ACK by some time. Each write follows an ACK after `pause`.
fn small_writes(delay: u32, pause: u32) -> Vec<(u32, Packet)> {
    let mut packets = vec![(0, Packet::data(1, 100)), (10_000, Packet::ack(101))];
    let mut now = 20_000;
    for number in 1..50 {
        packets.push((now, Packet::data(1 + number * 100, 100)));
        now += 10_000 + delay;
        packets.push((now, Packet::ack(101 + number * 100)));
        now += pause;
    }
    packets
}

#[test]
fn small_writes_that_wait_for_delayed_acks_are_named() {
    let found = explained(&small_writes(40_000, 100));
    // Each of the 49 ACKs is 40 ms late, and the next write waits for it; none follows the last one.
    let waited = time_of(&found, Cause::DelayedAck);
    assert!((waited - 48.0 * 0.040).abs() < 0.002, "{waited}");
}

#[test]
fn writes_after_a_pause_do_not_wait_for_delayed_acks() {
    for packets in [small_writes(40_000, 30_000), small_writes(0, 100)] {
        assert!(time_of(&explained(&packets), Cause::DelayedAck) < 1e-9);
    }
}

/// Returns flights of 4 packets, each sent when the one before is acknowledged; the RTT is 20 ms until `at`, and then `after`.
fn flights(at: u32, after: u32) -> Vec<(u32, Packet)> {
    let (mut packets, mut now, mut sequence) = (Vec::new(), 0, 1);
    for _ in 0..60 {
        let rtt = if now < at { 20_000 } else { after };
        for place in 0..4 {
            packets.push((now + place, Packet::data(sequence + place * 1448, 1448)));
        }
        sequence += 4 * 1448;
        now += rtt;
        packets.push((now, Packet::ack(sequence)));
    }
    packets
}

#[test]
fn a_step_of_the_rtt_is_a_change_of_the_path() {
    for after in [45_000, 12_000] {
        let found = explained(&flights(500_000, after));
        let [change] = found.path.changes.as_slice() else {
            panic!("{:?}", found.path.changes)
        };
        // The first packets have no ACK yet, and the round trip after the last one that is short starts the new path.
        assert!((change.time_s - 0.5).abs() < 0.041, "{}", change.time_s);
        assert!((change.before_s - 0.020).abs() < 1e-4, "{}", change.before_s);
        assert!(
            (change.after_s * 1e6 - f64::from(after)).abs() < 100.0,
            "{}",
            change.after_s
        );
    }
}

#[test]
fn a_small_step_of_the_rtt_is_none() {
    assert!(explained(&flights(500_000, 22_000)).path.changes.is_empty());
}

/// Returns a handshake and full segments at regular intervals, captured at the sender: the ACK of each comes `rtt` µs later.
fn regular(interval: u32, rtt: u32, is_push: bool) -> Vec<(u32, Packet)> {
    let mut syn = Packet::data(0, 0);
    (syn.is_syn, syn.acknowledgement) = (true, None);
    let mut answer = Packet::ack(1);
    (answer.is_syn, answer.sequence) = (true, 0);
    let handshake = [(0, syn), (rtt, answer), (rtt, Packet::data(1, 0))];
    let data = (0..400).flat_map(|number| {
        let (sent, start) = (rtt + number * interval, 1 + number * 1448);
        let mut data = Packet::data(start, 1448);
        data.is_push = is_push;
        [(sent, data), (sent + rtt, Packet::ack(start + 1448))]
    });
    let mut packets: Vec<(u32, Packet)> = handshake.into_iter().chain(data).collect();
    packets.sort_by_key(|&(time, _)| time);
    packets
}

#[test]
fn writes_at_regular_intervals_are_the_application() {
    // Closer than a sixteenth of the RTT, shortly after each ACK, once per RTT, and after each ACK of the last one.
    for (interval, rtt) in [(1900, 18_600), (5900, 36_200), (40_000, 39_000), (25_400, 18_000)] {
        let found = explained(&regular(interval, rtt, true));
        let time = f64::from(399 * interval + rtt) / 1e6;
        let spent = time_of(&found, Cause::Application);
        assert!(
            spent > 0.8 * time,
            "{interval} µs: {spent} of {time} s {:?}",
            found.causes
        );
    }
}

#[test]
fn a_file_at_regular_intervals_is_paced() {
    let found = explained(&regular(1900, 18_600, false));
    assert!(time_of(&found, Cause::Pacing) > 0.6 * 0.76, "{:?}", found.causes);
    assert!(time_of(&found, Cause::Application) < 0.05);
}
