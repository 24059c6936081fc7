//! One end of a TCP connection: application interface, events and timeouts.

mod close;
mod early;
mod ecn;
mod establish;
mod handshake;
mod input;
mod keepalive;
mod output;
mod subflow;

pub use handshake::MIN_SEGMENT;

use std::sync::Arc;

use foundation::{Duration, Instant};
use hdrhistogram::Histogram;

use self::early::EarlyData;
use self::handshake::Handshake;
use self::keepalive::KeepAlive;
use super::accurate_ecn::AccurateEcn;
use super::config::TcpConfig;
use super::ecn_mode::EcnOption;
use super::info::Info;
use super::parameters::Parameters;
use super::receiver::Receiver;
use super::segment::{Flags, Outgoing, Segment};
use super::sender::{Sender, SenderSnapshot};
use super::sequence::SequenceNumber;
use super::state::State;
use crate::congestion::Controller;
use crate::machine::Machine;
use crate::statistics::Statistics;

/// Why a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Error {
    /// The peer answered the SYN with a reset.
    #[error("connection refused: no listener at this address and port")]
    Refused,
    /// The peer reset the connection.
    #[error("connection reset by the peer")]
    Reset,
    /// The peer did not answer within the time limit.
    #[error("connection timed out: the peer does not answer")]
    TimedOut,
}

/// Event for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection is established.
    Connected,
    /// New data is readable.
    Readable,
    /// The send buffer has room again after a partial write.
    Writable,
    /// The peer closed its stream; no data follows the readable bytes.
    PeerFinished,
    /// Both streams are closed, and the peer acknowledged the end of this one.
    Finished,
    /// The connection is closed: it neither sends nor accepts segments.
    Closed,
    /// The connection failed and is closed.
    Failed(Error),
}

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    state: State,
    parameters: Arc<Parameters>,
    /// Initial sequence numbers: this end's and the peer's.
    initial: SequenceNumber,
    peer_initial: SequenceNumber,
    sender: Sender,
    receiver: Receiver,
    handshake: Option<Box<Handshake>>,
    /// Negotiated options.
    sack: bool,
    timestamps: bool,
    /// ECN with the feedback of RFC 3168 or RFC 8257.
    ecn: bool,
    /// ECN with accurate feedback.
    accurate: Option<Box<AccurateEcn>>,
    peer_scale: u8,
    scale: u8,
    /// MSS that the last SYN of this end carried; before that, the configured one.
    announced_mss: u32,
    /// MSS of the path, from ICMP errors.
    path_mss: u32,
    /// TS.Recent of RFC 7323, and when it was set.
    recent_timestamp: u32,
    recent_at: Instant,
    /// ACKs carry ECE: a segment was marked Congestion Experienced, and the peer has not sent CWR since. With DCTCP's
    /// feedback: whether the last segment was marked.
    echo_congestion: bool,
    /// Segment to send before all others: a reset, or an ACK of the segments before a change of marks.
    urgent: Option<Box<Segment>>,
    /// End of TIME-WAIT or of a closed FIN-WAIT-2.
    lingers_until: Instant,
    /// The payload of the last segment was accepted.
    took_payload: bool,
    /// The application called `close` and no longer reads.
    closed: bool,
    keep_alive: Option<Box<KeepAlive>>,
    /// Earliest time of the next challenge ACK (RFC 5961, section 7).
    next_challenge: Instant,
    /// State of Fast Open and T/TCP; `None` for all other connections.
    early: Option<Box<EarlyData>>,
    events: Events,
    statistics: Statistics,
}

/// Pending events, one bit each. Each is reported once, in the order of a connection's life.
#[derive(Debug, Default)]
struct Events {
    pending: u8,
    /// Reason of a pending [`Events::FAILED`].
    error: Option<Error>,
}

impl Events {
    const CONNECTED: u8 = 1;
    const READABLE: u8 = 1 << 1;
    const WRITABLE: u8 = 1 << 2;
    const PEER_FINISHED: u8 = 1 << 3;
    const FINISHED: u8 = 1 << 4;
    const FAILED: u8 = 1 << 5;
    const CLOSED: u8 = 1 << 6;

    #[inline]
    fn next(&mut self) -> Option<Event> {
        if self.pending == 0 {
            return None;
        }
        let first = self.pending & self.pending.wrapping_neg();
        self.pending ^= first;
        Some(match first {
            Self::CONNECTED => Event::Connected,
            Self::READABLE => Event::Readable,
            Self::WRITABLE => Event::Writable,
            Self::PEER_FINISHED => Event::PeerFinished,
            Self::FINISHED => Event::Finished,
            Self::FAILED => Event::Failed(self.error?),
            _ => Event::Closed,
        })
    }
}

impl Connection {
    /// Appends `bytes` to this end's stream and returns how many fit into the send buffer: none after
    /// [`finish`](Self::finish) or on a closed connection.
    pub fn write(&mut self, now: Instant, bytes: u64) -> u64 {
        self.append(now, bytes, false)
    }

    /// As [`write`](Self::write), but delays a partial segment for at most an RTO because more writes follow (`MSG_MORE`).
    pub fn write_more(&mut self, now: Instant, bytes: u64) -> u64 {
        self.append(now, bytes, true)
    }

    /// Ends a record at the last byte written: no segment carries bytes of two records, and its last segment has PSH
    /// (`MSG_EOR` of Linux).
    pub fn end_record(&mut self) {
        self.sender.end_record();
    }

    /// Sets the maximum retransmissions of a SYN (`TCP_SYNCNT`).
    pub fn set_syn_retries(&mut self, retries: u32) {
        Arc::make_mut(&mut self.parameters).syn_retries = retries;
    }

    /// Sets the minimum interval between challenge ACKs (RFC 5961, section 7). Default: 500 ms.
    pub fn set_challenge_interval(&mut self, interval: Duration) {
        Arc::make_mut(&mut self.parameters).challenge_interval = interval;
    }

    /// Sets the use of the AccECN option (`tcp_ecn_option`).
    pub fn set_ecn_option(&mut self, option: EcnOption) {
        Arc::make_mut(&mut self.parameters).ecn_option = option;
    }

    /// Sets the payload of the segments inside arriving packets, where a device merges several into one
    /// (`gso_size` of Linux). Default: the announced MSS.
    pub fn set_merged_segment(&mut self, bytes: u16) {
        self.receiver.limit_segment(bytes);
    }

    fn append(&mut self, _now: Instant, bytes: u64, more: bool) -> u64 {
        if self.sender.is_finishing() || !self.may_write() {
            return 0;
        }
        self.sender.write(bytes, more)
    }

    /// Whether the application may write: the connection and this end's stream are open.
    #[must_use]
    pub fn may_write(&self) -> bool {
        matches!(
            self.state,
            State::SynSent | State::SynReceived | State::Established | State::CloseWait
        ) && !self.sender.is_finishing()
    }

    /// Announces a write as soon as the connection is open, as by a blocked call: with profile linux, the ACK of the SYN-ACK
    /// waits for its data.
    pub fn expect_write(&mut self) {
        if let Some(handshake) = &mut self.handshake {
            handshake.writer_waits = true;
        }
    }

    /// Returns the free bytes of the send buffer.
    #[must_use]
    pub fn writable(&self) -> u64 {
        self.sender.room()
    }

    /// Returns the bytes that arrived in order and are unread.
    #[inline]
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    /// Returns the bytes that arrived above a gap.
    #[must_use]
    pub fn early_bytes(&self) -> u64 {
        self.early().map(|(start, end)| end - start).sum()
    }

    /// Returns the ranges that arrived above a gap as offsets of the stream, the lowest first.
    pub(crate) fn early(&self) -> impl Iterator<Item = (u64, u64)> {
        self.receiver.early()
    }

    /// Reads up to `bytes` and returns how many. Reading opens the receive window.
    #[inline]
    pub fn read(&mut self, now: Instant, bytes: u64) -> u64 {
        self.receiver.read(now, bytes)
    }

    /// Disables or enables Nagle's algorithm (`TCP_NODELAY`). Disabling it also sends data that waits.
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.sender.set_nodelay(nodelay);
    }

    /// Delays partial segments while set (`TCP_CORK`), for at most an RTO.
    pub fn set_cork(&mut self, cork: bool) {
        self.sender.set_cork(cork);
    }

    /// Sets how long data may stay unacknowledged before the connection fails (RFC 9293, section 3.9.1;
    /// `TCP_USER_TIMEOUT`).
    pub fn set_user_timeout(&mut self, timeout: Duration) {
        Arc::make_mut(&mut self.parameters).user_timeout = timeout;
        self.sender.set_user_timeout(timeout);
    }

    /// Sets the memory of the send buffer in bytes and stops its autotuning (`SO_SNDBUF`). Buffered data stays.
    pub fn set_send_buffer(&mut self, bytes: u64) {
        self.sender.set_send_buffer(bytes);
    }

    /// Returns the state.
    #[inline]
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Returns the counters of sent and received segments.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Returns how long the receive window and the send buffer, not the congestion window, limited this end's stream until
    /// `now` (`tcpi_rwnd_limited`, `tcpi_sndbuf_limited`).
    #[must_use]
    pub fn limited_times(&self, now: Instant) -> (Duration, Duration) {
        self.sender.limited_times(now, &self.statistics)
    }

    /// Returns the state in which the sender decides, for traces.
    #[must_use]
    pub fn sender_snapshot(&self) -> SenderSnapshot {
        self.sender.snapshot(&self.statistics)
    }

    /// Returns a snapshot of the connection.
    #[must_use]
    pub fn info(&self) -> Info {
        Info {
            announced_mss: self.announced_mss,
            receive_window: self.receiver.window(),
            receive_segment: self.receiver.segment(),
            bytes_received: self.receiver.received(),
            ack_delay: self.receiver.acks.delay(),
            sack: self.sack,
            timestamps: self.timestamps,
            ecn: self.ecn || self.accurate.is_some(),
            accurate_ecn: self.accurate.as_deref().map(AccurateEcn::info),
            send_scale: self.peer_scale,
            receive_scale: self.scale,
            ..self.sender.info(self.state)
        }
    }

    /// Takes the histogram of round-trip times, if there is one, and stops recording.
    pub fn take_round_trips(&mut self) -> Option<Box<Histogram<u64>>> {
        self.statistics.take_round_trips()
    }

    /// Starts recording a histogram of round-trip times in the statistics.
    pub fn record_round_trips(&mut self) {
        self.statistics.rtt = Statistics::with_rtt_histogram().rtt;
    }

    /// Returns the congestion controller.
    #[must_use]
    pub fn controller(&self) -> &dyn Controller {
        self.sender.controller()
    }

    /// Replaces the congestion controller of an established connection by one that starts now.
    pub fn set_controller(&mut self, controller: Box<dyn Controller>) {
        self.sender.set_controller(controller);
    }

    /// Takes a key of [`TcpConfig::LIVE_KEYS`] over. A running timer keeps its time; the next one has the new duration. A
    /// controller starts now.
    pub fn reconfigure(&mut self, key: &str, config: &TcpConfig) {
        if key == "congestion" {
            return self.restart_controller(config);
        }
        let new = config.parameters();
        let own = Arc::make_mut(&mut self.parameters);
        own.min_rto = new.min_rto;
        (own.delayed_ack, own.adaptive_delay, own.ack_every) =
            (new.delayed_ack, new.adaptive_delay, new.ack_every);
        self.sender.set_minimum_timeout(own.min_rto);
        self.receiver.acks.reconfigure(own);
    }

    fn restart_controller(&mut self, config: &TcpConfig) {
        if let Some(handshake) = &mut self.handshake {
            handshake.congestion.clone_from(&config.congestion);
        }
        let (profile, first) = (config.profile, config.initial_window);
        let controller = handshake::build(config.congestion(), profile, first, self.segment());
        self.set_controller(controller);
    }

    /// Returns the payload bytes of a full segment.
    #[must_use]
    pub const fn segment(&self) -> u32 {
        self.sender.segment()
    }

    /// Returns the stream offset of a sequence number of the peer: 0 is the peer's first byte, -1 its SYN.
    #[must_use]
    pub fn receive_offset(&self, sequence: SequenceNumber) -> i64 {
        let near = self.receiver.next();
        let distance = sequence - self.peer_initial.at(near);
        near as i64 + i64::from(distance as i32) - 1
    }

    /// Returns the stream offset of a segment's payload: 0 for the payload of a SYN.
    #[must_use]
    pub fn payload_offset(&self, segment: &Segment) -> i64 {
        if segment.has(Flags::SYN) {
            return 0;
        }
        self.receive_offset(segment.sequence)
    }

    /// Returns the stream offset up to which the peer acknowledged this end's stream. The caller may discard the bytes
    /// before it. One past the last byte once the FIN is acknowledged.
    #[must_use]
    pub const fn acknowledged(&self) -> u64 {
        self.sender.una().saturating_sub(1)
    }

    /// Whether the connection accepted the payload of the last segment. The caller then stores the bytes between the read
    /// position and [`receive_limit`](Self::receive_limit).
    #[must_use]
    pub const fn took_payload(&self) -> bool {
        self.took_payload
    }

    /// Returns the offset in the peer's stream at which the advertised window ends. Later bytes are discarded.
    #[must_use]
    pub fn receive_limit(&self) -> u64 {
        self.receiver.edge().saturating_sub(1)
    }

    /// Whether a sequence number was sent and is unacknowledged: the condition for accepting an ICMP error that quotes it
    /// (RFC 5927, section 4.1).
    #[must_use]
    pub fn is_outstanding(&self, sequence: SequenceNumber) -> bool {
        let una = self.sender.una();
        // The SYN is outstanding until the end of the handshake.
        let from = if self.handshake.is_some() { 0 } else { una };
        sequence
            .expand(self.initial, una)
            .is_some_and(|position| (from..self.sender.next().max(una + 1)).contains(&position))
    }

    /// Reduces the segment size to a path MTU of `mtu` bytes (RFC 1191; RFC 8201) and retransmits longer segments. Values
    /// below 68 bytes, which every router forwards (RFC 791), count as 68. A full segment keeps a payload of at least
    /// [`MIN_SEGMENT`] bytes even where [`ReservedOptions`](crate::tcp::ReservedOptions) leave less room.
    pub fn handle_path_mtu(&mut self, _now: Instant, mtu: u32) {
        let mss = mtu.max(68) - 40;
        let falls = mss < self.path_mss.min(self.parameters.mss);
        self.path_mss = self.path_mss.min(mss);
        if falls && self.awaits_syn_data() {
            // RFC 7413, section 4.2.1: repeat the SYN without data.
            self.repeat_resized_syn();
        }
        if self.handshake.is_none() || self.is_half_synchronized() {
            let options = self.segment_options();
            self.sender
                .shrink_segment(Self::payload_size(&self.parameters, self.path_mss, options));
        }
    }

    /// Handles an ICMP error that reports an unreachable host, port or protocol. Returns whether the connection closed.
    /// `is_accepted`: the application has accepted the connection.
    ///
    /// With profile linux, a connection closes without a segment during its handshake, and one that Fast Open established early
    /// if it is not accepted (`tcp_v4_err` of Linux). RFC 9293, section 3.9.2.2, forbids this for the codes 0, 1 and 5
    /// (MUST-56); RFC 5461 describes this deviation. With other profiles, the message has no effect.
    pub fn handle_unreachable(&mut self, is_accepted: bool) -> bool {
        let is_kept = is_accepted && self.is_half_synchronized();
        let opens = self.handshake.is_some() && !is_kept && self.parameters.is_linux();
        if opens {
            self.become_closed();
        }
        opens
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
        self.handle_segment(now, &segment);
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
            .min(self.receiver.acks.timeout())
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
    /// Makes an event of [`Events`] pending.
    #[inline]
    fn emit(&mut self, event: u8) {
        self.events.pending |= event;
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
        if self.sender.timeout() <= now && self.sender.on_timeout(now, &mut self.statistics) {
            self.fail(Error::TimedOut);
            return;
        }
        self.receiver.acks.on_timeout(now, self.sender.rtt().timeout());
        self.on_keep_alive_timeout(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_small() {
        // A large simulation has millions of ends.
        assert!(size_of::<Connection>() <= 1456, "{}", size_of::<Connection>());
    }

    #[test]
    fn connections_with_the_same_settings_share_them() {
        let config = TcpConfig::default();
        let open = |config: &TcpConfig| Connection::open(Instant::ZERO, config, 0);
        let (mut first, second) = (open(&config), open(&config));
        assert!(Arc::ptr_eq(&first.parameters, &second.parameters));
        first.set_user_timeout(Duration::from_secs(1));
        assert_ne!(first.parameters, second.parameters);
        let other = TcpConfig {
            sack: Some(false),
            ..config
        };
        assert_ne!(open(&other).parameters, second.parameters);
    }
}
