//! Cost of scheduling a segment, in steps.

use transport::mptcp::{MptcpConfig, SchedulerConfig};

use crate::mptcp::links::{Link, transfer};

/// Two paths whose windows exceed the receive buffer together: successive segments alternate between them.
const ALIKE: [Link; 2] = [Link::new(200.0, 200, 4000); 2];

/// Returns the runs of sent data examined for each segment of a transfer of several receive buffers.
fn examined(scheduler: &str, policy: &str, mebibytes: u64) -> f64 {
    let config: MptcpConfig = serde_json::from_value(serde_json::json!({
        "kind": "mptcp", "profile": "rfc", "scheduler": scheduler, "policy": policy,
        "receive_buffer": format!("{mebibytes}MiB"), "send_buffer": "64MiB",
        "opportunistic_retransmission": true,
    }))
    .unwrap();
    assert_eq!(config.validate(), []);
    let outcome = transfer(&config, &ALIKE, mebibytes * 6_000_000, 1);
    assert!(outcome.finished, "{scheduler}, {policy}");
    outcome.examined as f64 / outcome.packets as f64
}

/// The number of steps per segment does not depend on the window.
#[test]
fn cost_of_a_segment_is_independent_of_the_window() {
    for scheduler in SchedulerConfig::KINDS {
        for policy in ["in-kernel", "foresight"] {
            let [small, large] = [1, 8].map(|mebibytes| examined(scheduler, policy, mebibytes));
            println!("{scheduler:14} {policy:10} {small:8.2} {large:8.2}");
            assert!(
                large < 20.0 && large <= 2.0 * small + 2.0,
                "{scheduler}, {policy}: {small:.1} steps per segment with a buffer of 1 MiB, {large:.1} with 8 MiB"
            );
        }
    }
}
