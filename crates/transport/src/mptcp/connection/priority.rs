//! Changes of backup flags (RFC 8684, section 3.3.8).

use super::Connection;
use crate::mptcp::segment::PathIndex;

impl Connection {
    /// Sets the backup flag of all subflows on `path`, and sends it to the peer once, by MP_PRIO on the subflow
    /// itself. A backup carries data only while no other subflow can. The peer's own flag is unchanged. Returns
    /// whether such a subflow exists.
    pub fn set_backup(&mut self, path: PathIndex, backup: bool) -> bool {
        let mut found = false;
        for (index, subflow) in self.subflows.iter_mut().enumerate() {
            if subflow.path != path || subflow.gone {
                continue;
            }
            found = true;
            if subflow.backup != backup {
                subflow.backup = backup;
                // A handshake that has not left yet carries the flag itself.
                subflow.priority_pending = true;
                subflow.tcp.demand_acknowledgement();
                self.dirty |= 1 << index;
            }
        }
        found
    }
}
