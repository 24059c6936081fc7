//! Subflows that become backups, or are none any more (RFC 8684, section 3.3.8).

use super::Connection;
use crate::mptcp::segment::PathIndex;

impl Connection {
    /// From now on the subflows on `path` are used only where no other can be, or as any other again, by both ends: the
    /// peer is told once by MP_PRIO, on the subflow itself. What the peer wishes by itself stays. Gives whether there is
    /// such a subflow.
    pub fn set_backup(&mut self, path: PathIndex, backup: bool) -> bool {
        let mut found = false;
        for (index, subflow) in self.subflows.iter_mut().enumerate() {
            if subflow.path != path || subflow.gone {
                continue;
            }
            found = true;
            if subflow.backup != backup {
                subflow.backup = backup;
                // What has not left yet tells it by itself, in its handshake.
                subflow.priority_pending = true;
                subflow.tcp.demand_acknowledgement();
                self.dirty |= 1 << index;
            }
        }
        found
    }
}
