//! The data of one sender, followed from the sender's view.
//!
//! A capture near the receiver has data later and ACKs earlier than the sender. ACKs therefore take effect after the time
//! between the capture and the sender (the *near* round trip), so that a flight is that of the sender.

mod acks;

use std::collections::VecDeque;

use foundation::{Duration, Instant};

use self::acks::Ack;
use crate::delayed_acks::DelayedAcks;
use crate::numbering::Numbering;
use crate::outstanding::{Outstanding, Repeated, Sent};
use crate::packet::TcpPacket;
use crate::pauses::Pauses;
use crate::rates::Trains;
use crate::round_trips::RoundTrips;
use crate::slices::{Slice, Slices, State};
use crate::totals::Totals;

/// Silence after which a retransmission is that of a timer: just below the minimum RTO of Linux and of most systems.
const TIMER: Duration = Duration::from_millis(190);
/// A probe of the tail comes after two RTTs (RFC 8985, section 7.2); part of the silence is the ACK on its way.
const PROBE_ROUNDS: f64 = 1.5;
/// A gap of this share of the RTT starts a burst; an ACK within it causes the burst.
const GAP: f64 = 1.0 / 16.0;
/// The same seen from afar, where queues and jitter spread what the sender did at once.
const DISTANT_GAP: f64 = 1.0 / 4.0;
const LEAST_GAP: Duration = Duration::from_micros(500);
/// Window in relation to the maximum below which the receiver's application is too slow.
pub const SHRUNK: u64 = 2;
/// A late packet within this share of an RTT was reordered, not retransmitted.
const REORDERED: f64 = 0.6;

/// Numbers of lost packets that are kept.
const MOST_LOST: usize = 10_000;
/// Share of the time between ACKs within which data follows an ACK directly.
const DIRECTLY: f64 = 0.125;

/// Payload of a full segment on Ethernet with the timestamps option, unless a handshake states another.
const DEFAULT_MSS: u32 = 1448;
/// The same without the option.
const DEFAULT_MSS_UNSTAMPED: u32 = 1460;

/// The data of one sender.
#[derive(Debug)]
pub struct Direction {
    /// Counters.
    pub totals: Totals,
    /// RTTs, and the place of the capture.
    pub round_trips: RoundTrips,
    /// Trains of packets.
    pub trains: Trains,
    /// Payload of a full segment.
    pub mss: u32,
    /// Maximum window of the receiver, in bytes.
    pub most_window: u64,
    /// First data and last event.
    pub first_data: Option<Instant>,
    /// Numbers of lost packets among those of the sender, from 1.
    pub lost: Vec<u64>,
    /// Bytes sent directly after an ACK, and all bytes sent while data was in flight.
    pub clocked: (u64, u64),
    delayed_acks: DelayedAcks,
    /// Whether the peer has sent data since the last new segment.
    is_asked: bool,
    /// Whether the last new segment was smaller than the maximum.
    is_short: bool,
    /// Packets of the sender, with large ones as several.
    segments: u64,
    last_any_ack: Instant,
    last_captured: Instant,
    ack_interval: Duration,
    numbering: Option<Numbering>,
    next: u64,
    acked: u64,
    right_edge: u64,
    window: u64,
    outstanding: Outstanding,
    slices: Option<Slices>,
    /// The slice ends when this is acknowledged.
    mark: u64,
    pending: VecDeque<Ack>,
    last_data: Instant,
    last_ack: Instant,
    /// When the data of the newest sample of the RTT was sent.
    last_sample: Instant,
    /// RTT of the newest data that was acknowledged in order since the last loss: of a lost packet, that of the one before.
    /// Packets behind it may have met a shorter queue, since the rest of their burst was lost, too.
    in_order: Option<Duration>,
    pauses: Pauses,
    recovery: Option<u64>,
    delivered: u64,
    is_finished: bool,
}

impl Default for Direction {
    fn default() -> Self {
        Self {
            totals: Totals::default(),
            round_trips: RoundTrips::default(),
            trains: Trains::default(),
            mss: DEFAULT_MSS,
            most_window: 0,
            first_data: None,
            lost: Vec::new(),
            clocked: (0, 0),
            delayed_acks: DelayedAcks::default(),
            is_asked: false,
            is_short: false,
            segments: 0,
            last_any_ack: Instant::ZERO,
            last_captured: Instant::ZERO,
            ack_interval: Duration::ZERO,
            numbering: None,
            next: 0,
            acked: 0,
            right_edge: u64::MAX,
            window: 0,
            outstanding: Outstanding::default(),
            slices: None,
            mark: 0,
            pending: VecDeque::new(),
            last_data: Instant::ZERO,
            last_ack: Instant::ZERO,
            last_sample: Instant::ZERO,
            in_order: None,
            pauses: Pauses::default(),
            recovery: None,
            delivered: 0,
            is_finished: false,
        }
    }
}

impl Direction {
    /// Returns the slices.
    #[must_use]
    pub fn slices(&self) -> Vec<Slice> {
        self.slices.as_ref().map(Slices::finished).unwrap_or_default()
    }

    /// Takes a packet of the sender.
    pub fn sent(&mut self, packet: &TcpPacket) {
        self.totals.packets += 1;
        if self.mss == DEFAULT_MSS && packet.length == DEFAULT_MSS_UNSTAMPED && packet.timestamps.is_none() {
            self.mss = DEFAULT_MSS_UNSTAMPED;
        }
        self.segments += u64::from(packet.length.div_ceil(self.mss)).max(1);
        self.totals.marked += u64::from(packet.is_marked);
        let numbering = self
            .numbering
            .get_or_insert(Numbering::starting_with(packet.sequence));
        if packet.is_rst {
            self.apply(packet.time);
            self.is_finished = true;
            return;
        }
        let sequence = numbering.advance(packet.sequence);
        if packet.is_syn {
            self.next = sequence + 1;
            self.acked = sequence + 1;
            self.mark = self.next;
            return;
        }
        if self.next == 0 {
            (self.next, self.acked, self.mark) = (sequence, sequence, sequence);
        }
        if packet.length == 0 {
            self.echo(packet);
            if packet.is_fin {
                self.finish(sequence, packet);
            }
            return;
        }
        let end = sequence + u64::from(packet.length);
        self.apply(packet.time);
        self.echo(packet);
        self.totals.data_packets += 1;
        self.totals.large += u64::from(packet.length > self.mss);
        self.first_data.get_or_insert(packet.time);
        if self.slices.is_none() {
            self.slices = Some(Slices::starting_at(packet.time));
            self.last_captured = packet.time;
        }
        if packet.length == 1 && end == self.next {
            // A probe of a closed window, or a keep-alive: not a loss.
        } else if sequence < self.next {
            self.repeated(sequence, end, packet);
        }
        if end > self.next {
            self.fresh(sequence.max(self.next), end, packet);
        }
        self.last_data = packet.time;
        if packet.is_fin {
            self.finish(end, packet);
        }
    }

    fn finish(&mut self, end: u64, packet: &TcpPacket) {
        if end == self.next {
            self.apply(packet.time);
            self.is_finished = true;
        }
    }

    /// Whether a packet of the receiver acknowledges all data that was captured.
    #[must_use]
    pub fn is_covered_by(&self, packet: &TcpPacket) -> bool {
        let (Some(number), Some(numbering)) = (packet.acknowledgement, &self.numbering) else {
            return false;
        };
        numbering.unwrapped(number) >= self.next
    }

    /// Takes data of the peer: an application that waited for a request has it now.
    pub fn requested(&mut self, time: Instant) {
        self.apply(time);
        self.is_asked = true;
        self.delayed_acks.forget();
        if self.is_idle() && !self.is_blocked() && !self.is_finished {
            self.spend(State::Request, time);
        }
    }

    fn is_idle(&self) -> bool {
        self.slices.is_some() && self.acked >= self.next
    }

    fn echo(&mut self, packet: &TcpPacket) {
        if let Some((_, echo)) = packet.timestamps {
            let is_in_flight = packet.length > 0 && !self.is_idle();
            self.round_trips.echo(echo, packet.time, is_in_flight);
        }
    }

    fn gap(&self) -> Duration {
        let share = if self.round_trips.near_now.is_zero() {
            GAP
        } else {
            DISTANT_GAP
        };
        self.round_trips
            .now
            .map_or(LEAST_GAP, |rtt| rtt.mul_f64(share))
            .max(LEAST_GAP)
    }

    /// Returns the silence after which a probe of the tail can be sent.
    fn probe_time(&self) -> Duration {
        let rtt = self.round_trips.now;
        rtt.map_or(TIMER, |rtt| rtt.mul_f64(PROBE_ROUNDS)).max(LEAST_GAP)
    }

    fn room(&self) -> u64 {
        self.right_edge.saturating_sub(self.next)
    }

    /// Whether the receiver's window has no room for a segment.
    fn is_blocked(&self) -> bool {
        self.room() < u64::from(self.mss)
    }

    fn state(&self) -> State {
        if self.is_blocked() && self.window * SHRUNK < self.most_window {
            State::Stalled
        } else if self.recovery.is_some() {
            State::Recovery
        } else if self.is_blocked() {
            State::WindowLimited
        } else {
            State::Open
        }
    }

    fn spend(&mut self, state: State, until: Instant) {
        let Some(slices) = &mut self.slices else { return };
        let from = slices.open().end;
        let pause = self.round_trips.now.unwrap_or(LEAST_GAP).max(LEAST_GAP);
        let is_pause = !matches!(state, State::Open | State::WindowLimited | State::Recovery);
        if is_pause && until.saturating_since(from) > pause {
            slices.spend_apart(state, until);
            self.mark = self.next;
        } else {
            slices.spend(state, until);
        }
    }

    /// Takes a retransmission, or data that fills a hole.
    fn repeated(&mut self, start: u64, end: u64, packet: &TcpPacket) {
        let silence = packet.time.saturating_since(self.last_data.max(self.last_ack));
        let end = end.min(self.next);
        let Repeated { before, filled } =
            self.outstanding
                .repeat((start, end), packet.time, packet.number, self.mss);
        // Captured for the first time, whatever happened before the capture.
        let filled = filled.min(end - start);
        self.totals.bytes += filled;
        self.totals.repeated_bytes += end - start - filled;
        let rtt = self.round_trips.now;
        let was_hole = before.is_some_and(|one| one.is_hole);
        if was_hole {
            let late = before.map_or(Duration::ZERO, |one| packet.time.saturating_since(one.time));
            if late < rtt.map_or(LEAST_GAP, |rtt| rtt.mul_f64(REORDERED)).max(LEAST_GAP) {
                self.totals.reordered += 1;
                // They were counted with the hole.
                self.segments -= (end - start).div_ceil(u64::from(self.mss));
                return;
            }
        }
        self.totals.repeated_packets += 1;
        if let Some(one) = before
            && !one.is_repeated
            && self.lost.len() < MOST_LOST
        {
            let before = start.saturating_sub(one.start) / u64::from(self.mss);
            self.lost.push(one.ordinal + before);
        }
        let is_timeout = silence >= TIMER || (silence >= self.probe_time() && self.recovery.is_none());
        let is_loss = is_timeout || self.recovery.is_none();
        if self.state() == State::Stalled {
            self.spend(State::Stalled, packet.time);
        } else if is_timeout {
            self.totals.timeouts += 1;
            self.spend(State::Timeout, packet.time);
        } else {
            self.spend(self.state(), packet.time);
        }
        if is_loss {
            self.recovery = Some(self.next);
            self.trains.interrupt();
        }
        if let Some(slices) = &mut self.slices {
            let slice = slices.open();
            slice.repeated += 1;
            slice.add_frame(packet.number);
            if is_loss {
                slice.losses += 1;
                slice.timeouts += u32::from(is_timeout);
                slice.loss_rtt = slice.loss_rtt.or(self.in_order.take()).or(rtt);
                slice.loss_flight = slice.loss_flight.or(before.map(|one| one.flight));
            }
        }
    }

    /// Returns the bytes in flight with those before `end`.
    fn flight_to(&self, end: u64) -> u64 {
        (end - self.acked.min(end)).saturating_sub(self.outstanding.sacked())
    }

    /// Takes new data.
    fn fresh(&mut self, start: u64, end: u64, packet: &TcpPacket) {
        let time = packet.time;
        let was_idle = self.is_idle() && !self.is_blocked();
        if was_idle {
            self.spend(State::Idle, time);
            self.trains.interrupt();
            self.last_captured = time;
            let is_short = self.is_short || packet.length < self.mss;
            if is_short
                && let Some(wait) = self.delayed_acks.wait_before(time, self.gap())
                && let Some(slices) = &mut self.slices
            {
                slices.change(State::Open, State::Delayed, wait);
            }
        } else {
            self.spend(self.state(), time);
        }
        let mut ordinal = self.segments + 1 - (end - start).div_ceil(u64::from(self.mss));
        if start > self.next {
            let missed = (start - self.next).div_ceil(u64::from(self.mss));
            self.segments += missed;
            self.outstanding.push(Sent {
                start: self.next,
                end: start,
                time,
                frame: 0,
                ordinal,
                flight: self.flight_to(start),
                is_repeated: false,
                is_sacked: false,
                is_hole: true,
            });
            ordinal += missed;
        }
        self.outstanding.push(Sent {
            start,
            end,
            time,
            frame: packet.number,
            ordinal,
            flight: self.flight_to(end),
            is_repeated: false,
            is_sacked: false,
            is_hole: false,
        });
        let is_burst = time.saturating_since(self.last_data) > self.gap();
        let is_prompted = time.saturating_since(self.last_ack) <= self.gap();
        if !was_idle {
            self.clocked.1 += end - start;
            if time.saturating_since(self.last_any_ack) <= self.ack_interval.mul_f64(DIRECTLY) {
                self.clocked.0 += end - start;
            }
        }
        let silence = time.saturating_since(self.last_data.max(self.last_ack));
        let is_probe = !self.is_short && packet.length >= self.mss && silence >= self.probe_time();
        let is_short = !packet.length.is_multiple_of(self.mss);
        self.is_short = packet.length < self.mss;
        let gap = time.saturating_since(self.last_data);
        let is_answer = std::mem::take(&mut self.is_asked);
        let is_gap = !is_answer && self.recovery.is_none() && !self.is_blocked();
        self.next = end;
        self.totals.bytes += end - start;
        let in_flight = self.next.saturating_sub(self.acked);
        let flight = in_flight.saturating_sub(self.outstanding.sacked());
        if let Some(slices) = &mut self.slices {
            let slice = slices.open();
            slice.sent += end - start;
            slice.flight = slice.flight.max(flight);
            slice.window = slice.window.max(self.window);
            slice.add_frame(packet.number);
            slice.short += u32::from(is_short);
            slice.packets += 1;
            slice.pushed += u32::from(packet.is_push);
            if is_gap {
                slice.gaps.add(gap);
            }
            if is_burst && !was_idle {
                if is_prompted {
                    slice.prompted += 1;
                } else {
                    slice.unprompted += 1;
                    slice.probes += u32::from(is_probe);
                }
            }
        }
    }
}
