//! Keys of Foresight.

use foundation::{Problem, Size, omit_unset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

omit_unset! {
    /// The paths with the smallest expected flow completion time, given all flows of the host (designed in this project).
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Foresight {
        /// Use known flow sizes; otherwise every flow starts on one path and adds others as it grows. Default: true.
        pub sizes: bool,
        /// Count bytes that are assigned to a path and not acknowledged. Default: true.
        pub backlog: bool,
        /// Count recent losses. Default: true.
        pub losses: bool,
        /// Add a path if it can deliver data within the expected time increased by this fraction, 0 to 100. Default: 3.
        #[schemars(range(min = 0.0, max = 100.0))]
        pub slack: f64,
        /// Tail segments to retransmit on another path when their acknowledgement is late, 0 to 16; 0 disables. Default: 10; over Linux's MPTCP 0, the only supported value.
        #[schemars(range(max = 16))]
        pub tail: Option<u32>,
        /// Smoothed round-trip times after the last data until its acknowledgement is late, 1 to 10; not over Linux's MPTCP. Default: 1.5.
        #[schemars(range(min = 1.0, max = 10.0))]
        pub tail_after: Option<f64>,
        /// Largest size of a short flow; with steer, larger flows avoid the paths of short flows. Default: "800kB".
        pub short: Size,
        /// Keep long flows off the paths with the smallest round-trip times, as many as short flows fill. Default: false.
        pub steer: bool,
        /// Round-trip times of the current path until an unanswered handshake retries on the next path, 1 to 10; 0 disables. Default: 2; over Linux's MPTCP 0, the only supported value.
        #[schemars(range(max = 10.0))]
        pub handshake_after: Option<f64>,
    }
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

/// Default of `tail`, in segments.
pub(super) const TAIL: u32 = 10;
pub(super) const TAIL_AFTER: f64 = 1.5;
pub(super) const HANDSHAKE_AFTER: f64 = 2.0;

impl Foresight {
    pub(super) fn problems(&self) -> Vec<Problem> {
        let tail = self.tail.unwrap_or(TAIL);
        let tail_after = self.tail_after.unwrap_or(TAIL_AFTER);
        let handshake_after = self.handshake_after.unwrap_or(HANDSHAKE_AFTER);
        let delay = 1.0..=10.0;
        let handshake_valid = handshake_after == 0.0 || delay.contains(&handshake_after);
        let problems = [
            Problem::range("tail", tail, tail <= 16, "0 to 16"),
            Problem::range("tail_after", tail_after, delay.contains(&tail_after), "1 to 10"),
            Problem::range(
                "handshake_after",
                handshake_after,
                handshake_valid,
                "1 to 10, or 0",
            ),
            Problem::range(
                "slack",
                self.slack,
                (0.0..=100.0).contains(&self.slack),
                "0 to 100",
            ),
        ];
        problems.into_iter().flatten().collect()
    }

    pub(super) fn linux_problems(&self) -> Vec<Problem> {
        let tail = "not supported by Linux's MPTCP: remove the key";
        let used = [
            ("tail", self.tail.is_some_and(|segments| segments > 0), tail),
            ("tail_after", self.tail_after.is_some(), tail),
            (
                "handshake_after",
                self.handshake_after.is_some_and(|after| after > 0.0),
                "not supported by Linux's TCP, which retries on the same path: remove the key",
            ),
        ];
        let used = used.into_iter().filter(|&(_, used, _)| used);
        used.map(|(key, _, why)| Problem::new(key, why)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_keys_out_of_range() {
        let wrong = Foresight {
            tail: Some(17),
            tail_after: Some(0.5),
            slack: -1.0,
            handshake_after: Some(0.5),
            ..Foresight::default()
        };
        let problems: Vec<String> = wrong.problems().iter().map(Problem::to_string).collect();
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
