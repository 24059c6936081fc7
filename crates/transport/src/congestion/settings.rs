//! What a controller's settings can do: be checked, and build the controller.

use std::fmt::Debug;

use foundation::{Duration, Problem};

use super::Controller;
use super::rules::Rules;

/// What a connection that asks for a controller brings with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionContext {
    /// Payload bytes of its full packets.
    pub segment: u64,
    /// The stack that it follows: where settings do not say by whose rules to count, by its.
    pub rules: Rules,
    /// The window to start with in packets, in place of the controller's own.
    pub initial_window: Option<u64>,
}

impl ConnectionContext {
    /// An owner that follows the RFCs and leaves the initial window to the controller.
    #[must_use]
    pub const fn new(segment: u64) -> Self {
        Self {
            segment,
            rules: Rules::Rfc,
            initial_window: None,
        }
    }
}

/// The settings of one kind of controller.
///
/// A new controller is one type of settings with this trait and serde's `Serialize`, `Deserialize`
/// (`#[serde(default, deny_unknown_fields)]`: every key has a default, an unknown one is an error) and
/// schemars' `JsonSchema`, whose doc comments are the help that users read, and one line in
/// [`Registry::builtin`](super::Registry::builtin).
pub trait ControllerSettings: Debug + Send + Sync {
    /// What is out of range, by key; empty where all is well.
    fn validate(&self) -> Vec<Problem>;
    /// The controller of one connection that sends packets of up to `segment_size` payload bytes.
    fn build(&self, segment_size: u64) -> Box<dyn Controller> {
        self.build_for(&ConnectionContext::new(segment_size))
    }
    /// The controller of one connection, by what that brings with it.
    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller>;
}

/// The problem with an initial window in packets, if there is one.
pub(super) fn check_initial_window(packets: u64) -> Option<Problem> {
    (packets == 0 || packets > 1_000_000).then(|| {
        Problem::new(
            "initial_window",
            format!("{packets} is out of range: 1 to 1000000 packets"),
        )
    })
}

/// What is wrong with when BBR looks at the empty path, and for how long.
pub(super) fn check_probe_rtt(interval: Duration, duration: Duration) -> Vec<Problem> {
    let mut problems = Vec::new();
    if interval < Duration::from_millis(100) {
        let message = format!("{interval} is out of range: at least 100ms");
        problems.push(Problem::new("probe_rtt_interval", message));
    }
    if duration > Duration::from_secs(1) {
        let message = format!("{duration} is out of range: at most 1s");
        problems.push(Problem::new("probe_rtt_duration", message));
    }
    problems
}
