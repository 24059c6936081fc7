//! Opening: the SYNs and option negotiation (RFC 9293, sections 3.5 and 3.10.7.3; RFC 7323; RFC 3168, section 6.1.1).

use std::sync::Arc;

use foundation::Instant;

use super::keepalive::KeepAlive;
use super::{Connection, Error, Events};
use crate::congestion::{CongestionConfig, ConnectionContext, Controller};
use crate::statistics::Statistics;
use crate::tcp::config::{Profile, TcpConfig};
use crate::tcp::opening::Opening;
use crate::tcp::options::{DEFAULT_MSS, Options, Timestamps, timestamps_room};
use crate::tcp::parameters::{Parameters, ReservedOptions};
use crate::tcp::receiver::Receiver;
use crate::tcp::segment::{Flags, Outgoing, Segment};
use crate::tcp::sender::{HandshakeResult, Sender};
use crate::tcp::sequence::SequenceNumber;
use crate::tcp::state::State;

/// Maximum window scale shift (RFC 7323, section 2.3).
const MAX_SCALE: u8 = 14;
/// Minimum payload of a full segment in bytes, whatever the path and the peer announce.
pub const MIN_SEGMENT: u32 = 8;
/// Maximum retransmissions of a SYN-ACK (Linux).
const SYN_ACK_RETRIES: u32 = 5;
/// Retransmissions of a SYN before exponential back-off starts, which do not count against the limit (Linux's
/// `tcp_syn_linear_timeouts`).
const LINEAR_SYN_RETRIES: u32 = 4;
/// Retransmissions of a SYN or SYN-ACK that keep the initial window (Linux's `tcp_init_transfer`).
const UNPENALIZED_SYN_RETRIES: u32 = 1;

/// State that a connection needs only until it is established.
#[derive(Debug)]
pub struct Handshake {
    /// Number of SYNs or SYN-ACKs sent, and when the last one left.
    pub(super) sent: u32,
    pub(super) sent_at: Instant,
    /// When the first one left.
    first_at: Instant,
    /// The next one is due now.
    pub(super) pending: bool,
    at: Instant,
    pub(super) congestion: Option<CongestionConfig>,
    pub(super) initial_window: Option<u32>,
    /// This end opened the connection.
    active: bool,
    /// A blocked call writes when the connection is open.
    pub(super) writer_waits: bool,
    /// Number of SYNs repeated because the path MTU fell, which are no losses.
    resized: u32,
    /// The peer's SYN offered window scaling.
    scaled: bool,
    pub(super) peer_mss: u32,
}

impl Handshake {
    pub const fn timeout(&self) -> Instant {
        self.at
    }

    /// Returns the number of SYNs or SYN-ACKs sent, without those repeated for a smaller path MTU.
    pub(super) const fn attempts(&self) -> u32 {
        self.sent - self.resized
    }

    /// Delays the SYN-ACK until there is data for it, but not beyond `until`.
    pub const fn delay(&mut self, until: Instant) {
        self.pending = false;
        self.at = until;
    }
}

/// Returns the shift with which 16 bits represent a window of `buffer` bytes.
fn scale_for(buffer: u64) -> u8 {
    let bits = u64::BITS - buffer.leading_zeros();
    (bits.saturating_sub(16) as u8).min(MAX_SCALE)
}

/// Builds the configured controller with the rules of the profile.
pub(super) fn build(
    congestion: &CongestionConfig,
    profile: Profile,
    initial_window: Option<u32>,
    segment: u32,
) -> Box<dyn Controller> {
    congestion.build_for(&ConnectionContext {
        segment: u64::from(segment),
        rules: profile.rules(),
        initial_window: initial_window.map(u64::from),
    })
}

impl Connection {
    /// Opens a connection. The next `poll_transmit` returns its SYN, with sequence number `initial_sequence`.
    #[must_use]
    pub fn open(now: Instant, config: &TcpConfig, initial_sequence: u32) -> Self {
        Self::open_reserving(now, config, initial_sequence, ReservedOptions::default())
    }

    /// As [`open`](Self::open), for a caller that adds options to the segments.
    #[must_use]
    pub fn open_reserving(
        now: Instant,
        config: &TcpConfig,
        initial_sequence: u32,
        reserved: ReservedOptions,
    ) -> Self {
        let mut connection = Self::new(now, config, initial_sequence, None, reserved);
        connection.state = State::SynSent;
        connection
    }

    /// As [`open`](Self::open), with the result of [`HostMemory::opening`](crate::tcp::HostMemory::opening): data written
    /// before the next `poll_transmit` may leave with the SYN.
    #[must_use]
    pub fn open_with(now: Instant, config: &TcpConfig, initial_sequence: u32, opening: Opening) -> Self {
        let mut connection = Self::open(now, config, initial_sequence);
        connection.set_opening(opening);
        connection
    }

    /// Answers a SYN that reached a listener (RFC 9293, section 3.10.7.2). For any other segment, returns a closed
    /// connection that answers it with a reset.
    #[must_use]
    pub fn accept(now: Instant, config: &TcpConfig, initial_sequence: u32, syn: &Segment) -> Self {
        Self::accept_reserving(now, config, initial_sequence, syn, ReservedOptions::default())
    }

    /// As [`accept`](Self::accept), with the result of [`HostMemory::admission`](crate::tcp::HostMemory::admission): the
    /// connection may accept the data of the SYN at once.
    #[must_use]
    pub fn accept_with(
        now: Instant,
        config: &TcpConfig,
        initial_sequence: u32,
        syn: &Segment,
        opening: Opening,
    ) -> Self {
        let mut connection = Self::accept(now, config, initial_sequence, syn);
        if connection.state == State::SynReceived {
            connection.set_opening(opening);
            connection.accept_syn_data(now, syn);
        }
        connection
    }

    /// As [`accept`](Self::accept), for a caller that adds options to the segments.
    #[must_use]
    pub fn accept_reserving(
        now: Instant,
        config: &TcpConfig,
        initial_sequence: u32,
        syn: &Segment,
        reserved: ReservedOptions,
    ) -> Self {
        let mss = syn.options.mss.map_or(DEFAULT_MSS, u32::from);
        let mut connection = Self::new(now, config, initial_sequence, Some(mss), reserved);
        if !syn.has(Flags::SYN) || syn.has(Flags::RST | Flags::ACK) {
            connection.answer_with_reset(syn);
            connection.state = State::Closed;
            return connection;
        }
        connection.state = State::SynReceived;
        connection.on_syn_options(now, syn);
        connection
    }

    /// `peer_mss`: MSS of the peer's SYN; `None` for an active open.
    fn new(
        now: Instant,
        config: &TcpConfig,
        initial_sequence: u32,
        peer_mss: Option<u32>,
        reserved: ReservedOptions,
    ) -> Self {
        let parameters = Parameters {
            reserved,
            ..config.parameters()
        };
        let parameters = parameters.shared();
        let active = peer_mss.is_none();
        let peer_mss = peer_mss.unwrap_or(DEFAULT_MSS.max(parameters.mss));
        let scale = scale_for(parameters.receive_buffer);
        let start = HandshakeResult {
            segment: Self::payload_size(&parameters, peer_mss, timestamps_room(parameters.timestamps)),
            sack: parameters.sack,
            timestamps: parameters.timestamps,
            ecn: false,
            clock_offset: initial_sequence,
            window: 0,
            window_from: 0,
        };
        let controller = build(
            config.congestion(),
            config.profile,
            config.initial_window,
            start.segment,
        );
        let handshake = Handshake {
            sent: 0,
            sent_at: now,
            first_at: now,
            pending: true,
            at: Instant::MAX,
            congestion: config.congestion.clone(),
            initial_window: config.initial_window,
            active,
            writer_waits: false,
            resized: 0,
            scaled: false,
            peer_mss,
        };
        Self {
            state: State::Closed,
            initial: SequenceNumber(initial_sequence),
            peer_initial: SequenceNumber(0),
            sender: Sender::new(now, Arc::clone(&parameters), controller, start),
            receiver: Receiver::new(&parameters, scale),
            handshake: Some(Box::new(handshake)),
            sack: parameters.sack,
            timestamps: parameters.timestamps,
            ecn: false,
            accurate: None,
            peer_scale: 0,
            scale,
            announced_mss: parameters.mss,
            path_mss: u32::MAX,
            recent_timestamp: 0,
            recent_at: now,
            echo_congestion: false,
            urgent: None,
            lingers_until: Instant::MAX,
            took_payload: false,
            closed: false,
            keep_alive: parameters
                .keep_alive
                .map(|idle| Box::new(KeepAlive::new(now, idle))),
            next_challenge: Instant::ZERO,
            early: None,
            events: Events::default(),
            statistics: Statistics {
                opened_at: Some(now),
                ..Statistics::default()
            },
            parameters,
        }
    }

    /// Returns the payload of a full segment: the smallest MSS of both ends and the path without the options of every
    /// segment (RFC 6691), at least [`MIN_SEGMENT`]. `options`: bytes of them, without those that the caller adds.
    pub(super) fn payload_size(parameters: &Parameters, peer_mss: u32, options: u32) -> u32 {
        let options = parameters.reserved.data + options;
        parameters
            .mss
            .min(peer_mss)
            .saturating_sub(options)
            .max(MIN_SEGMENT)
    }

    /// Negotiates the options with the peer's SYN or SYN-ACK.
    pub(super) fn on_syn_options(&mut self, now: Instant, syn: &Segment) {
        self.peer_initial = syn.sequence;
        let options = &syn.options;
        self.sack &= options.sack_permitted;
        match options.timestamps {
            Some(timestamps) if self.timestamps => {
                self.recent_timestamp = timestamps.value;
                self.recent_at = now;
            }
            _ => self.timestamps = false,
        }
        // RFC 7323, section 2.2: only if both SYNs carry the option; larger shifts count as 14.
        match options.window_scale {
            Some(shift) if self.parameters.window_scaling => self.peer_scale = shift.min(MAX_SCALE),
            _ => {
                self.peer_scale = 0;
                self.scale = 0;
            }
        }
        self.receiver.set_scale(self.scale);
        self.receiver.acks.set_sack(self.sack);
        self.negotiate_ecn(now, syn);
        if let Some(handshake) = &mut self.handshake {
            handshake.scaled = options.window_scale.is_some();
            handshake.peer_mss = options.mss.map_or(DEFAULT_MSS, u32::from);
        }
        self.sender.set_unscaled_window(u64::from(syn.window));
    }

    /// Repeats the SYN or SYN-ACK.
    pub(super) fn repeat_syn(&mut self) {
        if let Some(handshake) = &mut self.handshake {
            handshake.pending = true;
        }
    }

    /// Repeats the SYN because the path MTU fell. A repetition that is already due covers it.
    pub(super) fn repeat_resized_syn(&mut self) {
        if let Some(handshake) = self.handshake.as_mut().filter(|handshake| !handshake.pending) {
            handshake.pending = true;
            handshake.resized += 1;
        }
    }

    /// Whether the initial window is one segment after the loss of a SYN or SYN-ACK (RFC 5681, section 3.1). `answer`: the
    /// segment that acknowledges it.
    ///
    /// Linux keeps the initial window after a single retransmission, and after any number if the echoed timestamp is that of the
    /// first SYN (`tcp_init_transfer`, `tcp_try_undo_spurious_syn`).
    pub(super) fn reduces_initial_window(&self, answer: &Segment) -> bool {
        let Some(handshake) = &self.handshake else {
            return false;
        };
        if !self.parameters.is_linux() {
            return handshake.attempts() > 1;
        }
        let echo = answer
            .options
            .timestamps
            .filter(|_| self.timestamps)
            .map(|t| t.echo);
        handshake.attempts() > 1 + UNPENALIZED_SYN_RETRIES
            && echo != Some(self.sender.clock(handshake.first_at))
    }

    /// Handles the timeout of a SYN or SYN-ACK (RFC 9293, section 3.8.3; RFC 6298, section 5).
    pub(super) fn on_handshake_timeout(&mut self, now: Instant) {
        let linux = self.parameters.is_linux();
        let Some(handshake) = self.handshake.as_mut().filter(|h| h.at <= now) else {
            return;
        };
        let retries = self.parameters.syn_retries;
        let retries = match self.state {
            State::SynSent if linux => retries.saturating_add(LINEAR_SYN_RETRIES),
            _ if linux && !handshake.active => retries.min(SYN_ACK_RETRIES),
            _ => retries,
        };
        if handshake.attempts() > retries {
            self.fail(Error::TimedOut);
            return;
        }
        handshake.pending = true;
        handshake.at = Instant::MAX;
    }

    /// Whether data segments may leave before this end's SYN is acknowledged.
    pub(super) fn may_send_early(&self) -> bool {
        self.is_half_synchronized() && self.has_sent_syn()
    }

    /// Returns the SYN or SYN-ACK that is due, with the data that it may carry.
    pub(super) fn poll_handshake(&mut self, now: Instant) -> Option<Outgoing> {
        let linux = self.parameters.is_linux();
        let is_delayed = self.early.as_ref().is_some_and(|early| early.delays_syn_ack);
        let has_data = is_delayed && self.sender.has_unsent();
        let is_syn_ack = self.state != State::SynSent;
        let handshake = self.handshake.as_mut().filter(|h| h.pending || has_data)?;
        handshake.pending = false;
        handshake.sent += 1;
        handshake.sent_at = now;
        if handshake.sent == 1 {
            handshake.first_at = now;
        }
        let number = handshake.sent;
        let again = number > 1;
        let backoff = if linux && handshake.active && !is_syn_ack {
            handshake.attempts().saturating_sub(1 + LINEAR_SYN_RETRIES)
        } else {
            handshake.attempts() - 1
        };
        let wait = self
            .parameters
            .initial_rto
            .doubled(backoff)
            .min(self.parameters.max_rto);
        handshake.at = now + wait;
        let (scaled, peer_mss) = (handshake.scaled, handshake.peer_mss);
        if let Some(early) = &mut self.early {
            early.delays_syn_ack = false;
        }
        let mut flags = Flags::SYN;
        let mut acknowledgement = SequenceNumber(0);
        if is_syn_ack {
            flags |= Flags::ACK;
            acknowledgement = self.peer_initial.at(self.receiver.next());
        }
        flags |= self.syn_ecn_flags(is_syn_ack, number);
        let mut segment = Segment::bare(self.initial, acknowledgement, flags);
        segment.window = self.receiver.offer_unscaled();
        self.announced_mss = self.mss_to_announce();
        segment.options = Options {
            mss: u16::try_from(self.announced_mss).ok(),
            // RFC 7323, sections 2.2 and 3.2: a SYN-ACK carries only options of the SYN.
            window_scale: (self.parameters.window_scaling && (!is_syn_ack || scaled)).then_some(self.scale),
            sack_permitted: self.sack,
            timestamps: self.timestamps.then(|| Timestamps {
                value: self.sender.clock(now),
                echo: if is_syn_ack { self.recent_timestamp } else { 0 },
            }),
            ..Options::default()
        };
        if self.early.is_some() {
            self.add_opening_options(&mut segment.options, again);
            self.attach_data(now, &mut segment, peer_mss, again);
        }
        if is_syn_ack {
            self.add_syn_ack_counters(now, &mut segment, number);
        }
        Some(Outgoing::without_payload(segment))
    }

    /// Returns the value of the MSS option. Linux derives it from the path MTU, too (`ipv4_default_advmss`).
    fn mss_to_announce(&self) -> u32 {
        let limit = if self.parameters.is_linux() {
            self.path_mss
        } else {
            u32::MAX
        };
        self.parameters.mss.min(limit)
    }

    /// Adds the first bytes of the stream to a SYN or SYN-ACK, unless it is a retransmission.
    fn attach_data(&mut self, now: Instant, segment: &mut Segment, peer_mss: u32, again: bool) {
        // The SYN-ACK acknowledges all data that has arrived.
        self.receiver.acks.cancel();
        if again {
            self.sender.mark_syn_data_ambiguous();
            return;
        }
        let room = self.syn_data_room(segment.options.encoded_length(), peer_mss);
        let Some((room, may_finish)) = room else { return };
        let Some(data) = self.sender.poll_syn_data(now, room, may_finish) else {
            return;
        };
        self.note_syn_data_sent();
        segment.length = data.length;
        // As in Linux, a SYN of Fast Open has no PSH.
        if data.push && data.length > 0 && may_finish {
            segment.flags |= Flags::PSH;
        }
        if data.fin {
            segment.flags |= Flags::FIN;
        }
        self.count_sent(now, &data);
    }
}
