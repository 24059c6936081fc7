//! Foresight, designed in this project: uses the paths with the smallest expected flow completion time.
//!
//! For each path the host keeps the round-trip time with its queue, the acknowledgement rate of all its connections
//! together, the recent share of lost segments, and the assigned but unacknowledged bytes. The expected completion time of
//! a flow of `s` bytes over path `p` alone is
//!
//! rtt + max(rounds(s) rtt, s / rate + rtt / 2) + min(max(0, unfinished - rate rtt), subflows s) / rate
//!     + P(handshake lost) T + P(tail lost) RTO + P(others lost) rtt,
//!
//! with rounds(s) = ceil(log2(1 + s / (segment × initial window))) rounds of slow start. A flow starts on the path with the
//! smallest time. Others join if they can deliver data within that time plus a slack. The expected bytes of each path count
//! in the host's state at once, so that simultaneous flows choose different paths. Unanswered handshakes and the tail of
//! the data are retried on another path.

mod completion_time;
mod planner;
mod settings;

use foundation::Problem;

use self::planner::Planner;
pub use self::settings::Foresight;
use super::{PathPolicy, PolicySettings};

impl PolicySettings for Foresight {
    fn validate(&self) -> Vec<Problem> {
        self.problems()
    }

    fn beyond_linux(&self) -> Vec<Problem> {
        self.linux_problems()
    }

    fn build(&self) -> Box<dyn PathPolicy> {
        Box::new(Planner::new(self.clone()))
    }
}
