//! Coupled controllers: several subflows of one connection, over one bottleneck or several.

use transport::congestion::{
    CongestionConfig, Controller, ControllerSettings, CoupledGains, CoupledSettings, Coupling, Sibling,
    Siblings,
};

use crate::congestion_loop::at;
use crate::congestion_loop::flow::Flow;
use crate::congestion_loop::model::{Loop, Path, SEGMENT, Subflow, Workload};

/// Loss-based coupled controllers.
const LOSS_BASED: [&str; 3] = ["lia", "balia", "olia"];

fn named(text: &str) -> Box<dyn Controller> {
    let config: CongestionConfig = serde_json::from_str(text)
        .or_else(|_| CongestionConfig::named(text).map_err(|problem| problem.to_string()))
        .unwrap();
    config.build(SEGMENT)
}

fn subflow(controller: Box<dyn Controller>, link: usize, connection: usize) -> Subflow {
    Subflow {
        controller,
        workload: Workload::BULK,
        link,
        connection,
    }
}

/// A connection with a subflow on each link, and Reno flows on links.
fn with_reno(name: &str, links: &[usize], reno: &[usize]) -> Vec<Subflow> {
    let own = links.iter().map(|&link| subflow(named(name), link, 0));
    let others = reno.iter().enumerate();
    own.chain(others.map(|(index, &link)| subflow(named("reno"), link, index + 1)))
        .collect()
}

/// Returns the rate in Mbit/s of each flow between two times in s, and the final state.
fn rates(paths: Vec<Path>, flows: Vec<Subflow>, from: f64, until: f64) -> (Vec<f64>, Loop) {
    let mut run = Loop::over(paths, 3, flows);
    run.run(at(from));
    run.reset();
    let before: Vec<u64> = run.flows.iter().map(Flow::delivered).collect();
    run.run(at(until));
    let rate = |(flow, before): (&Flow, u64)| {
        let bytes = flow.delivered() - before;
        bytes as f64 * 8.0 / (until - from) / 1e6
    };
    (run.flows.iter().zip(before).map(rate).collect(), run)
}

/// Returns a path with random loss and free capacity.
fn lossy(loss: f64) -> Path {
    Path {
        ack_loss: 0.0,
        ..Path::new(1000.0, 40.0, 1000, loss)
    }
}

/// At a shared bottleneck a connection gets no more than a TCP (RFC 6356, section 2, goal 2). This holds for
/// independent losses, except for the variation of windows under LIA, which follows the larger one. At a drop-tail
/// queue it gets up to a fifth more than half, uncoupled a third more.
#[test]
fn connection_gets_one_share_of_a_bottleneck() {
    for name in LOSS_BASED {
        let (rates, _) = rates(vec![lossy(0.005)], with_reno(name, &[0, 0], &[0]), 10.0, 210.0);
        let ratio = (rates[0] + rates[1]) / rates[2];
        assert!((0.8..1.2).contains(&ratio), "{name}: {rates:?}");
    }
    let full = || vec![Path::new(24.0, 20.0, 60, 0.0)];
    let share = |name| {
        let (rates, _) = rates(full(), with_reno(name, &[0, 0], &[0]), 20.0, 120.0);
        (rates[0] + rates[1]) / 24.0
    };
    for name in LOSS_BASED {
        assert!((0.45..0.6).contains(&share(name)), "{name}: {}", share(name));
    }
    assert!(share("reno") > 0.65, "uncoupled: {}", share("reno"));
}

/// A connection gets as much as a TCP on its best path, mostly on that path (RFC 6356, section 2, goals 1 and 3);
/// with five times the loss a TCP gets 0.45 of the rate.
#[test]
fn connection_matches_best_path_and_leaves_worse_path() {
    let measure = |name| {
        let paths = vec![lossy(0.002), lossy(0.01)];
        let (rates, _) = rates(paths, with_reno(name, &[0, 1], &[0, 1]), 10.0, 310.0);
        let total = rates[0] + rates[1];
        (total / rates[2], rates[1] / total, rates)
    };
    for name in LOSS_BASED {
        let (gain, worse, rates) = measure(name);
        assert!((0.8..1.15).contains(&gain), "{name}: {rates:?}");
        // Proportional to 1/p it would be a sixth, at the optimum nothing; a window of one packet is 0.04.
        assert!(worse < 0.15, "{name}: {rates:?}");
    }
    let (gain, worse, rates) = measure("reno");
    assert!(gain > 1.3 && worse > 0.27, "uncoupled: {rates:?}");
}

/// OLIA without alpha: fully coupled.
#[derive(Clone, Copy, Debug, Default)]
struct Full;

impl Coupling for Full {
    fn gains(siblings: &Siblings<'_>, segment: u64) -> CoupledGains {
        let nanos = |sibling: &Sibling| sibling.rtt.as_nanos() as f64;
        let total: f64 = siblings.measured().map(|s| s.window as f64 / nanos(s)).sum();
        let own = siblings.own();
        let square = nanos(own) * nanos(own);
        CoupledGains {
            increase: (segment * own.window) as f64 / (square * total * total),
            beta: 0.5,
        }
    }
}

/// Fully coupled windows over equal paths flap between them; those of OLIA flap far less (section 5 of its paper).
#[test]
fn olia_does_not_flap() {
    let one_sided = |build: &dyn Fn() -> Box<dyn Controller>| {
        let flows = vec![subflow(build(), 0, 0), subflow(build(), 1, 0)];
        let mut run = Loop::over(vec![lossy(0.002), lossy(0.002)], 3, flows);
        let mut last = [0; 2];
        let mut count = 0;
        for round in 1..=100 {
            run.run(at(f64::from(round) * 5.0));
            let now = [0, 1].map(|flow: usize| run.flows[flow].delivered());
            let moved = [now[0] - last[0], now[1] - last[1]];
            count += u32::from(moved.iter().max() > moved.iter().min().map(|minimum| minimum * 9).as_ref());
            last = now;
        }
        count
    };
    let full = one_sided(&|| CoupledSettings::<Full>::default().build(SEGMENT));
    let olia = one_sided(&|| named("olia"));
    assert!(
        full >= 30 && 2 * olia < full,
        "of 100 rounds: full {full}, OLIA {olia}"
    );
}

/// Returns the packets queued on each link and the rate in Mbit/s of each flow with wVegas; `flows` are link and
/// connection.
fn wvegas(settings: &str, links: &[f64], flows: &[(usize, usize)]) -> (Vec<f64>, Vec<f64>) {
    let path = |&mbit: &f64| Path::new(mbit, 20.0, 400, 0.0);
    let flow = |&(link, connection): &(usize, usize)| subflow(named(settings), link, connection);
    let (rates, run) = rates(
        links.iter().map(path).collect(),
        flows.iter().map(flow).collect(),
        20.0,
        80.0,
    );
    (run.links.iter().map(|link| link.mean_queue()).collect(), rates)
}

fn near(found: &[f64], expected: &[f64], within: f64) {
    assert_eq!(found.len(), expected.len());
    for (one, other) in found.iter().zip(expected) {
        assert!((one - other).abs() <= within, "{found:.2?} for {expected:?}");
    }
}

/// All subflows together keep total_alpha packets queued, each in proportion to its rate.
#[test]
fn wvegas_keeps_total_alpha_packets_queued() {
    for (links, queues) in [
        (vec![24.0], vec![10.0]),
        (vec![24.0, 24.0], vec![5.0, 5.0]),
        (vec![10.0, 30.0], vec![2.5, 7.5]),
    ] {
        let flows: Vec<_> = (0..links.len()).map(|link| (link, 0)).collect();
        let (found, rates) = wvegas("wvegas", &links, &flows);
        near(&found, &queues, 0.6);
        near(&rates, &links, 0.1);
    }
    let twenty = r#"{"kind": "wvegas", "total_alpha": 20}"#;
    let (found, _) = wvegas(twenty, &[10.0, 30.0], &[(0, 0), (1, 0)]);
    near(&found, &[5.0, 15.0], 0.6);
}

/// Traffic moves to short queues.
#[test]
fn wvegas_balances_congestion() {
    // One connection over both links, another over the first only. The latter keeps 10 packets there, the former its
    // minimum of 2, so that they share 24 Mbit/s as 2 to 10.
    let (_, rates) = wvegas("wvegas", &[24.0, 24.0], &[(0, 0), (1, 0), (0, 1)]);
    near(&rates, &[4.0, 24.0, 20.0], 0.5);
    // Three connections in a ring over 12, 24 and 24 Mbit/s: 20 each, though one link has half the rate.
    let ring = [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (0, 2)];
    let (_, rates) = wvegas("wvegas", &[12.0, 24.0, 24.0], &ring);
    let totals: Vec<f64> = rates.chunks(2).map(|pair| pair.iter().sum()).collect();
    near(&totals, &[20.0, 20.0, 20.0], 1.5);
}

/// A filling queue soon has twice its minimum delay. Drained at that point, as in Linux, it never holds alpha
/// packets, and the link is idle at times.
#[test]
fn wvegas_with_frequent_drains_leaves_capacity() {
    let always = r#"{"kind": "wvegas", "drain": "always"}"#;
    let (queues, rates) = wvegas(always, &[24.0], &[(0, 0)]);
    assert!(
        queues[0] < 3.0 && (0.7..0.9).contains(&(rates[0] / 24.0)),
        "{queues:?} {rates:?}"
    );
    let never = r#"{"kind": "wvegas", "drain": "off"}"#;
    near(&wvegas(never, &[24.0], &[(0, 0)]).0, &[10.0], 0.6);
}
