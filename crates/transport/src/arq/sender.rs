//! The sending direction: splits the stream into packets, maintains the window, the timer, flow control and congestion
//! control, and applies the protocol's [`super::retransmission`] policy.

mod acknowledgements;

use foundation::{Duration, Instant};

use super::AnyPolicy;
use super::config::{ArqConfig, Window};
use super::frame::{SackRanges, StreamRange};
use super::tail_probe::TailProbe;
use super::timer::RetransmissionTimer;
use super::window::{SendWindow, Slot};
use crate::congestion::Pacer;
use crate::congestion::{Controller, Estimator, Snapshot};
use crate::statistics::Statistics;

/// Longest interval between probes of a zero window (RFC 9293, section 3.8.6.1).
const MAX_PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// The part of a received frame that concerns this direction.
#[derive(Clone, Copy, Debug)]
pub struct AckInfo<'a> {
    /// The next packet number that the peer expects, on the wire.
    pub acknowledgement: u32,
    /// Number of packets from there that the peer has room for.
    pub window: u32,
    /// Later packets that have arrived.
    pub sack: &'a SackRanges,
    /// In a reply: number and timestamp of the frame that triggered it.
    pub trigger: Option<(u32, u32)>,
}

/// Longest time that one frame takes at the pacing rate. At low rates short frames keep bursts and the price of a loss
/// small; at high rates long frames save processor time.
const FRAME_TIME: Duration = Duration::from_micros(250);
/// Consecutive losses of frames with several packets that show a black hole (RFC 8899, section 4.3). Random loss that
/// exceeds it costs one probe.
const BLACK_HOLE: u32 = 6;

/// A packet to be sent, or several consecutive ones in one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPacket {
    /// The number of the first.
    pub sequence: u64,
    /// Their range of the stream.
    pub range: StreamRange,
    /// Whether it ends the stream.
    pub fin: bool,
}

#[derive(Debug)]
struct Congestion {
    controller: Box<dyn Controller>,
    estimator: Estimator,
    pacer: Pacer,
    /// Whether the window has blocked a packet since the last ACK.
    limited: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct LossSummary {
    packets: u64,
    bytes: u64,
    newest: Option<Slot>,
}

impl LossSummary {
    fn add(&mut self, slot: &Slot) {
        self.packets += 1;
        self.bytes += u64::from(slot.range.length);
        if self.newest.is_none_or(|n| n.order < slot.order) {
            self.newest = Some(*slot);
        }
    }
}

/// Returns the timestamp on the wire: µs modulo 2^32.
#[inline]
pub fn wire_clock(now: Instant) -> u32 {
    (now.as_nanos() / 1_000) as u32
}

/// The sending direction of a connection.
#[derive(Debug)]
pub struct Sender {
    window: SendWindow,
    policy: AnyPolicy,
    timer: RetransmissionTimer,
    fixed_window: Option<u64>,
    congestion: Option<Congestion>,
    segment_size: u32,
    packets_per_frame: u16,
    /// Frames with several packets that were lost since one was acknowledged, and the number of the last.
    lost_frames: (u32, u64),
    written: u64,
    cut: u64,
    finishing: bool,
    fin_sent: bool,
    /// The peer has room for packets below this number.
    allowed: u64,
    paced_until: Option<Instant>,
    probe_at: Option<Instant>,
    probes: u32,
    /// The probe timer, if the settings have it, and whether a probe is due.
    tail_probe: Option<TailProbe>,
    owes_probe: bool,
    acknowledge_delay: Duration,
    /// When something was last newly acknowledged, or the window last became non-empty.
    last_progress: Instant,
}

impl Sender {
    /// Creates a sender whose first packet has number `first`, for a peer with room for `room` packets.
    #[must_use]
    pub fn new(config: &ArqConfig, first: u64, room: u32) -> Self {
        let segment_size = u32::from(config.parameters().segment_size);
        let (fixed_window, congestion) = match config.window() {
            Window::Packets(packets) => (Some(u64::from(packets)), None),
            Window::Auto => {
                let controller = config.congestion().build(u64::from(segment_size));
                let congestion = Congestion {
                    controller,
                    estimator: Estimator::new(),
                    pacer: Pacer::new(),
                    limited: false,
                };
                (None, Some(congestion))
            }
        };
        Self {
            window: SendWindow::new(first),
            policy: AnyPolicy::of(config),
            timer: RetransmissionTimer::new(config.rto, config.min_rto, config.give_up),
            fixed_window,
            congestion,
            segment_size,
            packets_per_frame: 1,
            lost_frames: (0, 0),
            written: 0,
            cut: 0,
            finishing: false,
            fin_sent: false,
            allowed: first + u64::from(room),
            paced_until: None,
            probe_at: None,
            probes: 0,
            tail_probe: config.tail_probe.unwrap_or(false).then(TailProbe::default),
            owes_probe: false,
            acknowledge_delay: config.acknowledge_delay,
            last_progress: Instant::ZERO,
        }
    }

    /// Takes window and timeouts of other settings over, in which the window is a number of packets if it is one now. Packets in
    /// flight remain, also those beyond a smaller window, and their timers have the new duration.
    pub fn reconfigure(&mut self, config: &ArqConfig) {
        if let Window::Packets(packets) = config.window() {
            self.fixed_window = self.fixed_window.map(|_| u64::from(packets));
        }
        self.timer.set_timeout(config.rto, config.min_rto);
        self.acknowledge_delay = config.acknowledge_delay;
    }

    /// Appends `bytes` to the stream.
    pub fn write(&mut self, bytes: u64) {
        debug_assert!(!self.finishing, "written after the end");
        self.written += bytes;
    }

    /// Ends the stream here.
    pub fn finish(&mut self) {
        self.finishing = true;
    }

    /// Returns the number of bytes written and not yet sent as packets.
    #[must_use]
    pub const fn unsent(&self) -> u64 {
        self.written - self.cut
    }

    /// Discards the bytes written and not yet sent as packets.
    pub const fn discard_unsent(&mut self) {
        self.written = self.cut;
    }

    /// Whether the whole stream and its end were acknowledged.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.fin_sent && self.window.is_empty()
    }

    /// Whether only the end of the stream is unacknowledged.
    #[must_use]
    pub fn awaits_only_fin(&self) -> bool {
        self.fin_sent && self.window.next() - self.window.base() <= 1
    }

    /// Whether the end of the stream was sent.
    #[must_use]
    pub const fn fin_sent(&self) -> bool {
        self.fin_sent
    }

    /// Returns the timer with its RTT estimate.
    #[must_use]
    pub const fn timer(&self) -> &RetransmissionTimer {
        &self.timer
    }

    /// Whether any packet is unacknowledged.
    #[must_use]
    pub fn is_outstanding(&self) -> bool {
        !self.window.is_empty()
    }

    /// Returns the payload bytes in flight.
    #[must_use]
    pub const fn bytes_in_flight(&self) -> u64 {
        self.window.bytes_in_flight()
    }

    /// Returns the current window: in bytes under a controller, otherwise packets times segment size.
    #[must_use]
    pub fn window_bytes(&self) -> u64 {
        match (&self.congestion, self.fixed_window) {
            (Some(congestion), _) => congestion.controller.window(),
            (None, packets) => packets.unwrap_or(1) * u64::from(self.segment_size),
        }
    }

    /// Returns the controller's ssthresh in bytes, if it has one.
    #[must_use]
    pub fn ssthresh(&self) -> Option<u64> {
        self.congestion
            .as_ref()
            .and_then(|congestion| congestion.controller.ssthresh())
    }

    /// Returns the congestion controller, if the window is automatic.
    #[must_use]
    pub fn controller(&self) -> Option<&dyn Controller> {
        self.congestion.as_ref().map(|congestion| &*congestion.controller)
    }

    /// Returns the phase of the congestion controller; "fixed" without one.
    #[must_use]
    pub fn phase(&self) -> &'static str {
        let controller = self.congestion.as_ref().map(|congestion| &congestion.controller);
        controller.map_or("fixed", |controller| controller.phase())
    }

    /// Initializes the timer with the round trip of the setup.
    pub fn sample_rtt(&mut self, now: Instant, rtt: Duration) {
        self.timer.sample(now, rtt);
    }

    /// Sets the peer's receive window from the setup.
    pub fn set_room(&mut self, room: u32) {
        self.allowed = self.window.base() + u64::from(room);
    }

    /// Puts up to `packets` new packets into one frame. Each retransmitted packet has its own frame, which fits every
    /// path.
    pub const fn set_packets_per_frame(&mut self, packets: u16) {
        self.packets_per_frame = packets;
        self.lost_frames.0 = 0;
    }

    /// Whether the path seems to lose all frames with several packets.
    #[must_use]
    pub const fn is_black_hole(&self) -> bool {
        self.lost_frames.0 >= BLACK_HOLE
    }

    /// Returns the packet to send now, if any is allowed.
    pub fn poll_packet(&mut self, now: Instant, statistics: &mut Statistics) -> Option<DataPacket> {
        self.paced_until = None;
        if std::mem::take(&mut self.owes_probe)
            && let Some(packet) = self.poll_probe(now, statistics)
        {
            return Some(packet);
        }
        if let Some(sequence) = self.window.next_lost() {
            let length = self.window.get(sequence)?.range.length;
            if !self.may_leave(now, length) {
                return None;
            }
            let snapshot = self.record_transmission(now, length);
            let slot = self.window.retransmit(now, sequence, snapshot)?;
            count_transmission(statistics, length);
            statistics.retransmissions += u64::from(!slot.fin);
            statistics.bytes_retransmitted += u64::from(length);
            return Some(DataPacket {
                sequence,
                range: slot.range,
                fin: slot.fin,
            });
        }
        let fin = self.cut == self.written;
        if fin && (!self.finishing || self.fin_sent) {
            self.note_application_limited();
            return None;
        }
        let next = self.window.next();
        if self
            .fixed_window
            .is_some_and(|packets| next - self.window.base() >= packets)
        {
            return None;
        }
        if next >= self.allowed {
            self.note_application_limited();
            // Nothing is in flight whose ACK could update the peer's window: probe it.
            if self.window.is_empty() && self.probe_at.is_none() {
                self.probe_at = Some(now + self.timer.timeout().min(MAX_PROBE_INTERVAL));
            }
            return None;
        }
        let mut range = self.next_range();
        if !self.may_leave(now, range.length) {
            return None;
        }
        if self.window.is_empty() {
            self.last_progress = now;
        }
        let snapshot = self.record_transmission(now, range.length);
        let sequence = self.window.push(now, range, fin, snapshot);
        self.cut += u64::from(range.length);
        self.fin_sent |= fin;
        if !fin {
            statistics.first_data_at.get_or_insert(now);
            count_transmission(statistics, range.length);
            if self.packets_per_frame > 1 {
                self.extend_frame(now, &mut range, statistics);
            }
        }
        Some(DataPacket { sequence, range, fin })
    }

    /// Returns the packet of a probe. Neither window nor pacing limits it.
    fn poll_probe(&mut self, now: Instant, statistics: &mut Statistics) -> Option<DataPacket> {
        let length = self.window.oldest_in_flight()?.range.length;
        let snapshot = self.record_transmission(now, length);
        let (sequence, slot) = self.window.probe(now, self.policy.gap(), snapshot)?;
        if let Some(probe) = &mut self.tail_probe {
            probe.on_probe(now);
        }
        count_transmission(statistics, length);
        statistics.retransmissions += u64::from(!slot.fin);
        statistics.bytes_retransmitted += u64::from(length);
        Some(DataPacket {
            sequence,
            range: slot.range,
            fin: slot.fin,
        })
    }

    /// Returns when a probe is due.
    fn probe_deadline(&self) -> Option<Instant> {
        let probe = self.tail_probe.as_ref()?;
        let smoothed = self.timer.rtt().smoothed();
        let waits = self.window.packets_in_flight() > 0 && !smoothed.is_zero() && !self.owes_probe;
        waits.then(|| probe.due(smoothed, self.acknowledge_delay))
    }

    /// Returns the range of the next new packet.
    fn next_range(&self) -> StreamRange {
        StreamRange {
            offset: self.cut,
            length: u64::from(self.segment_size).min(self.written - self.cut) as u32,
        }
    }

    /// Adds packets to the frame of `range`, which is the first. Pacing applies to whole frames, the windows to
    /// packets.
    fn extend_frame(&mut self, now: Instant, range: &mut StreamRange, statistics: &mut Statistics) {
        let room = self.allowed - self.window.next();
        let fixed = self.fixed_window.map_or(u64::MAX, |packets| {
            packets - (self.window.next() - self.window.base())
        });
        let most = room.min(fixed).min(u64::from(self.most_packets()) - 1);
        for _ in 0..most {
            let next = self.next_range();
            // A short packet ends the frame.
            if next.length == 0 || !range.length.is_multiple_of(self.segment_size) {
                break;
            }
            if let Some(congestion) = &mut self.congestion
                && self.window.bytes_in_flight() + u64::from(next.length) > congestion.controller.window()
            {
                congestion.limited = true;
                break;
            }
            let snapshot = self.record_transmission(now, next.length);
            self.window.extend(now, next, snapshot);
            self.cut += u64::from(next.length);
            range.length += next.length;
            count_transmission(statistics, next.length);
        }
    }

    /// Returns how many packets the next frame may have.
    fn most_packets(&self) -> u32 {
        let most = u32::from(self.packets_per_frame);
        let Some(rate) = self.congestion.as_ref().and_then(|c| c.controller.pacing_rate()) else {
            return most;
        };
        let bytes = rate.bits_per_second() / 8 * FRAME_TIME.as_micros() / 1_000_000;
        let packets = bytes / u64::from(self.segment_size);
        most.min(u32::try_from(packets).unwrap_or(u32::MAX)).max(1)
    }

    fn may_leave(&mut self, now: Instant, length: u32) -> bool {
        let Some(congestion) = &mut self.congestion else {
            return true;
        };
        let in_flight = self.window.bytes_in_flight();
        if in_flight > 0 && in_flight + u64::from(length) > congestion.controller.window() {
            congestion.limited = true;
            return false;
        }
        if let Some(rate) = congestion.controller.pacing_rate()
            && let Some(departure) =
                congestion
                    .pacer
                    .next_departure(now, rate, congestion.controller.bursts(), u64::from(length))
        {
            self.paced_until = Some(departure);
            congestion.limited = true;
            return false;
        }
        true
    }

    fn record_transmission(&mut self, now: Instant, length: u32) -> Snapshot {
        if let Some(probe) = &mut self.tail_probe {
            probe.on_sent(now);
        }
        let Some(congestion) = &mut self.congestion else {
            return Snapshot::default();
        };
        let bytes = u64::from(length);
        let in_flight = self.window.bytes_in_flight() + bytes;
        congestion.pacer.on_sent(now, bytes);
        congestion.controller.on_sent(now, bytes, in_flight);
        congestion.estimator.on_sent(now, bytes, in_flight)
    }

    fn note_application_limited(&mut self) {
        if let Some(congestion) = &mut self.congestion {
            congestion
                .estimator
                .set_application_limited(self.window.bytes_in_flight());
        }
    }

    /// Returns since when packets have been unacknowledged without progress; `None` if none are outstanding.
    #[must_use]
    pub fn stuck_since(&self) -> Option<Instant> {
        (!self.window.is_empty()).then_some(self.last_progress)
    }

    /// Returns when the timer of the oldest packet in flight expires.
    fn deadline(&self) -> Option<Instant> {
        self.window
            .oldest_in_flight()
            .map(|slot| slot.sent_at + self.timer.timeout())
    }

    /// Returns when the next timer is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        [
            self.deadline(),
            self.probe_deadline(),
            self.paced_until,
            self.probe_at,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Runs the timers that are due by `now`. Returns whether to probe the peer's window.
    pub fn handle_timeout(&mut self, now: Instant, statistics: &mut Statistics) -> bool {
        if self.deadline().is_some_and(|d| d <= now) {
            self.expire(now, statistics);
        }
        if self.probe_deadline().is_some_and(|due| due <= now) {
            self.owes_probe = true;
        }
        if self.probe_at.is_some_and(|at| at <= now) {
            self.probes += 1;
            let interval = self
                .timer
                .timeout()
                .doubled(self.probes.min(16))
                .min(MAX_PROBE_INTERVAL);
            self.probe_at = Some(now + interval);
            return true;
        }
        false
    }

    fn expire(&mut self, now: Instant, statistics: &mut Statistics) {
        let Some(oldest) = self.window.oldest_in_flight().copied() else {
            return;
        };
        let prior_in_flight = self.window.bytes_in_flight();
        let mut losses = LossSummary::default();
        let timeout = self.timer.timeout();
        let frames = &mut self.lost_frames;
        self.policy.on_timeout(&mut self.window, now, timeout, |slot| {
            count_lost_frame(frames, slot);
            losses.add(slot);
        });
        statistics.timeouts += 1;
        self.timer.back_off(oldest.order, self.window.next_order());
        if self.last_progress > oldest.sent_at {
            // Later packets were delivered: this packet was lost, but the path still works.
            self.report_losses(now, losses, prior_in_flight);
        } else if let Some(congestion) = &mut self.congestion {
            congestion.estimator.on_lost(losses.bytes);
            congestion.controller.on_timeout(now, prior_in_flight);
        }
    }
}

/// Counts the frame of a lost packet once, if it had others.
fn count_lost_frame((count, newest): &mut (u32, u64), slot: &Slot) {
    if slot.shared && (*count == 0 || slot.order > *newest) {
        (*count, *newest) = (*count + 1, slot.order);
    }
}

fn count_transmission(statistics: &mut Statistics, length: u32) {
    if length > 0 {
        statistics.packets_sent += 1;
        statistics.bytes_sent += u64::from(length);
    }
}
