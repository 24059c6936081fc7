//! Captures of very many connections.

use std::io::Cursor;

use explanation::report::CaptureReport;
use explanation::{CaptureFile, Connections};

use crate::captures::{Order, Packet, pcap};

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
