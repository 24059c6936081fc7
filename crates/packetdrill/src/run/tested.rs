//! One connection of the machine under test, with its state outside of the protocol machine.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use foundation::{Duration, Generator, Instant};
use transport::Machine as _;
use transport::mptcp::keys::Nonces;
use transport::mptcp::{self, HostPaths, MptcpOption, PathIndex, Setup, Signal};
use transport::tcp::{Connection, Error, Event, Flags, Opening, Segment, State, TcpConfig, reset_for};

use super::machine::{Machine, Sent};
use super::multipath::{Addresses, DELAY, Ends, PathManager};
use super::notices::Notices;
use super::segment::Mapping;

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
pub struct SentSegment {
    /// Sending time.
    pub at: Instant,
    /// The segment.
    pub segment: Segment,
    /// Options of multipath TCP.
    pub option: MptcpOption,
    /// Further option of multipath TCP.
    pub signal: Signal,
}

impl SentSegment {
    /// Returns a segment without options of multipath TCP.
    pub const fn plain(at: Instant, segment: Segment) -> Self {
        Self {
            at,
            segment,
            option: MptcpOption::None,
            signal: Signal::None,
        }
    }
}

/// The segments between two addresses: those of TCP, or of one subflow of multipath TCP.
#[derive(Debug)]
pub struct Flow {
    /// Conversion between the machine's numbers and the script's.
    pub mapping: Mapping,
    peer_known: bool,
    /// Sent segments that the script has not compared yet.
    pub sent: VecDeque<SentSegment>,
    /// Number of the subflow.
    number: u8,
    /// Whether a packet of the script has shown it: a subflow that the machine opens belongs to packets without addresses only after
    /// its SYN.
    pub is_shown: bool,
    /// Addresses, and the numbers of the handshake.
    pub ends: Ends,
}

impl Flow {
    fn new(number: u8, mapping: Mapping, ends: Ends) -> Self {
        Self {
            mapping,
            peer_known: false,
            sent: VecDeque::new(),
            number,
            is_shown: true,
            ends,
        }
    }

    /// The first SYN of the peer carries its initial sequence number.
    fn learn_peer(&mut self, segment: &Segment) {
        if segment.has(Flags::SYN) && !self.peer_known {
            self.peer_known = true;
            self.mapping.learn_peer(segment.sequence.0);
        }
    }
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

/// The ends of flows whose addresses do not count.
const NOWHERE: Ends = Ends {
    local: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    remote: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    nonces: Nonces {
        sender: 0,
        receiver: 0,
    },
};

/// A connection and its surroundings.
#[derive(Debug)]
pub struct TestedConnection {
    /// The protocol machine.
    pub machine: Machine,
    /// Its flows in the order of their opening.
    pub flows: Vec<Flow>,
    /// Announced addresses of multipath TCP, and its path manager, which acts at a time after the handshake.
    pub addresses: Addresses,
    manager: PathManager,
    manager_at: Option<Instant>,
    is_client: bool,
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
        let machine = Connection::open_with(now, config, INITIAL_SEQUENCE, opening);
        Self::around(now, Machine::Tcp(Box::new(machine)), NOWHERE)
    }

    /// Opens a connection passively, in reply to `syn`.
    pub fn accept(now: Instant, config: &TcpConfig, syn: &Segment, opening: Opening) -> Self {
        let machine = Connection::accept_with(now, config, INITIAL_SEQUENCE, syn, opening);
        let mut tested = Self::around(now, Machine::Tcp(Box::new(machine)), NOWHERE);
        tested.flows[0].learn_peer(syn);
        tested
    }

    /// Opens a connection of multipath TCP actively.
    pub fn open_multipath(
        now: Instant,
        setup: &Arc<Setup>,
        (ends, manager): (Ends, PathManager),
        random: Generator,
    ) -> Self {
        let mut paths = random.clone();
        let mut host = HostPaths::new([Duration::ZERO]);
        let machine = mptcp::Connection::open(now, setup, None, &mut host, random, &mut paths);
        let mut tested = Self::around(now, Machine::Multipath(Box::new(machine)), ends);
        tested.manager = manager;
        tested.is_client = true;
        tested
    }

    /// Opens a connection of multipath TCP passively, in reply to `syn`.
    pub fn accept_multipath(
        now: Instant,
        setup: &Arc<Setup>,
        (ends, manager): (Ends, PathManager),
        random: Generator,
        syn: &mptcp::Segment,
    ) -> Self {
        let machine = mptcp::Connection::accept(now, setup, random, PathIndex(0), syn);
        let mut tested = Self::around(now, Machine::Multipath(Box::new(machine)), ends);
        tested.manager = manager;
        tested.flows[0].learn_peer(&syn.tcp);
        tested
    }

    fn around(now: Instant, machine: Machine, ends: Ends) -> Self {
        let mapping = Mapping::beginning_at(INITIAL_SEQUENCE);
        let mut addresses = Addresses::default();
        addresses.path(ends.local, ends.remote);
        Self {
            machine,
            flows: vec![Flow::new(0, mapping, ends)],
            addresses,
            manager: PathManager::default(),
            manager_at: None,
            is_client: false,
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

    /// Adds the flow of a join, with the next number.
    pub fn add_flow(&mut self, ends: Ends) -> usize {
        let number = self.flows.len() as u8;
        self.flows.push(Flow::new(number, Mapping::default(), ends));
        self.flows.len() - 1
    }

    /// Returns the newest flow between two addresses; `None` stands for any. `shown`: only flows that the script has shown.
    pub fn find(&self, local: Option<IpAddr>, remote: Option<IpAddr>, shown: bool) -> Option<usize> {
        let matches = |flow: &Flow| {
            (flow.is_shown || !shown)
                && local.is_none_or(|local| flow.ends.local == local)
                && remote.is_none_or(|remote| flow.ends.remote == remote)
        };
        self.flows.iter().rposition(matches)
    }

    /// Handles a segment of the script on a flow.
    pub fn arrive(&mut self, now: Instant, flow: usize, segment: Segment, options: (MptcpOption, Signal)) {
        let flow = &mut self.flows[flow];
        if self.gone {
            // RFC 9293, section 3.10.7.1: a segment without a connection is answered by a reset.
            let answer = reset_for(&segment).map(|segment| SentSegment::plain(now, segment));
            flow.sent.extend(answer);
            return;
        }
        flow.learn_peer(&segment);
        let before = self.machine.readable();
        match &mut self.machine {
            Machine::Tcp(connection) => connection.handle_frame(now, segment),
            Machine::Multipath(connection) => {
                let path = self.addresses.path(flow.ends.local, flow.ends.remote);
                let segment = mptcp::Segment {
                    tcp: segment,
                    option: options.0,
                    signal: options.1,
                    subflow: flow.number,
                };
                connection.handle_segment(now, path, &segment);
            }
        }
        self.use_announced(now);
        self.collect(now);
        if self.machine.readable() > before {
            self.arrivals += 1;
            self.data_arrived_at = now;
        }
    }

    /// Opens subflows to addresses that the peer announced, within the limits of the path manager.
    fn use_announced(&mut self, now: Instant) {
        let Some(connection) = self.machine.multipath_mut() else {
            return;
        };
        while let Some(id) = connection.take_announced_address() {
            let Some(announcement) = self.addresses.peer.get(&id) else {
                continue;
            };
            let (local, remote) = (self.flows[0].ends.local, announcement.address);
            let in_use = self.flows.iter().any(|flow| flow.ends.remote == remote);
            let further = self.flows.len() - 1;
            if !in_use && further < self.manager.accepted.min(self.manager.subflows) {
                let path = self.addresses.path(local, remote);
                connection.open_subflow(now, path, (0, id), false);
            }
        }
    }

    /// Starts the path manager: after the handshake of a client, and as in Linux when a server accepts the connection.
    pub fn start_manager(&mut self, now: Instant) {
        if !self.manager.signals.is_empty() {
            self.manager_at = Some(now + DELAY);
        }
    }

    /// Announces the addresses of this host.
    fn announce(&mut self, now: Instant) {
        let Some(connection) = self.machine.multipath_mut() else {
            return;
        };
        for endpoint in &self.manager.signals {
            let announcement = endpoint.announcement();
            self.addresses.own.insert(endpoint.id, announcement);
            connection.announce_address(now, endpoint.id, announcement.form());
        }
    }

    /// Handles an ICMP message: packets above `mtu` bytes do not pass.
    pub fn path_mtu(&mut self, now: Instant, mtu: u32) {
        if !self.gone {
            self.machine.handle_path_mtu(now, PathIndex(0), mtu);
            self.collect(now);
        }
    }

    /// Handles an ICMP message that reports an unreachable peer. It has no effect if it quotes data that is not outstanding
    /// (RFC 5927, section 4.1).
    pub fn unreachable(&mut self, quoted: Option<u32>, error: &'static str) {
        let Some(machine) = self.machine.tcp_mut() else {
            return;
        };
        let mapping = &self.flows[0].mapping;
        let is_outstanding = quoted.is_none_or(|number| machine.is_outstanding(mapping.quoted(number)));
        if !self.gone && is_outstanding && machine.handle_unreachable(self.owned) {
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
            self.machine
                .poll_timeout()
                .into_iter()
                .chain(self.manager_at)
                .min()
        }
    }

    /// Runs the timers that are due.
    pub fn tick(&mut self, now: Instant) {
        if !self.gone {
            self.machine.handle_timeout(now);
            if self.manager_at.take_if(|at| *at <= now).is_some() {
                self.announce(now);
            }
            self.collect(now);
        }
    }

    /// Collects the machine's segments and events.
    pub fn collect(&mut self, now: Instant) {
        if self.gone {
            return;
        }
        if self.waiting.bytes > 0 && self.machine.is_established() {
            // The data of a blocked writer leaves with the last segment of the handshake.
            let BlockedWrite { bytes, zerocopy } = std::mem::take(&mut self.waiting);
            self.written = self.machine.write(now, bytes);
            self.notices
                .on_written(self.written, zerocopy, self.written == bytes);
        }
        while let Some(sent) = self.machine.poll_transmit(now) {
            self.notices.on_sent(now, sent.end);
            self.add_sent(now, &sent);
        }
        self.busy.set(now, self.machine.is_busy());
        if self.notices.on_acknowledged(now, self.machine.acknowledged()) {
            self.arrivals += 1;
        }
        while let Some(event) = self.machine.poll_event() {
            match event {
                Event::Connected => {
                    self.connected = true;
                    self.data_arrived_at = now;
                    if self.is_client {
                        self.start_manager(now);
                    }
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

    /// Adds a segment to its flow.
    fn add_sent(&mut self, now: Instant, sent: &Sent) {
        let known = self.flows.iter().position(|flow| flow.number == sent.subflow);
        let index = known.unwrap_or_else(|| {
            let (local, remote) = self
                .addresses
                .pair(sent.path)
                .unwrap_or((NOWHERE.local, NOWHERE.remote));
            let ends = Ends::new(local, remote);
            let mut flow = Flow::new(sent.subflow, Mapping::default(), ends);
            flow.is_shown = false;
            self.flows.push(flow);
            self.flows.len() - 1
        });
        let flow = &mut self.flows[index];
        if self.machine.multipath().is_some() && sent.segment.has(Flags::SYN) {
            flow.mapping.set_initial(sent.segment.sequence.0);
        }
        flow.ends.learn_nonce(&sent.option);
        flow.sent.push_back(SentSegment {
            at: now,
            segment: sent.segment,
            option: sent.option,
            signal: sent.signal,
        });
    }

    /// Whether the application may write.
    pub fn may_write(&self) -> bool {
        !self.write_shut && !self.gone
    }

    /// Returns the state as numbered in `tcp_info`.
    pub fn state_number(&self, machine: &Connection) -> u64 {
        if self.gone {
            return 7;
        }
        match machine.state() {
            // Linux calls a connection that Fast Open established early SYN-RECEIVED (RFC 7413, section 4.2.2).
            State::Established if machine.is_half_synchronized() => 3,
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
