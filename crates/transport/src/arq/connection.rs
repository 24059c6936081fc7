//! One connection of any ARQ protocol: set-up, both directions, keep-alive and close.

use foundation::{Duration, Instant};
use hdrhistogram::Histogram;

use super::config::ArqConfig;
use super::frame::{Frame, Handshake, Kind, Parameters, Payload, ResetReason, StreamRange};
use super::receiver::Receiver;
use super::sender::{AckInfo, Sender, wire_clock};
use super::sequence::truncate;
use super::timer::BACK_OFF_SHARE;
use crate::machine::Machine;
use crate::rtt::INITIAL_TIMEOUT;
use crate::statistics::Statistics;

/// What the application is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection stands: data may flow both ways.
    Connected,
    /// There is payload to read.
    Readable,
    /// The peer's stream has ended and all of it can be read.
    PeerFinished,
    /// Both streams have ended and were acknowledged. The connection may stay a moment longer to
    /// answer a peer that missed the last ACK.
    Finished,
    /// The connection is over and needs no more calls.
    Closed,
    /// The connection is over before its streams were.
    Failed(Error),
}

/// Why a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No answer to any attempt to open it.
    #[error("no answer from the peer for {0}")]
    Unreachable(Duration),
    /// The peer answered before and does not any more.
    #[error("the peer has been silent for {0}")]
    Silent(Duration),
    /// The peer answers, but no packet gets through to it.
    #[error(
        "the peer answers, but has acknowledged no packet for {0}: are packets larger than the path's MTU?"
    )]
    Stuck(Duration),
    /// The peer knows nothing of this connection: it was restarted.
    #[error("the peer does not know this connection: it was restarted")]
    Forgotten,
    /// The peer's application gave up.
    #[error("the peer aborted the connection")]
    Aborted,
    /// The peer accepts no more connections now.
    #[error("the peer is busy: it accepts no more connections now")]
    Busy,
    /// A relay on the way reports that the peer's port is closed.
    #[error("a relay reports that nothing listens at its target")]
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The opener knows nothing of its peer yet.
    Opening,
    /// Data may flow. The opener repeats its `Open` until it is `confirmed`.
    Open { confirmed: Option<Instant> },
    /// Both streams have ended; the last ACK may have to be repeated.
    Lingering { until: Instant },
    /// Over.
    Closed,
}

/// A connection. See [`Machine`] for how to drive it; the application's interface is
/// [`write`](Self::write), [`finish`](Self::finish), [`read`](Self::read) and [`abort`](Self::abort).
///
/// `P` is what stands for the bytes of a packet that arrives. What leaves names ranges of the
/// application's stream, from which the driver fills in the bytes.
#[derive(Debug)]
pub struct Connection<P> {
    id: u32,
    /// The first sequence number, the same in both directions.
    first: u32,
    phase: Phase,
    token: [u8; 24],
    parameters: Parameters,
    give_up: Duration,
    keep_alive: Duration,
    sender: Sender,
    receiver: Receiver<P>,
    statistics: Statistics,
    /// The opener's next `Open`, and how many there were.
    open_at: Option<Instant>,
    opens: u32,
    owes_accept: bool,
    owes_update: bool,
    wants_ping: bool,
    wants_reset: Option<ResetReason>,
    /// When the peer was last heard, or since when it is waited for.
    heard_at: Instant,
    asked_at: Instant,
    /// Whether this end closed first, and so stays to answer (RFC 9293, section 3.6).
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
    /// Opens a connection. `id` and `first` (the first sequence number) are drawn at random by the caller.
    #[must_use]
    pub fn open(now: Instant, id: u32, first: u32, config: &ArqConfig) -> Self {
        let mut connection = Self::new(now, id, first, config, Phase::Opening);
        connection.open_at = Some(now);
        connection
    }

    /// Accepts a connection that a peer opened with a valid token (see [`super::handshake::Listener`]).
    /// `open` is that frame; `config` says what this end adds to what the peer proposed.
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

    fn new(now: Instant, id: u32, first: u32, config: &ArqConfig, phase: Phase) -> Self {
        let sender = Sender::new(config, u64::from(first), 0);
        let receiver = Receiver::new(
            u64::from(first),
            config.receive_buffer,
            config.discipline().buffers_out_of_order(),
            u32::from(config.acknowledge_every),
            config.acknowledge_delay,
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
            heard_at: now,
            asked_at: now,
            closed_first: false,
            events: EventQueue::default(),
        }
    }

    /// Also keeps a histogram of round-trip times.
    pub fn record_round_trips(&mut self) {
        let opened_at = self.statistics.opened_at;
        self.statistics = Statistics {
            opened_at,
            ..Statistics::with_rtt_histogram()
        };
    }

    /// The number of the connection.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Adds `bytes` bytes to the stream. They leave when the protocol lets them.
    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    /// Says that the stream ends after what was written.
    pub fn finish(&mut self) {
        if !self.receiver.is_finished() {
            self.closed_first = true;
        }
        self.sender.finish();
    }

    /// The next payload that arrived in order.
    pub fn read(&mut self) -> Option<P> {
        self.receiver.read()
    }

    /// Asks the peer for a sign of life, now.
    pub fn ping(&mut self) {
        self.wants_ping = matches!(self.phase, Phase::Open { .. });
    }

    /// Ends the connection at once; the peer is told once.
    pub fn abort(&mut self) {
        if self.phase != Phase::Closed {
            self.wants_reset = Some(ResetReason::Aborted);
            self.phase = Phase::Closed;
        }
    }

    /// What was counted so far.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Takes the histogram of round-trip times, where one is kept; later samples are no longer recorded.
    pub fn take_round_trips(&mut self) -> Option<Box<Histogram<u64>>> {
        self.statistics.rtt.take()
    }

    /// Bytes written and not yet sent for the first time.
    #[must_use]
    pub const fn unsent(&self) -> u64 {
        self.sender.unsent()
    }

    /// The sending direction, for traces.
    #[must_use]
    pub const fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Whether the connection is over.
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

    fn handle_challenge(&mut self, now: Instant, frame: &Frame<P>) {
        let Some(handshake) = frame.handshake.as_deref() else {
            return;
        };
        match self.phase {
            Phase::Opening => {}
            // Our `Open` was lost until its token was too old; this is a fresh one.
            Phase::Open { confirmed: None } => {
                self.token = handshake.token;
                return;
            }
            _ => return,
        }
        self.token = handshake.token;
        let rtt = wire_clock(now).wrapping_sub(frame.echo);
        if rtt < 1 << 31 {
            self.sender.sample_rtt(now, Duration::from_micros(u64::from(rtt)));
        }
        self.sender.set_room(frame.window);
        self.phase = Phase::Open { confirmed: None };
        self.events.connected = true;
        self.open_at = Some(now);
        self.opens = 0;
    }

    fn handle_reset(&mut self, reason: ResetReason, echo: u32) {
        let all_but_the_end = self.receiver.is_finished() && self.sender.awaits_only_fin();
        // Data that overtook our `Open` met a peer that did not know us yet. Only what left after the
        // peer had confirmed can show that it has forgotten us.
        let is_stale = match self.phase {
            Phase::Open { confirmed: Some(at) } => (echo.wrapping_sub(wire_clock(at)) as i32) <= 0,
            Phase::Open { confirmed: None } | Phase::Opening => true,
            Phase::Lingering { .. } | Phase::Closed => false,
        };
        match (self.phase, reason) {
            (Phase::Closed, _) => {}
            (_, ResetReason::Unknown) if is_stale => {}
            // We have everything and only answer; a late reset from before the peer knew us changes nothing.
            (Phase::Lingering { .. }, _) => {}
            (Phase::Open { .. }, _) if all_but_the_end => {
                self.events.finished = true;
                self.close();
            }
            (_, ResetReason::Unknown) => self.fail(Error::Forgotten),
            (_, ResetReason::Aborted) => self.fail(Error::Aborted),
            (_, ResetReason::Busy) => self.fail(Error::Busy),
            (_, ResetReason::Refused) => self.fail(Error::Refused),
        }
    }

    fn close(&mut self) {
        self.phase = Phase::Closed;
        self.events.closed = true;
    }

    fn handle_stream_frame(&mut self, now: Instant, frame: Frame<P>) {
        let kind = frame.kind;
        let info = AckInfo {
            acknowledgement: frame.acknowledgement,
            window: frame.window,
            sack: &frame.sack,
            trigger: (kind == Kind::Ack).then_some((frame.sequence, frame.echo)),
        };
        self.sender
            .handle_acknowledgement(now, info, &mut self.statistics);
        match kind {
            Kind::Data | Kind::Fin => {
                let is_data = kind == Kind::Data;
                let new = self
                    .receiver
                    .accept(now, frame.sequence, frame.timestamp, frame.payload);
                self.statistics.packets_received += u64::from(is_data);
                self.statistics.duplicates_received += u64::from(is_data && !new);
                self.events.readable |= new && self.receiver.is_readable();
                self.events.peer_finished |= new && self.receiver.is_finished();
            }
            Kind::Ping => self.owes_update = true,
            _ => {}
        }
        self.check_finished(now);
    }

    fn check_finished(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Lingering { .. }) {
            self.linger(now);
            return;
        }
        if self.receiver.is_finished() && self.sender.is_finished() {
            self.events.finished = true;
            if self.closed_first {
                self.linger(now);
            } else {
                // Our end of stream also acknowledged the peer's, and has been acknowledged.
                self.close();
            }
        }
    }

    /// The end that closes first stays until it has heard nothing for a while, to answer a repeated
    /// end of stream, as TCP's TIME-WAIT does (RFC 9293, section 3.6.1). The while spans eight tries
    /// of a peer whose timer has backed off all the way (see [`super::timer::BACK_OFF_SHARE`]).
    fn linger(&mut self, now: Instant) {
        self.phase = Phase::Lingering {
            until: now + self.give_up / BACK_OFF_SHARE * 8,
        };
    }

    fn frame(&mut self, now: Instant, kind: Kind) -> Frame<StreamRange> {
        let mut frame = Frame::new(kind, self.id);
        frame.timestamp = wire_clock(now);
        self.receiver.describe(&mut frame);
        frame
    }

    fn poll_open(&mut self, now: Instant) -> Option<Frame<StreamRange>> {
        self.open_at.filter(|&at| at <= now)?;
        self.opens += 1;
        self.asked_at = now;
        let timeout = self.sender.timer().timeout();
        // Before the first sample RFC 6298's initial timeout holds, unless the timer is fixed.
        self.open_at = Some(now + timeout.doubled(self.opens - 1).min(INITIAL_TIMEOUT * 2));
        let mut frame = self.frame(now, Kind::Open);
        frame.sequence = self.first;
        frame.handshake = Some(Box::new(Handshake {
            token: self.token,
            parameters: self.parameters,
        }));
        Some(frame)
    }

    fn poll_control(&mut self, now: Instant) -> Option<Frame<StreamRange>> {
        if std::mem::take(&mut self.owes_accept) {
            let mut frame = self.frame(now, Kind::Accept);
            frame.handshake = Some(Box::new(Handshake {
                token: [0; 24],
                parameters: self.parameters,
            }));
            return Some(frame);
        }
        if self.receiver.owes_acknowledgement() {
            let mut frame = Frame::new(Kind::Ack, self.id);
            frame.timestamp = wire_clock(now);
            self.receiver.acknowledge(&mut frame);
            self.owes_update = false;
            self.statistics.acknowledgements_sent += 1;
            return Some(frame);
        }
        if std::mem::take(&mut self.owes_update) {
            return Some(self.frame(now, Kind::Update));
        }
        if std::mem::take(&mut self.wants_ping) {
            return Some(self.frame(now, Kind::Ping));
        }
        None
    }

    /// When packets that nobody acknowledges end the connection (the user timeout of RFC 9293,
    /// section 3.8.3). A peer whose window is shut keeps nobody waiting: nothing is outstanding then.
    fn stuck_deadline(&self) -> Option<Instant> {
        self.sender.stuck_since().map(|since| since + self.give_up)
    }

    /// When the peer's silence is noticed next: first by a question, at last by giving up.
    fn silence_deadline(&self) -> Instant {
        let ask = self.heard_at.max(self.asked_at) + self.keep_alive;
        ask.min(self.heard_at + self.give_up)
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
        if frame.kind != Kind::Reset {
            self.heard_at = now;
        }
        match frame.kind {
            Kind::Challenge => self.handle_challenge(now, &frame),
            Kind::Reset => self.handle_reset(ResetReason::from_code(frame.sequence), frame.echo),
            // A repeated `Open`: our `Accept` was lost.
            Kind::Open => self.owes_accept = true,
            _ if self.phase == Phase::Opening => {}
            kind => {
                if let Phase::Open {
                    confirmed: confirmed @ None,
                } = &mut self.phase
                {
                    *confirmed = Some(now);
                    self.open_at = None;
                }
                if kind != Kind::Accept {
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
        if self.heard_at + self.give_up <= now {
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
            self.asked_at = now;
        }
        self.receiver.handle_timeout(now);
        self.wants_ping |= self.sender.handle_timeout(now, &mut self.statistics);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Frame<StreamRange>> {
        match self.phase {
            Phase::Closed => {
                let reason = self.wants_reset.take()?;
                let mut frame = self.frame(now, Kind::Reset);
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
        let departure = self.sender.poll_departure(now, &mut self.statistics)?;
        let mut frame = self.frame(now, if departure.fin { Kind::Fin } else { Kind::Data });
        frame.sequence = truncate(departure.sequence);
        frame.payload = (!departure.fin).then_some(departure.range);
        Some(frame)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Closed => None,
            Phase::Lingering { until } => Some(until),
            Phase::Opening => Some(
                self.open_at
                    .unwrap_or(Instant::MAX)
                    .min(self.heard_at + self.give_up),
            ),
            Phase::Open { .. } => [
                Some(self.silence_deadline()),
                self.stuck_deadline(),
                self.open_at,
                self.sender.poll_timeout(),
                self.receiver.deadline(),
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
