//! One connection of any ARQ protocol: setup, both directions, keep-alive and close.

mod closing;
mod opening;

use foundation::{Duration, Instant};
use hdrhistogram::Histogram;

use super::AnyPolicy;
use super::config::ArqConfig;
use super::frame::{
    Frame, FrameType, HEADER_LENGTH, Handshake, MAX_PAYLOAD, Parameters, Payload, ResetReason, StreamRange,
};
use super::path_mtu::PathMtuSearch;
use super::receiver::Receiver;
use super::sender::{AckInfo, Sender, wire_clock};
use super::sequence::truncate;
use crate::machine::Machine;
use crate::rtt::INITIAL_TIMEOUT;
use crate::statistics::Statistics;

/// Shortest wait for the reply to a probe of the path's MTU.
const MIN_PROBE_TIMEOUT: Duration = Duration::from_millis(50);

/// Events for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection is established; data may flow both ways.
    Connected,
    /// There is payload to read.
    Readable,
    /// The peer's stream has ended and is completely readable.
    PeerFinished,
    /// Both streams have ended and are acknowledged. The connection may remain for a while to answer a peer that
    /// missed the last ACK.
    Finished,
    /// The connection is closed and needs no more calls.
    Closed,
    /// The connection failed before its streams ended.
    Failed(Error),
}

/// Why a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No reply to any attempt to open it.
    #[error("no answer from the peer for {0}")]
    Unreachable(Duration),
    /// The peer has stopped replying.
    #[error("the peer has been silent for {0}")]
    Silent(Duration),
    /// The peer replies, but no packet reaches it.
    #[error(
        "the peer answers, but has acknowledged no packet for {0}: are packets larger than the path's MTU?"
    )]
    Stuck(Duration),
    /// The peer has no such connection: it was restarted.
    #[error("the peer does not know this connection: it was restarted")]
    Forgotten,
    /// The peer's application aborted.
    #[error("the peer was stopped, or ended the connection after an error")]
    Aborted,
    /// The peer accepts no more connections now.
    #[error("the peer is busy: it accepts no more connections now")]
    Busy,
    /// A relay on the path reports that the peer's port is closed.
    #[error("a relay reports that nothing listens at its target: start the receiver there")]
    Refused,
    /// The peer accepts protected connections only.
    #[error("the peer requires encryption")]
    Protected,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The opener has no reply yet.
    Opening,
    /// Data may flow. The opener repeats its `Open` until it is `confirmed`.
    Open { confirmed: Option<Instant> },
    /// Both streams have ended; the last ACK may have to be repeated.
    Lingering { until: Instant },
    /// Closed.
    Closed,
}

/// A connection. See [`Machine`] for how to drive it; the application's interface is
/// [`write`](Self::write), [`finish`](Self::finish), [`read`](Self::read) and [`abort`](Self::abort).
///
/// `P` represents the bytes of a received packet. Sent packets name ranges of the application's stream, from which the
/// driver fills in the bytes.
#[derive(Debug)]
pub struct Connection<P> {
    id: u32,
    /// The first sequence number, equal in both directions.
    first: u32,
    phase: Phase,
    token: [u8; 24],
    parameters: Parameters,
    give_up: Duration,
    keep_alive: Duration,
    sender: Sender,
    receiver: Receiver<P>,
    statistics: Statistics,
    /// When the next `Open` is due, and how many were sent.
    open_at: Option<Instant>,
    opens: u32,
    owes_accept: bool,
    owes_update: bool,
    wants_ping: bool,
    wants_reset: Option<ResetReason>,
    /// The search for longer frames, if enabled.
    path_mtu: Option<Box<PathMtuSearch>>,
    /// Number and timestamp of a probe without a reply.
    unanswered_probe: Option<(u32, u32)>,
    /// When the peer's last frame arrived, initially when the connection was opened.
    last_arrival: Instant,
    probed_at: Instant,
    /// Whether this end closed first and therefore lingers (RFC 9293, section 3.6).
    closed_first: bool,
    events: EventQueue,
}

#[derive(Clone, Copy, Debug, Default)]
struct EventQueue {
    connected: bool,
    readable: bool,
    peer_finished: bool,
    finished: bool,
    closed: bool,
    failed: Option<Error>,
}

impl<P: Payload> Connection<P> {
    /// Opens a connection. The caller draws `id` and `first`, the first sequence number, at random.
    #[must_use]
    pub fn open(now: Instant, id: u32, first: u32, config: &ArqConfig) -> Self {
        let mut connection = Self::new(now, id, first, config, Phase::Opening);
        connection.open_at = Some(now);
        connection
    }

    /// Accepts a connection that a peer opened with a valid token (see [`super::handshake::Listener`]). `open` is that
    /// frame; `config` completes the peer's proposed parameters.
    #[must_use]
    pub fn accept<Q>(now: Instant, open: &Frame<Q>, proposed: Parameters, config: &ArqConfig) -> Self {
        let config = config.adopting(proposed);
        let phase = Phase::Open { confirmed: Some(now) };
        let mut connection = Self::new(now, open.connection, open.sequence, &config, phase);
        connection.sender.set_room(open.window);
        connection.owes_accept = true;
        connection.events.connected = true;
        connection
    }

    /// Creates either end of a connection whose set-up frames a different exchange replaced: both ends have agreed on
    /// `id`, `first` and the parameters. The peer has room for `room` packets; the exchange took `rtt`, if measured.
    #[must_use]
    pub fn established(
        now: Instant,
        (id, first): (u32, u32),
        config: &ArqConfig,
        room: u32,
        rtt: Option<Duration>,
    ) -> Self {
        let phase = Phase::Open { confirmed: Some(now) };
        let mut connection = Self::new(now, id, first, config, phase);
        connection.sender.set_room(room);
        if let Some(rtt) = rtt {
            connection.sender.sample_rtt(now, rtt);
        }
        connection.events.connected = true;
        connection
    }

    fn new(now: Instant, id: u32, first: u32, config: &ArqConfig, phase: Phase) -> Self {
        let sender = Sender::new(config, u64::from(first), 0);
        let receiver = Receiver::new(
            u64::from(first),
            config.receive_buffer,
            u32::from(config.parameters().segment_size),
            AnyPolicy::of(config).buffers_out_of_order(),
            (u32::from(config.acknowledge_every), config.acknowledge_delay),
        );
        Self {
            id,
            first,
            phase,
            token: [0; 24],
            parameters: config.parameters(),
            give_up: config.give_up,
            keep_alive: config.keep_alive,
            sender,
            receiver,
            statistics: Statistics {
                opened_at: Some(now),
                ..Statistics::default()
            },
            open_at: None,
            opens: 0,
            owes_accept: false,
            owes_update: false,
            wants_ping: false,
            wants_reset: None,
            path_mtu: None,
            unanswered_probe: None,
            last_arrival: now,
            probed_at: now,
            closed_first: false,
            events: EventQueue::default(),
        }
    }

    /// Takes the settings of [`ArqConfig::LIVE_KEYS`] over. All other keys of `config` are those of the connection, and
    /// [`ArqConfig::obstacle_to`] reports no problem.
    pub fn reconfigure(&mut self, config: &ArqConfig) {
        self.sender.reconfigure(config);
        self.receiver
            .set_acknowledgements(u32::from(config.acknowledge_every), config.acknowledge_delay);
        self.parameters = config.parameters();
    }

    /// Enables a histogram of round-trip times.
    pub fn record_round_trips(&mut self) {
        let opened_at = self.statistics.opened_at;
        self.statistics = Statistics {
            opened_at,
            ..Statistics::with_rtt_histogram()
        };
    }

    /// Searches for frames with several packets that the path carries, up to `length` bytes of a frame without
    /// protection, and uses them.
    pub fn search_path_mtu(&mut self, length: usize) {
        let segment = usize::from(self.parameters.segment_size);
        let longest = length.saturating_sub(HEADER_LENGTH).min(MAX_PAYLOAD as usize);
        let limit = u16::try_from(longest / segment).unwrap_or(u16::MAX);
        self.path_mtu = (limit > 1).then(|| Box::new(PathMtuSearch::new(limit)));
    }

    /// Handles the report of the local system that frames with several packets are too long. Returns whether shorter ones
    /// may help.
    pub fn handle_too_long(&mut self, now: Instant) -> bool {
        let may_help = self.path_mtu.as_ref().is_some_and(|search| search.is_active());
        if may_help {
            self.handle_black_hole(now);
        }
        may_help
    }

    fn handle_black_hole(&mut self, now: Instant) {
        if let Some(search) = &mut self.path_mtu {
            search.handle_black_hole(now, probe_timeout(&self.sender));
            self.sender.set_packets_per_frame(1);
        }
    }

    fn check_black_hole(&mut self, now: Instant) {
        if self.sender.is_black_hole() {
            self.handle_black_hole(now);
        }
    }

    /// Returns the number of packets per frame that the path carries, as far as known.
    #[must_use]
    pub fn packets_per_frame(&self) -> u16 {
        self.path_mtu
            .as_ref()
            .map_or(1, |search| search.packets_per_frame())
    }

    /// Whether a data frame with `length` bytes from packet `sequence` on would become readable at once and as a whole.
    #[must_use]
    pub fn accepts_whole(&self, sequence: u32, length: u32) -> bool {
        self.receiver.accepts_whole(sequence, length)
    }

    /// Returns the number of the connection.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Appends `bytes` bytes to the stream. They are sent as soon as the protocol allows.
    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    /// Ends the stream after the bytes written so far.
    pub fn finish(&mut self) {
        if !self.receiver.is_finished() {
            self.closed_first = true;
        }
        self.sender.finish();
    }

    /// Discards the bytes written that were not sent.
    pub const fn discard_unsent(&mut self) {
        self.sender.discard_unsent();
    }

    /// Returns the next payload in order.
    pub fn read(&mut self) -> Option<P> {
        self.receiver.read()
    }

    /// Returns the payloads that arrived above a gap.
    pub fn early(&self) -> impl Iterator<Item = &P> {
        self.receiver.early()
    }

    /// Sends a keep-alive probe now.
    pub fn ping(&mut self) {
        self.wants_ping = matches!(self.phase, Phase::Open { .. });
    }

    /// Aborts the connection; the peer gets one reset.
    pub fn abort(&mut self) {
        if self.phase != Phase::Closed {
            self.wants_reset = Some(ResetReason::Aborted);
            self.phase = Phase::Closed;
        }
    }

    /// Returns the counters.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Returns the histogram of round-trip times, if enabled; later samples are not recorded.
    pub fn take_round_trips(&mut self) -> Option<Box<Histogram<u64>>> {
        self.statistics.take_round_trips()
    }

    /// Returns the number of bytes written and not yet sent.
    #[must_use]
    pub const fn unsent(&self) -> u64 {
        self.sender.unsent()
    }

    /// Returns the sending direction, for traces.
    #[must_use]
    pub const fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Whether the connection is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    fn fail(&mut self, error: Error) {
        if self.phase != Phase::Closed {
            self.phase = Phase::Closed;
            self.events.failed = Some(error);
        }
    }

    fn handle_stream_frame(&mut self, now: Instant, frame: Frame<P>) {
        let kind = frame.kind;
        let info = AckInfo {
            acknowledgement: frame.acknowledgement,
            window: frame.window,
            sack: &frame.sack,
            trigger: (kind == FrameType::Ack).then_some((frame.sequence, frame.echo)),
        };
        self.sender
            .handle_acknowledgement(now, info, &mut self.statistics);
        self.check_black_hole(now);
        match kind {
            FrameType::Data | FrameType::Fin => {
                let is_data = kind == FrameType::Data;
                let (count, new) = self
                    .receiver
                    .accept(now, frame.sequence, frame.timestamp, frame.payload);
                if is_data {
                    self.statistics.packets_received += u64::from(count);
                    self.statistics.duplicates_received += u64::from(count - new);
                }
                self.events.readable |= new > 0 && self.receiver.is_readable();
                self.events.peer_finished |= new > 0 && self.receiver.is_finished();
            }
            FrameType::Probe => self.unanswered_probe = Some((frame.sequence, frame.timestamp)),
            FrameType::ProbeReply => {
                if let Some(search) = &mut self.path_mtu {
                    search.handle_reply(now, frame.sequence);
                    self.sender.set_packets_per_frame(search.packets_per_frame());
                }
            }
            FrameType::Ping => self.owes_update = true,
            _ => {}
        }
        self.check_finished(now);
    }

    fn frame(&mut self, now: Instant, kind: FrameType) -> Frame<StreamRange> {
        let mut frame = Frame::new(kind, self.id);
        frame.timestamp = wire_clock(now);
        self.receiver.describe(&mut frame);
        frame
    }

    fn poll_control(&mut self, now: Instant) -> Option<Frame<StreamRange>> {
        if std::mem::take(&mut self.owes_accept) {
            let mut frame = self.frame(now, FrameType::Accept);
            frame.handshake = Some(Box::new(Handshake {
                token: [0; 24],
                parameters: self.parameters,
            }));
            return Some(frame);
        }
        if self.receiver.owes_acknowledgement() {
            let mut frame = Frame::new(FrameType::Ack, self.id);
            frame.timestamp = wire_clock(now);
            self.receiver.acknowledge(&mut frame);
            self.owes_update = false;
            self.statistics.acknowledgements_sent += 1;
            return Some(frame);
        }
        if std::mem::take(&mut self.owes_update) {
            return Some(self.frame(now, FrameType::Update));
        }
        if std::mem::take(&mut self.wants_ping) {
            return Some(self.frame(now, FrameType::Ping));
        }
        if let Some((number, timestamp)) = self.unanswered_probe.take() {
            let mut frame = self.frame(now, FrameType::ProbeReply);
            (frame.sequence, frame.echo) = (number, timestamp);
            return Some(frame);
        }
        None
    }

    /// Returns the probe of the path's MTU that is due: as long as the data frames that it is to permit.
    fn poll_probe(&mut self, now: Instant) -> Option<Frame<StreamRange>> {
        let search = self.path_mtu.as_mut()?;
        let (number, packets) = search.poll_probe(now, probe_timeout(&self.sender))?;
        let mut frame = self.frame(now, FrameType::Probe);
        frame.sequence = number;
        frame.payload = Some(StreamRange {
            offset: 0,
            length: u32::from(packets) * u32::from(self.parameters.segment_size),
        });
        Some(frame)
    }

    /// Returns when unacknowledged packets end the connection (the user timeout of RFC 9293, section 3.8.3). A peer
    /// with a zero window does not end it: nothing is outstanding then.
    fn stuck_deadline(&self) -> Option<Instant> {
        self.sender.stuck_since().map(|since| since + self.give_up)
    }

    /// Returns when the peer's silence requires action next: first a probe, finally a failure.
    fn silence_deadline(&self) -> Instant {
        let probe = self.last_arrival.max(self.probed_at) + self.keep_alive;
        probe.min(self.last_arrival + self.give_up)
    }
}

/// Returns how long to wait for the reply to a probe (PROBE_TIMER from the RTT, RFC 8899, section 5.1.1). A probe that is
/// wrongly considered lost costs less than a long search.
fn probe_timeout(sender: &Sender) -> Duration {
    let rtt = sender.timer().rtt();
    match rtt.minimum() {
        Some(_) => (rtt.smoothed() * 4).max(MIN_PROBE_TIMEOUT),
        None => INITIAL_TIMEOUT,
    }
}

impl<P: Payload> Machine for Connection<P> {
    type Incoming = Frame<P>;
    type Outgoing = Frame<StreamRange>;
    type Event = Event;

    fn handle_frame(&mut self, now: Instant, frame: Frame<P>) {
        if frame.connection != self.id || self.phase == Phase::Closed {
            return;
        }
        if frame.kind != FrameType::Reset {
            self.last_arrival = now;
        }
        match frame.kind {
            FrameType::Challenge => self.handle_challenge(now, &frame),
            FrameType::Reset => self.handle_reset(ResetReason::from_code(frame.sequence), frame.echo),
            // A repeated `Open`: the `Accept` was lost.
            FrameType::Open => self.owes_accept = true,
            _ if self.phase == Phase::Opening => {}
            kind => {
                if let Phase::Open {
                    confirmed: confirmed @ None,
                } = &mut self.phase
                {
                    *confirmed = Some(now);
                    self.open_at = None;
                }
                if kind != FrameType::Accept {
                    self.handle_stream_frame(now, frame);
                }
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self.phase {
            Phase::Closed => return,
            Phase::Lingering { until } => {
                if until <= now {
                    self.close();
                }
                return;
            }
            Phase::Opening | Phase::Open { .. } => {}
        }
        if self.last_arrival + self.give_up <= now {
            let silence = self.give_up;
            let unreachable = self.phase == Phase::Opening;
            self.fail(if unreachable {
                Error::Unreachable(silence)
            } else {
                Error::Silent(silence)
            });
            return;
        }
        if self.stuck_deadline().is_some_and(|deadline| deadline <= now) {
            self.fail(Error::Stuck(self.give_up));
            return;
        }
        if self.phase != Phase::Opening && self.silence_deadline() <= now {
            self.wants_ping = true;
            self.probed_at = now;
        }
        self.receiver.handle_timeout(now);
        self.wants_ping |= self.sender.handle_timeout(now, &mut self.statistics);
        self.check_black_hole(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Frame<StreamRange>> {
        match self.phase {
            Phase::Closed => {
                let reason = self.wants_reset.take()?;
                let mut frame = self.frame(now, FrameType::Reset);
                frame.sequence = reason.code();
                return Some(frame);
            }
            Phase::Opening => return self.poll_open(now),
            Phase::Lingering { .. } => return self.poll_control(now),
            Phase::Open { .. } => {}
        }
        if let Some(frame) = self.poll_open(now).or_else(|| self.poll_control(now)) {
            return Some(frame);
        }
        if let Some(probe) = self.poll_probe(now) {
            return Some(probe);
        }
        let packet = self.sender.poll_packet(now, &mut self.statistics)?;
        let mut frame = self.frame(
            now,
            if packet.fin {
                FrameType::Fin
            } else {
                FrameType::Data
            },
        );
        frame.sequence = truncate(packet.sequence);
        frame.payload = (!packet.fin).then_some(packet.range);
        Some(frame)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Closed => None,
            Phase::Lingering { until } => Some(until),
            Phase::Opening => Some(
                self.open_at
                    .unwrap_or(Instant::MAX)
                    .min(self.last_arrival + self.give_up),
            ),
            Phase::Open { .. } => [
                Some(self.silence_deadline()),
                self.stuck_deadline(),
                self.open_at,
                self.sender.poll_timeout(),
                self.receiver.deadline(),
                self.path_mtu.as_ref().and_then(|search| search.poll_timeout()),
            ]
            .into_iter()
            .flatten()
            .min(),
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        let events = &mut self.events;
        for (flag, event) in [
            (&mut events.connected, Event::Connected),
            (&mut events.readable, Event::Readable),
            (&mut events.peer_finished, Event::PeerFinished),
            (&mut events.finished, Event::Finished),
            (&mut events.closed, Event::Closed),
        ] {
            if std::mem::take(flag) {
                return Some(event);
            }
        }
        events.failed.take().map(Event::Failed)
    }
}
