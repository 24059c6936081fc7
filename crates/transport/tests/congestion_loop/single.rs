//! One flow: utilisation, packets sent per packet needed, and queue.

use transport::congestion::{BbrSettings, BbrTolerantSettings, CongestionConfig, ControllerSettings};

use crate::congestion_loop::at;
use crate::congestion_loop::model::{Loop, Path, SEGMENT, Workload};

/// Controller, queue in packets and loss in percent (in both directions); then utilisation, packets sent per packet
/// needed, and mean queue found by a packet.
type Row = (&'static str, usize, f64, f64, f64, f64);

/// Measured and reviewed values; a change must be explained. Theory:
/// - BBR paces 1 % below the bandwidth and spends 2 % on ProbeRTT. Its queue does not grow with the buffer. Loss above
///   2 % counts as congestion, as in the draft; `bbr-tolerant` loses about the share that the path loses.
/// - Reno keeps the link full with a queue of one bandwidth-delay product (164 packets), CUBIC with 0.43 of it
///   (1/0.7 - 1), and both fill any queue.
/// - With random loss p Reno gets 1.31/sqrt(p) packets per round trip: 41, 13, 9 and 6 of 164 here.
#[rustfmt::skip]
const TABLE: &[Row] = &[
    ("bbr", 16, 0.0, 0.926, 1.001, 0.6),
    ("bbr", 16, 0.1, 0.878, 1.002, 0.9),
    ("bbr", 16, 1.0, 0.809, 1.010, 0.8),
    ("bbr", 16, 2.0, 0.478, 1.019, 0.2),
    ("bbr", 16, 5.0, 0.058, 1.055, 0.0),
    ("bbr", 41, 0.0, 0.969, 1.001, 2.2),
    ("bbr", 41, 0.1, 0.941, 1.002, 2.3),
    ("bbr", 41, 1.0, 0.845, 1.011, 1.8),
    ("bbr", 41, 2.0, 0.374, 1.019, 0.1),
    ("bbr", 41, 5.0, 0.059, 1.055, 0.1),
    ("bbr", 164, 0.0, 0.970, 1.000, 11.9),
    ("bbr", 164, 0.1, 0.925, 1.001, 12.8),
    ("bbr", 164, 1.0, 0.821, 1.011, 4.5),
    ("bbr", 164, 2.0, 0.415, 1.019, 0.2),
    ("bbr", 164, 5.0, 0.058, 1.053, 0.0),
    ("bbr", 656, 0.0, 0.970, 1.000, 11.9),
    ("bbr", 656, 0.1, 0.923, 1.001, 12.8),
    ("bbr", 656, 1.0, 0.847, 1.010, 9.5),
    ("bbr", 656, 2.0, 0.435, 1.019, 0.2),
    ("bbr", 656, 5.0, 0.058, 1.053, 0.0),
    ("bbr-tolerant", 16, 0.0, 0.926, 1.001, 0.6),
    ("bbr-tolerant", 16, 0.1, 0.928, 1.002, 0.6),
    ("bbr-tolerant", 16, 1.0, 0.933, 1.011, 1.0),
    ("bbr-tolerant", 16, 2.0, 0.933, 1.021, 1.2),
    ("bbr-tolerant", 16, 5.0, 0.906, 1.055, 2.1),
    ("bbr-tolerant", 41, 0.0, 0.969, 1.001, 2.2),
    ("bbr-tolerant", 41, 0.1, 0.969, 1.002, 2.4),
    ("bbr-tolerant", 41, 1.0, 0.965, 1.011, 4.9),
    ("bbr-tolerant", 41, 2.0, 0.957, 1.022, 8.8),
    ("bbr-tolerant", 41, 5.0, 0.925, 1.055, 8.4),
    ("bbr-tolerant", 164, 0.0, 0.970, 1.000, 11.9),
    ("bbr-tolerant", 164, 0.1, 0.969, 1.001, 12.0),
    ("bbr-tolerant", 164, 1.0, 0.967, 1.011, 16.8),
    ("bbr-tolerant", 164, 2.0, 0.955, 1.021, 28.8),
    ("bbr-tolerant", 164, 5.0, 0.926, 1.056, 32.6),
    ("bbr-tolerant", 656, 0.0, 0.970, 1.000, 11.9),
    ("bbr-tolerant", 656, 0.1, 0.969, 1.001, 12.0),
    ("bbr-tolerant", 656, 1.0, 0.968, 1.011, 16.9),
    ("bbr-tolerant", 656, 2.0, 0.959, 1.020, 49.6),
    ("bbr-tolerant", 656, 5.0, 0.925, 1.052, 54.6),
    ("cubic", 16, 0.0, 0.916, 1.000, 2.9),
    ("cubic", 41, 0.0, 0.979, 1.000, 14.9),
    ("cubic", 164, 0.0, 1.000, 1.000, 125.7),
    ("cubic", 164, 0.1, 0.286, 1.001, 0.2),
    ("cubic", 164, 1.0, 0.072, 1.012, 0.2),
    ("cubic", 164, 2.0, 0.053, 1.022, 0.2),
    ("cubic", 164, 5.0, 0.030, 1.055, 0.3),
    ("cubic", 656, 0.0, 1.000, 1.001, 554.7),
    ("reno", 16, 0.0, 0.809, 1.001, 2.4),
    ("reno", 41, 0.0, 0.894, 1.000, 10.9),
    ("reno", 164, 0.0, 1.000, 1.000, 90.8),
    ("reno", 164, 0.1, 0.259, 1.001, 0.4),
    ("reno", 164, 1.0, 0.058, 1.012, 0.3),
    ("reno", 164, 2.0, 0.045, 1.022, 0.3),
    ("reno", 164, 5.0, 0.025, 1.060, 0.3),
    ("reno", 656, 0.0, 1.000, 1.002, 435.7),
];

#[test]
fn one_flow_matches_the_reviewed_table() {
    let mut wrong = Vec::new();
    for &(controller, queue, loss, utilisation, sent, waiting) in TABLE {
        let found = measure(controller, queue, loss);
        let fine = (found.0 - utilisation).abs() <= 0.015
            && (found.1 - sent).abs() <= 0.005
            && (found.2 - waiting).abs() <= 2.0 + 0.1 * waiting;
        if !fine {
            wrong.push(format!(
                "({controller:?}, {queue}, {loss:?}, {:.3}, {:.3}, {:.1}), was {utilisation:.3}, {sent:.3}, {waiting:.1}",
                found.0, found.1, found.2
            ));
        }
    }
    assert!(wrong.is_empty(), "not as reviewed:\n{}", wrong.join("\n"));
}

/// 96 Mbit/s of payload, 20 ms, 20 s without the first 5 s.
fn measure(controller: &str, queue: usize, loss: f64) -> (f64, f64, f64) {
    let path = Path::new(96.0, 20.0, queue, loss / 100.0);
    let controller = CongestionConfig::named(controller).unwrap().build(SEGMENT);
    let mut run = Loop::new(path, 1, vec![(controller, Workload::BULK)]);
    run.run(at(5.0));
    let before = run.flows[0].delivered();
    run.reset();
    run.run(at(20.0));
    let delivered = (run.flows[0].delivered() - before) as f64;
    let utilisation = delivered * 8.0 / 15.0 / 96e6;
    (
        utilisation,
        run.flows[0].sent as f64 * SEGMENT as f64 / delivered,
        run.mean_queue(),
    )
}

/// The first 99 % of a file of 20 MB with BBR over 100 Mbit/s (96 of payload), 20 ms, a queue of one bandwidth-delay
/// product, 1 % loss in each direction. At most 95 Mbit/s arrive; the four doublings from 10 packets to a full pipe
/// take the time of 4 MB, those from 32 packets a third less.
#[test]
fn bbr_transfers_a_file_at_one_percent_loss() {
    for (initial_window, minimum) in [(10, 87.5), (32, 89.5)] {
        for seed in 0..10 {
            let workload = Workload {
                bytes: 20_000_000,
                ..Workload::BULK
            };
            let bbr = BbrTolerantSettings {
                draft: BbrSettings {
                    initial_window,
                    ..BbrSettings::default()
                },
                ..BbrTolerantSettings::default()
            };
            let path = Path::new(96.0, 20.0, 170, 0.01);
            let mut run = Loop::new(path, seed, vec![(bbr.build(SEGMENT), workload)]);
            run.run(at(5.0));
            let flow = &run.flows[0];
            let took = (flow.bulk_at.unwrap() - at(0.0)).as_secs_f64();
            let goodput = 19.8 * 8.0 / took;
            let ratio = flow.sent as f64 * SEGMENT as f64 / 20e6;
            assert!(
                goodput >= minimum,
                "seed {seed}: {goodput:.1} Mbit/s from {initial_window} packets"
            );
            assert!(ratio <= 1.02, "seed {seed}: {ratio:.3}");
        }
    }
}

/// quinn's BBR reaches 32 of 50 Mbit/s here; 47 is the ideal.
#[test]
fn bbr_tolerates_two_percent_loss_on_a_long_path() {
    for seed in 0..5 {
        let path = Path::new(48.0, 100.0, 411, 0.02);
        let mut run = Loop::new(
            path,
            seed,
            vec![(
                CongestionConfig::named("bbr-tolerant").unwrap().build(SEGMENT),
                Workload::BULK,
            )],
        );
        run.run(at(20.0));
        let goodput = run.flows[0].delivered() as f64 * 8.0 / 20.0 / 1e6;
        assert!(goodput >= 42.0, "seed {seed}: {goodput:.1} Mbit/s");
    }
}

/// A path that loses a tenth of all packets: at most 90 % of it is usable. The draft, `bbr`, uses less than a tenth
/// of it if the path holds many packets.
#[test]
fn bbr_tolerant_uses_a_path_with_ten_percent_loss() {
    for (rate, rtt) in [
        (2.0, 20.0),
        (20.0, 2.0),
        (20.0, 100.0),
        (48.0, 100.0),
        (96.0, 20.0),
        (200.0, 20.0),
    ] {
        let queue = (rate * rtt * 1e3 / 8.0 / SEGMENT as f64).max(20.0) as usize;
        let goodput = |name: &str, seed: u64| {
            let bbr = CongestionConfig::named(name).unwrap();
            let path = Path::new(rate, rtt, queue, 0.1);
            let mut run = Loop::new(path, seed, vec![(bbr.build(SEGMENT), Workload::BULK)]);
            run.run(at(20.0));
            run.flows[0].delivered() as f64 * 8.0 / 20.0 / 1e6 / rate
        };
        for seed in 0..3 {
            let used = goodput("bbr-tolerant", seed);
            assert!(used >= 0.75, "{rate} Mbit/s, {rtt} ms, seed {seed}: {used:.3}");
        }
        if queue > 300 {
            let draft = goodput("bbr", 0);
            assert!(
                draft <= 0.1,
                "{rate} Mbit/s, {rtt} ms, the draft alone: {draft:.3}"
            );
        }
    }
}

#[test]
fn keeps_fixed_rate() {
    let fixed: CongestionConfig =
        serde_json::from_str(r#"{"kind": "fixed", "window": 500, "rate": "10Mbit/s"}"#).unwrap();
    let mut run = Loop::new(
        Path::new(96.0, 20.0, 41, 0.0),
        1,
        vec![(fixed.build(SEGMENT), Workload::BULK)],
    );
    run.run(at(10.0));
    let rate = run.flows[0].delivered() as f64 * 8.0 / 10.0;
    assert!((9.97e6..10.01e6).contains(&rate), "{rate}");
}
