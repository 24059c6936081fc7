//! Data before the end of the handshake: TCP Fast Open (RFC 7413) and T/TCP (RFC 1644).
//!
//! A server that takes the data of a SYN goes ahead: its state is ESTABLISHED or a later one while its own SYN is not yet
//! acknowledged. RFC 1644 marks such half-synchronized states with a star; RFC 7413 calls all of them SYN-RECEIVED.

use foundation::Instant;

use super::{Connection, State};
use crate::tcp::fast_open::FastOpen;
use crate::tcp::opening::{Discovery, Lesson, Opening, OpeningMode};
use crate::tcp::options::{COUNT_LENGTH, OpeningOptions, Options};
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::ttcp::Count;

/// RFC 1644, section 3.5: TIME-WAIT lasts so many retransmission timeouts where the connection was shorter than the longest
/// life of a segment.
const TRUNCATED_TIME_WAIT: u64 = 8;

/// What an early connection keeps.
#[derive(Debug)]
pub struct EarlyData {
    opening: Opening,
    /// The SYN that was sent had data, or a FIN.
    carried: bool,
    /// Payload and FIN of the peer's SYN, which wait for the end of the handshake.
    kept: Option<(u32, bool)>,
    /// The answer to the SYN waits for data that it can take along.
    pub held: bool,
    /// Data was taken before the end of the handshake: at a server that of a SYN, at a client its own.
    was_early: bool,
    /// It counts as one that is pending at this server.
    is_pending: bool,
    /// The connection was shorter than the longest life of a segment.
    was_short: bool,
    lessons: [Option<Lesson>; 2],
}

impl EarlyData {
    fn new(opening: Opening) -> Option<Box<Self>> {
        (!opening.is_plain()).then(|| {
            Box::new(Self {
                opening,
                carried: false,
                kept: None,
                held: false,
                was_early: false,
                is_pending: matches!(opening.0, OpeningMode::FastOpenServer { early: true, .. }),
                was_short: false,
                lessons: [None; 2],
            })
        })
    }

    fn record(&mut self, finding: Discovery) {
        if let Some(place) = self.lessons.iter_mut().find(|lesson| lesson.is_none()) {
            *place = Some(Lesson(finding));
        }
    }
}

impl Connection {
    /// The next thing that this connection has found out for later ones, for
    /// [`HostMemory::learn`](crate::tcp::HostMemory::learn): to be requested for until there is none whenever it was touched.
    #[inline]
    pub fn take_lesson(&mut self) -> Option<Lesson> {
        let early = self.early.as_mut()?;
        early.lessons.iter_mut().find_map(Option::take)
    }

    /// Whether data was taken before the end of the handshake: at a client its own, as the answer to its SYN has said, at a
    /// server that of the client's SYN.
    #[must_use]
    pub fn was_early(&self) -> bool {
        self.early.as_ref().is_some_and(|early| early.was_early)
    }

    /// Whether the connection goes on though its own SYN is not yet acknowledged: the starred states of RFC 1644, section
    /// 3.4.
    #[inline]
    #[must_use]
    pub fn is_half_synchronized(&self) -> bool {
        self.handshake.is_some() && self.is_synchronized()
    }

    /// Whether this connection makes room for the one that `syn` asks for, between the same ports: it is done but for a last
    /// acknowledgement, and the count of the SYN shows that the peer has gone on (RFC 1644, section 3.4: an implicit
    /// acknowledgement). In TIME-WAIT only if it was shorter than the longest life of a segment (section 3.5).
    #[must_use]
    pub fn is_replaced_by(&self, syn: &Segment) -> bool {
        let asks = syn.has(Flags::SYN) && !syn.has(Flags::ACK | Flags::RST);
        let (Some(last), Some(new)) = (self.peer_count, syn.options.count) else {
            return false;
        };
        let is_done = match self.state {
            State::LastAck | State::Closing => true,
            State::TimeWait => self.early.as_ref().is_some_and(|early| early.was_short),
            _ => false,
        };
        asks && is_done && new.is_after(last)
    }

    /// Whether this end may open another connection between the same ports: it waits in a truncated TIME-WAIT, and the next
    /// count tells old segments from new ones (RFC 1644, section 3.5).
    #[must_use]
    pub fn makes_room(&self) -> bool {
        self.state == State::TimeWait && self.early.as_ref().is_some_and(|early| early.was_short)
    }

    /// The peer's next connection has acknowledged the end of this one (RFC 1644, section 3.4).
    pub fn handle_successor(&mut self) {
        if !matches!(self.state, State::Closed | State::TimeWait) {
            self.emit(|events| events.finished = true);
        }
        self.become_closed();
    }

    /// How this end opens.
    pub(super) fn set_opening(&mut self, opening: Opening) {
        self.early = EarlyData::new(opening);
    }

    /// A SYN was taken in by a listener: its data goes to the application at once, or is kept until the handshake's end, or
    /// is left to be sent again.
    pub(super) fn accept_syn_data(&mut self, now: Instant, syn: &Segment) {
        let Some(early) = &mut self.early else { return };
        let opens_early = match early.opening.0 {
            OpeningMode::FastOpenServer { early, .. } => early,
            OpeningMode::TtcpServer { count, peer, early } => {
                self.use_counts(count, peer);
                early
            }
            _ => return,
        };
        let has_text = syn.length > 0 || syn.has(Flags::FIN);
        self.receiver.offer_unscaled();
        if opens_early {
            self.open_early(now, syn);
            return;
        }
        // RFC 1644, section 3.4: kept until the handshake has shown that the SYN is new. RFC 7413, section 4.2.2: dropped.
        if has_text
            && let Some(early) = &mut self.early
            && matches!(early.opening.0, OpeningMode::TtcpServer { .. })
        {
            early.kept = Some((syn.length, syn.has(Flags::FIN)));
            self.took_payload = syn.length > 0;
        }
    }

    fn open_early(&mut self, now: Instant, syn: &Segment) {
        self.start_sender(now, u64::from(syn.window), 0);
        self.state = State::Established;
        self.emit(|events| events.connected = true);
        let (length, fin) = (syn.length, syn.has(Flags::FIN));
        if let Some(early) = &mut self.early {
            early.was_early = length > 0 || fin;
            // The answer to a transaction takes the answer to the SYN along (RFC 1644, section 3.4); one to Fast Open leaves
            // at once, as Linux's does.
            early.held = matches!(early.opening.0, OpeningMode::TtcpServer { .. }) && (length > 0 || fin);
        }
        if self.early.as_ref().is_some_and(|early| early.held)
            && let Some(handshake) = &mut self.handshake
        {
            handshake.hold(now + self.parameters.delayed_ack);
        }
        self.deliver_syn_data(now, syn, length, fin);
    }

    /// Takes in the payload of a SYN, or of an answer to one, and its FIN.
    pub(super) fn deliver_syn_data(&mut self, now: Instant, syn: &Segment, length: u32, fin: bool) {
        if length == 0 && !fin {
            return;
        }
        let mut text = *syn;
        text.sequence = self.peer_initial.at(1);
        text.flags = if fin { Flags::ACK | Flags::FIN } else { Flags::ACK };
        self.on_data(now, &text, 1, 1 + u64::from(length) + u64::from(fin));
    }

    /// The handshake is done: what was kept of the peer's SYN is taken in.
    pub(super) fn deliver_buffered_syn_data(&mut self, now: Instant, segment: &Segment) {
        let Some((length, fin)) = self.early.as_mut().and_then(|early| early.kept.take()) else {
            return;
        };
        let mut text = *segment;
        text.length = length;
        let took = self.took_payload;
        self.deliver_syn_data(now, &text, length, fin);
        // It was put aside when it came; what is requested is whether the segment at hand has payload.
        self.took_payload = took;
    }

    /// Both ends speak T/TCP: every segment has the count of its sender.
    fn use_counts(&mut self, own: Count, peer: Count) {
        self.count = Some(own);
        self.peer_count = Some(peer);
        self.parameters.reserved.data += COUNT_LENGTH;
        self.parameters.reserved.bare += COUNT_LENGTH;
    }

    /// The option of Fast Open and the counts that a SYN or the answer to one carries. `again`: it was sent before.
    pub(super) fn add_opening_options(&self, options: &mut Options, again: bool) {
        let Some(early) = &self.early else { return };
        let answers = self.state != State::SynSent;
        let mut opening = OpeningOptions::default();
        match early.opening.0 {
            OpeningMode::FastOpenClient { option, .. } if !answers => {
                // RFC 7413, section 4.2.1: a SYN that is sent again has neither data nor cookie.
                opening.fast_open = option.filter(|_| !again);
            }
            OpeningMode::FastOpenServer { grant, .. } => opening.fast_open = grant.map(FastOpen::Cookie),
            OpeningMode::TtcpClient { count, known, .. } if !answers => {
                options.count = Some(count);
                // Whoever drops SYNs with data may have forgotten what it knew, too.
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

    /// How much of the stream may leave with the SYN, or with the answer to one, whose options take `options` bytes; and
    /// whether its end may.
    pub(super) fn syn_data_room(&self, options: u32, peer_mss: u32) -> Option<(u32, bool)> {
        let early = self.early.as_ref()?;
        let least = |announced: Option<u16>| announced.map_or(DEFAULT_MSS, u32::from);
        let (mss, may_finish) = match early.opening.0 {
            OpeningMode::FastOpenClient {
                option: Some(FastOpen::Cookie(_)),
                mss,
            } if self.state == State::SynSent => (least(mss), false),
            OpeningMode::TtcpClient { known: true, mss, .. } if self.state == State::SynSent => {
                (least(mss), true)
            }
            OpeningMode::TtcpServer { .. } if self.is_half_synchronized() => (peer_mss, true),
            _ => return None,
        };
        let mss = mss.min(self.parameters.mss).min(self.path_mss);
        let mut room = mss.saturating_sub(options);
        if self.state != State::SynSent {
            room = room.min(u32::try_from(self.sender.first_window()).unwrap_or(u32::MAX));
        }
        Some((room, may_finish))
    }

    pub(super) fn note_syn_data_sent(&mut self) {
        if let Some(early) = &mut self.early {
            early.carried = true;
        }
    }

    /// The answer to this end's SYN: whether it answers this SYN and no earlier one, as far as counts tell (RFC 1644, section
    /// 3.4).
    pub(super) fn echoes_count(&self, answer: &Segment) -> bool {
        match self.early.as_ref().map(|early| early.opening.0) {
            Some(OpeningMode::TtcpClient { count, .. }) => answer
                .options
                .opening()
                .count_echo
                .is_none_or(|echo| echo == count),
            _ => true,
        }
    }

    /// What the answer to this end's SYN teaches. `again`: the SYN had been sent more than once; `acknowledged`: up to where
    /// it acknowledges the stream.
    pub(super) fn learn_from_syn_ack(&mut self, answer: &Segment, again: bool, acknowledged: u64) {
        let (options, opening) = (&answer.options, answer.options.opening());
        let Some(early) = &mut self.early else { return };
        early.was_early = early.carried && acknowledged > 1;
        match early.opening.0 {
            OpeningMode::FastOpenClient { option, .. } => {
                let cookie = match opening.fast_open {
                    Some(FastOpen::Cookie(cookie)) => Some(cookie),
                    _ => None,
                };
                if early.carried && again && acknowledged == 1 {
                    early.record(Discovery::SynDataLost);
                } else {
                    early.record(Discovery::CookieReply {
                        cookie,
                        requested: option == Some(FastOpen::Request) && !again,
                        mss: options.mss,
                    });
                }
            }
            OpeningMode::TtcpClient { count, .. } => match (options.count, opening.count_echo) {
                (Some(peer), Some(_)) => {
                    early.record(Discovery::CountEcho {
                        count,
                        peer: Some(peer),
                        mss: options.mss,
                    });
                    self.use_counts(count, peer);
                }
                _ => early.record(Discovery::NoEcho),
            },
            _ => {}
        }
    }

    /// Whether the peer keeps what came with this end's SYN, though it has acknowledged the SYN alone.
    pub(super) fn peer_buffers_syn_data(&self) -> bool {
        self.count.is_some()
    }

    /// The peer has acknowledged this end's SYN, which answered one of its own.
    pub(super) fn confirm_early_open(&mut self) {
        let mss = self.handshake.as_ref().map(|handshake| handshake.peer_mss);
        let Some(early) = &mut self.early else { return };
        early.held = false;
        if let OpeningMode::TtcpServer { peer, .. } = early.opening.0 {
            let mss = mss.and_then(|mss| u16::try_from(mss).ok());
            early.record(Discovery::CountProof { peer, mss });
        }
        self.release_pending(false);
    }

    /// The connection is no longer one of those that are pending.
    pub(super) fn release_pending(&mut self, reset: bool) {
        if let Some(early) = &mut self.early
            && std::mem::take(&mut early.is_pending)
        {
            early.record(Discovery::PendingClosed { reset });
        }
    }

    /// RFC 1644, section 3.4: a segment without the peer's count is of another connection.
    #[inline]
    pub(super) fn has_other_count(&self, segment: &Segment) -> bool {
        self.peer_count.is_some() && segment.options.count != self.peer_count && !segment.has(Flags::RST)
    }

    /// How long TIME-WAIT lasts (RFC 1644, section 3.5: shorter, where counts protect what follows).
    pub(super) fn time_wait(&mut self, now: Instant) -> foundation::Duration {
        let whole = self.parameters.time_wait;
        let Some(early) = self.early.as_mut().filter(|_| self.peer_count.is_some()) else {
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

/// RFC 9293, section 3.7.1: the peer's segment size where it announces none.
pub(super) const DEFAULT_MSS: u32 = 536;
