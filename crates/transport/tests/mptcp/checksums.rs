//! Wrong checksums (RFC 8684, section 3.7).

use transport::mptcp::segment::Checksum;
use transport::mptcp::{MptcpConfig, MptcpOption, PathIndex, Segment, Setup};
use transport::tcp::Flags;

use crate::mptcp::addresses::single;
use crate::mptcp::pair::{Pair, Sent, Side, at, ms};

const SIZE: u64 = 400_000;

/// Two paths with a round trip of 20 ms, of which the first segment with data from `from` on has a wrong checksum on `path`. Each
/// `lost`-th segment is lost.
fn pair(config: &MptcpConfig, path: u8, from: u64, lost: u64) -> Pair {
    let mut changed = false;
    let mut sent = 0;
    let change = move |_, side, on: PathIndex, segment: &mut Segment| {
        if let MptcpOption::Dss {
            mapping: Some(mapping),
            checksum,
            ..
        } = &mut segment.option
            && side == Side::Client
            && on == PathIndex(path)
            && mapping.data > from
            && !changed
        {
            assert_eq!(*checksum, Checksum::Correct);
            *checksum = Checksum::Wrong;
            changed = true;
        }
        sent += 1;
        let is_lost = lost > 0 && sent % lost == 0 && !segment.tcp.has(Flags::SYN);
        if is_lost { vec![] } else { vec![ms(10)] }
    };
    let pair = Pair::new(config, &[20, 20], SIZE, 1, Box::new(change));
    pair.with_setup(Setup::requiring_checksums)
}

fn fails(pair: &Pair) -> Vec<(Side, bool)> {
    let fails = pair
        .trace
        .iter()
        .filter(|sent| matches!(sent.packet.segment.option, MptcpOption::Fail { .. }));
    fails
        .map(|sent| (sent.from, sent.packet.segment.tcp.has(Flags::RST)))
        .collect()
}

fn infinite(sent: &&Sent) -> bool {
    matches!(
        sent.packet.segment.option,
        MptcpOption::Dss { mapping: Some(mapping), .. } if mapping.length == 0 && mapping.subflow > 0
    )
}

#[test]
fn subflow_with_a_wrong_checksum_is_reset_and_others_carry_its_data() {
    let all = r#"{"kind": "mptcp", "profile": "rfc", "policy": {"kind": "all", "first": "first"}}"#;
    let mut pair = pair(&serde_json::from_str(all).unwrap(), 1, 20_000, 0);
    pair.open();
    pair.run(at(60_000));
    assert!(pair.is_finished());
    assert_eq!(pair.ends[1].received, SIZE);
    assert_eq!(fails(&pair), [(Side::Server, true)]);
    assert!(!pair.connection(Side::Client).is_plain());
    assert_eq!(pair.trace.iter().filter(infinite).count(), 0);
}

#[test]
fn only_subflow_continues_as_plain_tcp_from_the_failed_mapping() {
    for (from, lost) in [
        (1, 0),
        (50_000, 0),
        (100_000, 0),
        (50_000, 31),
        (50_000, 17),
        (120_000, 13),
    ] {
        let mut pair = pair(&single(), 0, from, lost);
        pair.open();
        pair.run(at(300_000));
        assert!(pair.is_finished(), "{from} {lost}");
        assert_eq!(pair.ends[1].received, SIZE, "{from} {lost}");
        assert!([Side::Client, Side::Server].map(|side| pair.connection(side).is_plain()) == [true; 2]);
        let fails = fails(&pair);
        assert!(fails.iter().all(|(_, resets)| !resets));
        assert_eq!(fails.first(), Some(&(Side::Server, false)));
        assert!(
            fails.contains(&(Side::Client, false)),
            "the other direction falls back too"
        );
        let first = pair.trace.iter().position(|sent| infinite(&sent)).unwrap();
        let later = pair.trace[first..]
            .iter()
            .filter(|sent| sent.from == Side::Client);
        let mapped = later.filter(|sent| {
            matches!(sent.packet.segment.option, MptcpOption::Dss { mapping: Some(mapping), .. } if mapping.length > 0)
        });
        assert_eq!(mapped.count(), 0, "{from} {lost}");
    }
}

#[test]
fn checksums_are_absent_unless_an_end_requires_them() {
    let mut pair = Pair::lossless(&single(), &[20], 10_000);
    pair.open();
    pair.run(at(10_000));
    assert!(pair.is_finished());
    let has_checksum = |sent: &&Sent| match sent.packet.segment.option {
        MptcpOption::Dss { checksum, .. } => checksum != Checksum::Absent,
        MptcpOption::Capable {
            checksum, checksums, ..
        } => checksums || checksum != Checksum::Absent,
        _ => false,
    };
    assert_eq!(pair.trace.iter().filter(has_checksum).count(), 0);
}
