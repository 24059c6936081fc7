//! One connection of the machine under test, with its state outside of the protocol machine.

use std::collections::VecDeque;

use foundation::{Duration, Instant};
use transport::Machine;
use transport::tcp::{Connection, Error, Event, Flags, Opening, Segment, State, TcpConfig, reset_for};

use super::notices::Notices;
use super::segment::Mapping;

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
pub struct SentSegment {
    /// Sending time.
    pub at: Instant,
    /// The segment.
    pub segment: Segment,
}

/// The time in which a connection had data to deliver (`tcpi_busy_time`).
#[derive(Clone, Copy, Debug, Default)]
pub struct BusyTime {
    total: Duration,
    since: Option<Instant>,
}

impl BusyTime {
    fn set(&mut self, now: Instant, busy: bool) {
        self.total = self.until(now);
        self.since = busy.then_some(now);
    }

    /// Returns the time until `now`.
    pub fn until(self, now: Instant) -> Duration {
        self.total + self.since.map_or(Duration::ZERO, |since| now - since)
    }
}

/// The rest of a call that waits for the end of the handshake.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockedWrite {
    /// Bytes to write.
    pub bytes: u64,
    /// `MSG_ZEROCOPY`.
    pub zerocopy: bool,
}

/// Initial sequence number of connections: near the end of the sequence space, so that most scripts cover the wrap.
const INITIAL_SEQUENCE: u32 = u32::MAX - 2_000;

/// A connection and its surroundings.
#[derive(Debug)]
pub struct TestedConnection {
    /// The protocol machine.
    pub machine: Connection,
    /// Conversion between its numbers and the script's.
    pub mapping: Mapping,
    peer_known: bool,
    /// Sent segments that the script has not compared yet.
    pub sent: VecDeque<SentSegment>,
    /// Whether the handshake is complete.
    pub connected: bool,
    /// Whether `accept` or `connect` passed it to the application.
    pub owned: bool,
    /// Whether the machine is closed.
    pub gone: bool,
    /// The error that the next call reports.
    pub error: Option<&'static str>,
    /// Whether the peer's FIN has arrived in order.
    pub peer_finished: bool,
    /// `shutdown(SHUT_RD)`.
    pub read_shut: bool,
    /// `shutdown(SHUT_WR)`, or any later end of sending.
    pub write_shut: bool,
    /// When data last arrived, initially when the handshake completed.
    pub data_arrived_at: Instant,
    /// Number of arrivals, which `epoll` with `EPOLLET` reports.
    pub arrivals: u64,
    /// Number of times the send buffer gained room, likewise.
    pub openings: u64,
    /// What a blocked call writes once the connection is open.
    pub waiting: BlockedWrite,
    /// Bytes of that call that were written then.
    pub written: u64,
    /// How long data was unacknowledged or unsent.
    pub busy: BusyTime,
    /// The error queue.
    pub notices: Notices,
}

impl TestedConnection {
    /// Opens a connection actively.
    pub fn open(now: Instant, config: &TcpConfig, opening: Opening) -> Self {
        Self::around(now, Connection::open_with(now, config, INITIAL_SEQUENCE, opening))
    }

    /// Opens a connection passively, in reply to `syn`.
    pub fn accept(now: Instant, config: &TcpConfig, syn: &Segment, opening: Opening) -> Self {
        let machine = Connection::accept_with(now, config, INITIAL_SEQUENCE, syn, opening);
        let mut tested = Self::around(now, machine);
        tested.learn_peer(syn);
        tested
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
            waiting: BlockedWrite::default(),
            written: 0,
            busy: BusyTime::default(),
            notices: Notices::default(),
        }
    }

    /// The first SYN of the peer carries its initial sequence number.
    fn learn_peer(&mut self, segment: &Segment) {
        if segment.has(Flags::SYN) && !self.peer_known {
            self.peer_known = true;
            self.mapping.learn_peer(segment.sequence.0);
        }
    }

    /// Handles a segment of the script.
    pub fn arrive(&mut self, now: Instant, segment: Segment) {
        if self.gone {
            // RFC 9293, section 3.10.7.1: a segment without a connection is answered by a reset.
            let answer = reset_for(&segment).map(|segment| SentSegment { at: now, segment });
            self.sent.extend(answer);
            return;
        }
        self.learn_peer(&segment);
        let before = self.machine.readable();
        self.machine.handle_frame(now, segment);
        self.collect(now);
        if self.machine.readable() > before {
            self.arrivals += 1;
            self.data_arrived_at = now;
        }
    }

    /// Handles an ICMP message: packets above `mtu` bytes do not pass.
    pub fn path_mtu(&mut self, now: Instant, mtu: u32) {
        if !self.gone {
            self.machine.handle_path_mtu(now, mtu);
            self.collect(now);
        }
    }

    /// Handles an ICMP message that reports an unreachable peer. It has no effect if it quotes data that is not outstanding
    /// (RFC 5927, section 4.1).
    pub fn unreachable(&mut self, quoted: Option<u32>, error: &'static str) {
        let is_outstanding = quoted.is_none_or(|number| {
            let number = self.mapping.quoted(number);
            self.machine.is_outstanding(number)
        });
        if !self.gone && is_outstanding && self.machine.handle_unreachable(self.owned) {
            self.gone = true;
            self.error = Some(error);
            self.arrivals += 1;
        }
    }

    /// Returns when the next timer of the machine is due.
    pub fn timeout(&self) -> Option<Instant> {
        if self.gone {
            None
        } else {
            self.machine.poll_timeout()
        }
    }

    /// Runs the timers that are due.
    pub fn tick(&mut self, now: Instant) {
        if !self.gone {
            self.machine.handle_timeout(now);
            self.collect(now);
        }
    }

    /// Collects the machine's segments and events.
    pub fn collect(&mut self, now: Instant) {
        if self.gone {
            return;
        }
        if self.waiting.bytes > 0 && self.machine.state() == State::Established {
            // The data of a blocked writer leaves with the last segment of the handshake.
            let BlockedWrite { bytes, zerocopy } = std::mem::take(&mut self.waiting);
            self.written = self.machine.write(now, bytes);
            self.notices
                .on_written(self.written, zerocopy, self.written == bytes);
        }
        while let Some(outgoing) = self.machine.poll_transmit(now) {
            let segment = outgoing.segment;
            self.notices
                .on_sent(now, outgoing.offset + u64::from(segment.length));
            self.sent.push_back(SentSegment { at: now, segment });
        }
        let info = self.machine.info();
        self.busy.set(now, info.unacked > 0 || info.bytes_unsent > 0);
        if self.notices.on_acknowledged(now, self.machine.acknowledged()) {
            self.arrivals += 1;
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

    /// Whether the application may write.
    pub fn may_write(&self) -> bool {
        !self.write_shut && !self.gone
    }

    /// Returns the state as numbered in `tcp_info`.
    pub fn state_number(&self) -> u64 {
        if self.gone {
            return 7;
        }
        match self.machine.state() {
            // Linux calls a connection that Fast Open established early SYN-RECEIVED (RFC 7413, section 4.2.2).
            State::Established if self.machine.is_half_synchronized() => 3,
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

/// Returns the error name that system calls use.
fn errno(error: Error) -> &'static str {
    match error {
        Error::Refused => "ECONNREFUSED",
        Error::Reset => "ECONNRESET",
        Error::TimedOut => "ETIMEDOUT",
    }
}
