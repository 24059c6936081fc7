//! All data arrives in order or the connection fails, for any loss, duplication, reordering and outage.

use foundation::{Duration, Instant, Size, Streams};
use proptest::prelude::*;
use transport::congestion::{Registration, Registry};
use transport::mptcp::{Connection, MptcpConfig, PathIndex, PolicyConfig, SchedulerConfig, Segment};
use transport::tcp::{Event, State};

use crate::mptcp::pair::{Pair, Side, at, ms};

/// Behaviour of one path.
#[derive(Clone, Debug)]
struct Path {
    rtt: u64,
    /// Percentage of lost and of duplicated packets, and maximum additional delay in ms.
    lost: u64,
    doubled: u64,
    late: (u64, u64),
    /// Start and end of an outage.
    dead: Option<(u64, u64)>,
}

fn path() -> impl Strategy<Value = Path> {
    let dead = prop::option::weighted(0.25, (0_u64..3000, 100_u64..100_000));
    (2_u64..300, 0_u64..15, 0_u64..10, (0_u64..30, 1_u64..150), dead).prop_map(
        |(rtt, lost, doubled, late, dead)| Path {
            rtt,
            lost,
            doubled,
            late,
            dead: dead.map(|(from, length)| (from, from + length)),
        },
    )
}

/// Selects a registered kind with its default keys, or one of `tables`.
fn one_of<'a>(kinds: impl IntoIterator<Item = &'a str>, tables: &[&str]) -> prop::sample::Select<String> {
    let words = kinds.into_iter().map(|kind| format!("{kind:?}"));
    let tables = tables.iter().map(|&table| table.to_owned());
    prop::sample::select(words.chain(tables).collect::<Vec<_>>())
}

fn settings() -> impl Strategy<Value = MptcpConfig> {
    let schedulers = one_of(SchedulerConfig::KINDS.iter().copied(), &[]);
    let policies = one_of(
        PolicyConfig::KINDS.iter().copied(),
        &[
            r#"{"kind": "all", "first": "random"}"#,
            r#"{"kind": "all", "first": "least-rtt"}"#,
            r#"{"kind": "foresight", "sizes": false, "slack": 100, "handshake_after": 1, "tail": 1, "tail_after": 1}"#,
            r#"{"kind": "mmptcp", "switch_after": "50kB"}"#,
            r#"{"kind": "delayed", "after_bytes": "20kB"}"#,
        ],
    );
    let profiles = prop_oneof![Just("linux"), Just("rfc"), Just("ns3")];
    let registry = Registry::builtin();
    let congestion = one_of(registry.iter().map(Registration::name), &[]);
    let buffers = (10_000_u64..2_000_000, 10_000_u64..2_000_000);
    let others = (
        any::<bool>(),
        any::<bool>(),
        prop::option::of(1_u64..10_000),
        0_u8..8,
    );
    (schedulers, policies, profiles, congestion, buffers, others).prop_map(
        |(scheduler, policy, profile, congestion, (send, receive), (at_timeout, shared, rejoin, options))| {
            let reinjection = if at_timeout { "timeout" } else { "failure" };
            let text = format!(
                r#"{{"kind": "mptcp", "profile": "{profile}", "congestion": {congestion}, "scheduler": {scheduler},
                    "policy": {policy}, "reinjection": "{reinjection}", "shared_window": {shared}}}"#
            );
            let mut config: MptcpConfig = serde_json::from_str(&text).unwrap();
            let options = if shared { options } else { 0 };
            config.own.opportunistic_retransmission = Some(options & 1 != 0);
            config.own.penalisation = Some(options & 3 == 3);
            config.tcp.receive_autotuning = (options & 4 != 0).then_some(true);
            assert_eq!(config.validate(), []);
            config.own.rejoin = rejoin.map(Duration::from_millis);
            config.tcp.send_buffer = Some(Size::from_bytes(send));
            config.tcp.receive_buffer = Some(Size::from_bytes(receive));
            if profile == "ns3" {
                config.tcp.receive_buffer = Some(Size::from_bytes(receive.min(65_535)));
            }
            config
        },
    )
}

fn deliver(
    paths: Vec<Path>,
    seed: u64,
) -> impl FnMut(Instant, Side, PathIndex, &mut Segment) -> Vec<Duration> {
    let mut random = Streams::new(seed, 1).stream("fates");
    move |now, _, index, _| {
        let path = &paths[index.index()];
        let mut draw = |maximum: u64| random.next_u64() % maximum;
        let (lost, doubled, late, more) = (draw(100), draw(100), draw(100), draw(path.late.1));
        if path
            .dead
            .is_some_and(|(from, until)| (at(from)..at(until)).contains(&now))
            || lost < path.lost
        {
            return Vec::new();
        }
        let mut arrives = ms(path.rtt) / 2;
        if late < path.late.0 {
            arrives += ms(more);
        }
        if doubled < path.doubled {
            return vec![arrives, arrives + ms(1)];
        }
        vec![arrives]
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: testing::cases(64), ..ProptestConfig::default() })]

    #[test]
    fn delivers_all_data_or_fails(
        config in settings(),
        paths in prop::collection::vec(path(), 1..6),
        sizes in (0_u64..400_000, 0_u64..100_000),
        seed in 0_u64..1000,
    ) {
        // With a loss of one in seven packets, a timer may back off for minutes by chance.
        let mut config = config;
        config.tcp.user_timeout = Some(Duration::from_secs(3600));
        let rtts: Vec<u64> = paths.iter().map(|path| path.rtt).collect();
        let mut pair = Pair::new(&config, &rtts, sizes.0, seed, Box::new(deliver(paths.clone(), seed)));
        pair.ends[1].to_write = sizes.1;
        pair.open();
        // Two hours: a connection over a dead path fails by then with any profile.
        pair.run(at(7_200_000));
        let ended = pair.is_finished() || pair.ends.iter().any(|end| end.events.iter().any(|e| matches!(e, Event::Failed(_))));
        prop_assert!(ended, "not finished at {:?}: {:?} {:?}", pair.now, pair.ends[0].events, pair.ends[1].events);
        let failed = pair.ends.iter().any(|end| end.events.iter().any(|e| matches!(e, Event::Failed(_))));
        let dies = paths.iter().any(|path| path.dead.is_some());
        prop_assert!(!failed || dies, "no long outage: {:?} {:?}", pair.ends[0].events, pair.ends[1].events);
        if !failed {
            prop_assert_eq!((pair.ends[1].received, pair.ends[0].received), sizes);
        }
    }

    /// Data arrives while one path works, whenever the others fail.
    #[test]
    fn one_working_path_is_sufficient(
        config in settings(),
        mut paths in prop::collection::vec(path(), 2..6),
        alive in 0_usize..6,
        size in 1_u64..300_000,
        dies in prop::array::uniform5(500_u64..4000),
        seed in 0_u64..1000,
    ) {
        let mut config = config;
        config.tcp.user_timeout = Some(Duration::from_secs(1200));
        let alive = alive % paths.len();
        for (number, path) in paths.iter_mut().enumerate() {
            path.dead = (number != alive).then_some((dies[number], u64::MAX / 2_000_000));
        }
        survives(config, paths, alive, size, seed)?;
    }

    /// Paths fail and recover, and failed subflows are replaced; one path always works.
    #[test]
    fn replacements_carry_data(
        config in settings(),
        mut paths in prop::collection::vec(path(), 2..5),
        alive in 0_usize..5,
        size in 100_000_u64..1_000_000,
        dead in prop::array::uniform5((500_u64..4000, 1000_u64..60_000)),
        rejoin in 1_u64..5000,
        seed in 0_u64..1000,
    ) {
        let mut config = config;
        // Some subflows fail before their paths recover.
        config.tcp.user_timeout = Some(Duration::from_secs(10));
        config.tcp.syn_retries = Some(2);
        config.own.rejoin = Some(Duration::from_millis(rejoin));
        let alive = alive % paths.len();
        for (number, path) in paths.iter_mut().enumerate() {
            let (from, length) = dead[number];
            path.dead = (number != alive).then_some((from, from + length));
        }
        // Subflows fail only because of outages.
        paths[alive].lost = 0;
        survives(config, paths, alive, size, seed)?;
    }
}

/// Runs a transfer over `paths` and asserts its success if a subflow used the working path when the first other one
/// failed.
fn survives(
    mut config: MptcpConfig,
    paths: Vec<Path>,
    alive: usize,
    size: u64,
    seed: u64,
) -> Result<(), TestCaseError> {
    config.own.policy = serde_json::from_str(r#"{"kind": "all", "first": "first"}"#).unwrap();
    let rtts: Vec<u64> = paths.iter().map(|path| path.rtt).collect();
    let first = paths.iter().filter_map(|path| Some(path.dead?.0)).min().unwrap();
    let mut pair = Pair::new(&config, &rtts, size, seed, Box::new(deliver(paths, seed)));
    pair.open();
    pair.run_until(at(first));
    let stands = |connection: &Connection| {
        connection
            .subflows()
            .any(|subflow| subflow.path.index() == alive && subflow.state == State::Established)
    };
    if pair
        .ends
        .iter()
        .all(|end| end.connection.as_ref().is_some_and(stands))
    {
        pair.run(at(7_200_000));
        let subflows = |side| pair.connection(side).subflows().collect::<Vec<_>>();
        let (client, server) = (subflows(Side::Client), subflows(Side::Server));
        prop_assert!(
            pair.is_finished(),
            "{:?} {} {client:?} {server:?}",
            pair.now,
            pair.ends[1].received
        );
        prop_assert_eq!(pair.ends[1].received, size);
    }
    Ok(())
}
