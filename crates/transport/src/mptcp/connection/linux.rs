//! Details in which Linux uses the freedom that RFC 8684 leaves, for conformance scripts
//! ([`Setup::following_linux`](super::Setup::following_linux)). No key of a study selects them.
//!
//! - Data sequence numbers have eight bytes, and a DATA_ACK has the length of the numbers in the peer's last mapping (section 3.3.1
//!   allows both lengths).
//! - Every subflow carries the DATA_FIN, and the DATA_ACK of the peer's DATA_FIN.
//! - That DATA_ACK leaves in a separate ACK before the FINs of the subflows.
//! - ACKs in TIME-WAIT have no option.
//! - The B flag of a SYN/ACK also repeats that of the SYN: a subflow that either end marks is a backup for both.
//! - A connection without subflows waits one minute for another one (section 3.4 leaves the time open).

use foundation::{Duration, Instant};

use super::{Connection, Mode};
use crate::mptcp::segment::{DSS_BARE, DSS_MAPPED, Widths};
use crate::tcp::ReservedOptions;

/// How long a connection without subflows lives (Linux's `TCP_TIMEWAIT_LEN`).
const ALONE: Duration = Duration::from_secs(60);

/// Header bytes for MPTCP options with eight-byte numbers.
pub(super) const RESERVED: ReservedOptions = ReservedOptions {
    data: DSS_MAPPED + 8,
    bare: DSS_BARE + 4,
};

impl Connection {
    /// Returns the lengths of the numbers in the next DSS option.
    #[inline]
    pub(super) fn widths(&self) -> Widths {
        let linux = self.setup.linux();
        Widths {
            acknowledgement: linux && self.peer_is_wide,
            data: linux,
        }
    }

    /// Returns whether the connection outlives its last subflow, and starts the time limit.
    pub(super) fn waits_alone(&mut self, now: Instant) -> bool {
        let waits = self.setup.linux() && self.mode == Mode::Multipath && self.confirmed && !self.closed;
        if waits {
            self.alone_until = now + ALONE;
        }
        waits
    }

    /// Requests an ACK on every usable subflow.
    pub(super) fn acknowledge_everywhere(&mut self) {
        for (index, subflow) in self.subflows.iter_mut().enumerate() {
            if subflow.usable {
                subflow.tcp.demand_acknowledgement();
                self.dirty |= 1 << index;
            }
        }
    }
}
