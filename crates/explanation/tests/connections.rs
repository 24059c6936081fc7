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

/// A capture at the sender of full segments, each acknowledged after the RTT.
struct Transfer {
    packets: Vec<(u32, Packet)>,
    now: u32,
    sequence: u32,
}

const IDLE_RTT: u32 = 40_000;
const INTERVAL: u32 = 100;

impl Transfer {
    fn new() -> Self {
        Self {
            packets: regular(1, IDLE_RTT, false)[..3].to_vec(),
            now: IDLE_RTT,
            sequence: 1,
        }
    }

    /// Sends a flight that starts with the first ACK of the one before.
    fn round(&mut self, segments: u32, rtt: u32) {
        for place in 0..segments {
            let sent = self.now + place * INTERVAL;
            self.packets.push((sent, Packet::data(self.sequence, 1448)));
            self.sequence += 1448;
            self.packets.push((sent + rtt, Packet::ack(self.sequence)));
        }
        self.now += rtt;
    }

    /// Sends a flight whose first segment is lost, and retransmits it after the third duplicate ACK.
    fn lossy_round(&mut self, segments: u32) {
        let first = self.sequence;
        for place in 0..segments {
            let sent = self.now + place * INTERVAL;
            self.packets.push((sent, Packet::data(self.sequence, 1448)));
            self.sequence += 1448;
            if place > 0 {
                self.packets.push((sent + IDLE_RTT, Packet::ack(first)));
            }
        }
        let again = self.now + IDLE_RTT + 4 * INTERVAL;
        self.packets.push((again, Packet::data(first, 1448)));
        self.packets.push((again + IDLE_RTT, Packet::ack(self.sequence)));
        self.now = again + IDLE_RTT;
    }

    fn explained(mut self) -> explanation::report::DirectionReport {
        self.packets.sort_by_key(|&(time, _)| time);
        explained(&self.packets)
    }
}

/// Returns a transfer with slow start, a loss, two round trips with a queue, and growth by one segment per RTT.
fn congestion_avoidance(first: u32) -> explanation::report::DirectionReport {
    let mut transfer = Transfer::new();
    for segments in [4, 8, 16] {
        transfer.round(segments, IDLE_RTT);
    }
    transfer.lossy_round(32);
    for rtt in [60_000, 60_000] {
        transfer.round(first, rtt);
    }
    for segments in first..first + 14 {
        transfer.round(segments, IDLE_RTT);
    }
    transfer.explained()
}

#[test]
fn growth_by_a_segment_per_rtt_after_a_loss_belongs_to_the_loss() {
    for first in [5, 10, 15] {
        let found = congestion_avoidance(first);
        let lost = time_of(&found, Cause::RandomLoss);
        assert!(lost > 13.0 * 0.040, "{first}: {lost} {:?}", found.causes);
        let slow_start = time_of(&found, Cause::SlowStart);
        assert!(
            (0.1..0.2).contains(&slow_start),
            "{first}: {slow_start} {:?}",
            found.causes
        );
    }
}

#[test]
fn a_flight_that_a_loss_reduced_is_not_constant() {
    for first in [5, 15, 24] {
        let found = congestion_avoidance(first);
        for cause in [Cause::SendBuffer, Cause::Pacing] {
            assert!(time_of(&found, cause) < 1e-9, "{first}: {:?}", found.causes);
        }
    }
}

#[test]
fn the_evidence_of_an_interval_is_that_of_its_frames() {
    let found = congestion_avoidance(10);
    let interval = |cause| {
        let all = found.intervals.iter().filter(|one| one.cause == cause);
        all.max_by(|a, b| (a.end_s - a.start_s).total_cmp(&(b.end_s - b.start_s)))
            .expect("interval")
    };
    let slow_start = &interval(Cause::SlowStart).evidence;
    assert_eq!(slow_start.first_flight, 4 * 1448);
    assert_eq!(slow_start.repeated, 0);
    let grown = &interval(Cause::RandomLoss).evidence;
    assert!(grown.flight < 32 * 1448, "{grown:?}");
    let queued = found.intervals.iter().find(|one| one.evidence.queue_s.is_some());
    let queue = queued.and_then(|one| one.evidence.queue_s).expect("queue");
    assert!((queue - 0.020).abs() < 1e-3, "{queue}");
}

#[test]
fn linear_growth_without_a_loss_is_no_slow_start() {
    let mut transfer = Transfer::new();
    for segments in [3, 6, 12].into_iter().chain(13..38) {
        transfer.round(segments, IDLE_RTT);
    }
    let found = transfer.explained();
    let slow_start = time_of(&found, Cause::SlowStart);
    assert!(
        (0.1..0.3).contains(&slow_start),
        "{slow_start} {:?}",
        found.causes
    );
    let growth = time_of(&found, Cause::WindowGrowth);
    assert!(growth > 20.0 * 0.040, "{growth} {:?}", found.causes);
}

#[test]
fn a_delayed_ack_of_several_segments_and_a_probe_are_no_queue() {
    let mut transfer = Transfer::new();
    for segments in 10..20 {
        transfer.round(segments, IDLE_RTT);
    }
    // The ACK of the first two segments is lost, and that of the third one is delayed. Meanwhile a probe is sent.
    let start = transfer.now;
    for place in 0..3 {
        let data = Packet::data(transfer.sequence, 1448);
        transfer.packets.push((start + place * INTERVAL, data));
        transfer.sequence += 1448;
    }
    let probe = Packet::data(transfer.sequence, 1448);
    transfer.packets.push((start + 83_000, probe));
    let late = Packet::ack(transfer.sequence);
    transfer.packets.push((start + 84_700, late));
    transfer.sequence += 1448;
    transfer.now = start + 84_700;
    transfer
        .packets
        .push((start + 83_000 + IDLE_RTT, Packet::ack(transfer.sequence)));
    for segments in 3..10 {
        transfer.round(segments, IDLE_RTT);
    }
    let found = transfer.explained();
    assert_eq!(found.path.standing_queue_s, None);
    for cause in [Cause::Bandwidth, Cause::Bufferbloat] {
        assert!(time_of(&found, cause) < 1e-9, "{:?}", found.causes);
    }
}

#[test]
fn one_rtt_alone_is_no_evidence_of_a_queue() {
    let mut transfer = Transfer::new();
    for segments in 10..20 {
        transfer.round(segments, IDLE_RTT);
    }
    // After a pause, a single segment has its ACK 15 ms late.
    transfer.now += 500_000;
    transfer.round(1, IDLE_RTT + 15_000);
    transfer.round(1, IDLE_RTT);
    let found = transfer.explained();
    assert_eq!(found.path.standing_queue_s, None);
    for cause in [Cause::Bandwidth, Cause::Bufferbloat] {
        assert!(time_of(&found, cause) < 1e-9, "{:?}", found.causes);
    }
}

#[test]
fn late_packets_and_their_hole_count_once() {
    let mut packets = vec![(0, Packet::data(1, 1448)), (10_000, Packet::ack(1449))];
    // The second and the third come late, as one large packet; the fifth is lost.
    for (time, number, length) in [
        (20_000, 3, 1448),
        (20_100, 1, 2896),
        (20_200, 4, 1448),
        (20_300, 5, 1448),
    ] {
        packets.push((time, Packet::data(1 + number * 1448, length)));
    }
    packets.push((60_000, Packet::data(1 + 4 * 1448, 1448)));
    let found = explained(&packets);
    assert_eq!((found.reordered, found.lost), (1, vec![5]));
}

#[test]
fn segments_without_timestamps_are_full_ones() {
    let mut packets: Vec<_> = (0..4)
        .map(|number| (number * 100, Packet::data(1 + number * 1460, 1460)))
        .collect();
    packets.push((40_000, Packet::data(1 + 2 * 1460, 1460)));
    let found = explained(&packets);
    assert_eq!((found.large, found.path.mss, found.lost), (0, 1460, vec![3]));
}
