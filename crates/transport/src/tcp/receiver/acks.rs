//! Scheduling of ACKs: immediate or delayed (RFC 1122 section 4.2.3.2, RFC 5681 section 4.2), or compressed while there is a
//! gap (Linux).

use foundation::{Duration, Instant};

use crate::tcp::parameters::Parameters;

/// Maximum adaptive delay of Linux (RFC 9293, section 3.8.6.3, allows half a second).
const MAX_DELAY: Duration = Duration::from_millis(200);
/// Maximum number of first segments that Linux acknowledges at once.
const MAX_QUICK: u16 = 16;
/// Segments above a gap that Linux acknowledges at once, so that the sender's fast retransmission is not late
/// (`TCP_FASTRETRANS_THRESH`).
const UNCOMPRESSED: u8 = 3;
/// Most segments above a gap that one ACK of Linux waits for (`tcp_comp_sack_nr`).
const MAX_COMPRESSED: u8 = 44;
/// Longest wait of such an ACK (`tcp_comp_sack_delay_ns`), which otherwise waits a twentieth of the round trip.
const MAX_COMPRESSION: Duration = Duration::from_millis(1);
const ROUND_TRIP_PARTS: u64 = 20;

/// Decides when ACKs are due.
#[derive(Debug)]
pub struct AckScheduler {
    /// An ACK is due now.
    due: bool,
    /// When a delayed ACK is due; `Instant::MAX` for none.
    at: Instant,
    base: Duration,
    adaptive: bool,
    every: u16,
    quick_acks: bool,
    /// Current delay: between half and five times `base` if adaptive.
    delay: Duration,
    /// Segments still to be acknowledged at once.
    quick: u16,
    /// Whether ACKs of segments above a gap are compressed.
    compresses: bool,
    /// Segments above a gap since the next expected position moved, up to [`UNCOMPRESSED`].
    uncompressed: u8,
    /// Segments above a gap that wait for their ACK.
    compressed: u8,
    /// Data flows both ways, so that data segments carry the ACKs.
    interactive: bool,
    received_at: Option<Instant>,
}

impl AckScheduler {
    pub fn new(parameters: &Parameters) -> Self {
        Self {
            due: false,
            at: Instant::MAX,
            base: parameters.delayed_ack,
            adaptive: parameters.adaptive_delay,
            every: parameters.ack_every,
            quick_acks: parameters.quick_acks,
            delay: parameters.delayed_ack,
            quick: 0,
            compresses: parameters.sack_compression,
            uncompressed: 0,
            compressed: 0,
            interactive: false,
            received_at: None,
        }
    }

    /// Takes the delay and the number of segments per ACK over. A delayed ACK remains due at its time.
    pub fn reconfigure(&mut self, parameters: &Parameters) {
        let delay = parameters.delayed_ack;
        if (delay, parameters.adaptive_delay) != (self.base, self.adaptive) {
            (self.base, self.adaptive, self.delay) = (delay, parameters.adaptive_delay, delay);
        }
        self.every = parameters.ack_every;
    }

    /// Adapts the delay to the gap before an arriving data segment, so that it covers the next gap.
    #[inline]
    pub fn on_data(&mut self, now: Instant, rto: Duration, window: u64, segment: u32) {
        let last = self.received_at.replace(now);
        if !self.quick_acks && !self.adaptive {
            return;
        }
        let Some(last) = last else {
            self.start_quick(window, segment);
            return;
        };
        if !self.adaptive {
            return;
        }
        let gap = now - last;
        if gap <= self.base / 2 {
            self.delay = self.delay / 2 + self.base / 2;
        } else if gap < self.delay {
            self.delay = (self.delay / 2 + gap).min(rto);
        } else if gap > rto {
            // After an idle period the peer may restart with slow start.
            self.start_quick(window, segment);
        }
    }

    /// Sends the next ACK at once because the window grew (`tcp_grow_window`).
    #[inline]
    pub const fn on_window_growth(&mut self) {
        if self.quick_acks {
            self.quick |= 1;
        }
    }

    fn start_quick(&mut self, window: u64, segment: u32) {
        if self.quick_acks {
            let half = window / (2 * u64::from(segment.max(1)));
            self.quick = self
                .quick
                .max(u16::try_from(half).unwrap_or(MAX_QUICK).clamp(2, MAX_QUICK));
        }
    }

    /// Delays the ACK of a SYN-ACK because a writer waits for the connection: its data carries the ACK, and the exchange counts as
    /// interactive then (`tcp_rcv_synsent_state_process` of Linux). Other stacks send the ACK at once.
    pub fn wait_for_writer(&mut self, now: Instant, window: u64, segment: u32) {
        if !self.adaptive {
            self.demand();
            return;
        }
        self.received_at = Some(now);
        self.start_quick(window, segment);
        self.at = now + MAX_DELAY;
    }

    /// Discards the time of the last arrival: the next data counts as the first.
    pub fn discard_arrivals(&mut self) {
        self.received_at = None;
    }

    /// Schedules the ACK of a FIN after `waiting` unacknowledged bytes. `opens_close_wait`: this end may still send.
    ///
    /// Linux delays it then, since this end's own FIN is likely to carry it, and counts the exchange as interactive
    /// (`tcp_fin`). Without earlier data its delay is zero. Other stacks send the ACK at once.
    pub fn on_fin(&mut self, now: Instant, waiting: u64, segment: u32, opens_close_wait: bool) {
        if !opens_close_wait || !self.adaptive || self.received_at.is_none() {
            self.demand();
            return;
        }
        self.interactive = true;
        self.schedule(now, waiting, segment);
    }

    /// Makes an ACK due now and the next ones undelayed.
    pub fn demand_undelayed(&mut self) {
        self.due = true;
        if self.quick_acks {
            self.quick = self.quick.max(2);
            self.interactive = false;
            self.delay = self.base;
        }
    }

    /// Makes an ACK due now.
    #[inline]
    pub fn demand(&mut self) {
        self.due = true;
    }

    /// Schedules an ACK of `waiting` unacknowledged bytes; a full segment has `segment` bytes.
    #[inline]
    pub fn schedule(&mut self, now: Instant, waiting: u64, segment: u32) {
        let quick = self.quick > 0 && !self.interactive;
        // RFC 5681, section 4.2: at least one ACK for every second full segment.
        if self.base.is_zero() || quick || waiting > u64::from(self.every - 1) * u64::from(segment) {
            self.due = true;
            return;
        }
        let most = if self.adaptive { MAX_DELAY } else { Duration::MAX };
        self.at = self.at.min(now + self.delay.min(most));
    }

    /// Sets whether ACKs carry SACK blocks. Without them a sender counts duplicate ACKs, which are not compressed.
    pub const fn set_sack(&mut self, sack: bool) {
        self.compresses &= sack;
    }

    /// Schedules the ACK of a segment above a gap; `moved`: the next expected position moved since the last one.
    ///
    /// RFC 5681, section 4.2, asks for an ACK at once. Linux sends so the first three; then an ACK waits for a twentieth of the
    /// round trip, at most 1 ms, or for 44 segments (`__tcp_ack_snd_check`).
    pub fn schedule_above_gap(&mut self, now: Instant, moved: bool, round_trip: Duration) {
        if moved {
            self.uncompressed = 0;
        }
        let quick = self.quick > 0 && !self.interactive;
        if !self.compresses || quick || self.uncompressed < UNCOMPRESSED || self.compressed == MAX_COMPRESSED
        {
            self.uncompressed = (self.uncompressed + 1).min(UNCOMPRESSED);
            self.due = true;
            return;
        }
        self.compressed += 1;
        self.at = self
            .at
            .min(now + (round_trip / ROUND_TRIP_PARTS).min(MAX_COMPRESSION));
    }

    /// Returns when a delayed ACK is due.
    #[inline]
    pub fn timeout(&self) -> Instant {
        if self.due { Instant::MAX } else { self.at }
    }

    /// Cancels a due or delayed ACK.
    pub const fn cancel(&mut self) {
        self.due = false;
        self.at = Instant::MAX;
        self.compressed = 0;
    }

    /// Makes a delayed ACK due if its time has come.
    pub fn on_timeout(&mut self, now: Instant, rto: Duration) {
        if self.at > now {
            return;
        }
        self.due = true;
        if self.adaptive && self.compressed == 0 {
            if self.interactive {
                self.interactive = false;
                self.delay = self.base;
            } else {
                self.delay = (self.delay * 2).min(rto);
            }
        }
    }

    /// Whether an ACK is due now or delayed.
    pub fn is_pending(&self) -> bool {
        self.due || self.at != Instant::MAX
    }

    /// Whether an ACK is due now.
    #[inline]
    pub const fn is_due(&self) -> bool {
        self.due
    }

    /// Records a sent ACK of `bytes` in segments of `segment` bytes. `data`: the segment carried data.
    #[inline]
    pub fn on_ack_sent(&mut self, now: Instant, data: bool, bytes: u64, segment: u32) {
        self.cancel();
        if self.quick > 0 {
            let packets = bytes.div_ceil(u64::from(segment.max(1)));
            let packets = u16::try_from(packets).unwrap_or(u16::MAX);
            self.quick = self.quick.saturating_sub(packets);
        }
        // Data soon after received data: the exchange is interactive.
        if data && self.adaptive && self.received_at.is_some_and(|at| now - at < self.delay) {
            self.interactive = true;
        }
    }

    /// Returns the current delay.
    pub const fn delay(&self) -> Duration {
        self.delay
    }
}
