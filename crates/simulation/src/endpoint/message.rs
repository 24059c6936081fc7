//! An end with requests and responses of one datagram each, fragmented if they exceed the MTU of the path.

use std::collections::{BTreeSet, VecDeque};

use experiment::application::Stream;
use experiment::plan::{Group, IPV4_HEADER};
use experiment::trace::content::{Message, MessageProtocol};
use foundation::{Duration, Instant};
use network::UDP_IPV4_OVERHEAD;
use transport::Statistics;

use super::{End, Host, Notice, Probe, RttHistogram};
use crate::body::Content;

/// UDP and ICMP echo headers both have 8 bytes (RFC 768, RFC 792).
const HEADER: u32 = UDP_IPV4_OVERHEAD - IPV4_HEADER;

/// The fragments of one message that have arrived.
#[derive(Debug, Default)]
struct Reassembly {
    /// Number of the message.
    number: u32,
    /// Offsets of the fragments.
    offsets: BTreeSet<u32>,
    /// Bytes of the fragments together.
    length: u32,
}

/// The client or the server of requests in datagrams. Only the awaited message counts; late and duplicate ones are ignored.
#[derive(Debug)]
pub(crate) struct MessageEnd {
    protocol: MessageProtocol,
    is_client: bool,
    /// Time after which a request counts as unanswered.
    response_timeout: Duration,
    /// IP payload of the largest packet.
    room: u32,
    /// Number of the last request sent or answered.
    number: u32,
    /// Packets to send.
    unsent: VecDeque<Message>,
    reassembly: Reassembly,
    /// Timeout of the response to the last request; `None` if none is awaited.
    deadline: Option<Instant>,
    requested_at: Instant,
    notices: VecDeque<Notice>,
    is_finishing: bool,
    statistics: Statistics,
}

impl MessageEnd {
    /// Returns the client (`is_client`) or the server of the requests of a group.
    pub(crate) fn new(protocol: MessageProtocol, is_client: bool, group: &Group) -> Self {
        let mut notices = VecDeque::new();
        if !is_client {
            // A server has no state to wait for.
            notices.push_back(Notice::Closed);
        }
        Self {
            protocol,
            is_client,
            response_timeout: group.response_timeout,
            room: group.mtu - IPV4_HEADER,
            number: 0,
            unsent: VecDeque::new(),
            reassembly: Reassembly::default(),
            deadline: None,
            requested_at: Instant::ZERO,
            notices,
            is_finishing: false,
            statistics: if is_client && group.records_rtt {
                Statistics::with_rtt_histogram()
            } else {
                Statistics::default()
            },
        }
    }

    /// Adds a packet of a message. Returns the payload length once the message is complete.
    fn assemble(&mut self, part: Message) -> Option<u64> {
        let payload = u64::from(part.whole - HEADER);
        if !part.is_fragment() {
            return Some(payload);
        }
        if self.reassembly.number != part.number {
            self.reassembly = Reassembly {
                number: part.number,
                ..Reassembly::default()
            };
        }
        if self.reassembly.offsets.insert(part.offset) {
            self.reassembly.length += part.length;
        }
        (self.reassembly.length == part.whole).then(|| {
            self.reassembly = Reassembly::default();
            payload
        })
    }
}

impl Stream for MessageEnd {
    fn write(&mut self, now: Instant, bytes: u64) {
        if self.is_client {
            self.number += 1;
            self.requested_at = now;
            self.deadline = Some(now + self.response_timeout);
        }
        let whole = bytes as u32 + HEADER;
        // All fragments but the last have a multiple of 8 bytes (RFC 791, section 3.2).
        let most = if whole > self.room {
            self.room / 8 * 8
        } else {
            whole
        };
        let mut offset = 0;
        while offset < whole {
            let length = most.min(whole - offset);
            self.unsent.push_back(Message {
                protocol: self.protocol,
                is_request: self.is_client,
                number: self.number,
                offset,
                length,
                whole,
            });
            offset += length;
        }
    }

    fn finish(&mut self, _: Instant) {
        self.is_finishing = true;
    }
}

impl End for MessageEnd {
    type Packet = Message;

    fn open(&mut self, now: Instant, _: &mut Host<'_>) {
        self.statistics.opened_at = Some(now);
    }

    fn statistics(&self) -> Option<&Statistics> {
        Some(&self.statistics)
    }

    fn take_round_trips(&mut self) -> RttHistogram {
        self.statistics.take_round_trips()
    }

    fn probe(&self, _: Instant) -> Probe {
        Probe::default()
    }

    fn receive(&mut self, now: Instant, _: u8, content: &mut Content, _: &mut Host<'_>) -> Option<Content> {
        let &mut Content::Message(part) = content else {
            return None;
        };
        self.statistics.packets_received += 1;
        if self.is_client && (part.number != self.number || self.deadline.is_none()) {
            self.statistics.duplicates_received += 1;
            return None;
        }
        let payload = self.assemble(part)?;
        if self.is_client {
            self.deadline = None;
            self.statistics.record_rtt(now - self.requested_at);
            self.statistics.last_acknowledged_at = Some(now);
        } else {
            self.number = part.number;
        }
        self.notices.push_back(Notice::Read(payload));
        None
    }

    fn expire(&mut self, now: Instant) -> bool {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.deadline = None;
            self.notices.push_back(Notice::Unanswered);
        }
        false
    }

    fn poll(&mut self, _: Instant) -> Option<Notice> {
        if let Some(notice) = self.notices.pop_front() {
            return Some(notice);
        }
        let is_done = self.is_client && self.is_finishing && self.deadline.is_none();
        is_done.then(|| {
            self.is_finishing = false;
            Notice::Finished
        })
    }

    fn transmit(&mut self, now: Instant, _: &mut u8) -> Option<Message> {
        let message = self.unsent.pop_front()?;
        self.statistics.first_data_at.get_or_insert(now);
        self.statistics.packets_sent += 1;
        let header = if message.offset == 0 { HEADER } else { 0 };
        self.statistics.bytes_sent += u64::from(message.length - header);
        Some(message)
    }

    fn timeout(&self) -> Option<Instant> {
        self.deadline
    }
}
