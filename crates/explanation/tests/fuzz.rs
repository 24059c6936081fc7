//! Arbitrary bytes and mutated packets: no panic, no endless loop, bounded memory.
//!
//! `LONGFAT_FUZZ` is the number of mutated packets.

use std::io::Cursor;

use explanation::report::CaptureReport;
use explanation::{CaptureFile, Connections};
use foundation::{Generator, Streams};
use proptest::prelude::*;

use crate::captures::{Order, Packet, enhanced, interface, pcap, section};

fn explain(bytes: Vec<u8>) {
    let Ok(mut file) = CaptureFile::open(Cursor::new(bytes)) else {
        return;
    };
    let found = Connections::read(&mut file, |_| true).expect("read");
    serde_json::to_string(&CaptureReport::of(&file, &found)).expect("document");
}

fn files() -> [Vec<u8>; 2] {
    let order = Order::Little;
    let mut packets = Vec::new();
    for number in 0..8 {
        packets.push(Packet::data(1 + 100 * number, 100));
        packets.push(Packet::ack(101 + 100 * number));
    }
    let frames: Vec<_> = packets.iter().map(|one| (1, 1000, one.ethernet())).collect();
    let mut ng = [section(order), interface(order, 1, &[(9, &[9])])].concat();
    for (tick, packet) in packets.iter().enumerate() {
        ng.extend(enhanced(order, 0, tick as u64 * 1_000_000, &packet.ethernet()));
    }
    [pcap(order, false, 1, &frames, 65535), ng]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testing::cases(2000)))]

    #[test]
    fn arbitrary_bytes_are_read_or_rejected(start in 0usize..5, rest in proptest::collection::vec(any::<u8>(), 0..600)) {
        let starts: [&[u8]; 5] = [
            b"",
            &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0],
            &[0x0a, 0x0d, 0x0d, 0x0a],
            &[0x1f, 0x8b, 8],
            &[0x28, 0xb5, 0x2f, 0xfd],
        ];
        explain([starts[start], &rest].concat());
    }

    #[test]
    fn mutated_files_are_read_as_far_as_they_are_valid(
        which in 0usize..2,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let mut file = files()[which].clone();
        for (place, value) in changes {
            let place = place.index(file.len());
            file[place] = value;
        }
        explain(file);
    }
}

/// Numbers below a bound.
struct Random(Generator);

impl Random {
    fn from_seed(seed: u64) -> Self {
        Self(Streams::new(seed, 0).stream("hostile"))
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound
    }
}

/// Returns a number near others, at the ends of the space, or anywhere.
fn number(random: &mut Random, near: u32) -> u32 {
    match random.below(12) {
        0 => random.next_u64() as u32,
        1 => u32::MAX - random.below(3000) as u32,
        2 => near.wrapping_add(1 << 31),
        3 => near.wrapping_sub(random.below(20_000) as u32),
        4 | 5 => near.wrapping_add(random.below(20_000) as u32),
        _ => near,
    }
}

/// Appends a frame of a hostile connection.
fn hostile(random: &mut Random, next: &mut [u32; 2], time: &mut u64, file: &mut Vec<u8>) {
    let from = random.below(2) as usize;
    let length = [0, 0, 1, 100, 1448, 40_000][random.below(6) as usize];
    let port = 1000 + random.below(3) as u16;
    let ports = if from == 0 { [port, 80] } else { [80, port] };
    let mut options = Vec::new();
    if random.below(3) == 0 {
        options.extend([1, 1, 8, 10]);
        options.extend((random.below(100) as u32).to_be_bytes());
        options.extend((random.below(100) as u32).to_be_bytes());
    }
    if random.below(4) == 0 {
        options.extend([1, 1, 5, 18]);
        for _ in 0..4 {
            let near = next[1 - from];
            options.extend(number(random, near).to_be_bytes());
        }
    }
    if random.below(20) == 0 {
        options = (0..random.below(10) * 4)
            .map(|_| random.next_u64() as u8)
            .collect();
    }
    let sequence = number(random, next[from]);
    let flags = match random.below(60) {
        0 => 2,
        1 => 18,
        2 => 17,
        3 => 4,
        4 => random.next_u64() as u8,
        _ => 16,
    };
    let mut tcp = Vec::new();
    tcp.extend(ports[0].to_be_bytes());
    tcp.extend(ports[1].to_be_bytes());
    tcp.extend(sequence.to_be_bytes());
    let near = next[1 - from];
    tcp.extend(number(random, near).to_be_bytes());
    tcp.extend([((20 + options.len()) as u8 / 4) << 4, flags]);
    let window = [0, 1, 1000, 65535][random.below(4) as usize] as u16;
    tcp.extend(window.to_be_bytes());
    tcp.extend([0; 4]);
    tcp.extend(&options);
    let total = 20 + tcp.len() + length;
    let mut ip = vec![0x45, 0, (total >> 8) as u8, total as u8, 0, 0, 0, 0, 64, 6, 0, 0];
    ip.extend([10, 0, 0, from as u8, 10, 0, 0, 1 - from as u8]);
    ip.extend(tcp);
    if random.below(200) == 0 {
        let place = random.below(ip.len() as u64) as usize;
        ip[place] = random.next_u64() as u8;
    }
    if random.below(3) > 0 {
        next[from] = sequence.wrapping_add(length as u32);
    }
    *time = match random.below(200) {
        0 => time.saturating_sub(random.below(10_000_000)),
        1 => random.next_u64() >> 14,
        _ => time.saturating_add(random.below(100_000)),
    };
    for field in [
        (*time / 1_000_000) as u32,
        (*time % 1_000_000) as u32,
        ip.len() as u32,
        total as u32,
    ] {
        file.extend(field.to_le_bytes());
    }
    file.extend(ip);
}

#[test]
fn hostile_packets_are_followed() {
    let packets = testing::count("LONGFAT_FUZZ", 400_000);
    let batch = 50_000;
    for seed in 0..packets.div_ceil(batch) {
        let mut random = Random::from_seed(seed);
        let mut file = pcap(Order::Little, false, 101, &[], 0);
        let (mut next, mut time) = ([number(&mut random, 5), number(&mut random, 7)], 1_000_000_000);
        for _ in 0..batch.min(packets) {
            hostile(&mut random, &mut next, &mut time, &mut file);
        }
        explain(file);
    }
}
