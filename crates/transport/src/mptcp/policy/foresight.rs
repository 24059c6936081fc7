//! Foresight, the project's own policy: the paths on which a flow is expected to be done first.
//!
//! Of each path the host knows its round trip with the queue, the rate at which all of its connections together are
//! acknowledged there, the share of segments lost of late, and the bytes that its connections mean to send there and
//! that are not acknowledged. A flow of `s` bytes over path `p` alone is expected to take
//!
//! rtt + max(rounds(s) rtt, s / rate + rtt / 2) + min(max(0, unfinished - rate rtt), subflows s) / rate
//!     + P(handshake lost) T + P(tail lost) RTO + P(others lost) rtt,
//!
//! with rounds(s) = ceil(log2(1 + s / (segment x initial window))) of slow start. It starts on the path of the least such
//! time, and others join that could bring something within that time and a slack. What it is expected to bring over each
//! stands in the host's account from then on, so that the next flow sees it: flows do not herd. A handshake whose answer is
//! late goes on to the next path, and so does the tail of the data.

use foundation::{Problem, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::planner::Planner;
use super::{PathPolicy, PolicySettings};

/// The paths on which a flow is expected to be done first, by an account of all of the host's flows (the project's own).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Foresight {
    /// Whether sizes are used where they are known; else every flow starts on one path and joins others as it grows. Default: true.
    pub sizes: bool,
    /// Whether bytes that were assigned to a path and are not acknowledged count. Default: true.
    pub backlog: bool,
    /// Whether losses of late count. Default: true.
    pub losses: bool,
    /// A further path is joined where it could bring something within the expected time and this share of it, 0 to 100. Default: 3.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub slack: f64,
    /// Segments at the end of a flow that leave on another path too when their acknowledgement is late; 0 for none, at most 16. Default: 10; over Linux's MPTCP 0, which is all that it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 16))]
    pub tail: Option<u32>,
    /// When it is late: so many smoothed round-trip times after the last data left, 1 to 10; not over Linux's MPTCP. Default: 1.5.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1.0, max = 10.0))]
    pub tail_after: Option<f64>,
    /// Flows up to this size count as short, of larger ones paths of short flows are kept free. Default: "800kB".
    pub short: Size,
    /// Whether long flows leave out the paths of least round-trip time, as many of them as short flows fill. Default: false.
    pub steer: bool,
    /// A handshake goes on to the next path when its answer is late by so many round-trip times of the path it is on, 1 to 10; 0 for never. Default: 2; over Linux's MPTCP 0, which is all that it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 10.0))]
    pub handshake_after: Option<f64>,
}

impl Default for Foresight {
    fn default() -> Self {
        Self {
            sizes: true,
            backlog: true,
            losses: true,
            slack: 3.0,
            tail: None,
            tail_after: None,
            short: Size::from_bytes(800_000),
            steer: false,
            handshake_after: None,
        }
    }
}

/// Segments at the end of a flow that are sent twice, when, and when a handshake goes on, where the study does not say.
pub(super) const TAIL: u32 = 10;
pub(super) const TAIL_AFTER: f64 = 1.5;
pub(super) const HANDSHAKE_AFTER: f64 = 2.0;

impl PolicySettings for Foresight {
    fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut check = |key: &'static str, fine: bool, value: String, allowed: &str| {
            if !fine {
                problems.push(Problem::new(key, format!("{value} is out of range: {allowed}")));
            }
        };
        let tail = self.tail.unwrap_or(TAIL);
        check("tail", tail <= 16, tail.to_string(), "0 to 16");
        let after = self.tail_after.unwrap_or(TAIL_AFTER);
        let fine = (1.0..=10.0).contains(&after);
        check("tail_after", fine, after.to_string(), "1 to 10");
        let after = self.handshake_after.unwrap_or(HANDSHAKE_AFTER);
        let fine = after == 0.0 || (1.0..=10.0).contains(&after);
        check("handshake_after", fine, after.to_string(), "1 to 10, or 0");
        let fine = (0.0..=100.0).contains(&self.slack);
        check("slack", fine, self.slack.to_string(), "0 to 100");
        problems
    }

    fn beyond_linux(&self) -> Vec<Problem> {
        let tail = "Linux's MPTCP protects no tail: leave the key out";
        let asked = [
            ("tail", self.tail.is_some_and(|segments| segments > 0), tail),
            ("tail_after", self.tail_after.is_some(), tail),
            (
                "handshake_after",
                self.handshake_after.is_some_and(|after| after > 0.0),
                "Linux's TCP keeps to the path of its SYN: leave the key out",
            ),
        ];
        let asked = asked.into_iter().filter(|&(_, asked, _)| asked);
        asked.map(|(key, _, why)| Problem::new(key, why)).collect()
    }

    fn build(&self) -> Box<dyn PathPolicy> {
        Box::new(Planner::new(self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_range_is_named() {
        let wrong = Foresight {
            tail: Some(17),
            tail_after: Some(0.5),
            slack: -1.0,
            handshake_after: Some(0.5),
            ..Foresight::default()
        };
        let problems: Vec<String> = wrong.validate().iter().map(Problem::to_string).collect();
        assert_eq!(
            problems,
            [
                "tail: 17 is out of range: 0 to 16",
                "tail_after: 0.5 is out of range: 1 to 10",
                "handshake_after: 0.5 is out of range: 1 to 10, or 0",
                "slack: -1 is out of range: 0 to 100"
            ]
        );
    }
}
