//! A subflow: a TCP connection and the mapping between its stream and the data.

use foundation::{Duration, Instant};

use super::queue::Queue;
use crate::congestion::Sibling;
use crate::mptcp::keys::Nonces;
use crate::mptcp::mappings::Mappings;
use crate::mptcp::scheduler::SubflowView;
use crate::mptcp::segment::PathIndex;
use crate::mptcp::sent::SentData;
use crate::tcp;

/// Progress of a subflow's MPTCP handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The first subflow (MP_CAPABLE).
    Initial,
    /// A further subflow (MP_JOIN; RFC 8684, section 3.2).
    Joined {
        /// Random numbers of this end (`sender`) and of the peer, which is 0 until it is known.
        nonces: Nonces,
        /// The HMAC of the peer was verified.
        verified: bool,
        /// Client only: the fourth segment arrived. No data may leave before it.
        confirmed: bool,
    },
}

/// A subflow.
#[derive(Debug)]
pub(super) struct Subflow {
    pub id: u8,
    pub path: PathIndex,
    pub tcp: tcp::Connection,
    pub role: Role,
    /// Address IDs of this end and of the peer (RFC 8684, section 3.2); the paths' numbers without others.
    pub address: u8,
    pub peer_address: u8,
    /// Backup flags set by this end and by the peer (RFC 8684, section 3.3.8).
    pub backup: bool,
    pub peer_backup: bool,
    /// MP_PRIO has to be sent.
    pub priority_pending: bool,
    /// MP_TCPRST of this end: whether the error is transient, and the reason code (section 3.6).
    pub reset: Option<(bool, u8)>,
    /// Position of the peer's data at which a checksum failed, for the MP_FAIL of its reset.
    pub failed: Option<u64>,
    /// The peer reset it for an error that is not transient.
    pub refused: bool,
    /// Consecutive failed subflows on this path before this one.
    pub failures: u32,
    /// Data may be sent on it.
    pub usable: bool,
    /// It is closed or failed.
    pub gone: bool,
    /// Mappings of the data sent and not acknowledged on the subflow, and of the data received and not read.
    pub sent: SentData,
    pub received: Mappings,
    /// Bytes of its stream: written, acknowledged and read.
    pub written: u64,
    pub acknowledged: u64,
    pub read: u64,
    /// Data that the scheduler assigned to it while it had no room.
    pub queue: Queue,
    /// Next timeout.
    pub wake: Instant,
    /// Bytes acknowledged since the last loss and between the last two losses.
    losses_seen: u64,
    since_loss: u64,
    between_losses: u64,
    /// Losses before this stream position belong to the last loss episode.
    episode_ends: u64,
    pub sampled_at: Option<Instant>,
    pub reported_sample: Option<Instant>,
    /// The host's path state counts it as an open subflow.
    pub counted: bool,
    /// When to retransmit the third segment of MP_JOIN.
    pub third_at: Instant,
    /// Values last reported to the host's path state: bytes acknowledged, segments lost, bytes unfinished.
    pub reported_acknowledged: u64,
    pub reported_lost: u64,
    pub reported_unfinished: u64,
    /// Bytes that the policy expects it to carry.
    pub expected: u64,
}

impl Subflow {
    pub fn new(id: u8, path: PathIndex, tcp: tcp::Connection, role: Role) -> Self {
        Self {
            id,
            path,
            tcp,
            role,
            address: path.0,
            peer_address: path.0,
            backup: false,
            peer_backup: false,
            priority_pending: false,
            reset: None,
            failed: None,
            refused: false,
            failures: 0,
            usable: false,
            gone: false,
            sent: SentData::default(),
            received: Mappings::default(),
            written: 0,
            acknowledged: 0,
            read: 0,
            queue: Queue::default(),
            wake: Instant::MAX,
            losses_seen: 0,
            since_loss: 0,
            between_losses: 0,
            episode_ends: 0,
            sampled_at: None,
            reported_sample: None,
            counted: false,
            third_at: Instant::MAX,
            reported_acknowledged: 0,
            reported_lost: 0,
            reported_unfinished: 0,
            expected: 0,
        }
    }

    /// Returns whether either end marked it as a backup.
    pub const fn is_backup(&self) -> bool {
        self.backup || self.peer_backup
    }

    /// Resets the subflow with an MP_TCPRST of this reason code (RFC 8684, section 3.6).
    pub fn reset_for(&mut self, now: Instant, transient: bool, reason: u8) {
        self.reset = Some((transient, reason));
        self.tcp.abort(now);
    }

    /// Returns the bytes assigned to it and not acknowledged on it.
    pub fn outstanding(&self) -> u64 {
        self.written - self.acknowledged + self.queue.bytes()
    }

    /// Records newly acknowledged bytes, which it returns, and losses (Khalili et al. 2012, section 4: l1 and l2).
    #[inline]
    pub fn note_progress(&mut self) -> u64 {
        let acknowledged = self.tcp.bytes_acknowledged();
        let new = acknowledged - self.acknowledged;
        if new > 0 {
            self.acknowledged = acknowledged;
            self.failures = 0;
            self.sent.release(acknowledged);
            self.since_loss += new;
        }
        let lost = self.tcp.segments_lost();
        if lost > self.losses_seen {
            self.losses_seen = lost;
            // Only the first loss of a flight starts an episode, as it alone reduces the window.
            if acknowledged >= self.episode_ends {
                self.episode_ends = self.written;
                self.between_losses = self.since_loss;
                self.since_loss = 0;
            }
        }
        new
    }

    /// Returns the smoothed round-trip time, zero before the first sample.
    pub fn srtt(&self) -> Duration {
        let rtt = self.tcp.round_trips();
        if rtt.has_sample() {
            rtt.smoothed()
        } else {
            Duration::ZERO
        }
    }

    /// Returns the view of coupled congestion controllers.
    pub fn sibling(&self) -> Sibling {
        let rtt = self.tcp.round_trips();
        Sibling {
            window: self.tcp.window_bytes(),
            rtt: self.srtt(),
            base_rtt: rtt.minimum().unwrap_or(Duration::ZERO),
            between_losses: self.between_losses.max(self.since_loss),
        }
    }

    /// Returns the view of schedulers; the next segment has at most `bytes`.
    pub fn view(&mut self, now: Instant, bytes: u64) -> SubflowView {
        let segment = self.tcp.segment_size();
        let waits = !self.queue.is_empty();
        let room = !waits && self.tcp.has_room(now, bytes.min(u64::from(segment)) as u32);
        let rtt = self.tcp.round_trips();
        SubflowView {
            id: self.id,
            path: self.path,
            srtt: self.srtt(),
            rtt_variation: rtt.variation(),
            base_rtt: rtt.minimum().unwrap_or(Duration::ZERO),
            latest_rtt: rtt.latest(),
            window: self.tcp.window_bytes(),
            in_flight: self.tcp.bytes_in_flight(),
            queued: self.queue.bytes(),
            segment,
            room,
            backup: self.is_backup(),
            timeouts: self.tcp.timeouts_in_a_row(),
        }
    }
}
