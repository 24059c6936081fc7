//! Properties of all paths for all sequences of packets.

use crate::common::{EventKind, Log, Mark, drive, mark};
use foundation::{Duration, Ecn, Instant, Probability, Rate, Size, Streams};
use network::loss::{Every, GilbertElliott, Packets};
use network::queue::{
    Cake, CoDel, DropHead, DualPi2, FqCoDel, Framing, Overflow, Pi2, Pie, Red, SharedBuffer, Step,
};
use network::{
    Capacity, Cell, CellScheduler, Distribution, DropReason, FORWARD, JitterConfig, LinkSpec, LossConfig,
    Nat, Network, NetworkBuilder, Outage, Packet, PathSpec, QueueConfig, QueueLimit, ReorderConfig, RouteId,
    Wifi,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

fn probability() -> impl Strategy<Value = Probability> {
    (0.0..=1.0).prop_map(|value: f64| Probability::new(value * value).unwrap())
}

fn duration(max_millis: u64) -> impl Strategy<Value = Duration> {
    (0..=max_millis * 1_000_000).prop_map(Duration::from_nanos)
}

fn loss() -> impl Strategy<Value = LossConfig> {
    prop_oneof![
        probability().prop_map(LossConfig::bernoulli),
        (probability(), probability(), probability(), probability()).prop_map(|(p, r, good, bad)| {
            LossConfig::GilbertElliott(GilbertElliott {
                enter_bad: p,
                leave_bad: r,
                loss_good: good,
                loss_bad: bad,
            })
        }),
        (1_u64..20).prop_map(|every| LossConfig::Every(Every { every })),
        proptest::collection::vec(1_u64..60, 0..20)
            .prop_map(|packets| LossConfig::Packets(Packets { packets })),
    ]
}

fn capacity() -> impl Strategy<Value = Capacity> {
    let trace = proptest::collection::vec(1_u64..40, 1..30).prop_map(|mut times| {
        times.sort_unstable();
        let events: Vec<String> = times.iter().map(u64::to_string).collect();
        Capacity::Trace(std::sync::Arc::new(
            network::DeliveryTrace::parse(&events.join("\n")).unwrap(),
        ))
    });
    prop_oneof![
        Just(Capacity::Unlimited),
        (10_000_u64..1_000_000_000)
            .prop_map(|bits| Capacity::Rate(Rate::from_bits_per_second(bits).unwrap())),
        trace,
    ]
}

fn limit() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        (1_u64..30).prop_map(QueueLimit::Packets),
        (1_u64..30_000).prop_map(|bytes| QueueLimit::Bytes(Size::from_bytes(bytes))),
    ]
}

/// Generates every registered discipline, with any limit, and with and without ECN if it has that key.
fn registered() -> impl Strategy<Value = QueueConfig> {
    let parts = (
        proptest::sample::select(QueueConfig::KINDS),
        limit(),
        any::<bool>(),
    );
    parts.prop_map(|(kind, limit, ecn)| {
        let table = serde_json::json!({"kind": kind, "limit": limit});
        let mut with_ecn = table.clone();
        with_ecn["ecn"] = ecn.into();
        // Disciplines refuse unknown keys.
        serde_json::from_value(with_ecn)
            .or_else(|_| serde_json::from_value(table))
            .unwrap()
    })
}

/// Generates disciplines with settings that take effect in short runs.
fn tuned() -> impl Strategy<Value = QueueConfig> {
    let red = (limit(), 1_u64..10, 1_u64..10, 0.01..=1.0, any::<[bool; 3]>()).prop_map(
        |(limit, min, span, weight, [gentle, adaptive, ecn])| {
            QueueConfig::Red(Red {
                limit: Some(limit),
                min_threshold: Some(QueueLimit::Packets(min)),
                max_threshold: Some(QueueLimit::Packets(min + span)),
                weight,
                gentle,
                adaptive,
                ecn,
                ..Red::default()
            })
        },
    );
    // Short times, because the cases are short.
    let threshold = || proptest::option::of((1_u64..2000).prop_map(Duration::from_micros));
    let codel = (limit(), 1_u64..2000, 1_u64..10, any::<bool>(), threshold()).prop_map(
        |(limit, target, times, ecn, ce_threshold)| {
            let target = Duration::from_micros(target);
            QueueConfig::CoDel(CoDel {
                limit: Some(limit),
                target,
                interval: target * times,
                ecn,
                ce_threshold,
            })
        },
    );
    let pie = (
        limit(),
        1_u64..2000,
        1_u64..2000,
        duration(5),
        any::<bool>(),
        probability(),
    )
        .prop_map(|(limit, target, update, max_burst, ecn, mark_threshold)| {
            QueueConfig::Pie(Pie {
                limit: Some(limit),
                target: Duration::from_micros(target),
                update: Duration::from_micros(update),
                max_burst,
                alpha: 50.0,
                beta: 100.0,
                ecn,
                mark_threshold,
            })
        });
    let marks = (any::<bool>(), threshold(), any::<bool>(), any::<bool>());
    let fair = (limit(), 1_u32..5, 1_u64..3000, 1_u64..2000, marks).prop_map(
        |(limit, flows, quantum, target, (ecn, ce_threshold, ce_ect1_only, drops_arriving))| {
            let target = Duration::from_micros(target);
            QueueConfig::FqCoDel(FqCoDel {
                limit: Some(limit),
                flows,
                quantum: Size::from_bytes(quantum),
                target,
                interval: target * 3,
                ecn,
                ce_threshold,
                ce_ect1_only: ce_ect1_only && ce_threshold.is_some(),
                overflow: if drops_arriving {
                    Overflow::Arriving
                } else {
                    Overflow::Fattest
                },
            })
        },
    );
    let times = || (1_u64..2000, 1_u64..2000);
    let squared = (limit(), times(), 1.0..10.0).prop_map(|(limit, (target, update), coupling)| {
        QueueConfig::Pi2(Pi2 {
            limit: Some(limit),
            target: Duration::from_micros(target),
            update: Duration::from_micros(update),
            alpha: 50.0,
            beta: 100.0,
            coupling,
        })
    });
    let dual = (
        limit(),
        times(),
        1.0..10.0,
        0_u64..2000,
        probability(),
        any::<bool>(),
    )
        .prop_map(
            |(limit, (target, update), coupling, step, protection, drop_on_overload)| {
                QueueConfig::DualPi2(DualPi2 {
                    limit: Some(limit),
                    target: Duration::from_micros(target),
                    update: Duration::from_micros(update),
                    alpha: 50.0,
                    beta: 100.0,
                    coupling,
                    step: Duration::from_micros(step),
                    protection,
                    drop_on_overload,
                })
            },
        );
    let step = limit().prop_map(|limit| {
        let threshold = match limit {
            QueueLimit::Packets(_) => QueueLimit::Bytes(Size::from_bytes(2000)),
            QueueLimit::Bytes(_) => QueueLimit::Packets(2),
        };
        QueueConfig::Step(Step {
            limit: Some(limit),
            threshold: Some(threshold),
        })
    });
    // Rates from far below to far above those of links.
    let cake = (limit(), 10_000_u64..1_000_000_000, 20_u64..5000, 0_u64..256).prop_map(
        |(limit, rate, rtt, overhead)| {
            QueueConfig::Cake(Cake {
                limit: Some(limit),
                rate: Rate::from_bits_per_second(rate),
                rtt: Duration::from_micros(rtt),
                overhead: Some(Size::from_bytes(overhead)),
                framing: Framing::Atm,
                ..Cake::default()
            })
        },
    );
    prop_oneof![
        limit().prop_map(QueueConfig::drop_tail),
        limit().prop_map(|limit| QueueConfig::DropHead(DropHead { limit: Some(limit) })),
        red,
        codel,
        pie,
        fair,
        squared,
        dual,
        step,
        cake,
    ]
}

fn queue() -> impl Strategy<Value = QueueConfig> {
    prop_oneof![1 => registered(), 2 => tuned()]
}

/// Disciplines that preserve the order within each flow only.
const FLOWS_IN_TURN: &[&str] = &["fq-codel", "cake", "prio"];

/// Disciplines that preserve the order of scalable packets and of others only.
const BY_CODE_POINT: &[&str] = &["dualpi2"];
/// Disciplines that always mark ECN-capable packets.
const ALWAYS_MARK: &[&str] = &["pi2", "dualpi2", "step", "cake"];

/// Whether a queue marks packets.
fn has_ecn(queue: &QueueConfig) -> bool {
    let settings = serde_json::to_value(queue).unwrap();
    ALWAYS_MARK.contains(&queue.kind()) || settings["ecn"] == true || settings["ce_threshold"].is_string()
}

/// Generates links that preserve the order of packets.
fn orderly() -> impl Strategy<Value = LinkSpec> {
    let jitter =
        proptest::option::of(
            (duration(20), any::<bool>()).prop_map(|(spread, normal)| JitterConfig {
                spread,
                distribution: if normal {
                    Distribution::Normal
                } else {
                    Distribution::Uniform
                },
                keep_order: true,
            }),
        );
    let odds = (
        proptest::option::of(loss()),
        proptest::option::of(probability()),
        proptest::option::of(probability()),
    );
    let mtu = proptest::option::of(68_u32..1500);
    (capacity(), duration(50), jitter, odds, queue(), mtu, outages()).prop_map(
        |(capacity, delay, jitter, odds, queue, mtu, down)| LinkSpec {
            capacity,
            delay,
            jitter,
            loss: odds.0,
            reorder: None,
            duplicate: odds.1,
            corrupt: odds.2,
            queue,
            mtu,
            down,
            nat: None,
        },
    )
}

/// Generates links, some of them on shared media or with an address translator.
fn link_or_medium() -> impl Strategy<Value = LinkSpec> {
    let wifi = (1_u64..500, 1_u32..=64).prop_map(|(mbits, frames)| {
        Capacity::Wifi(Wifi {
            rate: Rate::from_bits_per_second(mbits * 1_000_000).unwrap(),
            frames,
            txop: Duration::from_millis(4),
        })
    });
    let cell = proptest::collection::vec(1_u64..40, 1..30).prop_map(|mut times| {
        times.sort_unstable();
        let lines: Vec<String> = times.iter().map(u64::to_string).collect();
        Capacity::Cell(std::sync::Arc::new(Cell {
            traces: vec![std::sync::Arc::new(
                network::DeliveryTrace::parse(&lines.join("\n")).unwrap(),
            )],
            scheduler: CellScheduler::ProportionalFair,
            window: Duration::from_millis(100),
            shift: Duration::ZERO,
            users: network::Subscriber::Far,
        }))
    });
    let medium = proptest::option::weighted(0.4, prop_oneof![wifi, cell]);
    let nat = (1_u64..50, any::<bool>()).prop_map(|(millis, is_outgoing)| Nat {
        timeout: Some(Duration::from_millis(millis)),
        rebind: vec![Duration::from_millis(10)],
        new_address: false,
        is_outgoing,
    });
    (any_link(), medium, proptest::option::weighted(0.2, nat)).prop_map(|(mut link, medium, nat)| {
        link.capacity = medium.unwrap_or(link.capacity);
        link.nat = nat;
        link
    })
}

/// Generates outages; none for most links.
fn outages() -> impl Strategy<Value = Vec<Outage>> {
    let gaps = proptest::collection::vec((0_u64..30_000, 1_u64..20_000), 1..4);
    proptest::option::weighted(0.3, gaps).prop_map(|gaps| {
        let mut at = 0;
        let outage = |(gap, length): (u64, u64)| {
            let from = at + gap;
            at = from + length + 1;
            Outage {
                from: Duration::from_micros(from),
                to: Duration::from_micros(from + length),
            }
        };
        gaps.unwrap_or_default().into_iter().map(outage).collect()
    })
}

/// Generates links.
fn any_link() -> impl Strategy<Value = LinkSpec> {
    let reorder =
        (probability(), duration(20)).prop_map(|(probability, delay)| ReorderConfig { probability, delay });
    (orderly(), proptest::option::of(reorder), any::<bool>()).prop_map(|(mut link, reorder, keep_order)| {
        link.reorder = reorder;
        if let Some(jitter) = &mut link.jitter {
            jitter.keep_order = keep_order;
        }
        link
    })
}

/// Generates packets: the gap before each in nanoseconds, and its size.
fn packets() -> impl Strategy<Value = Vec<(u64, u32)>> {
    proptest::collection::vec((prop_oneof![Just(0), 0_u64..3_000_000], 1_u32..1600), 0..60)
}

const FLOWS: u64 = 3;
const CODE_POINTS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];

fn schedule(packets: &[(u64, u32)]) -> Vec<(u64, Packet<Mark>)> {
    let mut at = 0;
    let send = |(number, &(gap, size)): (u64, &(u64, u32))| {
        at += gap;
        let body = Mark {
            flow: number % FLOWS,
            ecn: CODE_POINTS[(number % 4) as usize],
            priority: (number % FLOWS) as u8,
            ..mark(number)
        };
        (at, Packet::new(FORWARD, size, body))
    };
    (1..).zip(packets).map(send).collect()
}

fn chain(links: &[LinkSpec], seed: u64) -> NetworkBuilder {
    let path = |forward: &LinkSpec| PathSpec {
        forward: forward.clone(),
        reverse: LinkSpec::default(),
    };
    let paths: Vec<PathSpec> = links.iter().map(path).collect();
    NetworkBuilder::chain(&paths, Streams::new(seed, 0))
}

/// The strategies cover every kind.
#[test]
fn strategies_cover_every_discipline_and_loss_model() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut draw = || {
        registered()
            .new_tree(&mut runner)
            .unwrap()
            .current()
            .kind()
            .to_owned()
    };
    let kinds: std::collections::BTreeSet<String> = (0..500).map(|_| draw()).collect();
    assert_eq!(
        kinds,
        QueueConfig::KINDS.iter().map(ToString::to_string).collect()
    );
    let mut draw = || loss().new_tree(&mut runner).unwrap().current().kind().to_owned();
    let kinds: std::collections::BTreeSet<String> = (0..500).map(|_| draw()).collect();
    assert_eq!(kinds, LossConfig::KINDS.iter().map(ToString::to_string).collect());
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(testing::cases(256)))]

    /// Each packet is delivered, or dropped and counted; a duplicate counts as a packet.
    #[test]
    fn packets_are_conserved(links in proptest::collection::vec(link_or_medium(), 1..4), packets in packets(), seed: u64) {
        let mut network = chain(&links, seed).build_observed(Log::default());
        let arrivals = drive(&mut network, schedule(&packets));
        let mut entered = packets.len() as u64;
        for link in network.route_links(FORWARD) {
            let counters = network.counters(link);
            prop_assert_eq!(counters.entered.packets, entered);
            prop_assert_eq!(
                counters.entered.packets + counters.duplicated.packets,
                counters.delivered.packets + counters.lost.packets + counters.queue_dropped.packets
                    + counters.mtu_dropped.packets + counters.outage_dropped.packets + counters.nat_dropped.packets
            );
            prop_assert_eq!(
                counters.entered.bytes + counters.duplicated.bytes,
                counters.delivered.bytes + counters.lost.bytes + counters.queue_dropped.bytes
                    + counters.mtu_dropped.bytes + counters.outage_dropped.bytes + counters.nat_dropped.bytes
            );
            entered = counters.delivered.packets;
            // Events of the observer match the counters.
            let events = &network.observer().events;
            let seen = |kind: EventKind| events.iter().filter(|event| event.link == link && event.kind == kind).count() as u64;
            prop_assert_eq!(seen(EventKind::Entered), counters.entered.packets);
            prop_assert_eq!(seen(EventKind::Left), counters.delivered.packets);
            prop_assert_eq!(seen(EventKind::Duplicated), counters.duplicated.packets);
            prop_assert_eq!(seen(EventKind::Corrupted), counters.corrupted.packets);
            prop_assert_eq!(seen(EventKind::Marked), counters.marked.packets);
            for reason in [DropReason::Loss, DropReason::Queue, DropReason::Mtu, DropReason::Outage, DropReason::Nat] {
                prop_assert_eq!(seen(EventKind::Dropped(reason)), counters.dropped(reason).packets);
            }
        }
        prop_assert_eq!(arrivals.len() as u64, entered);
        prop_assert!(network.observer().events.is_sorted_by_key(|event| event.at));
        prop_assert_eq!(network.poll_timeout(), None);
        while network.poll_too_big().is_some() {}
        prop_assert_eq!(network.packets_inside(), 0);
    }

    /// Queues never exceed their limits.
    #[test]
    fn queues_keep_their_limits(link in any_link(), packets in packets(), seed: u64) {
        let mut network = chain(std::slice::from_ref(&link), seed).build();
        drive(&mut network, schedule(&packets));
        let counters = network.counters(network.route_links(FORWARD).next().unwrap());
        match link.queue.limit() {
            QueueLimit::Packets(packets) => prop_assert!(counters.max_queue_packets <= packets),
            QueueLimit::Bytes(size) => prop_assert!(counters.max_queue_bytes <= size.bytes()),
        }
    }

    /// A shared buffer contains the queues of its links at all times, also after changes and outages, and never exceeds its
    /// size.
    #[test]
    fn shared_buffers_contain_their_queues(
        links in proptest::collection::vec(any_link(), 1..4), others in proptest::collection::vec(any_link(), 1..4),
        packets in packets(), size in 1_u64..20_000, alpha in 0.05..10.0, seed: u64
    ) {
        let mut builder = NetworkBuilder::new(Streams::new(seed, 0));
        let host = builder.host();
        let mut ports = Vec::new();
        for (number, spec) in links.iter().enumerate() {
            let port = builder.link(format!("port/{number}"), spec);
            builder.route(&[port], host);
            ports.push(port);
        }
        let size = Size::from_bytes(size);
        builder.share_buffer(SharedBuffer { size, alpha }, &ports);
        let run = || {
            let mut network = builder.clone().build_observed(Log::default());
            let check = |network: &Network<Mark, Log>, now: Instant| {
                let queued: u64 = ports.iter().map(|&port| network.queue(port, now).bytes).sum();
                prop_assert_eq!(network.shared_buffer(ports[0], now), Some(queued));
                prop_assert!(queued <= size.bytes());
                Ok(())
            };
            let mut changed = others.iter().zip(ports.iter().cycle());
            for (number, (at, mut packet)) in schedule(&packets).into_iter().enumerate() {
                let at = Instant::from_nanos(at);
                while let Some(due) = network.poll_timeout().filter(|&due| due <= at) {
                    network.handle_timeout(due);
                    check(&network, due)?;
                }
                packet.route = RouteId((number % ports.len()) as u32);
                network.send(at, packet);
                check(&network, at)?;
                if number % 16 == 15 && let Some((spec, &port)) = changed.next() {
                    network.change_link(at, port, spec);
                    check(&network, at)?;
                }
            }
            network.handle_timeout(Instant::MAX);
            prop_assert_eq!(network.shared_buffer(ports[0], Instant::MAX), Some(0));
            Ok(network.observer().events.clone())
        };
        prop_assert_eq!(run()?, run()?);
    }

    /// Links without reordering are FIFO, even with jitter.
    #[test]
    fn links_without_reordering_are_fifo(links in proptest::collection::vec(orderly(), 1..4), packets in packets(), seed: u64) {
        let mut network = chain(&links, seed).build();
        let arrivals = drive(&mut network, schedule(&packets));
        // A queue that schedules flows preserves the order within each flow, and one with two services within each service.
        let has = |kinds: &[&str]| links.iter().any(|link| kinds.contains(&link.queue.kind()));
        let (by_flow, by_code_point) = (has(FLOWS_IN_TURN), has(BY_CODE_POINT));
        let mut last = std::collections::BTreeMap::new();
        for body in arrivals.iter().map(|arrival| &arrival.packet.body) {
            // A mark moves an ECT(0) packet to the other service at the next link.
            if by_code_point && body.ecn == Ecn::Ect0 && body.marks > 0 {
                continue;
            }
            let sequence = (by_flow.then_some(body.flow), by_code_point.then_some(body.ecn.is_scalable()));
            let before = last.insert(sequence, body.number);
            prop_assert!(before <= Some(body.number));
        }
        for link in network.route_links(FORWARD) {
            prop_assert_eq!(network.counters(link).reordered.packets, 0);
        }
    }

    /// Only ECN-capable packets are marked, and only by queues with ECN.
    #[test]
    fn only_ecn_capable_packets_are_marked(links in proptest::collection::vec(any_link(), 1..4), packets in packets(), seed: u64) {
        let mut network = chain(&links, seed).build();
        let arrivals = drive(&mut network, schedule(&packets));
        prop_assert!(arrivals.iter().all(|arrival| arrival.packet.body.ecn.is_capable() || arrival.packet.body.marks == 0));
        for (link, spec) in network.route_links(FORWARD).zip(&links) {
            prop_assert!(has_ecn(&spec.queue) || network.counters(link).marked == network::Count::default());
        }
    }

    /// The settings of these tests are valid in studies.
    #[test]
    fn settings_are_valid(queue in queue()) {
        prop_assert_eq!(queue.validate(), []);
    }

    /// Between any two departures, a link does not exceed its rate.
    #[test]
    fn no_link_is_faster_than_its_rate(
        bits in 10_000_u64..1_000_000_000_000, queue in queue(), packets in packets(), delay in duration(50)
    ) {
        let rate = Rate::from_bits_per_second(bits).unwrap();
        let link = LinkSpec { capacity: Capacity::Rate(rate), delay, queue, ..LinkSpec::default() };
        let arrivals = drive(&mut chain(&[link], 1).build(), schedule(&packets));
        for (first, from) in arrivals.iter().enumerate() {
            let mut sent = 0_u128;
            for to in &arrivals[first + 1..] {
                sent += u128::from(to.packet.size) * 8 * 1_000_000_000;
                // Times are rounded up to whole nanoseconds.
                let span = u128::from(to.at - from.at) + 1;
                prop_assert!(sent <= span * u128::from(bits));
            }
        }
    }

    /// Runs with the same seed are equal to the nanosecond, even if the caller is late.
    #[test]
    fn runs_with_equal_seeds_are_equal(
        links in proptest::collection::vec(any_link(), 1..4), packets in packets(), seed: u64, late in 1_u64..20_000_000
    ) {
        let builder = chain(&links, seed);
        let run = || {
            let mut network = builder.clone().build_observed(Log::default());
            let arrivals = drive(&mut network, schedule(&packets));
            (arrivals, network.observer().events.clone())
        };
        let (arrivals, events) = run();
        prop_assert_eq!(&run(), &(arrivals, events.clone()));
        let mut network = builder.build_observed(Log::default());
        let mut wake = 0;
        for (at, packet) in schedule(&packets) {
            while wake < at {
                network.handle_timeout(Instant::from_nanos(wake));
                wake += late;
            }
            network.send(Instant::from_nanos(at), packet);
        }
        network.handle_timeout(Instant::MAX);
        prop_assert_eq!(&network.observer().events, &events);
    }

    /// Losses do not depend on times and sizes of packets.
    #[test]
    fn losses_are_common_random_numbers(loss in loss(), count in 1_usize..60, seed: u64, ones in packets(), others in packets()) {
        let lost = |shape: &[(u64, u32)], extra: LinkSpec| {
            let link = LinkSpec { loss: Some(loss.clone()), ..extra };
            let mut network = chain(&[link], seed).build_observed(Log::default());
            let packets: Vec<_> = shape.iter().copied().chain(std::iter::repeat((7, 700))).take(count).collect();
            drive(&mut network, schedule(&packets));
            let lost = network.observer().events.iter();
            let lost = lost.filter(|event| event.kind == EventKind::Dropped(DropReason::Loss));
            lost.map(|event| event.id).collect::<Vec<_>>()
        };
        // Other features of a link use other random streams.
        let busy = LinkSpec {
            capacity: Capacity::Rate(Rate::from_bits_per_second(1_000_000).unwrap()),
            jitter: Some(JitterConfig::uniform(Duration::from_millis(1))),
            delay: Duration::from_millis(1),
            duplicate: Probability::new(0.3),
            corrupt: Probability::new(0.3),
            reorder: Some(ReorderConfig { probability: Probability::new(0.3).unwrap(), delay: Duration::from_millis(3) }),
            queue: QueueConfig::drop_tail(QueueLimit::Packets(2)),
            ..LinkSpec::default()
        };
        prop_assert_eq!(lost(&ones, LinkSpec::default()), lost(&others, busy));
    }
}
