//! One subflow: a TCP connection, and which part of its stream is which part of the data.

use foundation::{Duration, Instant};

use super::queue::Queue;
use crate::congestion::Sibling;
use crate::mptcp::keys::Nonces;
use crate::mptcp::mappings::Mappings;
use crate::mptcp::scheduler::SubflowView;
use crate::mptcp::segment::PathIndex;
use crate::mptcp::sent::SentData;
use crate::tcp;

/// How far a subflow's own handshake has come, beyond that of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The first one, by MP_CAPABLE.
    Initial,
    /// One that joined (RFC 8684, section 3.2).
    Joined {
        /// Random numbers of this end (`sender`) and of the peer, which is 0 until it is known.
        nonces: Nonces,
        /// The peer has shown that it knows the keys.
        verified: bool,
        /// The opener: the fourth segment arrived. Until then no data leaves.
        confirmed: bool,
    },
}

/// One subflow.
#[derive(Debug)]
pub(super) struct Subflow {
    pub id: u8,
    pub path: PathIndex,
    pub tcp: tcp::Connection,
    pub role: Role,
    /// To be used only where no other can be: by this end's wish, and by the peer's (RFC 8684, section 3.3.8).
    pub backup: bool,
    pub peer_backup: bool,
    /// The peer is to be told of this end's wish.
    pub priority_pending: bool,
    /// Why this end resets it, if it does: the cause will pass, and the reason (section 3.6).
    pub reset: Option<(bool, u8)>,
    /// The peer reset it for a cause that will not pass.
    pub refused: bool,
    /// Subflows on the path before it that failed, one after the other.
    pub failures: u32,
    /// Data may be sent on it.
    pub usable: bool,
    /// It has ended or failed.
    pub gone: bool,
    /// What it was given and has not been acknowledged on it; what it brought and was not read.
    pub sent: SentData,
    pub received: Mappings,
    /// Bytes of its stream that were written, acknowledged and read.
    pub written: u64,
    pub acknowledged: u64,
    pub read: u64,
    /// Data that waits for room.
    pub queue: Queue,
    /// When it wants to be called.
    pub wake: Instant,
    /// Bytes acknowledged since the last loss and between the last two.
    losses_seen: u64,
    since_loss: u64,
    between_losses: u64,
    /// Losses of what was written before this position are of the episode that is known.
    episode_ends: u64,
    pub sampled_at: Option<Instant>,
    pub reported_sample: Option<Instant>,
    /// The host's account counts it among the open ones.
    pub counted: bool,
    /// When the third segment of a join is sent again.
    pub third_at: Instant,
    /// What the host's account was told: bytes acknowledged, segments lost, bytes unfinished.
    pub reported_acknowledged: u64,
    pub reported_lost: u64,
    pub reported_unfinished: u64,
    /// What the policy expects it to carry.
    pub expected: u64,
}

impl Subflow {
    pub fn new(id: u8, path: PathIndex, tcp: tcp::Connection, role: Role) -> Self {
        Self {
            id,
            path,
            tcp,
            role,
            backup: false,
            peer_backup: false,
            priority_pending: false,
            reset: None,
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

    /// Whether it is to be used only where no other can be.
    pub const fn is_backup(&self) -> bool {
        self.backup || self.peer_backup
    }

    /// This end resets it, and says why: it will pass, or not, and the reason by its number in RFC 8684, section 3.6.
    pub fn reset_for(&mut self, now: Instant, transient: bool, reason: u8) {
        self.reset = Some((transient, reason));
        self.tcp.abort(now);
    }

    /// Bytes that it was given and that are not acknowledged on it.
    pub fn outstanding(&self) -> u64 {
        self.written - self.acknowledged + self.queue.bytes()
    }

    /// Notes what its stream was acknowledged to, and what was lost (Khalili et al. 2012, section 4: l1 and l2).
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
            // Of many losses in one flight the first alone counts, as it alone reduces the window.
            if acknowledged >= self.episode_ends {
                self.episode_ends = self.written;
                self.between_losses = self.since_loss;
                self.since_loss = 0;
            }
        }
        new
    }

    /// What coupled controllers see of it.
    pub fn sibling(&self) -> Sibling {
        let rtt = self.tcp.round_trips();
        Sibling {
            window: self.tcp.window_bytes(),
            rtt: if rtt.has_sample() {
                rtt.smoothed()
            } else {
                Duration::ZERO
            },
            base_rtt: rtt.minimum().unwrap_or(Duration::ZERO),
            between_losses: self.between_losses.max(self.since_loss),
        }
    }

    /// What schedulers see of it; `bytes`: the next segment at most.
    pub fn view(&mut self, now: Instant, bytes: u64) -> SubflowView {
        let segment = self.tcp.segment_size();
        let waits = !self.queue.is_empty();
        let room = !waits && self.tcp.has_room(now, bytes.min(u64::from(segment)) as u32);
        let rtt = self.tcp.round_trips();
        let sampled = rtt.has_sample();
        SubflowView {
            id: self.id,
            path: self.path,
            srtt: if sampled { rtt.smoothed() } else { Duration::ZERO },
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
