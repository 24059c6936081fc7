//! Both streams remain intact under any pattern of loss, duplication, reordering and ACK stretch, and two TCPs never
//! deadlock.

use foundation::{Duration, Instant, Size};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use transport::congestion::{CongestionConfig, Registration, Registry};
use transport::tcp::{EcnMode, Event, Profile, Recovery, TcpConfig};

use crate::tcp::pair::{End, Fate, Pair, Path, Side};

/// Impairments of a path, up to a time.
#[derive(Clone, Debug)]
struct Impairments {
    seed: u64,
    /// Probabilities in 1/1000.
    loss: u32,
    duplication: u32,
    reordering: u32,
    marks: u32,
    /// Only one of this many pure ACKs arrives.
    stretch: u32,
    delay: u64,
    /// Outage: nothing arrives between these times, in ms.
    blackout: (u64, u64),
    /// End of all impairments, in ms.
    kind_from: u64,
}

impl Impairments {
    fn path(&self) -> Path {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let impairments = self.clone();
        let mut acks = 0;
        Box::new(move |now, _side, segment| {
            let ms = now.as_nanos() / 1_000_000;
            // Above zero: BBR has no rate for a path without delay.
            let base = Duration::from_micros(impairments.delay * 1000 + 1);
            if ms >= impairments.kind_from {
                return Fate::arrives(base);
            }
            let mut chance = |of_1000: u32| rng.random_range(0..1000) < of_1000;
            let (lost, twice, late, marked) = (
                chance(impairments.loss),
                chance(impairments.duplication),
                chance(impairments.reordering),
                chance(impairments.marks),
            );
            let jitter = Duration::from_micros(rng.random_range(0..impairments.delay * 4000 + 1));
            if segment.sequence_length() == 0 {
                acks += 1;
                if acks % impairments.stretch != 0 {
                    return Fate::lost();
                }
            }
            let dark = (impairments.blackout.0..impairments.blackout.1).contains(&ms);
            if lost || dark {
                return Fate::lost();
            }
            let mut delays = vec![if late { base + jitter } else { base }];
            if twice {
                delays.push(base + jitter / 2);
            }
            Fate { delays, marked }
        })
    }
}

fn impairments() -> impl Strategy<Value = Impairments> {
    let rare = prop_oneof![3 => Just(0_u32), 2 => 1_u32..50, 1 => 50_u32..400];
    (
        any::<u64>(),
        rare.clone(),
        rare.clone(),
        rare.clone(),
        rare,
        prop_oneof![3 => Just(1_u32), 1 => 2_u32..6],
        0_u64..120,
        prop_oneof![2 => Just((0, 0)), 1 => (0_u64..3000, 0_u64..3000).prop_map(|(a, b)| (a, a + b))],
        prop_oneof![Just(0_u64), 100_u64..6000],
    )
        .prop_map(
            |(seed, loss, duplication, reordering, marks, stretch, delay, blackout, kind_from)| Impairments {
                seed,
                loss,
                duplication,
                reordering,
                marks,
                stretch,
                delay,
                blackout,
                kind_from,
            },
        )
}

/// The registered controllers with their default settings.
fn controllers() -> Vec<CongestionConfig> {
    let registry = Registry::builtin();
    let named = |entry: &Registration| CongestionConfig::named(entry.name()).unwrap();
    registry.iter().map(named).collect()
}

fn config() -> impl Strategy<Value = TcpConfig> {
    let size = |range: std::ops::Range<u64>| range.prop_map(Size::from_bytes);
    let flags = prop::collection::vec(any::<Option<bool>>(), 12);
    (
        prop_oneof![Just(Profile::Linux), Just(Profile::Rfc), Just(Profile::Ns3)],
        prop::option::of(prop_oneof![
            Just(Recovery::RackTlp),
            Just(Recovery::Sack),
            Just(Recovery::Newreno)
        ]),
        prop::option::of(prop::sample::select(controllers())),
        flags,
        (
            prop::option::of(size(88..9000)),
            prop::option::of(size(1500..200_000)),
            prop::option::of(size(500..200_000)),
            prop::option::of(1_u16..8),
            prop::option::of((0_u64..500).prop_map(Duration::from_millis)),
            prop_oneof![2 => Just((false, false)), 1 => Just((true, false)), 1 => Just((false, true))],
        ),
    )
        .prop_map(
            |(
                profile,
                recovery,
                congestion,
                flags,
                (mss, receive, send, every, delay, (fast_open, ttcp)),
            )| {
                TcpConfig {
                    recovery,
                    congestion,
                    mss,
                    receive_buffer: receive,
                    send_buffer: send,
                    ack_every: every,
                    delayed_ack: delay,
                    sack: flags[0],
                    timestamps: flags[1],
                    window_scaling: flags[2],
                    ecn: flags[3].map(|exact| if exact { EcnMode::Dctcp } else { EcnMode::Classic }),
                    nagle: flags[4],
                    dsack: flags[5],
                    frto: flags[6],
                    prr: flags[7],
                    undo: flags[8],
                    limited_transmit: flags[9],
                    quick_acks: flags[10],
                    slow_start_after_idle: flags[11],
                    fast_open,
                    ttcp,
                    ..TcpConfig::new(profile)
                }
            },
        )
}

#[derive(Clone, Debug)]
struct Scene {
    configs: [TcpConfig; 2],
    impairments: Impairments,
    sizes: [u64; 2],
    initial: [u32; 2],
    /// Whether both ends open at once.
    both_open: bool,
    /// Bytes per read of a slow application at the server (0: reads everything).
    slow_reader: u64,
    /// Whether the hosts have cached each other.
    warm: bool,
    /// Time in ms and size in bytes of a new path MTU.
    mtu: Option<(u64, u32)>,
}

fn scene() -> impl Strategy<Value = Scene> {
    let initial = || prop_oneof![any::<u32>(), (0_u32..3000).prop_map(|n| u32::MAX - n)];
    let size = || prop_oneof![Just(0_u64), 1_u64..20_000, 20_000_u64..300_000];
    (
        (config(), config()),
        impairments(),
        (size(), size()),
        (initial(), initial()),
        (prop::bool::weighted(0.1), any::<bool>()),
        prop_oneof![3 => Just(0_u64), 1 => 1_u64..20_000],
        prop::option::weighted(0.2, (0_u64..2000, 128_u32..1500)),
    )
        .prop_map(
            |(configs, impairments, sizes, initial, (both_open, warm), slow_reader, mtu)| Scene {
                configs: configs.into(),
                impairments,
                sizes: sizes.into(),
                initial: initial.into(),
                both_open,
                warm,
                slow_reader,
                mtu,
            },
        )
}

/// Enough for several maximum timeouts after the end of the impairments, and for slow paths.
const PATIENCE: Duration = Duration::from_secs(900);

fn play(scene: &Scene) -> Result<(), TestCaseError> {
    let mut pair = Pair::new(&scene.configs[0], &scene.configs[1], scene.impairments.path());
    if scene.warm {
        pair.warm_up();
    }
    pair.trace = None;
    if let Some((from, mtu)) = scene.mtu {
        pair.mtu = (Instant::ZERO + Duration::from_millis(from), mtu);
    }
    for (index, side) in [Side::Client, Side::Server].into_iter().enumerate() {
        let end = pair.end(side);
        end.initial = scene.initial[index];
        end.to_write = scene.sizes[index];
        end.finish = true;
    }
    if scene.both_open {
        pair.open(Side::Server);
    }
    if scene.slow_reader > 0 {
        pair.end(Side::Server).reads = false;
    }
    pair.open(Side::Client);
    let limit = Instant::ZERO + Duration::from_millis(scene.impairments.kind_from) + PATIENCE;
    // A truncated TIME-WAIT may end before the peer's last retransmission. The peer, then reset, has sent and received
    // everything.
    let truncated = scene.configs.iter().all(|config| config.ttcp);
    let ended = move |end: &End| end.saw(Event::Finished) || (truncated && end.saw(Event::Closed));
    let finished = |p: &Pair| {
        p.ends
            .iter()
            .all(|end| ended(end) && end.connection().readable() == 0)
    };
    while !finished(&pair) && pair.now < limit {
        pair.run_until(Duration::from_millis(100), |p| finished(p));
        let amount = scene.slow_reader;
        if amount > 0 && pair.ends[1].connection.is_some() {
            // Read everything at the end, where reading is not under test.
            let amount = if pair.now > Instant::ZERO + Duration::from_secs(60) {
                u64::MAX
            } else {
                amount
            };
            let read = pair.with(Side::Server, |connection, now| connection.read(now, amount));
            pair.end(Side::Server).received += read;
        }
    }
    for (index, side) in [Side::Client, Side::Server].into_iter().enumerate() {
        pair.check_stream(side);
        let end = &pair.ends[index];
        let failed = end.events.iter().find(|event| matches!(event, Event::Failed(_)));
        prop_assert_eq!(failed, None, "{:?} at {:?}", side, pair.now);
        prop_assert!(
            ended(end),
            "{:?} stuck at {:?} in {:?}: {:?}",
            side,
            pair.now,
            end.state(),
            end.connection.as_ref().map(|c| c.info())
        );
        prop_assert_eq!(
            end.received,
            scene.sizes[1 - index],
            "bytes received by {:?}",
            side
        );
        prop_assert!(end.saw(Event::PeerFinished));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: testing::cases(256), max_shrink_iters: 4000, ..ProptestConfig::default() })]
    #[test]
    fn streams_arrive_intact_without_deadlock(mut scene in scene()) {
        // Skips invalid settings.
        for config in &mut scene.configs {
            if config.sack == Some(false) && config.recovery != Some(Recovery::Newreno) {
                config.recovery = None;
            }
            prop_assume!(config.validate().is_empty());
        }
        play(&scene)?;
    }
}
