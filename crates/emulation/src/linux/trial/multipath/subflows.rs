//! What the kernel tells of the subflows of a connection.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard};

use experiment::outcome::Sent;
use experiment::trace::{Probe, Side};
use kernel::mptcp::{Connection, Subflow};

use crate::linux::trial::flow::{Flow, Look, locked};
use crate::linux::trial::info::Info;

/// The subflows of a connection, those that have closed as they were seen last.
#[derive(Default)]
pub(super) struct Subflows(Mutex<BTreeMap<u32, Subflow>>);

impl Subflows {
    /// Looks at a connection; false where it is plain TCP.
    pub(super) fn look(&self, socket: &TcpStream) -> io::Result<bool> {
        let Some(connection) = Connection::of(socket)? else {
            return Ok(false);
        };
        let mut known = locked(&self.0);
        for subflow in connection.subflows {
            known.insert(subflow.id, subflow);
        }
        Ok(true)
    }

    /// Them all, by number.
    pub(super) fn known(&self) -> MutexGuard<'_, BTreeMap<u32, Subflow>> {
        locked(&self.0)
    }

    /// What all of them have done. Windows and what is in flight add up; the round-trip time is that of the fastest.
    fn told(&self) -> Look {
        let (mut sent, mut probe) = (Sent::default(), Probe::default());
        for subflow in locked(&self.0).values() {
            let info = Info::from(subflow.tcp);
            let one = info.probe();
            sent = sent.and(info.sent());
            probe.window = Some(probe.window.unwrap_or(0) + one.window.unwrap_or(0));
            probe.in_flight += one.in_flight;
            probe.retransmissions = Some(sent.retransmissions);
            probe.smoothed_rtt = match (probe.smoothed_rtt, one.smoothed_rtt) {
                (Some(least), Some(rtt)) => Some(least.min(rtt)),
                (least, rtt) => least.or(rtt),
            };
            probe.state = "open";
        }
        Look { sent, probe }
    }
}

/// From now on the kernel is asked for what it tells of them.
pub(super) fn watch(flow: &Flow, socket: &TcpStream, subflows: &Arc<Subflows>) {
    let subflows = Arc::clone(subflows);
    if let Ok(socket) = socket.try_clone() {
        let look = move || {
            subflows.look(&socket).ok()?;
            Some(subflows.told())
        };
        flow.watch(Side::Sender, Box::new(look));
    }
}
