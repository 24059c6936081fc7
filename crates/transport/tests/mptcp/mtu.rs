//! Paths with a small MTU.

use foundation::Instant;
use proptest::prelude::*;
use transport::mptcp::segment::LEAST_MTU;
use transport::mptcp::{MptcpConfig, PathIndex, Segment};

use crate::mptcp::pair::{Pair, Side, at, ms};

/// Returns the bytes of the IPv4 packet of a segment.
fn packet_length(segment: &Segment) -> u32 {
    20 + segment.header_length() + segment.tcp.length
}

/// Transfers `size` bytes over paths of these round-trip times that drop packets above `mtu` and report it every 100
/// ms, for at most `tenths` × 100 ms.
fn transfer(rtts: &[u64], mtu: u32, timestamps: bool, size: u64, tenths: u64) -> Pair {
    let text = format!(r#"{{"kind": "mptcp", "profile": "rfc", "timestamps": {timestamps}}}"#);
    let config: MptcpConfig = serde_json::from_str(&text).unwrap();
    let paths = move |_: Instant, _: Side, path: PathIndex, segment: &mut Segment| {
        let carried = packet_length(segment) <= mtu;
        carried
            .then(|| ms(10 + 20 * u64::from(path.0)))
            .into_iter()
            .collect()
    };
    let mut pair = Pair::new(&config, rtts, size, 1, Box::new(paths));
    pair.open();
    for tenth in 1..=tenths {
        pair.run_until(at(100 * tenth));
        if pair.is_over() {
            break;
        }
        for side in [Side::Client, Side::Server] {
            if pair.ends[side as usize].connection.is_some() {
                pair.with(side, |connection, now| {
                    connection.handle_path_mtu(now, PathIndex(0), mtu);
                    connection.handle_path_mtu(now, PathIndex(1), mtu);
                });
            }
        }
    }
    pair
}

proptest! {
    #![proptest_config(ProptestConfig { cases: testing::cases(128), ..ProptestConfig::default() })]

    /// All data arrives with any MTU that a study may set for multipath TCP.
    #[test]
    fn delivers_data_over_any_mtu(
        mtu in prop_oneof![LEAST_MTU..LEAST_MTU + 20, LEAST_MTU..1500],
        timestamps in any::<bool>(),
        size in 1_u64..20_000,
        paths in 1_usize..=2,
    ) {
        let pair = transfer(&[20, 60][..paths], mtu, timestamps, size, 600);
        prop_assert!(pair.is_finished(), "{:?} at {:?}", pair.ends[1].received, pair.now);
        prop_assert_eq!(pair.ends[1].received, size);
    }
}

/// Every reported MTU leaves room for payload, regardless of the length of the options.
#[test]
fn any_reported_mtu_leaves_room_for_payload() {
    for mtu in [0, 20, 60].into_iter().chain(68..LEAST_MTU + 4) {
        for timestamps in [false, true] {
            let pair = transfer(&[20, 60], mtu, timestamps, 300, 20);
            let data = pair
                .trace
                .iter()
                .filter(|sent| sent.packet.segment.tcp.length > 0);
            let lengths = data
                .filter(|sent| sent.at > at(1000))
                .map(|sent| packet_length(&sent.packet.segment));
            let longest = lengths.max().unwrap_or(0);
            assert!(longest <= mtu.max(LEAST_MTU), "MTU {mtu}: {longest}");
            assert!(pair.trace.len() < 3000, "MTU {mtu}: {} packets", pair.trace.len());
        }
    }
}
