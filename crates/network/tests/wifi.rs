//! Wi-Fi, compared with the model of Høiland-Jørgensen et al., USENIX ATC 2017, and with the contention of two stations.

use crate::common::{Arrival, Mark, drive, mark, path};
use foundation::Streams;
use network::{Capacity, FORWARD, LinkId, Network, Packet, PathConfig, REVERSE, Wifi};

const SECOND: u64 = 1_000_000_000;

fn wifi(rate: &str, frames: u32) -> Wifi {
    match path(&format!(
        r#"{{"wifi": {{"rate": "{rate}", "frames": {frames}, "txop": "10ms"}}}}"#
    ))
    .forward
    .capacity
    {
        Capacity::Wifi(wifi) => wifi,
        other => panic!("{other:?}"),
    }
}

/// Table 1 of the paper: mean aggregate in packets of 1500 bytes, rate of the physical layer, and base rate in Mbit/s.
#[test]
fn base_rates_are_those_of_the_paper() {
    for (frames, rate, expected) in [
        (4.47, "144.4Mbit/s", 97.3),
        (5.08, "144.4Mbit/s", 101.1),
        (1.89, "7.2Mbit/s", 6.5),
        (18.44, "144.4Mbit/s", 126.7),
        (18.52, "144.4Mbit/s", 126.8),
    ] {
        let found = wifi(rate, 1).base_rate(frames, 1500) / 1e6;
        assert!(
            (found - expected).abs() < 0.15,
            "{frames} at {rate}: {found} is not {expected}"
        );
    }
}

/// Returns packets of both directions that arrive at once at time 0.
fn backlog(forward: u64, reverse: u64, sizes: [u32; 2]) -> Vec<(u64, Packet<Mark>)> {
    let packets =
        |route, count, size| (0..count).map(move |number| (0, Packet::new(route, size, mark(number))));
    packets(FORWARD, forward, sizes[0])
        .chain(packets(REVERSE, reverse, sizes[1]))
        .collect()
}

fn network(keys: &str, seed: u64) -> Network<Mark> {
    let keys = format!(r#"{{"wifi": {keys}, "queue": "1000000pkt"}}"#);
    Network::two_hosts(&path(&keys), Streams::new(seed, 0))
}

/// Returns the rate in bit/s of the packets of 1500 bytes that arrive at a host in the first second.
fn goodput(arrivals: &[Arrival<Mark>], host: u32) -> f64 {
    let at = arrivals
        .iter()
        .filter(|arrival| arrival.host.0 == host && arrival.at <= SECOND);
    at.map(|arrival| f64::from(arrival.packet.size) * 8.0).sum()
}

/// One station sends at the base rate of its aggregates, for each number of frames.
#[test]
fn throughput_grows_with_aggregation_as_in_closed_form() {
    let mut before = 0.0;
    for frames in [1, 2, 4, 8, 16, 32, 64] {
        let mut network = network(
            &format!(r#"{{"rate": "144.4Mbit/s", "frames": {frames}, "txop": "10ms"}}"#),
            7,
        );
        let found = goodput(&drive(&mut network, backlog(12_500, 0, [1500; 2])), 1);
        let expected = wifi("144.4Mbit/s", frames).base_rate(f64::from(frames), 1500);
        assert!(
            (found / expected - 1.0).abs() < 0.01,
            "{frames} frames: {found} is not {expected}"
        );
        assert!(found > before);
        before = found;
    }
}

/// 4 ms at 7.2 Mbit/s hold two frames of 1544 bytes (3.46 ms with the preamble), and 1 ms holds none, but one is always sent.
#[test]
fn the_duration_limits_aggregates() {
    for (txop, expected) in [("4ms", 2), ("1ms", 1)] {
        let keys = format!(r#"{{"rate": "7.2Mbit/s", "txop": "{txop}"}}"#);
        let arrivals = drive(&mut network(&keys, 1), backlog(30, 0, [1500; 2]));
        for pair in arrivals.chunks(expected) {
            assert!(pair.iter().all(|arrival| arrival.at == pair[0].at), "{txop}");
        }
        let mut times: Vec<u64> = arrivals.iter().map(|arrival| arrival.at).collect();
        times.dedup();
        assert_eq!(times.len(), 30 / expected, "{txop}");
    }
}

/// A packet on an idle channel waits for no backoff: 32 µs of preamble, and 1544 bytes at 144.4 Mbit/s.
#[test]
fn an_idle_channel_is_used_immediately() {
    let mut network = network(r#"{"rate": "144.4Mbit/s"}"#, 1);
    let send = [(SECOND, Packet::new(FORWARD, 1500, mark(0)))];
    let arrivals = drive(&mut network, send);
    assert_eq!(arrivals[0].at - SECOND, 32_000 + 1544 * 8 * 10_000 / 1444);
}

/// Aggregates of both directions never overlap, and stations with data have equal chances. Both together lose what the
/// collisions take: of windows of 16 slots, one in 16 or more, so that 1.9 aggregates or fewer leave in the time of two.
#[test]
fn both_directions_share_the_channel() {
    let keys = r#"{"rate": "144.4Mbit/s", "frames": 16, "txop": "10ms"}"#;
    let alone = wifi("144.4Mbit/s", 16).base_rate(16.0, 1500);
    let mut sums = [0.0; 2];
    for seed in 1..=8 {
        let arrivals = drive(&mut network(keys, seed), backlog(12_800, 12_800, [1500; 2]));
        assert_eq!(arrivals.len(), 25_600, "collisions drop no packet");
        for (host, sum) in sums.iter_mut().enumerate() {
            *sum += goodput(&arrivals, host as u32) / 8.0;
        }
        is_exclusive(&arrivals);
    }
    let [there, back] = sums;
    assert!((there / back - 1.0).abs() < 0.06, "{there} and {back}");
    let share = (there + back) / alone;
    assert!((0.9..1.02).contains(&share), "{share}");
}

/// Asserts that no aggregate of 16 packets arrives in the airtime of another one.
fn is_exclusive(arrivals: &[Arrival<Mark>]) {
    let airtime = 32_000 + 16 * 1544 * 8 * 10_000 / 1444;
    let mut times: Vec<u64> = arrivals.iter().map(|arrival| arrival.at).collect();
    times.dedup();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= airtime + 34_000));
}

/// ACKs that arrive evenly leave in bursts while data in the other direction occupies the channel.
#[test]
fn acknowledgements_are_compressed() {
    let keys = r#"{"rate": "144.4Mbit/s", "frames": 32}"#;
    let mut sends = backlog(5_000, 0, [1500; 2]);
    sends.extend((0..1_000).map(|number| (number * 200_000, Packet::new(REVERSE, 52, mark(number)))));
    sends.sort_by_key(|(at, _)| *at);
    let arrivals = drive(&mut network(keys, 5), sends);
    let acks: Vec<u64> = arrivals
        .iter()
        .filter(|arrival| arrival.host.0 == 0)
        .map(|arrival| arrival.at)
        .collect();
    assert_eq!(acks.len(), 1_000);
    let mut bursts = acks.clone();
    bursts.dedup();
    let mean = acks.len() as f64 / bursts.len() as f64;
    // An aggregate of 32 packets takes 2.8 ms with its overhead, in which 14 ACKs arrive.
    assert!((8.0..25.0).contains(&mean), "{mean}");
}

#[test]
fn the_same_seed_draws_the_same_backoffs() {
    let keys = r#"{"rate": "144.4Mbit/s", "frames": 4}"#;
    let times = |seed| {
        let arrivals = drive(&mut network(keys, seed), backlog(200, 200, [1500, 52]));
        arrivals
            .iter()
            .map(|arrival| (arrival.at, arrival.host.0))
            .collect::<Vec<_>>()
    };
    assert_eq!(times(1), times(1));
    assert_ne!(times(1), times(2));
}

/// An outage of one direction ends its contention, and the other one has the channel.
#[test]
fn an_outage_leaves_the_channel_to_the_other_direction() {
    let keys = r#"{"wifi": {"rate": "144.4Mbit/s", "frames": 16}, "queue": "1000000pkt", "reverse": {"down": ["0.2s..9s"]}}"#;
    let mut network = Network::two_hosts(&path(keys), Streams::new(1, 0));
    let arrivals = drive(&mut network, backlog(12_500, 12_500, [1500; 2]));
    assert_eq!(
        arrivals.iter().filter(|arrival| arrival.host.0 == 1).count(),
        12_500
    );
    let counters = network.counters(LinkId(1));
    assert_eq!(
        counters.outage_dropped.packets + counters.delivered.packets,
        12_500
    );
    assert!(counters.outage_dropped.packets > 10_000);
}

#[test]
fn wrong_keys_are_refused() {
    let problem = |json: &str| {
        let config: PathConfig = serde_json::from_str(json).unwrap();
        config.validate()[0].to_string()
    };
    assert_eq!(
        problem(r#"{"wifi": {"rate": "10Mbit/s", "frames": 0}}"#),
        "wifi.frames: 0 is out of range: 1 to 256"
    );
    assert_eq!(
        problem(r#"{"wifi": {"rate": "10Mbit/s", "txop": "11ms"}}"#),
        r#"wifi.txop: "11ms" is out of range: above "0s", at most "10ms""#
    );
    assert_eq!(
        problem(r#"{"wifi": {"rate": "10Mbit/s"}, "trace": "a"}"#),
        "wifi: wifi and trace exclude each other: remove one of them"
    );
    let missing = serde_json::from_str::<PathConfig>(r#"{"wifi": {"frames": 2}}"#)
        .unwrap_err()
        .to_string();
    assert!(missing.contains("rate"), "{missing}");
}
