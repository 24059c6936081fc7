//! TraceEventKind the kernel tells of the subflows of a connection.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use experiment::outcome::{PathBytes, SendCounters};
use experiment::trace::{Probe, Side};
use kernel::mptcp::{ConnectionInfo, Subflow};

use crate::linux::trial::flow::{EndSnapshot, Flow, locked};
use crate::linux::trial::info;

/// The subflows of a connection, those that have closed as they were seen last.
pub(super) struct Subflows {
    known: Mutex<BTreeMap<u32, Subflow>>,
    /// This host's address and the number of each way.
    ways: Vec<(Ipv4Addr, u8)>,
}

impl Subflows {
    /// None yet, of a connection that may use these ways: this host's address and the number of each.
    pub(super) fn on(ways: &[(Ipv4Addr, u8)]) -> Self {
        Self {
            known: Mutex::default(),
            ways: ways.to_vec(),
        }
    }

    /// Looks at a connection; false where it is plain TCP.
    pub(super) fn update(&self, socket: &TcpStream) -> io::Result<bool> {
        let Some(connection) = ConnectionInfo::of_socket(socket)? else {
            return Ok(false);
        };
        let mut known = locked(&self.known);
        for subflow in connection.subflows {
            known.insert(subflow.id, subflow);
        }
        Ok(true)
    }

    /// Them all, by number.
    pub(super) fn known(&self) -> MutexGuard<'_, BTreeMap<u32, Subflow>> {
        locked(&self.known)
    }

    /// TraceEventKind all of them have done. Windows and what is in flight add up; the round-trip time is that of the fastest.
    fn snapshot(&self) -> EndSnapshot {
        let (mut sent, mut probe, mut carried) =
            (SendCounters::default(), Probe::default(), PathBytes::default());
        for subflow in locked(&self.known).values() {
            let (own, one) = (info::sent(&subflow.tcp), info::probe(&subflow.tcp));
            sent = sent.and(own);
            let is_its = |way: &&(Ipv4Addr, u8)| subflow.pair.local.ip() == way.0;
            if let Some(&(_, way)) = self.ways.iter().find(is_its) {
                carried.add(way, own.bytes);
            }
            probe.window = Some(probe.window.unwrap_or(0) + one.window.unwrap_or(0));
            probe.in_flight += one.in_flight;
            probe.retransmissions = Some(sent.retransmissions);
            probe.smoothed_rtt = match (probe.smoothed_rtt, one.smoothed_rtt) {
                (Some(least), Some(rtt)) => Some(least.min(rtt)),
                (least, rtt) => least.or(rtt),
            };
            probe.state = "open";
        }
        EndSnapshot {
            sent,
            probe,
            carried: Some(carried),
        }
    }
}

/// From now on the kernel is asked for what it tells of them.
pub(super) fn watch(flow: &Flow, socket: &TcpStream, subflows: &Arc<Subflows>) {
    let subflows = Arc::clone(subflows);
    if let Ok(socket) = socket.try_clone() {
        let read = move || {
            subflows.update(&socket).ok()?;
            Some(subflows.snapshot())
        };
        flow.watch(Side::Sender, Box::new(read));
    }
}
