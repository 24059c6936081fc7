//! Frames of files in each format, whole, cut and corrupt.

use std::io::{Cursor, Write};

use explanation::{CaptureError, CaptureFile};

use crate::captures::{Order, Packet, block, enhanced, interface, pcap, section};

const ORDERS: [Order; 2] = [Order::Little, Order::Big];
const RAW: u32 = 101;

/// Number, nanoseconds, type of link, bytes and length of a frame.
type Read = (u64, u64, u32, Vec<u8>, u32);

fn read(bytes: Vec<u8>) -> Result<(Vec<Read>, Option<String>), CaptureError> {
    let mut file = CaptureFile::open(Cursor::new(bytes))?;
    let mut found = Vec::new();
    while let Some(frame) = file.next_frame()? {
        let time = frame.time.as_nanos();
        found.push((
            frame.number,
            time,
            frame.link.into(),
            frame.data.to_vec(),
            frame.length,
        ));
    }
    assert_eq!(file.frames(), found.len() as u64);
    Ok((found, file.ended_early().map(str::to_owned)))
}

fn frames() -> Vec<(u32, u32, Vec<u8>)> {
    (0..5)
        .map(|number| {
            (
                1_700_000_000 + number,
                123_456,
                Packet::data(1 + 100 * number, 100).ip(),
            )
        })
        .collect()
}

#[test]
fn reads_pcap_in_both_byte_orders_and_resolutions() {
    for order in ORDERS {
        for (is_nanos, nanos) in [(false, 123_456_000), (true, 123_456)] {
            let (found, early) = read(pcap(order, is_nanos, RAW, &frames(), 64)).expect("capture");
            assert_eq!(early, None);
            assert_eq!(found.len(), 5);
            for (place, (number, time, link, data, length)) in found.into_iter().enumerate() {
                assert_eq!(number, place as u64 + 1);
                assert_eq!(time, (1_700_000_000 + place as u64) * 1_000_000_000 + nanos);
                assert_eq!((link, data.len(), length), (RAW, 64, 140));
                assert_eq!(data, frames()[place].2[..64]);
            }
        }
    }
}

#[test]
fn reads_pcapng_with_interfaces_of_other_links_and_resolutions() {
    for order in ORDERS {
        let packet = Packet::data(1, 10);
        let offset = match order {
            Order::Little => 7u64.to_le_bytes(),
            Order::Big => 7u64.to_be_bytes(),
        };
        let file = [
            section(order),
            interface(order, 1, &[]),
            interface(order, 101, &[(9, &[9])]),
            interface(order, 101, &[(9, &[0x80 | 10])]),
            interface(order, 101, &[(9, &[0]), (14, &offset)]),
            enhanced(order, 0, 5_000_001, &packet.ethernet()),
            enhanced(order, 1, 5_000_000_001, &packet.ip()),
            // A name resolution and a block that no program has.
            block(order, 4, &[0; 4]),
            block(order, 0x0bad_beef, &[1; 40]),
            enhanced(order, 2, 5 * 1024 + 512, &packet.ip()),
            enhanced(order, 3, 5, &packet.ip()),
        ]
        .concat();
        let (found, early) = read(file).expect("capture");
        assert_eq!(early, None);
        let times: Vec<(u64, u32)> = found.iter().map(|one| (one.1, one.2)).collect();
        let expected = [
            (5_000_001_000, 1),
            (5_000_000_001, 101),
            (5_500_000_000, 101),
            (12_000_000_000, 101),
        ];
        assert_eq!(times, expected);
        assert_eq!(found[0].3, packet.ethernet());
    }
}

#[test]
fn a_section_starts_with_its_own_order_and_interfaces() {
    let packet = Packet::data(1, 10);
    let mut file = Vec::new();
    for (order, link) in [(Order::Little, 101), (Order::Big, 228)] {
        file.extend(section(order));
        file.extend(interface(order, link, &[]));
        file.extend(enhanced(order, 0, 1, &packet.ip()));
    }
    let (found, early) = read(file).expect("capture");
    assert_eq!(early, None);
    assert_eq!(found.iter().map(|one| one.2).collect::<Vec<_>>(), [101, 228]);
}

#[test]
fn a_frame_without_time_has_that_of_the_frame_before() {
    let order = Order::Little;
    let data = Packet::data(1, 10).ip();
    let simple = [&order.u32(data.len() as u32)[..], &data].concat();
    let file = [
        section(order),
        interface(order, 101, &[]),
        enhanced(order, 0, 9, &data),
        block(order, 3, &simple),
        enhanced(order, 0, 10, &data),
    ]
    .concat();
    let (found, _) = read(file).expect("capture");
    let times: Vec<(u64, u64)> = found.iter().map(|one| (one.0, one.1)).collect();
    assert_eq!(times, [(1, 9000), (2, 9000), (3, 10_000)]);
    assert_eq!(found[1].3, data);
}

#[test]
fn reads_compressed_files() {
    let plain = pcap(Order::Little, false, RAW, &frames(), 65535);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).expect("gzip");
    let gzip = gzip.finish().expect("gzip");
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let zstd = ruzstd::encoding::compress_to_vec(&plain[..], level);
    let expected = read(plain).expect("capture").0;
    assert_eq!(read(gzip.clone()).expect("gzip"), (expected.clone(), None));
    assert_eq!(read(zstd.clone()).expect("zstd"), (expected.clone(), None));
    for file in [gzip, zstd] {
        let cut = file[..file.len() - file.len() / 4].to_vec();
        if let Ok((found, early)) = read(cut) {
            assert!(early.is_some(), "{} frames", found.len());
            assert_eq!(found[..], expected[..found.len()]);
        }
    }
}

#[test]
fn a_cut_file_has_the_frames_before_the_cut() {
    let order = Order::Big;
    let data = Packet::data(1, 40).ip();
    let parts: Vec<Vec<u8>> = (0..4).map(|tick| enhanced(order, 0, tick, &data)).collect();
    let head = [section(order), interface(order, 101, &[])].concat();
    check_cuts(&head, &parts);
    let whole = pcap(order, false, RAW, &frames(), 65535);
    let parts: Vec<Vec<u8>> = whole[24..].chunks(16 + 140).map(<[u8]>::to_vec).collect();
    check_cuts(&whole[..24], &parts);
}

/// Reads a file that is cut at every byte of its frames.
fn check_cuts(head: &[u8], parts: &[Vec<u8>]) {
    let file = [head, &parts.concat()].concat();
    let mut ends = vec![head.len()];
    for part in parts {
        ends.push(ends[ends.len() - 1] + part.len());
    }
    for cut in 0..file.len() {
        let result = read(file[..cut].to_vec());
        if cut < head.len() {
            match result {
                Ok((found, _)) => assert!(found.is_empty()),
                Err(CaptureError::Empty) => assert_eq!(cut, 0),
                Err(error) => assert!(matches!(error, CaptureError::Format), "{cut}: {error}"),
            }
            continue;
        }
        let (found, early) = result.expect("capture");
        let whole = ends.iter().filter(|&&end| end <= cut).count() - 1;
        assert_eq!(found.len(), whole, "cut at {cut}");
        let expected = (!ends.contains(&cut)).then(|| format!("the file is cut after frame {whole}"));
        assert_eq!(early, expected, "cut at {cut}");
    }
}

#[test]
fn a_corrupt_block_ends_the_capture() {
    let order = Order::Little;
    let data = Packet::data(1, 40).ip();
    let mut file = [section(order), interface(order, 101, &[])].concat();
    file.extend(enhanced(order, 0, 1, &data));
    let mut corrupt = enhanced(order, 0, 2, &data);
    // The captured length exceeds the block.
    corrupt[20..24].copy_from_slice(&order.u32(5000));
    file.extend(corrupt);
    file.extend(enhanced(order, 0, 3, &data));
    let (found, early) = read(file).expect("capture");
    assert_eq!(found.len(), 1);
    assert!(early.is_some_and(|text| text.contains("after frame 1")));
}

#[test]
fn rejects_other_formats() {
    for (bytes, expected) in [
        (&b""[..], CaptureError::Empty.to_string()),
        (b"abc", CaptureError::Format.to_string()),
        (b"[General]\nkey = 1\n", CaptureError::Format.to_string()),
        (
            b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0",
            CaptureError::Format.to_string(),
        ),
        (b"\xd4\xc3\xb2\xa1", CaptureError::Format.to_string()),
    ] {
        assert_eq!(
            read(bytes.to_vec()).expect_err("no capture").to_string(),
            expected
        );
    }
    assert!(read(b"\x1f\x8bnot gzip at all".to_vec()).is_err());
    assert!(read(b"\x28\xb5\x2f\xfdnot zstd".to_vec()).is_err());
}
