//! One end of a multipath connection.

mod addresses;
mod checksums;
mod close;
mod handshake_retry;
mod host_state;
mod input;
mod linux;
mod open;
mod opportunistic;
mod output;
mod priority;
mod queue;
mod rejoin;
mod schedule;
mod subflow;
mod tail;
mod timers;

use std::sync::Arc;

use foundation::{Duration, Generator, Instant};
use hdrhistogram::Histogram;

use self::addresses::Addresses;
use self::checksums::Failure;
use self::handshake_retry::HandshakeRetry;
use self::rejoin::Rejoin;
use self::subflow::{Role, Subflow};
use self::tail::TailProtection;
use super::keys::Keys;
use super::policy::{Join, PathPolicy, Scatter};
use super::receiver::DataReceiver;
use super::scheduler::{Scheduler, SubflowView};
use super::segment::{CAPABLE_EXTRA, Outgoing, PathIndex, Segment};
use super::sender::DataSender;
use super::wire::Near;
use crate::congestion::Sibling;
use crate::machine::Machine;
use crate::statistics::Statistics;
use crate::tcp;
pub use open::Setup;

/// Protocol that both ends agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The handshake of the first subflow is in progress.
    Handshake,
    /// Multipath TCP.
    Multipath,
    /// Plain TCP on the first subflow, because the peer or a middlebox does not support more (RFC 8684, section 3.7).
    Plain,
}

/// One end of a multipath connection.
#[derive(Debug)]
pub struct Connection {
    setup: Arc<Setup>,
    is_client: bool,
    /// The handshake of the first subflow is complete at this end.
    established: bool,
    mode: Mode,
    key: u64,
    peer_key: Option<u64>,
    /// The peer confirmed MPTCP: an option other than those of the SYNs arrived.
    confirmed: bool,
    subflows: Vec<Subflow>,
    /// Bit set of the subflows that may have something to transmit.
    dirty: u64,
    /// Bit set of the subflows with changes that the host's path state does not include yet.
    unreported: u64,
    outgoing: DataSender,
    incoming: DataReceiver,
    /// Some subflow queues hold data.
    queued: bool,
    scheduler: Box<dyn Scheduler>,
    policy: Option<Box<dyn PathPolicy>>,
    /// Subflows to open, the next one last, and since when the connection can open them.
    joins: Vec<Join>,
    joinable_since: Option<Instant>,
    /// Replacements of failed subflows.
    rejoins: Vec<Rejoin>,
    /// Paths with an open or planned subflow.
    paths: Vec<PathIndex>,
    expected: Vec<(PathIndex, u64)>,
    short: bool,
    /// Packet scatter of the first subflow.
    scatter: Option<Scatter>,
    tail: Option<TailProtection>,
    retry: Option<HandshakeRetry>,
    random: Generator,
    /// Some controller is coupled and needs the state of all subflows.
    coupled: bool,
    views: Vec<SubflowView>,
    /// The longest segment of the views if they are those of all usable subflows for full segments; subflows that changed
    /// since they were collected, one bit each.
    full_views: Option<u64>,
    changed: u64,
    siblings: Vec<Sibling>,
    opened_at: Instant,
    /// Resets carry MP_FASTCLOSE.
    fast_closing: bool,
    /// The DATA_FIN was sent since it was last requested.
    fin_sent: bool,
    /// Bit set of the subflows whose next segment without payload carries the DATA_FIN. Others must not: two ends
    /// that answer each other's DATA_FIN with another one would never stop.
    fin_due: u64,
    /// Both keys were sent in a segment without payload.
    keys_sent: bool,
    /// The end of the peer's data was reported to the application.
    peer_finished: bool,
    /// When data that every subflow delivered but no DATA_ACK covers is retransmitted, and the doublings of that
    /// time.
    resend_at: Instant,
    backoff: u32,
    una_at_resend: u64,
    write_blocked: bool,
    closed: bool,
    addresses: Addresses,
    /// Either end requires checksums.
    checksums: bool,
    failure: Failure,
    /// The last mapping of the peer had an eight-byte data sequence number.
    peer_is_wide: bool,
    /// Until when the connection waits for a subflow, if it has none.
    alone_until: Instant,
    /// The subflows close once the pending ACKs have left.
    finish_due: bool,
    /// The connection is closed or failed.
    over: bool,
    events: Vec<tcp::Event>,
    statistics: Statistics,
}

/// Statistics of one subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubflowInfo {
    /// Path of the subflow.
    pub path: PathIndex,
    /// TCP state.
    pub state: tcp::State,
    /// Bytes of data assigned to it, including bytes that other subflows carry too.
    pub bytes: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Congestion window in bytes.
    pub window: u64,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Whether either end marked it as a backup.
    pub backup: bool,
    /// Retransmitted data segments.
    pub retransmissions: u64,
    /// Expirations of its retransmission timer.
    pub timeouts: u64,
}

impl Connection {
    /// Appends `bytes` of application data. Returns the bytes that the send buffer accepted.
    pub fn write(&mut self, _now: Instant, bytes: u64) -> u64 {
        if self.outgoing.finishing || self.over {
            return 0;
        }
        let taken = self.outgoing.write(bytes);
        self.write_blocked = taken < bytes;
        taken
    }

    /// Returns the bytes that arrived in order and were not read.
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.incoming.readable()
    }

    /// Reads up to `bytes`, which opens the receive window. Returns the bytes read.
    pub fn read(&mut self, now: Instant, bytes: u64) -> u64 {
        let taken = self.incoming.read(bytes);
        if taken > 0 && self.incoming.grows() {
            let live = || self.subflows.iter().filter(|subflow| !subflow.gone);
            let segment = live().map(|subflow| subflow.tcp.segment_size()).max();
            let round_trip = live()
                .filter_map(|subflow| subflow.tcp.receive_round_trip())
                .max();
            if let (Some(segment), Some(round_trip)) = (segment, round_trip) {
                self.incoming.grow(now, segment, round_trip);
            }
        }
        if taken > 0 && self.setup.shared_window() && self.incoming.is_update_due() {
            for (index, subflow) in self.subflows.iter_mut().enumerate() {
                if !subflow.gone {
                    subflow.tcp.demand_acknowledgement();
                    self.dirty |= 1 << index;
                }
            }
        }
        taken
    }

    /// Returns the free bytes of the send buffer.
    #[must_use]
    pub const fn writable(&self) -> u64 {
        self.outgoing.room()
    }

    /// Returns the bytes covered by DATA_ACKs.
    #[must_use]
    pub const fn bytes_acknowledged(&self) -> u64 {
        self.outgoing.acknowledged()
    }

    /// Returns the keys of both ends, once they are known.
    #[must_use]
    pub fn keys(&self) -> Keys {
        Keys {
            sender: self.key,
            receiver: self.peer_key.unwrap_or(0),
        }
    }

    /// Returns the positions nearest to which the numbers of an arriving segment are resolved.
    #[must_use]
    pub const fn near(&self) -> Near {
        Near {
            data: self.incoming.next(),
            acknowledgement: self.outgoing.una,
        }
    }

    /// Returns whether the connection fell back to plain TCP (RFC 8684, section 3.7).
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        matches!(self.mode, Mode::Plain)
    }

    /// Takes a key of [`MptcpConfig::LIVE_KEYS`](super::MptcpConfig::LIVE_KEYS) over; subflows that open later have it too. Data
    /// that the scheduler has assigned remains assigned.
    pub fn reconfigure(&mut self, key: &str, setup: &Arc<Setup>) {
        self.setup = Arc::clone(setup);
        if key == "scheduler" {
            self.scheduler = setup.config().scheduler().build();
            return;
        }
        for (index, subflow) in self.subflows.iter_mut().enumerate() {
            subflow.tcp.reconfigure(key, setup.subflow());
            self.dirty |= 1 << index;
        }
        self.coupled = self
            .subflows
            .iter()
            .any(|subflow| subflow.tcp.controller().is_coupled());
    }

    /// Returns the counters of all subflows together.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Removes and returns the histogram of round-trip times, which stops its recording.
    pub fn take_round_trips(&mut self) -> Option<Box<Histogram<u64>>> {
        self.statistics.take_round_trips()
    }

    /// Starts recording a histogram of round-trip times.
    pub fn record_round_trips(&mut self) {
        self.statistics.rtt = Statistics::with_rtt_histogram().rtt;
    }

    /// Returns the path of each subflow and the state in which its sender decides, for traces.
    pub fn sender_snapshots(&self) -> impl Iterator<Item = (PathIndex, tcp::SenderSnapshot)> {
        self.subflows
            .iter()
            .map(|subflow| (subflow.path, subflow.tcp.sender_snapshot()))
    }

    /// Returns the subflows in the order of their opening, closed ones included.
    pub fn subflows(&self) -> impl ExactSizeIterator<Item = SubflowInfo> {
        self.subflows.iter().map(|subflow| {
            let sibling = subflow.sibling();
            SubflowInfo {
                path: subflow.path,
                state: subflow.tcp.state(),
                bytes: subflow.written,
                bytes_sent: subflow.tcp.statistics().bytes_sent,
                window: sibling.window,
                srtt: sibling.rtt,
                in_flight: subflow.tcp.bytes_in_flight(),
                backup: subflow.is_backup(),
                retransmissions: subflow.tcp.statistics().retransmissions,
                timeouts: subflow.tcp.statistics().timeouts,
            }
        })
    }

    /// Returns the runs of sent data that lookups examined, a measure of the cost of scheduling, for tests.
    #[cfg(debug_assertions)]
    #[doc(hidden)]
    #[must_use]
    pub fn runs_examined(&self) -> u64 {
        self.subflows.iter().map(|subflow| subflow.sent.examined()).sum()
    }

    /// Handles a router's report that the path forwards packets of at most `mtu` bytes (RFC 1191).
    pub fn handle_path_mtu(&mut self, now: Instant, path: PathIndex, mtu: u32) {
        for (index, subflow) in self.subflows.iter_mut().enumerate() {
            if subflow.path == path {
                // MP_CAPABLE with payload is longer than DSS, and the first segment may have to be retransmitted.
                let is_first = self.is_client && subflow.role == Role::Initial && subflow.acknowledged == 0;
                let extra = if is_first && subflow.written > 0 {
                    CAPABLE_EXTRA
                } else {
                    0
                };
                subflow.tcp.handle_path_mtu(now, mtu.saturating_sub(extra));
                self.dirty |= 1 << index;
            }
        }
    }

    /// Returns the index of the subflow with this number.
    #[inline]
    fn index_of(&self, id: u8) -> Option<usize> {
        if self
            .subflows
            .get(usize::from(id))
            .is_some_and(|subflow| subflow.id == id)
        {
            return Some(usize::from(id));
        }
        self.subflows.iter().position(|subflow| subflow.id == id)
    }

    fn push_event(&mut self, event: tcp::Event) {
        if !self.events.contains(&event) {
            self.events.push(event);
        }
    }
}

impl Machine for Connection {
    type Incoming = (PathIndex, Segment);
    type Outgoing = (PathIndex, Outgoing);
    type Event = tcp::Event;

    #[inline]
    fn handle_frame(&mut self, now: Instant, (path, segment): (PathIndex, Segment)) {
        self.handle_segment(now, path, &segment);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.on_timeout(now);
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<(PathIndex, Outgoing)> {
        self.next_segment(now)
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        self.next_timeout()
    }

    #[inline]
    fn poll_event(&mut self) -> Option<tcp::Event> {
        if self.events.is_empty() {
            return None;
        }
        Some(self.events.remove(0))
    }
}
