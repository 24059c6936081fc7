//! Coupled congestion controllers under multipath TCP.

use transport::mptcp::MptcpConfig;

use crate::mptcp::links::{Link, transfer};

fn config(congestion: &str) -> MptcpConfig {
    let config: MptcpConfig = serde_json::from_value(serde_json::json!({
        "kind": "mptcp", "profile": "rfc", "congestion": congestion, "receive_buffer": "16MiB",
        "send_buffer": "16MiB", "policy": {"kind": "all", "first": "first"},
    }))
    .unwrap();
    assert_eq!(config.validate(), []);
    config
}

/// Returns the rate in Mbit/s over paths of 40 ms with random loss and free capacity, and the share of the last path.
fn over_losses(congestion: &str, losses: &[f64]) -> (f64, f64) {
    let link = |&loss: &f64| Link {
        loss,
        ..Link::new(1000.0, 40, 1000)
    };
    let links: Vec<Link> = losses.iter().map(link).collect();
    let outcome = transfer(&config(congestion), &links, 50_000_000, 2);
    assert!(outcome.finished, "{congestion}");
    let last = *outcome.bytes.last().unwrap() as f64;
    (400.0 / outcome.seconds, last / 50e6)
}

/// The subflows together get about as much as one TCP on the best path, mostly on the better path: LIA moves the
/// least traffic and OLIA the most (RFC 6356, section 2; Khalili et al. 2012, section 3). Uncoupled subflows get as
/// much as two TCPs.
#[test]
fn coupled_subflows_get_as_much_as_one_tcp() {
    let (alone, _) = over_losses("reno", &[0.005]);
    assert!(over_losses("reno", &[0.005, 0.005]).0 > 1.8 * alone);
    let (_, uncoupled) = over_losses("reno", &[0.005, 0.02]);
    let mut worse = vec![uncoupled];
    for congestion in ["lia", "balia", "olia"] {
        let (rate, _) = over_losses(congestion, &[0.005, 0.005]);
        assert!(
            (0.85..1.2).contains(&(rate / alone)),
            "{congestion}: {rate} and {alone}"
        );
        let (rate, part) = over_losses(congestion, &[0.005, 0.02]);
        assert!(
            (0.85..1.2).contains(&(rate / alone)),
            "{congestion}: {rate} and {alone}"
        );
        worse.push(part);
    }
    // 1/3 by 1/sqrt(p), 1/5 by 1/p, and almost nothing.
    assert!(worse.is_sorted_by(|a, b| a > b), "{worse:?}");
    assert!(worse[0] > 0.25 && worse[1] < 0.22 && worse[3] < 0.05, "{worse:?}");
}

/// wVegas fills both paths without loss.
#[test]
fn wvegas_fills_paths_without_loss() {
    let links = [Link::new(10.0, 20, 100), Link::new(20.0, 30, 100)];
    let outcome = transfer(&config("wvegas"), &links, 30_000_000, 1);
    assert!(outcome.finished);
    assert_eq!(
        outcome.bytes.iter().sum::<u64>(),
        30_000_000,
        "{:?}",
        outcome.bytes
    );
    // 1428 of 1500 bytes are payload.
    let rate = 240.0 / outcome.seconds;
    assert!(rate > 0.94 * 30.0 * 1428.0 / 1500.0, "{rate} Mbit/s");
}
