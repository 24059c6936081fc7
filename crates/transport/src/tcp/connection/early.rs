//! Data before the end of the handshake: TCP Fast Open (RFC 7413) and T/TCP (RFC 1644).
//!
//! A server that accepts the data of a SYN opens early: it is in ESTABLISHED or a later state while its own SYN is still
//! unacknowledged. RFC 1644 marks these half-synchronized states with a star; RFC 7413 calls all of them SYN-RECEIVED.
//!
//! All state is in [`EarlyData`], which only connections with one of the two extensions have.

use std::sync::Arc;

use foundation::{Duration, Instant};

use super::{Connection, Events};
use crate::tcp::fast_open::{FastOpen, SynAckFinding};
use crate::tcp::opening::{Discovery, Opening, OpeningMode, PeerUpdate};
use crate::tcp::options::{COUNT_LENGTH, DEFAULT_MSS, OpeningOptions, Options};
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::state::State;
use crate::tcp::ttcp::Count;
use crate::tcp::wire::MAX_OPTIONS;

/// Duration of a truncated TIME-WAIT in RTOs, for connections shorter than the maximum segment lifetime (RFC 1644,
/// section 3.5).
const TRUNCATED_TIME_WAIT: u64 = 8;

/// State of a connection that may carry data before the end of its handshake.
#[derive(Debug)]
pub struct EarlyData {
    mode: OpeningMode,
    /// Connection counts of this end and the peer (CCsend and CCrecv of RFC 1644), where both ends use T/TCP.
    counts: Option<(Count, Count)>,
    /// The SYN of this end carried data or a FIN.
    sent_with_syn: bool,
    /// Payload length and FIN of the peer's SYN, buffered until the end of the handshake.
    buffered: Option<(u32, bool)>,
    /// The SYN-ACK waits for data that it can carry.
    pub delays_syn_ack: bool,
    /// Data was accepted before the end of the handshake: by this server, or by the peer of this client.
    was_used: bool,
    /// The connection counts against the server's limit of pending opens.
    is_pending: bool,
    /// The connection was shorter than the maximum segment lifetime.
    was_short: bool,
    updates: [Option<PeerUpdate>; 2],
}

impl EarlyData {
    fn record(&mut self, discovery: Discovery) {
        if let Some(place) = self.updates.iter_mut().find(|update| update.is_none()) {
            *place = Some(PeerUpdate(discovery));
        }
    }

    /// Returns this end's count, which every segment carries.
    #[inline]
    pub fn own_count(&self) -> Option<Count> {
        self.counts.map(|(own, _)| own)
    }
}

impl Connection {
    /// Returns the next discovery for [`HostMemory::apply`](crate::tcp::HostMemory::apply). Call it until it returns `None`
    /// after every other call.
    #[inline]
    pub fn take_peer_update(&mut self) -> Option<PeerUpdate> {
        let early = self.early.as_mut()?;
        early.updates.iter_mut().find_map(Option::take)
    }

    /// Whether data was accepted before the end of the handshake: at a client its own data, as acknowledged by the SYN-ACK,
    /// at a server the data of the client's SYN.
    #[must_use]
    pub fn used_early_data(&self) -> bool {
        self.early.as_ref().is_some_and(|early| early.was_used)
    }

    /// Whether this end opened the connection with one of the two extensions.
    #[must_use]
    pub fn is_client(&self) -> bool {
        let mode = self.early.as_ref().map(|early| early.mode);
        matches!(
            mode,
            Some(OpeningMode::FastOpenClient { .. } | OpeningMode::TtcpClient { .. })
        )
    }

    /// Whether the connection is open although its own SYN is unacknowledged (the starred states of RFC 1644, section 3.4).
    #[inline]
    #[must_use]
    pub fn is_half_synchronized(&self) -> bool {
        self.handshake.is_some() && self.is_synchronized()
    }

    /// Whether `syn` opens a connection that replaces this one between the same ports: only a last acknowledgement is
    /// missing, and the count of the SYN implies it (RFC 1644, section 3.4). In TIME-WAIT, only a connection shorter than
    /// the maximum segment lifetime is replaced (section 3.5).
    #[must_use]
    pub fn is_replaced_by(&self, syn: &Segment) -> bool {
        let opens = syn.has(Flags::SYN) && !syn.has(Flags::ACK | Flags::RST);
        let counts = self.early.as_ref().and_then(|early| early.counts);
        let (Some((_, last)), Some(new)) = (counts, syn.options.count) else {
            return false;
        };
        let is_done = matches!(self.state, State::LastAck | State::Closing) || self.may_be_replaced();
        opens && is_done && new.is_after(last)
    }

    /// Whether this end may open another connection between the same ports: it is in a truncated TIME-WAIT, and the next
    /// count distinguishes old segments from new ones (RFC 1644, section 3.5).
    #[must_use]
    pub fn may_be_replaced(&self) -> bool {
        self.state == State::TimeWait && self.early.as_ref().is_some_and(|early| early.was_short)
    }

    /// Closes the connection: the peer's next connection acknowledges its end (RFC 1644, section 3.4).
    pub fn handle_successor(&mut self) {
        if !matches!(self.state, State::Closed | State::TimeWait) {
            self.emit(Events::FINISHED);
        }
        self.become_closed();
    }

    pub(super) fn set_opening(&mut self, opening: Opening) {
        self.early = (!opening.is_plain()).then(|| {
            Box::new(EarlyData {
                mode: opening.0,
                counts: None,
                sent_with_syn: false,
                buffered: None,
                delays_syn_ack: false,
                was_used: false,
                is_pending: matches!(opening.0, OpeningMode::FastOpenServer { early: true, .. }),
                was_short: false,
                updates: [None; 2],
            })
        });
    }

    /// Handles the data of a SYN that reached a listener: delivers it, buffers it until the end of the handshake (T/TCP;
    /// RFC 1644, section 3.4), or drops it (Fast Open; RFC 7413, section 4.2.2).
    pub(super) fn accept_syn_data(&mut self, now: Instant, syn: &Segment) {
        let Some(early) = &mut self.early else { return };
        let opens_early = match early.mode {
            OpeningMode::FastOpenServer { early, .. } => early,
            OpeningMode::TtcpServer { count, peer, early } => {
                self.use_counts(count, peer);
                early
            }
            _ => return,
        };
        self.receiver.offer_unscaled();
        if opens_early {
            self.open_early(now, syn);
            return;
        }
        let has_data = syn.length > 0 || syn.has(Flags::FIN);
        if has_data
            && let Some(early) = &mut self.early
            && matches!(early.mode, OpeningMode::TtcpServer { .. })
        {
            early.buffered = Some((syn.length, syn.has(Flags::FIN)));
            self.took_payload = syn.length > 0;
        }
    }

    fn open_early(&mut self, now: Instant, syn: &Segment) {
        self.start_sender(now, u64::from(syn.window), 0, false);
        self.state = State::Established;
        self.emit(Events::CONNECTED);
        let (length, fin) = (syn.length, syn.has(Flags::FIN));
        if let Some(early) = &mut self.early {
            early.was_used = length > 0 || fin;
            // The response of a transaction carries the SYN-ACK (RFC 1644, section 3.4); the SYN-ACK of Fast Open leaves at
            // once, as in Linux.
            early.delays_syn_ack = early.was_used && matches!(early.mode, OpeningMode::TtcpServer { .. });
            if early.delays_syn_ack
                && let Some(handshake) = &mut self.handshake
            {
                handshake.delay(now + self.parameters.delayed_ack);
            }
        }
        self.deliver_syn_data(now, syn, length, fin);
    }

    /// Delivers the payload and the FIN of a SYN or a SYN-ACK.
    pub(super) fn deliver_syn_data(&mut self, now: Instant, syn: &Segment, length: u32, fin: bool) {
        if length == 0 && !fin {
            return;
        }
        let mut data = *syn;
        data.sequence = self.peer_initial.at(1);
        data.flags = if fin { Flags::ACK | Flags::FIN } else { Flags::ACK };
        self.on_data(now, &data, 1, 1 + u64::from(length) + u64::from(fin));
        if self.parameters.is_linux() {
            // The data of a SYN does not count (`tcp_fastopen_add_skb` of Linux).
            self.receiver.acks.discard_arrivals();
        }
    }

    /// Delivers the buffered data of the peer's SYN at the end of the handshake.
    pub(super) fn deliver_buffered_syn_data(&mut self, now: Instant, segment: &Segment) {
        let Some((length, fin)) = self.early.as_mut().and_then(|early| early.buffered.take()) else {
            return;
        };
        let mut data = *segment;
        data.length = length;
        // The flag describes the current segment, and the SYN set it when it arrived.
        let took = self.took_payload;
        self.deliver_syn_data(now, &data, length, fin);
        self.took_payload = took;
    }

    /// Starts T/TCP: from now on every segment carries the count of its sender.
    fn use_counts(&mut self, own: Count, peer: Count) {
        if let Some(early) = &mut self.early {
            early.counts = Some((own, peer));
        }
        let reserved = &mut Arc::make_mut(&mut self.parameters).reserved;
        reserved.data += COUNT_LENGTH;
        reserved.bare += COUNT_LENGTH;
    }

    /// Adds the Fast Open option and the counts of a SYN or SYN-ACK. `again`: it is a retransmission.
    pub(super) fn add_opening_options(&self, options: &mut Options, again: bool) {
        let Some(early) = &self.early else { return };
        let is_syn_ack = self.state != State::SynSent;
        let mut opening = OpeningOptions::default();
        match early.mode {
            OpeningMode::FastOpenClient { syn, .. } if !is_syn_ack => {
                // RFC 7413, section 4.2.1: a retransmitted SYN carries neither data nor cookie.
                opening.fast_open = syn.option.filter(|_| !again);
                opening.experimental = syn.experimental && opening.fast_open.is_some();
            }
            OpeningMode::FastOpenServer {
                grant, experimental, ..
            } => {
                opening.fast_open = grant.map(FastOpen::Cookie);
                opening.experimental = experimental && grant.is_some();
            }
            OpeningMode::TtcpClient { count, known, .. } if !is_syn_ack => {
                options.count = Some(count);
                // A host that drops SYNs with data may also have lost its cache.
                opening.count_is_new = !known || again;
            }
            OpeningMode::TtcpServer { count, peer, .. } => {
                options.count = Some(count);
                opening.count_echo = Some(peer);
            }
            _ => {}
        }
        options.set_opening(opening);
    }

    /// Returns how many bytes of the stream a SYN or SYN-ACK with `options` bytes of options may carry, and whether it may
    /// carry the FIN.
    pub(super) fn syn_data_room(&self, options: u32, peer_mss: u32) -> Option<(u32, bool)> {
        let early = self.early.as_ref()?;
        let linux = self.parameters.is_linux();
        let default = if linux { self.parameters.mss } else { DEFAULT_MSS };
        let cached = |mss: Option<u16>| mss.map_or(default, u32::from);
        let is_open = |option, cookieless| cookieless || matches!(option, Some(FastOpen::Cookie(_)));
        let (mss, may_finish) = match early.mode {
            OpeningMode::FastOpenClient { syn, cookieless }
                if self.state == State::SynSent && is_open(syn.option, cookieless) =>
            {
                (cached(syn.mss), false)
            }
            OpeningMode::TtcpClient { known: true, mss, .. } if self.state == State::SynSent => {
                (cached(mss), true)
            }
            OpeningMode::TtcpServer { .. } if self.is_half_synchronized() => (peer_mss, true),
            _ => return None,
        };
        let mss = mss.min(self.parameters.mss).min(self.path_mss);
        // Linux leaves room for all options that middleboxes may add (`tcp_send_syn_data`).
        let options = if linux && !may_finish {
            MAX_OPTIONS
        } else {
            options
        };
        let mut room = mss.saturating_sub(options);
        if self.state != State::SynSent {
            room = room.min(u32::try_from(self.sender.first_window()).unwrap_or(u32::MAX));
        }
        Some((room, may_finish))
    }

    /// Returns how many bytes the application may write before the SYN leaves so that all of them leave with it.
    #[must_use]
    pub fn syn_data_capacity(&self) -> u32 {
        let is_new = self
            .handshake
            .as_ref()
            .is_some_and(|handshake| handshake.sent == 0);
        let room = self.syn_data_room(MAX_OPTIONS, DEFAULT_MSS).filter(|_| is_new);
        room.map_or(0, |(room, _)| room)
    }

    /// Whether the SYN of this end carried data that is unacknowledged.
    pub(super) fn awaits_syn_data(&self) -> bool {
        self.state == State::SynSent && self.early.as_ref().is_some_and(|early| early.sent_with_syn)
    }

    pub(super) fn note_syn_data_sent(&mut self) {
        if let Some(early) = &mut self.early {
            early.sent_with_syn = true;
        }
    }

    /// Whether a SYN-ACK echoes the count of this end's SYN, or no count at all (RFC 1644, section 3.4).
    pub(super) fn echoes_count(&self, syn_ack: &Segment) -> bool {
        match self.early.as_ref().map(|early| early.mode) {
            Some(OpeningMode::TtcpClient { count, .. }) => syn_ack
                .options
                .opening()
                .count_echo
                .is_none_or(|echo| echo == count),
            _ => true,
        }
    }

    /// Records what the SYN-ACK reveals about the peer. `again`: the SYN was retransmitted; `acknowledged`: the stream
    /// position that the SYN-ACK acknowledges.
    pub(super) fn learn_from_syn_ack(&mut self, syn_ack: &Segment, again: bool, acknowledged: u64) {
        let (options, opening) = (&syn_ack.options, syn_ack.options.opening());
        // Linux's `syn_data_acked` requires all data.
        let least = if self.parameters.is_linux() {
            self.sender.next()
        } else {
            2
        };
        let Some(early) = &mut self.early else { return };
        early.was_used = early.sent_with_syn && acknowledged >= least.max(2);
        match early.mode {
            OpeningMode::FastOpenClient { syn, .. } => {
                // An unsolicited cookie has no effect.
                let cookie = match opening.fast_open {
                    Some(FastOpen::Cookie(cookie)) => syn.option.map(|_| cookie),
                    _ => None,
                };
                let is_lost = early.sent_with_syn && again && acknowledged == 1 && cookie.is_none();
                early.record(if is_lost {
                    Discovery::SynDataLost
                } else {
                    Discovery::CookieReply(SynAckFinding {
                        cookie,
                        experimental: cookie.map_or(syn.experimental, |_| opening.experimental),
                        requested: syn.option == Some(FastOpen::Request) && !again,
                        mss: options.mss,
                    })
                });
            }
            OpeningMode::TtcpClient { count, .. } => match (options.count, opening.count_echo) {
                (Some(peer), Some(_)) => {
                    early.record(Discovery::CountEcho {
                        count,
                        peer,
                        mss: options.mss,
                    });
                    self.use_counts(count, peer);
                }
                _ => early.record(Discovery::NoEcho),
            },
            _ => {}
        }
    }

    /// Whether the peer buffers the data of this end's SYN although it acknowledged only the SYN itself.
    pub(super) fn peer_buffers_syn_data(&self) -> bool {
        self.early.as_ref().is_some_and(|early| early.counts.is_some())
    }

    /// The peer acknowledged this end's SYN-ACK.
    pub(super) fn confirm_early_open(&mut self) {
        let mss = self.handshake.as_ref().map(|handshake| handshake.peer_mss);
        let Some(early) = &mut self.early else { return };
        early.delays_syn_ack = false;
        if let OpeningMode::TtcpServer { peer, .. } = early.mode {
            let mss = mss.and_then(|mss| u16::try_from(mss).ok());
            early.record(Discovery::CountProof { peer, mss });
        }
        self.release_pending(false);
    }

    /// Removes the connection from the server's pending opens. `reset`: the client reset it.
    pub(super) fn release_pending(&mut self, reset: bool) {
        if let Some(early) = &mut self.early
            && std::mem::take(&mut early.is_pending)
        {
            early.record(Discovery::PendingClosed { reset });
        }
    }

    /// Whether a segment lacks the peer's count and thus belongs to another connection (RFC 1644, section 3.4).
    #[inline]
    pub(super) fn has_other_count(&self, segment: &Segment) -> bool {
        let counts = self.early.as_ref().and_then(|early| early.counts);
        counts.is_some_and(|(_, peer)| segment.options.count != Some(peer)) && !segment.has(Flags::RST)
    }

    /// Returns the duration of TIME-WAIT: shorter where counts protect the next connection (RFC 1644, section 3.5).
    pub(super) fn time_wait(&mut self, now: Instant) -> Duration {
        let whole = self.parameters.time_wait;
        let Some(early) = self.early.as_mut().filter(|early| early.counts.is_some()) else {
            return whole;
        };
        let opened = self.statistics.opened_at.unwrap_or(now);
        early.was_short = now - opened < whole / 2;
        if early.was_short {
            whole.min(self.sender.rtt().timeout() * TRUNCATED_TIME_WAIT)
        } else {
            whole
        }
    }
}
