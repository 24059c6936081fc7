//! The subflows of a connection, as the kernel reports them.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use experiment::Side;
use experiment::outcome::{PathBytes, SendCounters};
use experiment::trace::Probe;
use kernel::mptcp::{ConnectionInfo, Subflow};

use crate::trial::flow::{EndSnapshot, Flow, locked};
use crate::trial::info;

/// All subflows of a connection; closed ones keep their last state.
pub(super) struct Subflows {
    known: Mutex<BTreeMap<u32, Subflow>>,
    /// Local address and number of each way.
    ways: Vec<(Ipv4Addr, u8)>,
}

impl Subflows {
    /// No subflows yet, for a connection over these ways (local address and number).
    pub(super) fn on(ways: &[(Ipv4Addr, u8)]) -> Self {
        Self {
            known: Mutex::default(),
            ways: ways.to_vec(),
        }
    }

    /// Reads a connection; returns false for plain TCP.
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

    /// All subflows by number.
    pub(super) fn known(&self) -> MutexGuard<'_, BTreeMap<u32, Subflow>> {
        locked(&self.known)
    }

    /// Combines all subflows: sums of counters, windows and bytes in flight; the RTT is the smallest.
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

/// Registers the subflows with the flow.
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
