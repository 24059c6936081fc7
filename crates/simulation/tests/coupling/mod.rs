//! The three goals of coupled congestion control (RFC 6356, section 2) in queues shared with TCPs.
//!
//! Each test also checks that uncoupled subflows, or a controller that misses the goal, fail it.

mod bench;

use bench::{Links, Routes};

/// The loss-based coupled controllers.
const LOSS_BASED: [&str; 3] = ["lia", "balia", "olia"];
const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

/// Returns the share of 24 Mbit/s that a connection with two subflows gets next to one TCP, averaged over the seeds.
/// Jitter before the bottleneck prevents phase effects.
fn share(congestion: &str, queue: &str) -> f64 {
    let one = |seed| {
        let mut links = Links::new(seed);
        let bottleneck = format!(r#"{{"rate": "24Mbit/s", "delay": "10ms", "queue": {queue}}}"#);
        let bottleneck = links.cable("bottleneck", &bottleneck);
        let mut routes = |name: &str| {
            let keys = r#"{"rate": "100Mbit/s", "delay": "1ms", "queue": "1000pkt", "jitter": "100us"}"#;
            let access = links.cable(name, keys);
            links.routes(&[access, bottleneck])
        };
        let (first, second, tcp) = (routes("first"), routes("second"), routes("tcp"));
        let flows = [(congestion, vec![first, second]), ("reno", vec![tcp])];
        let rates = links.run(&flows, 10, 60);
        let [own, other] = [0, 1].map(|flow: usize| rates[flow].iter().sum::<f64>());
        assert!(own + other > 18.0, "{congestion}, {queue}: the link is used");
        own / (own + other)
    };
    SEEDS.map(one).sum::<f64>() / SEEDS.count() as f64
}

/// Goal 2: a connection gets no more of a shared bottleneck than one TCP. Independent losses (section 3), which CoDel
/// approximates, give one half; the limit allows 10 % more for variation between seeds. A full drop-tail queue drops
/// several packets in a row, of one or both subflows by chance. If only one subflow has losses, the connection keeps
/// more of its rate than a TCP: 52 % with LIA, 49 % with BALIA and 50 % with OLIA.
#[test]
fn a_connection_gets_the_share_of_one_tcp_at_a_bottleneck() {
    for (queue, maximum) in [(r#""60pkt""#, 0.6), (r#""codel""#, 0.55)] {
        for congestion in LOSS_BASED {
            let share = share(congestion, queue);
            assert!((0.4..maximum).contains(&share), "{congestion}, {queue}: {share}");
        }
        let uncoupled = share("reno", queue);
        assert!(uncoupled > 0.63, "uncoupled, {queue}: {uncoupled}");
    }
}

/// Two paths of 10 Mbit/s with `tcps` TCPs on each.
struct SharedPaths {
    delays: [&'static str; 2],
    tcps: [usize; 2],
}

impl SharedPaths {
    /// Returns the rates in Mbit/s of a connection's subflows on `paths`, and the mean rate of the TCPs on each path.
    fn run(&self, congestion: &str, paths: &[usize]) -> (Vec<f64>, [f64; 2]) {
        let mut links = Links::new(1);
        let routes: Vec<Routes> = (0..2)
            .map(|path: usize| {
                let delay = self.delays[path];
                let keys = format!(r#"{{"rate": "10Mbit/s", "delay": "{delay}", "queue": "50pkt"}}"#);
                let link = links.cable(&format!("path {path}"), &keys);
                links.routes(&[link])
            })
            .collect();
        let mut flows = vec![(congestion, paths.iter().map(|&path| routes[path]).collect())];
        for (path, &tcps) in self.tcps.iter().enumerate() {
            flows.extend(std::iter::repeat_n(("reno", vec![routes[path]]), tcps));
        }
        let mut rates = links.run(&flows, 20, 100);
        let own = rates.remove(0);
        let mean = |rates: &[Vec<f64>]| rates.iter().flatten().sum::<f64>() / rates.len() as f64;
        let (first, second) = rates.split_at(self.tcps[0]);
        (own, [mean(first), mean(second)])
    }

    /// Returns, for each controller, the rate of a connection over both paths divided by the rate of a TCP that
    /// replaces it on the better path.
    fn gains<const N: usize>(&self, controllers: [&str; N]) -> [f64; N] {
        let alone = [0, 1].map(|path| self.run("reno", &[path]).0[0]);
        let best = alone[0].max(alone[1]);
        controllers.map(|name| self.run(name, &[0, 1]).0.iter().sum::<f64>() / best)
    }
}

const EQUAL: SharedPaths = SharedPaths {
    delays: ["10ms", "10ms"],
    tcps: [1, 1],
};
const UNEQUAL_DELAYS: SharedPaths = SharedPaths {
    delays: ["10ms", "50ms"],
    tcps: [1, 1],
};
const CROWDED: SharedPaths = SharedPaths {
    delays: ["10ms", "10ms"],
    tcps: [1, 4],
};

/// Goal 1: a connection gets at least the rate of a TCP on the best path, minus up to 14 % for probing the other path
/// and for chance, and less than a TCP on each path.
#[test]
fn a_connection_does_as_well_as_a_tcp_on_the_best_path() {
    let [lia, balia, olia] = LOSS_BASED;
    for (paths, name) in [
        (EQUAL, "equal"),
        (UNEQUAL_DELAYS, "unequal delays"),
        (CROWDED, "crowded"),
    ] {
        let [coupled @ .., uncoupled] = paths.gains([lia, balia, olia, "reno"]);
        for (congestion, gain) in LOSS_BASED.into_iter().zip(coupled) {
            assert!((0.86..1.35).contains(&gain), "{congestion}, {name}: {gain}");
        }
        assert!(
            name == "crowded" || uncoupled > 1.7,
            "uncoupled, {name}: {uncoupled}"
        );
    }
}

/// Goal 3: a connection moves off the more congested path as far as the other goals allow: it gets less than a third of
/// a TCP's rate there.
#[test]
fn a_connection_leaves_the_crowded_path() {
    let kept = |congestion| {
        let (own, tcps) = CROWDED.run(congestion, &[0, 1]);
        (own[1] / tcps[1], own[1] / own.iter().sum::<f64>())
    };
    for congestion in LOSS_BASED {
        let (kept, part) = kept(congestion);
        assert!(kept < 0.33 && part < 0.12, "{congestion}: {kept} {part}");
    }
    let (kept, part) = kept("reno");
    assert!(kept > 0.75 && part > 0.2, "uncoupled: {kept} {part}");
}

/// wVegas is delay-based: next to TCPs that fill drop-tail queues, it gets less than one of them (misses goal 1) and
/// does not leave the path with more of them (misses goal 3), as Vegas does next to Reno.
#[test]
fn wvegas_yields_to_loss_based_tcps() {
    assert!(share("wvegas", r#""60pkt""#) < 0.35);
    let [gain] = CROWDED.gains(["wvegas"]);
    assert!(gain < 0.86, "{gain}");
    let (own, tcps) = CROWDED.run("wvegas", &[0, 1]);
    assert!(own[1] / tcps[1] > 0.6, "{own:?} {tcps:?}");
}
