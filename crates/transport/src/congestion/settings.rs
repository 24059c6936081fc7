//! The interface of controllers' settings.

use std::fmt::Debug;

use foundation::{Duration, Problem};

use super::Controller;
use super::rules::Rules;

/// Parameters of the connection that a controller is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionContext {
    /// Payload bytes of a full packet.
    pub segment: u64,
    /// Rules of the connection's stack, for controllers whose settings name none.
    pub rules: Rules,
    /// Initial window in packets, instead of the controller's own.
    pub initial_window: Option<u64>,
}

impl ConnectionContext {
    /// Creates the context of a connection that follows the RFCs and keeps the controller's initial window.
    #[must_use]
    pub const fn new(segment: u64) -> Self {
        Self {
            segment,
            rules: Rules::Rfc,
            initial_window: None,
        }
    }
}

/// Settings of one kind of controller.
///
/// A new controller is one settings type with this trait, serde's `Serialize` and `Deserialize` (`#[serde(default,
/// deny_unknown_fields)]`, since every key has a default) and schemars' `JsonSchema`, whose doc comments are the help
/// for users, and one line in [`Registry::builtin`](super::Registry::builtin).
pub trait ControllerSettings: Debug + Send + Sync {
    /// Returns the keys that are out of range.
    fn validate(&self) -> Vec<Problem>;
    /// Returns how the controller uses congestion marks, which decides TCP's feedback by default.
    fn mark_use(&self) -> MarkUse {
        MarkUse::Signal
    }
    /// Builds the controller of a connection with packets of up to `segment_size` payload bytes.
    fn build(&self, segment_size: u64) -> Box<dyn Controller> {
        self.build_for(&ConnectionContext::new(segment_size))
    }
    /// Builds the controller of a connection.
    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller>;
}

/// Use of congestion marks by a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkUse {
    /// A mark is a sign of congestion, like a loss (RFC 3168).
    Signal,
    /// Marked bytes are counted, with the feedback of DCTCP (RFC 8257).
    Count,
    /// Marked bytes are counted, and packets carry ECT(1) for the low-latency queue of L4S, which needs accurate feedback
    /// (RFC 9331, section 4).
    Scalable,
}

foundation::role!(ControllerSettings, "congestion controller", "aimd.py:Aimd");

/// Checks an initial window in packets.
pub(super) fn check_initial_window(packets: u64) -> Option<Problem> {
    let valid = (1..=1_000_000).contains(&packets);
    Problem::range("initial_window", packets, valid, "1 to 1000000 packets")
}

/// Checks interval and duration of BBR's ProbeRTT.
pub(super) fn check_probe_rtt(interval: Duration, duration: Duration) -> [Option<Problem>; 2] {
    let valid = interval >= Duration::from_millis(100);
    let interval = Problem::range("probe_rtt_interval", interval, valid, "at least 100ms");
    let valid = duration <= Duration::from_secs(1);
    [
        interval,
        Problem::range("probe_rtt_duration", duration, valid, "at most 1s"),
    ]
}
