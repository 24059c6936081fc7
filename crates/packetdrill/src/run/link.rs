//! One connection of the machine under test, and what the world has seen of it.

use std::collections::VecDeque;

use foundation::Instant;
use transport::Machine;
use transport::tcp::{Connection, Error, Event, Flags, Segment, State, TcpConfig, reset_for};

use super::segment::Mapping;

/// A segment that left, and when.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When.
    pub at: Instant,
    /// What.
    pub segment: Segment,
}

/// Where a connection's initial sequence number stands: near the end of the sequence space, so that
/// the numbers of most scripts pass through zero.
const INITIAL_SEQUENCE: u32 = u32::MAX - 2_000;

/// A connection and its surroundings.
#[derive(Debug)]
pub struct Link {
    /// The machine.
    pub machine: Connection,
    /// How its numbers map to the script's.
    pub mapping: Mapping,
    peer_known: bool,
    /// Segments that left and that the script has not yet looked at.
    pub sent: VecDeque<Sent>,
    /// Whether the handshake is over.
    pub connected: bool,
    /// Whether an `accept` or `connect` gave it to the application.
    pub owned: bool,
    /// Whether nothing of it is left in the machine.
    pub gone: bool,
    /// The error that the next call reports.
    pub error: Option<&'static str>,
    /// Whether the peer's FIN has arrived in order.
    pub peer_finished: bool,
    /// `shutdown(SHUT_RD)`.
    pub read_shut: bool,
    /// `shutdown(SHUT_WR)`, or any later end of sending.
    pub write_shut: bool,
    /// When data last arrived; at first when the handshake was done.
    pub data_arrived_at: Instant,
    /// Counts changes that `epoll` with `EPOLLET` reports.
    pub arrivals: u64,
    /// Counts openings of the send buffer, for the same.
    pub openings: u64,
}

impl Link {
    /// A connection that begins to connect.
    pub fn open(now: Instant, config: &TcpConfig) -> Self {
        Self::around(now, Connection::open(now, config, INITIAL_SEQUENCE))
    }

    /// A connection that answers `syn`.
    pub fn accept(now: Instant, config: &TcpConfig, syn: &Segment) -> Self {
        let mut link = Self::around(now, Connection::accept(now, config, INITIAL_SEQUENCE, syn));
        link.learn_peer(syn);
        link
    }

    fn around(now: Instant, machine: Connection) -> Self {
        let mapping = Mapping::beginning_at(INITIAL_SEQUENCE);
        Self {
            machine,
            mapping,
            peer_known: false,
            sent: VecDeque::new(),
            connected: false,
            owned: false,
            gone: false,
            error: None,
            peer_finished: false,
            read_shut: false,
            write_shut: false,
            data_arrived_at: now,
            arrivals: 0,
            openings: 0,
        }
    }

    /// The first SYN of the peer tells where its numbers begin.
    fn learn_peer(&mut self, segment: &Segment) {
        if segment.has(Flags::SYN) && !self.peer_known {
            self.peer_known = true;
            self.mapping.learn_peer(segment.sequence.0);
        }
    }

    /// A segment of the script arrives.
    pub fn arrive(&mut self, now: Instant, segment: Segment) {
        if self.gone {
            // RFC 9293, section 3.10.7.1: what belongs to no connection is reset.
            let answer = reset_for(&segment).map(|segment| Sent { at: now, segment });
            self.sent.extend(answer);
            return;
        }
        self.learn_peer(&segment);
        let before = self.machine.readable();
        self.machine.handle_frame(now, segment);
        self.settle(now);
        if self.machine.readable() > before {
            self.arrivals += 1;
            self.data_arrived_at = now;
        }
    }

    /// An ICMP message tells that packets above `mtu` bytes do not pass.
    pub fn path_mtu(&mut self, now: Instant, mtu: u32) {
        if !self.gone {
            self.machine.handle_path_mtu(now, mtu);
            self.settle(now);
        }
    }

    /// When the machine next wants to be called.
    pub fn timeout(&self) -> Option<Instant> {
        if self.gone {
            None
        } else {
            self.machine.poll_timeout()
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Instant) {
        if !self.gone {
            self.machine.handle_timeout(now);
            self.settle(now);
        }
    }

    /// Takes what the machine has to send and to tell.
    pub fn settle(&mut self, now: Instant) {
        if self.gone {
            return;
        }
        while let Some(outgoing) = self.machine.poll_transmit(now) {
            let segment = outgoing.segment;
            self.sent.push_back(Sent { at: now, segment });
        }
        while let Some(event) = self.machine.poll_event() {
            match event {
                Event::Connected => {
                    self.connected = true;
                    self.data_arrived_at = now;
                }
                Event::PeerFinished => {
                    self.peer_finished = true;
                    self.arrivals += 1;
                }
                Event::Writable => self.openings += 1,
                Event::Readable | Event::Finished => {}
                Event::Closed => self.gone = true,
                Event::Failed(error) => {
                    self.error = Some(errno(error));
                    self.gone = true;
                    self.arrivals += 1;
                }
            }
        }
    }

    /// Whether bytes may still be written.
    pub fn may_write(&self) -> bool {
        !self.write_shut && !self.gone
    }

    /// The state, as `tcp_info` numbers it.
    pub fn state_number(&self) -> u64 {
        if self.gone {
            return 7;
        }
        match self.machine.state() {
            State::Established => 1,
            State::SynSent => 2,
            State::SynReceived => 3,
            State::FinWait1 => 4,
            State::FinWait2 => 5,
            State::TimeWait => 6,
            State::Closed => 7,
            State::CloseWait => 8,
            State::LastAck => 9,
            State::Closing => 11,
        }
    }
}

/// The name of an error as system calls give it.
fn errno(error: Error) -> &'static str {
    match error {
        Error::Refused => "ECONNREFUSED",
        Error::Reset => "ECONNRESET",
        Error::TimedOut => "ETIMEDOUT",
    }
}
