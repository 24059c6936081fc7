//! One end of a TCP connection.

mod close;
mod early;
mod establish;
mod handshake;
mod info;
mod input;
mod keepalive;
mod output;
mod subflow;

pub use handshake::LEAST_SEGMENT;
pub use info::Info;

use foundation::{Duration, Instant};
use hdrhistogram::Histogram;

use self::early::EarlyData;
use self::handshake::Handshake;
use self::keepalive::KeepAlive;
use super::profile::Parameters;
use super::receiver::Receiver;
use super::segment::{Flags, Outgoing, Segment};
use super::sender::Sender;
use super::sequence::SequenceNumber;
use super::ttcp::Count;
use crate::congestion::Controller;
use crate::machine::Machine;
use crate::statistics::Statistics;

/// State of a connection (RFC 9293, section 3.3.2). LISTEN is its owner's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// No connection.
    Closed,
    /// A SYN was sent.
    SynSent,
    /// A SYN was received and answered.
    SynReceived,
    /// Data flows.
    Established,
    /// The stream was ended here; the FIN is not acknowledged.
    FinWait1,
    /// The FIN is acknowledged; the peer's stream goes on.
    FinWait2,
    /// The peer's stream has ended; this one goes on.
    CloseWait,
    /// Both streams were ended at once; the FIN is not acknowledged.
    Closing,
    /// The peer's stream had ended before this one; the FIN is not acknowledged.
    LastAck,
    /// All is done; late segments of the connection die out.
    TimeWait,
}

/// Why a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Error {
    /// The SYN was answered with a reset.
    #[error("connection refused: nobody listens there")]
    Refused,
    /// The peer reset the connection.
    #[error("connection reset by the peer")]
    Reset,
    /// Nothing was heard of the peer for too long.
    #[error("connection timed out: the peer does not answer")]
    TimedOut,
}

/// What the application is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is done.
    Connected,
    /// There is more to read.
    Readable,
    /// A write was cut short; there is room in the send buffer again.
    Writable,
    /// The peer's stream has ended: what is readable now is the last of it.
    PeerFinished,
    /// Both streams have ended, and the peer has acknowledged this one's end.
    Finished,
    /// The connection is gone: nothing more will leave or be accepted.
    Closed,
    /// The connection failed; it is gone.
    Failed(Error),
}

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    state: State,
    parameters: Parameters,
    /// Initial sequence numbers: this end's and the peer's.
    initial: SequenceNumber,
    peer_initial: SequenceNumber,
    sender: Sender,
    receiver: Receiver,
    handshake: Option<Box<Handshake>>,
    /// Options that are in use.
    sack: bool,
    timestamps: bool,
    ecn: bool,
    peer_scale: u8,
    scale: u8,
    /// The MSS that the path takes, as far as is known.
    path_mss: u32,
    /// TS.Recent of RFC 7323, and when it was set.
    recent_timestamp: u32,
    recent_at: Instant,
    /// The codepoint Congestion Experienced was seen, and is echoed until the peer says CWR.
    echo_congestion: bool,
    /// A reset to be sent.
    reset: Option<Segment>,
    /// When TIME-WAIT or a closed FIN-WAIT-2 ends.
    lingers_until: Instant,
    /// The payload of the last segment was taken.
    took_payload: bool,
    /// `close` was called: nobody reads any more.
    closed: bool,
    /// A write did not fit.
    write_blocked: bool,
    keep_alive: Option<Box<KeepAlive>>,
    /// When an acknowledgement last answered an unacceptable segment (RFC 5961, section 7).
    challenged_at: Option<Instant>,
    /// Connection counts, where both ends speak T/TCP: this end's and the peer's (CCsend and CCrecv of RFC 1644).
    count: Option<Count>,
    peer_count: Option<Count>,
    /// With Fast Open or T/TCP.
    early: Option<Box<EarlyData>>,
    events: Events,
    statistics: Statistics,
}

/// Events not yet told. Each is told once, in the order of the connection's life.
#[derive(Debug, Default)]
struct Events {
    connected: bool,
    readable: bool,
    writable: bool,
    peer_finished: bool,
    finished: bool,
    closed: bool,
    failed: Option<Error>,
    any: bool,
}

impl Events {
    fn next(&mut self) -> Option<Event> {
        if !self.any {
            return None;
        }
        for (flag, event) in [
            (&mut self.connected, Event::Connected),
            (&mut self.readable, Event::Readable),
            (&mut self.writable, Event::Writable),
            (&mut self.peer_finished, Event::PeerFinished),
            (&mut self.finished, Event::Finished),
        ] {
            if std::mem::take(flag) {
                return Some(event);
            }
        }
        if let Some(error) = self.failed.take() {
            return Some(Event::Failed(error));
        }
        if std::mem::take(&mut self.closed) {
            return Some(Event::Closed);
        }
        self.any = false;
        None
    }
}

impl Connection {
    /// The application appends `bytes` to its stream; gives how many the send buffer took.
    ///
    /// Nothing is taken after [`finish`](Self::finish) or where the connection is gone.
    pub fn write(&mut self, now: Instant, bytes: u64) -> u64 {
        self.append(now, bytes, false)
    }

    /// As [`write`](Self::write), and the application will write on at once: a segment that is not full
    /// waits for it (`MSG_MORE`), for a retransmission timeout at the most.
    pub fn write_more(&mut self, now: Instant, bytes: u64) -> u64 {
        self.append(now, bytes, true)
    }

    fn append(&mut self, _now: Instant, bytes: u64, more: bool) -> u64 {
        if self.sender.is_finishing() || !self.may_write() {
            return 0;
        }
        let taken = self.sender.write(bytes, more);
        self.write_blocked = taken < bytes;
        taken
    }

    /// Whether the application may write: the connection lives, and this end's stream was not ended.
    #[must_use]
    pub fn may_write(&self) -> bool {
        matches!(
            self.state,
            State::SynSent | State::SynReceived | State::Established | State::CloseWait
        ) && !self.sender.is_finishing()
    }

    /// Bytes that the send buffer has room for.
    #[must_use]
    pub fn writable(&self) -> u64 {
        self.sender.room()
    }

    /// Bytes that have arrived in order and were not read.
    #[inline]
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    /// The application takes up to `bytes`; gives how many. That opens the window.
    #[inline]
    pub fn read(&mut self, now: Instant, bytes: u64) -> u64 {
        self.receiver.read(now, bytes)
    }

    /// Small segments leave at once (`TCP_NODELAY`), what waits included, or wait for more (Nagle).
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.sender.set_nodelay(nodelay);
    }

    /// Nothing but full segments leaves while this is set (`TCP_CORK`), for a retransmission timeout at the most.
    pub fn set_cork(&mut self, cork: bool) {
        self.sender.set_cork(cork);
    }

    /// Data unacknowledged for so long ends the connection (RFC 9293, section 3.9.1; `TCP_USER_TIMEOUT`).
    pub fn set_user_timeout(&mut self, timeout: Duration) {
        self.parameters.user_timeout = timeout;
        self.sender.set_user_timeout(timeout);
    }

    /// The send buffer has so many bytes of memory from now on, and grows no more (`SO_SNDBUF`); what it holds stays.
    pub fn set_send_buffer(&mut self, bytes: u64) {
        self.sender.set_send_buffer(bytes);
    }

    /// The state.
    #[inline]
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Counters of what was sent and received.
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

    /// The congestion controller.
    #[must_use]
    pub fn controller(&self) -> &dyn Controller {
        self.sender.controller()
    }

    /// The stream offset that an arriving segment's sequence number stands for: 0 is the peer's first byte.
    /// Negative for what lies before it (the SYN is at -1).
    #[must_use]
    pub fn receive_offset(&self, sequence: SequenceNumber) -> i64 {
        let near = self.receiver.next();
        let distance = sequence - self.peer_initial.at(near);
        near as i64 + i64::from(distance as i32) - 1
    }

    /// The stream offset of a segment's payload: that behind a SYN begins the stream.
    #[must_use]
    pub fn payload_offset(&self, segment: &Segment) -> i64 {
        if segment.has(Flags::SYN) {
            return 0;
        }
        self.receive_offset(segment.sequence)
    }

    /// The stream offset up to which the peer has acknowledged everything: a buffer of the bytes need not keep what lies
    /// before it. Beyond the last byte once the FIN is acknowledged.
    #[must_use]
    pub const fn acknowledged(&self) -> u64 {
        self.sender.una().saturating_sub(1)
    }

    /// Whether the payload of the segment that was handed over last has a place in the stream: a buffer of the bytes
    /// keeps it, as far as it lies between what was read and [`receive_limit`](Self::receive_limit).
    #[must_use]
    pub const fn took_payload(&self) -> bool {
        self.took_payload
    }

    /// The stream offset of the peer at which the window that was offered ends: nothing beyond it is taken.
    #[must_use]
    pub fn receive_limit(&self) -> u64 {
        self.receiver.edge().saturating_sub(1)
    }

    /// Whether a sequence number is of something sent and not yet acknowledged, as that of a packet which an ICMP error
    /// quotes must be (RFC 5927, section 4.1).
    #[must_use]
    pub fn is_outstanding(&self, sequence: SequenceNumber) -> bool {
        let una = self.sender.una();
        sequence
            .expand(self.initial, una)
            .is_some_and(|position| (una..self.sender.next().max(una + 1)).contains(&position))
    }

    /// A router could not forward packets of more than `mtu` bytes (RFC 1191; RFC 8201): segments become shorter,
    /// and longer ones are retransmitted. An `mtu` below the 68 bytes that every router forwards (RFC 791) counts as 68. A
    /// full segment keeps a payload of [`LEAST_SEGMENT`] bytes, even where the options of its owner leave no room for it.
    pub fn handle_path_mtu(&mut self, _now: Instant, mtu: u32) {
        self.path_mss = self.path_mss.min(mtu.max(68) - 40);
        if self.handshake.is_none() || self.is_half_synchronized() {
            self.sender.shrink_segment(Self::payload_size(
                &self.parameters,
                self.path_mss,
                self.timestamps,
            ));
        }
    }

    fn is_synchronized(&self) -> bool {
        !matches!(self.state, State::Closed | State::SynSent | State::SynReceived)
    }
}

impl Machine for Connection {
    type Incoming = Segment;
    type Outgoing = Outgoing;
    type Event = Event;

    #[inline]
    fn handle_frame(&mut self, now: Instant, segment: Segment) {
        self.on_segment(now, &segment);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.on_timeout(now);
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing> {
        self.next_segment(now)
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        let mut at = self
            .sender
            .timeout()
            .min(self.receiver.timeout())
            .min(self.lingers_until);
        if let Some(handshake) = &self.handshake {
            at = at.min(handshake.timeout());
        }
        if let Some(keep_alive) = &self.keep_alive {
            at = at.min(keep_alive.timeout());
        }
        (at != Instant::MAX).then_some(at)
    }

    #[inline]
    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}

impl Connection {
    fn emit(&mut self, set: impl FnOnce(&mut Events)) {
        set(&mut self.events);
        self.events.any = true;
    }

    fn on_timeout(&mut self, now: Instant) {
        if self.lingers_until <= now {
            self.become_closed();
            return;
        }
        self.on_handshake_timeout(now);
        if self.state == State::Closed {
            return;
        }
        if self.sender.timeout() <= now
            && self.sender.on_timeout(now, &mut self.statistics) == super::sender::TimeoutVerdict::GivenUp
        {
            self.fail(Error::TimedOut);
            return;
        }
        self.receiver.on_timeout(now, self.sender.rtt().timeout());
        self.on_keep_alive_timeout(now);
    }
}
