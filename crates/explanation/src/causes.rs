//! What limited a transfer, slice by slice.
//!
//! The [states](crate::slices::State) that a moment shows by itself (silence, a full window, a repair) are taken as they are, except
//! where the bottleneck was busy all the same. The rest of the time is that of a congestion window or an application,
//! which only the figures of the whole path separate: a busy bottleneck, growth, what happened since the last loss.
//! (Zhang et al., "On the characteristics and origins of Internet flow rates", SIGCOMM 2002, for classes by flights;
//! Flach et al., TAPO, CoNEXT 2015, for stalls.)

use foundation::{Duration, Instant};
use serde::Serialize;

use crate::direction::SHRUNK;
use crate::gaps::Gaps;
use crate::losses::{Losses, loss_queue_s};
use crate::path::PathFigures;
use crate::rates::Distribution;
use crate::round_trips::Position;
use crate::slices::{Slice, State};

/// A cause of the duration of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The handshake, or the repetition of its segments.
    Handshake,
    /// The congestion window grew by about the acknowledged data per round trip.
    SlowStart,
    /// The congestion window grew more slowly, without a loss that made it small.
    WindowGrowth,
    /// The bottleneck was busy, and its queue emptied or stayed short.
    Bandwidth,
    /// The bottleneck was busy, with a queue that never emptied and exceeds the RTT of the idle path.
    Bufferbloat,
    /// The receiver's window, which its buffer limits.
    ReceiveWindow,
    /// The receiver's application did not read.
    ReceiverStall,
    /// The sender's application had nothing to send.
    Application,
    /// The sender's application waited for data of its peer.
    Request,
    /// Losses without a queue, their repair, and the reduced window after them.
    RandomLoss,
    /// Losses by a full queue, their repair, and the reduced window after them.
    QueueOverflow,
    /// Losses of bursts that a short queue could not hold, although their flights fit the path.
    Burst,
    /// Losses by a policer: a limit of the rate that drops packets without a queue.
    Policer,
    /// Retransmissions of packets that had arrived, and the reduced window after them.
    Reordering,
    /// A change of the path: its losses, and the reduced window after them.
    PathChange,
    /// A sender that sends at regular intervals: its pacing rate.
    Pacing,
    /// Nagle's algorithm together with delayed ACKs.
    DelayedAck,
    /// Timeouts and probes of the tail.
    Timeout,
    /// A flight that stays the same without loss, queue or full window: the sender's buffer or a fixed window.
    SendBuffer,
}

/// A part of a transfer with one main cause.
#[derive(Clone, Debug, Serialize)]
pub struct Interval {
    /// Start, in seconds since the first packet of the connection.
    pub start_s: f64,
    /// End.
    pub end_s: f64,
    /// The cause of most of its time.
    pub cause: Cause,
    /// First and last frame of the sender; 0 without one.
    pub frames: (u64, u64),
    /// Figures of these frames.
    pub evidence: Evidence,
}

/// Figures of an interval that show its cause.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Evidence {
    /// Packets with data, with retransmissions.
    pub packets: u64,
    /// Retransmissions.
    pub repeated: u64,
    /// Retransmissions that the receiver reported as unnecessary.
    pub spurious: u64,
    /// Timeouts and probes of the tail.
    pub timeouts: u64,
    /// Maximum flight of the first round trip with data, in bytes.
    pub first_flight: u64,
    /// Maximum flight, in bytes.
    pub flight: u64,
    /// Maximum window of the receiver, in bytes.
    pub window: u64,
    /// Smallest RTT.
    pub rtt_s: Option<f64>,
    /// Mean of the smallest time that a queue adds, over the round trips in which it did not empty.
    pub queue_s: Option<f64>,
    /// Rate at which data arrived, in bit/s of payload.
    pub rate_bps: Option<f64>,
    /// Duration of these round trips in seconds.
    #[serde(skip)]
    queued_s: f64,
    #[serde(skip)]
    delivered: u64,
    #[serde(skip)]
    arrival: Duration,
}

impl Evidence {
    /// Returns the figures of a slice; `queue_s` is the time that its queue adds.
    fn of(slice: &Slice, queue_s: Option<f64>) -> Self {
        let mut found = Self {
            packets: u64::from(slice.packets + slice.repeated),
            repeated: u64::from(slice.repeated),
            spurious: u64::from(slice.spurious),
            timeouts: u64::from(slice.timeouts),
            first_flight: slice.flight,
            flight: slice.flight,
            window: slice.window,
            rtt_s: slice.rtt.map(|(least, _)| least.as_secs_f64()),
            queue_s,
            rate_bps: None,
            queued_s: queue_s.map_or(0.0, |_| slice.duration().as_secs_f64()),
            delivered: slice.delivered,
            arrival: slice.arrival,
        };
        found.set_rate();
        found
    }

    fn join(&mut self, next: &Self) {
        self.packets += next.packets;
        self.repeated += next.repeated;
        self.spurious += next.spurious;
        self.timeouts += next.timeouts;
        if self.first_flight == 0 {
            self.first_flight = next.first_flight;
        }
        self.flight = self.flight.max(next.flight);
        self.window = self.window.max(next.window);
        self.rtt_s = least(self.rtt_s, next.rtt_s);
        let sum = |one: &Self| one.queue_s.unwrap_or(0.0) * one.queued_s;
        let total = sum(self) + sum(next);
        self.queued_s += next.queued_s;
        self.queue_s = (self.queued_s > 0.0).then(|| total / self.queued_s);
        self.delivered += next.delivered;
        self.arrival += next.arrival;
        self.set_rate();
    }

    fn set_rate(&mut self) {
        let is_known = self.delivered > 0 && !self.arrival.is_zero();
        self.rate_bps = is_known.then(|| 8.0 * self.delivered as f64 / self.arrival.as_secs_f64());
    }
}

/// Returns the smaller one of two values of which some are known.
fn least(first: Option<f64>, second: Option<f64>) -> Option<f64> {
    first.into_iter().chain(second).reduce(f64::min)
}

/// Time of a cause.
#[derive(Clone, Debug, Serialize)]
pub struct Spent {
    /// The cause.
    pub cause: Cause,
    /// Time in seconds.
    pub time_s: f64,
}

/// Share of the bottleneck's rate from which it is busy.
const BUSY: f64 = 0.8;
/// A queue is too long if it never falls below this share of the RTT of the idle path, and this time.
const BLOATED_SHARE: f64 = 1.0;
const BLOATED_S: f64 = 0.02;
/// Growth of the flight per RTT in slow start, at least. Without delayed ACKs it is 2, with them 1.5.
const GROWTH: f64 = 1.35;
/// The same of a flow without a loss, over two round trips: Vegas doubles its window in every other one.
const UNLOST_GROWTH: f64 = 1.3;
/// Part of a round trip by which a slice may start earlier.
const ROUND: f64 = 0.25;
/// Slices over which a flight must stay the same, and the segments by which it may grow.
const FLAT: usize = 8;
const FLAT_SEGMENTS: u64 = 2;
/// Slices whose intervals show whether a sender paces.
const PACED: usize = 8;
/// Share of the receiver's window from which a flight fills it, with a sender that paces its packets.
const FULL: f64 = 0.95;
/// Share of its peak below which a flight without loss shows an application that sends less than it may.
const UNUSED: f64 = 0.7;

/// The causes of a direction.
#[derive(Clone, Debug)]
pub struct Causes {
    /// Time of each cause, longest first.
    pub spent: Vec<Spent>,
    /// Intervals in order.
    pub intervals: Vec<Interval>,
    /// Retransmissions by the cause of their losses.
    repeated: Vec<(Cause, u64)>,
    /// Rate of the policer, in bit/s of payload.
    pub policer_bps: Option<f64>,
    /// Median of the flight after a loss in relation to that before it: what a controller does on a loss.
    pub reduction: Option<f64>,
    /// Time that the full queue adds: the median at its losses.
    pub full_queue_s: Option<f64>,
}

impl Causes {
    /// Returns the retransmissions after losses with a cause.
    #[must_use]
    pub fn lost(&self, cause: Cause) -> u64 {
        let found = self.repeated.iter().filter(|(one, _)| *one == cause);
        found.map(|(_, packets)| packets).sum()
    }
}

/// Names the causes of a direction.
#[must_use]
pub fn causes(
    slices: &[Slice],
    path: &PathFigures,
    handshake: Option<(Instant, Instant)>,
    origin: Instant,
) -> Causes {
    let losses = Losses::of(slices, path);
    let mut repeated: Vec<(Cause, u64)> = Vec::new();
    let mut found = Timeline::new(origin);
    if let Some((start, end)) = handshake {
        found.add(
            start,
            end,
            (0, 0),
            &[(Cause::Handshake, end.saturating_since(start))],
            Evidence::default(),
        );
    }
    let mut window = Window {
        losses,
        ..Window::default()
    };
    for (place, slice) in slices.iter().enumerate() {
        let cause = window.cause(slices, place, path);
        window.last = cause;
        let busy = match cause {
            Cause::Bandwidth | Cause::Bufferbloat => Some(cause),
            _ => None,
        };
        let times = [
            (Cause::Application, slice.time(State::Idle)),
            (Cause::Request, slice.time(State::Request)),
            (Cause::ReceiverStall, slice.time(State::Stalled)),
            (
                busy.unwrap_or(Cause::ReceiveWindow),
                slice.time(State::WindowLimited),
            ),
            (busy.unwrap_or(window.loss), slice.time(State::Recovery)),
            (
                if path.is_changing(slice) {
                    Cause::PathChange
                } else {
                    Cause::Timeout
                },
                slice.time(State::Timeout),
            ),
            (Cause::DelayedAck, slice.time(State::Delayed)),
            (cause, slice.time(State::Open)),
        ];
        let evidence = Evidence::of(slice, path.queue_s(slices, place));
        found.add(slice.start, slice.end, slice.frames, &times, evidence);
        if slice.repeated > 0 {
            repeated.push((window.loss, u64::from(slice.repeated)));
        }
        window.after(slice);
    }
    let (spent, intervals) = found.finish();
    Causes {
        spent,
        intervals,
        repeated,
        policer_bps: losses.policer_bps,
        reduction: window.reductions.quantile(0.5),
        full_queue_s: window.full_queues.quantile(0.5),
    }
}

/// What the open time of a slice depends on: the slices before it.
struct Window {
    /// Peak of the flight since the last loss or pause.
    peak: u64,
    /// Whether a loss happened since the bottleneck was busy: it is why the window is smaller than the path.
    has_lost: bool,
    /// The cause of the last loss.
    loss: Cause,
    /// Flight before the last loss; 0 without one. Below it, the window is that which the loss left.
    lost_from: u64,
    losses: Losses,
    /// The cause of the slice before.
    last: Cause,
    /// Flight before a loss whose repair has not ended.
    unrepaired: Option<u64>,
    reductions: Distribution,
    full_queues: Distribution,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            peak: 0,
            has_lost: false,
            loss: Cause::RandomLoss,
            lost_from: 0,
            losses: Losses::default(),
            last: Cause::SlowStart,
            unrepaired: None,
            reductions: Distribution::default(),
            full_queues: Distribution::default(),
        }
    }
}

impl Window {
    fn cause(&mut self, slices: &[Slice], place: usize, path: &PathFigures) -> Cause {
        let (before, slice) = (&slices[..place], &slices[place]);
        if slice.losses > 0 {
            self.loss = self.losses.cause(slices, place, path);
            self.has_lost = true;
            self.lost_from = self.peak.max(slice.flight);
            self.unrepaired = Some(self.lost_from);
            if self.loss == Cause::QueueOverflow
                && let Some(queue) = loss_queue_s(slice, path)
            {
                self.full_queues.add(queue, 1);
            }
        }
        let is_round = slice.arrival.as_secs_f64() > 0.5 * path.base_rtt_s.unwrap_or(0.0);
        let is_full = is_round && path.rate_bps.is_some_and(|rate| 8.0 * slice.rate() > BUSY * rate);
        if path.is_queued(slices, place) {
            self.has_lost = false;
            return busy(path);
        }
        if slice.flight as f64 > FULL * slice.window as f64 {
            let is_small = slice.window * SHRUNK < path.window;
            return if is_small {
                Cause::ReceiverStall
            } else {
                Cause::ReceiveWindow
            };
        }
        // Without a queue, a full window limits, whatever the estimate of the bottleneck's rate.
        if is_full {
            self.has_lost = false;
            return busy(path);
        }
        if self.has_lost && self.loss == Cause::Policer {
            return self.loss;
        }
        if !self.has_lost
            && let Some(cause) = rhythm(before, slice, path)
        {
            return cause;
        }
        // The ACKs of the last flight: what limited it lasts until then.
        let is_end = slices[place..]
            .iter()
            .all(|one| one.sent == 0 && one.repeated == 0);
        if is_end && !self.has_lost {
            return self.last;
        }
        // The last segment of a transfer is short, whatever its window is.
        let is_last = self.has_lost && slices[place + 1..].iter().all(|one| one.sent == 0);
        let is_scarce =
            !is_last && slice.short > 0 && u64::from(slice.short) * u64::from(path.mss) >= slice.sent / 2;
        let is_late = if path.position == Position::Sender {
            // After a loss, the last segments of a small window can be probes.
            let probes = if self.has_lost { slice.probes } else { 0 };
            let unprompted = slice.unprompted - probes;
            unprompted > 0 && unprompted >= slice.prompted
        } else {
            // Losses and jitter on the way to the capture also delay data.
            !self.has_lost && slice.unprompted > 1 && slice.unprompted > 2 * slice.prompted
        };
        if is_late || is_scarce {
            return Cause::Application;
        }
        if self.has_lost {
            return self.loss;
        }
        let is_below_loss = slice.flight < self.lost_from;
        if is_slow_start(before, slice, path, is_below_loss) {
            return Cause::SlowStart;
        }
        if (slice.flight as f64) < UNUSED * self.peak as f64 {
            return Cause::Application;
        }
        if is_flat(before, slice, path) {
            // A flight that ends with a silence is a write, not the sender's buffer.
            let has_silence = |one: &Slice| !one.time(State::Idle).is_zero();
            if has_silence(slice) || before.iter().rev().take(FLAT).any(has_silence) {
                Cause::Application
            } else {
                Cause::SendBuffer
            }
        } else if is_below_loss {
            self.loss
        } else {
            Cause::WindowGrowth
        }
    }

    fn after(&mut self, slice: &Slice) {
        if slice.repeated == 0
            && slice.time(State::Recovery).is_zero()
            && let Some(before) = self.unrepaired.take()
        {
            self.reductions.add(slice.flight as f64 / before as f64, 1);
            // The flight of the slice with the loss was sent before the reduction.
            self.peak = 0;
        }
        if slice.losses > 0 || slice.time(State::Idle) > slice.time(State::Open) {
            self.peak = 0;
        }
        self.peak = self.peak.max(slice.flight);
    }
}

fn busy(path: &PathFigures) -> Cause {
    let base = path.base_rtt_s.unwrap_or(0.0);
    let standing = path.standing_queue_s.unwrap_or(0.0);
    if standing >= (BLOATED_SHARE * base).max(BLOATED_S) {
        Cause::Bufferbloat
    } else {
        Cause::Bandwidth
    }
}

/// Whether the flight grows by about the acknowledged data per round trip.
///
/// `is_below_loss`: the flight is smaller than before a loss. Growth by about a segment per round trip is then no slow start,
/// even of a few segments.
fn is_slow_start(before: &[Slice], slice: &Slice, path: &PathFigures, is_below_loss: bool) -> bool {
    let rtt = slice
        .rtt
        .map_or(path.base_rtt_s, |(least, _)| Some(least.as_secs_f64()));
    let Some(rtt) = rtt else { return false };
    // Slices are shorter than a round trip if the ACK of their end arrives early.
    let rounds = if is_below_loss { 1.0 } else { 2.0 };
    let elapsed = |one: &Slice| slice.start.saturating_since(one.start).as_secs_f64() / rtt;
    let mut sending = before.iter().rev().filter(|one| one.sent > 0);
    let Some(earlier) = sending.find(|one| elapsed(one) > rounds - ROUND) else {
        return true;
    };
    let (now, earlier, elapsed) = (slice.flight as f64, earlier.flight as f64, elapsed(earlier));
    if !is_below_loss {
        return now >= UNLOST_GROWTH * earlier;
    }
    let segments = (elapsed + 1.0) * f64::from(path.mss);
    now - earlier > segments && now >= earlier * GROWTH.powf(elapsed)
}

/// Whether a loss happened in the slices in which a flight must stay the same.
fn has_losses(before: &[Slice]) -> bool {
    let mut newest = before.iter().rev().take(FLAT);
    newest.any(|one| one.losses > 0 || one.repeated > 0 || !one.time(State::Recovery).is_zero())
}

/// Whether the flight has not grown for some round trips. A flight that a loss has reduced since then is not the same.
fn is_flat(before: &[Slice], slice: &Slice, path: &PathFigures) -> bool {
    before.len().checked_sub(FLAT).is_some_and(|place| {
        !has_losses(before) && slice.flight <= before[place].flight + FLAT_SEGMENTS * u64::from(path.mss)
    })
}

/// Names what makes the sender send full segments at regular intervals, without growth. The last segment of a write has
/// PSH: if most have, the application writes them one by one, and a sender that paces a file sets it rarely.
fn rhythm(before: &[Slice], slice: &Slice, path: &PathFigures) -> Option<Cause> {
    if !is_flat(before, slice, path) {
        return None;
    }
    let mut gaps = Gaps::default();
    let (mut packets, mut pushed, mut short) = (0, 0, 0);
    let newest = before.iter().rev().take(PACED).take_while(|one| one.losses == 0);
    for one in newest.chain([slice]) {
        gaps.join(&one.gaps);
        packets += one.packets;
        pushed += one.pushed;
        short += one.short;
    }
    if 4 * short >= packets || !gaps.are_even() {
        return None;
    }
    if 2 * pushed >= packets {
        return Some(Cause::Application);
    }
    // Behind a bottleneck, the packets of any sender come at regular intervals.
    (path.position == Position::Sender).then_some(Cause::Pacing)
}

/// Intervals and times by cause.
struct Timeline {
    origin: Instant,
    spent: Vec<(Cause, Duration)>,
    intervals: Vec<Interval>,
}

impl Timeline {
    const fn new(origin: Instant) -> Self {
        Self {
            origin,
            spent: Vec::new(),
            intervals: Vec::new(),
        }
    }

    fn add(
        &mut self,
        start: Instant,
        end: Instant,
        frames: (u64, u64),
        times: &[(Cause, Duration)],
        evidence: Evidence,
    ) {
        for &(cause, time) in times.iter().filter(|(_, time)| !time.is_zero()) {
            match self.spent.iter_mut().find(|(known, _)| *known == cause) {
                Some((_, sum)) => *sum += time,
                None => self.spent.push((cause, time)),
            }
        }
        let mut sums: Vec<(Cause, Duration)> = Vec::new();
        for &(cause, time) in times {
            match sums.iter_mut().find(|(known, _)| *known == cause) {
                Some((_, sum)) => *sum += time,
                None => sums.push((cause, time)),
            }
        }
        let Some(&(cause, time)) = sums.iter().max_by_key(|(_, time)| *time) else {
            return;
        };
        if time.is_zero() {
            return;
        }
        let since = |time: Instant| time.saturating_since(self.origin).as_secs_f64();
        let (start_s, end_s) = (since(start), since(end));
        match self.intervals.last_mut() {
            Some(last) if last.cause == cause => {
                last.end_s = end_s;
                last.frames = match (last.frames, frames) {
                    ((0, _), other) | (other, (0, _)) => other,
                    ((first, _), (_, last)) => (first, last),
                };
                last.evidence.join(&evidence);
            }
            _ => self.intervals.push(Interval {
                start_s,
                end_s,
                cause,
                frames,
                evidence,
            }),
        }
    }

    fn finish(mut self) -> (Vec<Spent>, Vec<Interval>) {
        self.spent.sort_by_key(|&(_, time)| std::cmp::Reverse(time));
        let spent = self
            .spent
            .iter()
            .map(|&(cause, time)| Spent {
                cause,
                time_s: time.as_secs_f64(),
            })
            .collect();
        (spent, self.intervals)
    }
}
