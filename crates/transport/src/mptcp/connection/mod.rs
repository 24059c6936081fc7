//! One end of a multipath connection.

mod close;
mod handshake_retry;
mod host_state;
mod input;
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

use self::rejoin::Rejoin;
use self::subflow::{Role, Subflow};
use super::policy::{HandshakeAttempt, Join, PathPolicy, Scatter, Tail};
use super::receiver::DataReceiver;
use super::scheduler::{Scheduler, SubflowView};
use super::segment::{CAPABLE_EXTRA, Outgoing, PathIndex, Segment};
use super::sender::DataSender;
use crate::congestion::Sibling;
use crate::machine::Machine;
use crate::statistics::Statistics;
use crate::tcp;
pub use open::Setup;

/// What the two ends have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The first subflow's handshake is not done.
    Handshake,
    /// Multipath TCP.
    Multipath,
    /// Plain TCP on the first subflow: the peer, or something between, does not know more (RFC 8684, section 3.7).
    Plain,
}

/// One end of a multipath connection.
#[derive(Debug)]
pub struct Connection {
    setup: Arc<Setup>,
    is_client: bool,
    /// The first subflow's handshake was done on this side.
    established: bool,
    mode: Mode,
    key: u64,
    peer_key: Option<u64>,
    /// The peer is known to take this connection for a multipath one: an option other than those of the SYNs came.
    confirmed: bool,
    subflows: Vec<Subflow>,
    /// Subflows that may have something to send, one bit each.
    dirty: u64,
    /// Subflows of which the host's account has not heard the newest.
    unreported: u64,
    outgoing: DataSender,
    incoming: DataReceiver,
    /// Parts of the data that wait at subflows.
    queued: bool,
    scheduler: Box<dyn Scheduler>,
    policy: Option<Box<dyn PathPolicy>>,
    /// Subflows to be opened, and since when they can be.
    joins: Vec<Join>,
    joinable_since: Option<Instant>,
    /// Those in index of others that failed.
    rejoins: Vec<Rejoin>,
    /// The paths that have a subflow, or will have one.
    paths: Vec<PathIndex>,
    expected: Vec<(PathIndex, u64)>,
    short: bool,
    /// The first subflow's segments leave on several paths.
    scatter: Option<Scatter>,
    /// The end of the data is protected, and when it is sent again.
    tail: Option<Tail>,
    tail_at: Instant,
    /// It is late, and waits for a subflow that can take it.
    tail_waits: bool,
    /// Its own subflow has probed for it.
    tail_probed: bool,
    /// Where the handshake goes next, the next one last, and when.
    attempts: Vec<HandshakeAttempt>,
    attempt_at: Instant,
    random: Generator,
    /// A controller wants to hear of the others.
    coupled: bool,
    views: Vec<SubflowView>,
    siblings: Vec<Sibling>,
    opened_at: Instant,
    /// Resets say that the whole connection is over.
    fast_closing: bool,
    /// The DATA_FIN has left since it was last asked for.
    fin_sent: bool,
    /// Subflows whose next segment without payload says that the data has ended, one bit each. Not every one does: two
    /// ends that each answer the other's DATA_FIN would never fall silent.
    fin_due: u64,
    /// The keys have left in a segment of their own.
    keys_sent: bool,
    /// The application knows that the peer's data has ended.
    peer_finished: bool,
    /// When data that all subflows are done with, and that is not acknowledged, is sent again; doublings of that time.
    resend_at: Instant,
    backoff: u32,
    una_at_resend: u64,
    write_blocked: bool,
    closed: bool,
    /// All has ended or failed.
    over: bool,
    events: Vec<tcp::Event>,
    statistics: Statistics,
}

/// One subflow, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubflowInfo {
    /// Its path.
    pub path: PathIndex,
    /// State of its TCP.
    pub state: tcp::State,
    /// Bytes of data that it was given, those given to others too included.
    pub bytes: u64,
    /// Payload bytes that it sent, retransmissions included.
    pub bytes_sent: u64,
    /// Congestion window in bytes.
    pub window: u64,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Whether it is to be used only where no other can be, by the wish of either end.
    pub backup: bool,
    /// Data packets sent again on it.
    pub retransmissions: u64,
    /// Expiries of its retransmission timer.
    pub timeouts: u64,
}

impl Connection {
    /// The application appends `bytes` to its data; gives how many the send buffer took.
    pub fn write(&mut self, _now: Instant, bytes: u64) -> u64 {
        if self.outgoing.finishing || self.over {
            return 0;
        }
        let taken = self.outgoing.write(bytes);
        self.write_blocked = taken < bytes;
        taken
    }

    /// Bytes that have arrived in order and were not read.
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.incoming.readable()
    }

    /// The application takes up to `bytes`; gives how many. That opens the window.
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

    /// Bytes that the send buffer has room for.
    #[must_use]
    pub const fn writable(&self) -> u64 {
        self.outgoing.room()
    }

    /// Bytes of data that the peer has acknowledged.
    #[must_use]
    pub const fn bytes_acknowledged(&self) -> u64 {
        self.outgoing.acknowledged()
    }

    /// Bytes that arrived and wait for what stands before them.
    #[must_use]
    pub fn bytes_waiting(&self) -> u64 {
        self.incoming.early_bytes()
    }

    /// Bytes of data that arrived more than once.
    #[must_use]
    pub const fn duplicate_bytes(&self) -> u64 {
        self.incoming.duplicates()
    }

    /// Whether the connection fell back to plain TCP (RFC 8684, section 3.7).
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        matches!(self.mode, Mode::Plain)
    }

    /// Counters of what was sent and received, all subflows together.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Takes the histogram of round-trip times, where one is kept; later samples are no longer recorded.
    pub fn take_round_trips(&mut self) -> Option<Box<Histogram<u64>>> {
        self.statistics.rtt.take()
    }

    /// Keeps a histogram of round-trip times in the statistics from now on.
    pub fn record_round_trips(&mut self) {
        self.statistics.rtt = Statistics::with_rtt_histogram().rtt;
    }

    /// The subflows, those that are gone included, in the order in which they were opened.
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

    /// Runs of sent data that were examined to find the subflow that holds a position: the cost of scheduling, for tests.
    #[cfg(debug_assertions)]
    #[doc(hidden)]
    #[must_use]
    pub fn runs_examined(&self) -> u64 {
        self.subflows.iter().map(|subflow| subflow.sent.examined()).sum()
    }

    /// A router on the path could not forward packets of more than `mtu` bytes (RFC 1191).
    pub fn handle_path_mtu(&mut self, now: Instant, path: PathIndex, mtu: u32) {
        for (index, subflow) in self.subflows.iter_mut().enumerate() {
            if subflow.path == path {
                // The first segment with payload may have to leave again, with its longer option.
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

    /// The index of the subflow of this number.
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
        self.on_segment(now, path, &segment);
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
