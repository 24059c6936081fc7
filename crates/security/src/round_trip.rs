//! The round trip of a handshake, with which the timers of its connection start.

use foundation::Duration;

/// Timers start with this value if the round trip is unknown (RFC 6298, section 2).
const UNKNOWN: Duration = Duration::from_secs(1);

/// Returns `bound`, the time from the first transmission of a message to its answer, if a timer can use it. If the message
/// was repeated, the round trip may be shorter; a timer that starts too late adapts at the first sample.
pub fn useful_bound(bound: Duration) -> Option<Duration> {
    (bound < UNKNOWN).then_some(bound)
}
