//! Cells, compared with links of one user and with the shares that the schedulers have in closed form.

use std::sync::Arc;

use crate::common::{Arrival, Mark, drive, mark};
use foundation::{Duration, Streams};
use network::{
    Capacity, Cell, CellScheduler, DeliveryTrace, HostId, LinkSpec, Network, NetworkBuilder, Packet,
    PathConfig, RouteId, Subscriber,
};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const PACKET: u32 = 1500;

fn trace(times: &[u64]) -> Arc<DeliveryTrace> {
    let lines: Vec<String> = times.iter().map(u64::to_string).collect();
    Arc::new(DeliveryTrace::parse(&lines.join("\n")).unwrap())
}

/// Returns a trace with these opportunities in each millisecond.
fn rates(counts: &[u64]) -> Arc<DeliveryTrace> {
    let times = (1..)
        .zip(counts)
        .flat_map(|(at, &count)| vec![at; count as usize]);
    trace(&times.collect::<Vec<u64>>())
}

fn cell(scheduler: CellScheduler, traces: Vec<Arc<DeliveryTrace>>) -> Cell {
    Cell {
        traces,
        scheduler,
        window: Duration::from_millis(100),
        shift: Duration::ZERO,
        users: Subscriber::Far,
    }
}

/// Returns a link of a cell with a route to each of `users` hosts, which host 0 sends.
fn downlink(cell: Cell, users: u32, queue: &str) -> Network<Mark> {
    let spec = LinkSpec {
        capacity: Capacity::Cell(Arc::new(cell)),
        queue: serde_json::from_str(&format!("{queue:?}")).unwrap(),
        ..LinkSpec::default()
    };
    let mut builder = NetworkBuilder::new(Streams::new(1, 0));
    let server = builder.host();
    let hosts: Vec<HostId> = (0..users).map(|_| builder.host()).collect();
    let link = builder.link("cell", &spec);
    for host in hosts {
        builder.route_from(server, &[link], host);
    }
    builder.build()
}

fn packet(user: u32, size: u32) -> Packet<Mark> {
    Packet::new(RouteId(user), size, mark(0))
}

/// Returns the packets per millisecond of each user, who always have data, from 100 ms on.
fn shares(scheduler: CellScheduler, traces: &[Arc<DeliveryTrace>], millis: u64) -> Vec<f64> {
    let users = traces.len() as u32;
    let mut network = downlink(cell(scheduler, traces.to_vec()), users, "100000pkt");
    let most = 12 * millis;
    let sends = (0..most).flat_map(|_| (0..users).map(|user| (0, packet(user, PACKET))));
    let arrivals = drive(&mut network, sends);
    let measured = |arrival: &&Arrival<Mark>| (100 * MS..millis * MS).contains(&arrival.at);
    let mut counts = vec![0.0; users as usize];
    for arrival in arrivals.iter().filter(measured) {
        counts[arrival.host.0 as usize - 1] += 1.0 / (millis - 100) as f64;
    }
    counts
}

proptest! {
    /// Netravali et al. 2015: with one user, the cell is a link with that trace, for any packets.
    #[test]
    fn one_user_has_the_link_of_its_trace(
        times in proptest::collection::vec(1_u64..40, 1..30).prop_map(|mut times| { times.sort_unstable(); times }),
        sends in proptest::collection::vec((0_u64..3000, 40_u32..4000), 1..60),
        fair in any::<bool>(),
    ) {
        let scheduler = if fair { CellScheduler::ProportionalFair } else { CellScheduler::RoundRobin };
        let mut at = 0;
        let sends: Vec<(u64, Packet<Mark>)> = sends.into_iter().map(|(gap, size)| {
            // Not at the time of an opportunity.
            at += gap * 1_000 + 1;
            (at - at % MS + (at % MS).max(1), packet(0, size))
        }).collect();
        let mut alone = downlink(cell(scheduler, vec![trace(&times)]), 1, "20pkt");
        let spec = LinkSpec {
            capacity: Capacity::Trace(trace(&times)),
            queue: serde_json::from_str("\"20pkt\"").unwrap(),
            ..LinkSpec::default()
        };
        let path = network::PathSpec { forward: spec, reverse: LinkSpec::default() };
        let mut link = Network::two_hosts(&path, Streams::new(1, 0));
        let arrivals = |network: &mut Network<Mark>| -> Vec<(u64, u32)> {
            drive(network, sends.clone()).iter().map(|arrival| (arrival.at, arrival.packet.size)).collect()
        };
        prop_assert_eq!(arrivals(&mut alone), arrivals(&mut link));
    }

    /// The cell never sends more than a millisecond's worth: the parts of the users' opportunities add up to at most one.
    #[test]
    fn users_share_each_millisecond(
        counts in proptest::collection::vec(proptest::collection::vec(0_u64..6, 20), 2..5),
        fair in any::<bool>(),
    ) {
        prop_assume!(counts.iter().all(|counts| counts.iter().any(|&count| count > 0)));
        let scheduler = if fair { CellScheduler::ProportionalFair } else { CellScheduler::RoundRobin };
        let traces: Vec<_> = counts.iter().map(|counts| rates(counts)).collect();
        let users = traces.len() as u32;
        let sends = (0..300).flat_map(|_| (0..users).map(|user| (0, packet(user, PACKET))));
        let mut network = downlink(cell(scheduler, traces), users, "100000pkt");
        let arrivals = drive(&mut network, sends);
        prop_assert_eq!(arrivals.len(), 300 * users as usize);
        for at in 1..=20_u64 {
            let mut used = 0.0;
            for (user, counts) in counts.iter().enumerate() {
                // The trace ends with its last opportunity, so only the first period is known here.
                let last = counts.iter().rposition(|&count| count > 0).unwrap() as u64 + 1;
                let sent = arrivals.iter().filter(|a| a.host.0 as usize == user + 1 && a.at == at * MS).count();
                if at <= last && sent > 0 {
                    used += (sent as f64 - 1.0) / counts[at as usize - 1] as f64;
                }
            }
            prop_assert!(used <= 1.0 + 1e-9, "{used} of millisecond {at}");
        }
    }
}

/// Two states with probability 1/2 each, 9 packets or 1 per millisecond, independent for each user.
fn fading(mut state: u64, millis: usize) -> Vec<u64> {
    let counts = (0..millis).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        if state >> 63 == 1 { 9 } else { 1 }
    });
    counts.collect()
}

/// Round robin gives each of two users half of its own mean rate of 5 packets per millisecond. Proportional fairness sends to the
/// better one: the larger of two independent rates has the mean 3/4 · 9 + 1/4 · 1 = 7, of which each gets half.
#[test]
fn proportional_fairness_gains_from_independent_channels() {
    let traces = [rates(&fading(1, 4000)), rates(&fading(2, 4000))];
    for (scheduler, expected) in [
        (CellScheduler::RoundRobin, 2.5),
        (CellScheduler::ProportionalFair, 3.5),
    ] {
        for share in shares(scheduler, &traces, 4000) {
            assert!(
                (share / expected - 1.0).abs() < 0.05,
                "{scheduler:?}: {share} is not {expected}"
            );
        }
    }
}

/// With constant rates, both schedulers give each of n users 1/n of the time, not of the bytes.
#[test]
fn users_of_constant_rates_have_equal_times() {
    let traces = [rates(&[12]), rates(&[6]), rates(&[2])];
    for scheduler in [CellScheduler::RoundRobin, CellScheduler::ProportionalFair] {
        let found = shares(scheduler, &traces, 2000);
        for (share, expected) in found.iter().zip([4.0, 2.0, 2.0 / 3.0]) {
            assert!((share / expected - 1.0).abs() < 0.05, "{scheduler:?}: {found:?}");
        }
    }
}

/// A user with little data takes little of the time: of 12 opportunities per millisecond, one packet takes 1/12. In turn, it is first
/// in every second millisecond; in the others, the user with more data leaves nothing.
#[test]
fn users_get_the_rest_of_a_millisecond() {
    let traces = vec![rates(&[12]), rates(&[12])];
    let mut network = downlink(cell(CellScheduler::RoundRobin, traces), 2, "100000pkt");
    let few = (0..10).map(|millis| (millis * MS, packet(0, PACKET)));
    let mut sends: Vec<(u64, Packet<Mark>)> = (0..200).map(|_| (0, packet(1, PACKET))).chain(few).collect();
    sends.sort_by_key(|(at, _)| *at);
    let arrivals = drive(&mut network, sends);
    let (few, many): (Vec<_>, Vec<_>) = arrivals.iter().partition(|arrival| arrival.host.0 == 1);
    let times: Vec<u64> = few.iter().map(|arrival| arrival.at / MS).collect();
    assert_eq!(times, [1, 3, 3, 5, 5, 7, 7, 9, 9, 11]);
    let at = |millis| many.iter().filter(|arrival| arrival.at == millis * MS).count();
    assert_eq!([at(1), at(2), at(3), at(4), at(5)], [11, 12, 10, 12, 10]);
}

/// The queue of one user neither delays nor drops the packets of another one.
#[test]
fn each_user_has_its_own_queue() {
    for queue in ["20pkt", "codel", "fq-codel"] {
        let traces = vec![rates(&[2])];
        let mut network = downlink(cell(CellScheduler::RoundRobin, traces), 2, queue);
        let mut sends: Vec<(u64, Packet<Mark>)> = (0..100).map(|_| (0, packet(0, PACKET))).collect();
        sends.extend((1..20).map(|millis| (millis * MS + 1, packet(1, PACKET))));
        sends.sort_by_key(|(at, _)| *at);
        let arrivals = drive(&mut network, sends);
        let second: Vec<u64> = arrivals
            .iter()
            .filter(|a| a.host.0 == 2)
            .map(|a| a.at / MS)
            .collect();
        assert_eq!(second.len(), 19, "{queue}");
        for (sent, arrived) in (1..).zip(&second) {
            assert!(*arrived <= sent + 2, "{queue}: {second:?}");
        }
    }
}

/// The second user of a cell starts later in its trace.
#[test]
fn a_shift_moves_the_trace_of_each_user() {
    let shifted = |shift| {
        let cell = Cell {
            shift: Duration::from_millis(shift),
            ..cell(CellScheduler::RoundRobin, vec![trace(&[3, 10])])
        };
        let mut network = downlink(cell, 2, "10pkt");
        let arrivals = drive(&mut network, [(1, packet(0, PACKET)), (2, packet(1, PACKET))]);
        arrivals
            .iter()
            .map(|arrival| (arrival.host.0, arrival.at / MS))
            .collect::<Vec<_>>()
    };
    assert_eq!(shifted(0), [(1, 3), (2, 10)]);
    assert_eq!(shifted(2), [(2, 1), (1, 3)]);
    // Both have an opportunity at 3 ms, which the first user takes.
    assert_eq!(shifted(7), [(1, 3), (2, 6)]);
}

fn problems(json: &str) -> Vec<String> {
    let config: PathConfig = serde_json::from_str(json).unwrap();
    let found = config
        .resolve(&mut |_| Ok("1\n2\n".into()))
        .err()
        .unwrap_or_default();
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn wrong_keys_of_a_cell_are_refused() {
    for (json, expected) in [
        (
            r#"{"cell": {"traces": []}}"#,
            "cell.traces: 0 files is out of range: 1 to 64",
        ),
        (
            r#"{"rate": "1Mbit/s", "cell": {"traces": ["a"]}}"#,
            "cell: cell and rate exclude each other: remove one of them",
        ),
        (
            r#"{"cell": {"traces": ["a"], "window": "0s"}}"#,
            r#"cell.window: "0ns" is out of range: "1ms" to "60s""#,
        ),
        (
            r#"{"cell": {"traces": ["a"], "shift": "1.5ms"}}"#,
            r#"cell.shift: "1.5ms" is out of range: whole milliseconds, at most "1h""#,
        ),
    ] {
        // Both directions have the mistake.
        assert_eq!(problems(json)[0], expected);
    }
    let config: PathConfig = serde_json::from_str(r#"{"cell": {"traces": ["a", "b"]}}"#).unwrap();
    let missing = config.resolve(&mut |file| Err(format!("no {file}"))).unwrap_err();
    assert_eq!(missing[0].to_string(), r#"cell.traces: "a": no a"#);
}

/// The users are at one end of the path: destinations in one direction, sources in the other.
#[test]
fn both_directions_have_the_users_of_the_path() {
    for (keys, expected) in [
        ("", [Subscriber::Far, Subscriber::Near]),
        (r#", "users": "near""#, [Subscriber::Near, Subscriber::Far]),
    ] {
        let json = format!(r#"{{"cell": {{"traces": ["a"]{keys}}}}}"#);
        let config: PathConfig = serde_json::from_str(&json).unwrap();
        let path = config.resolve(&mut |_| Ok("1\n".into())).unwrap();
        let users = [path.forward, path.reverse].map(|link| match link.capacity {
            Capacity::Cell(cell) => cell.users,
            other => panic!("{other:?}"),
        });
        assert_eq!(users, expected);
    }
}
