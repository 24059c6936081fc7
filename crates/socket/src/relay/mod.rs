//! A relay that behaves like a network: its links queue, delay, drop and damage datagrams between real processes. They
//! are the links of the simulator, on wall time, and need no privileges.

mod clients;
mod refusal;

use std::net::SocketAddr;
use std::ops::ControlFlow;

use foundation::{Duration, Instant, Streams};
use hdrhistogram::Histogram;
use network::{
    Body, Connection, FORWARD, LinkCounters, LinkId, Network, Packet, PathSpec, REVERSE, RouteId,
    UDP_IPV4_OVERHEAD,
};
use rustix::event::{PollFd, PollFlags};

use crate::clock::{Clock, Stamps};
use crate::datagrams::{Datagrams, Inbox, Peer};
use crate::error::Error;
use crate::outbox::Outbox;
use crate::spin::{Pause, SpinBudget, SpinLimits};
use crate::wait;
use clients::{ClientId, Clients};

/// How often the caller can stop the relay, at least.
const TICK: Duration = Duration::from_millis(50);
/// How often idle clients are removed.
const SWEEP: Duration = Duration::from_secs(5);
/// Receive slots: the system's batch size.
const SLOTS: usize = 32;
/// Buffers kept for reuse.
const POOL: usize = 16_384;

/// Options of a relay.
#[derive(Clone, Debug)]
pub struct RelayOptions {
    /// Where clients send to. Port 0 takes any free port.
    pub listen: SocketAddr,
    /// Where their datagrams go.
    pub to: SocketAddr,
    /// The links; forward is from the clients to the server.
    pub path: PathSpec,
    /// Random streams of loss, jitter and corruption.
    pub streams: Streams,
    /// Clients at a time, default 256. They share the links, as behind one router.
    pub max_clients: usize,
}

impl RelayOptions {
    /// Relays from `listen` to `to` over `path`.
    #[must_use]
    pub const fn new(listen: SocketAddr, to: SocketAddr, path: PathSpec, streams: Streams) -> Self {
        Self {
            listen,
            to,
            path,
            streams,
            max_clients: 256,
        }
    }
}

/// Counters of a relay.
#[derive(Clone, Debug, Default)]
pub struct RelayReport {
    /// The link from the clients to the server.
    pub forward: LinkCounters,
    /// The link back.
    pub reverse: LinkCounters,
    /// Number of clients seen.
    pub clients: u32,
    /// Datagrams that the relay itself dropped: no slot for their client, or no room in the system.
    pub dropped: u64,
    /// How often the server's host reported that the server's port is closed.
    pub refused: u64,
    /// Median lateness of departures.
    pub late_p50: Duration,
    /// 99th percentile of the lateness of departures.
    pub late_p99: Duration,
}

/// A relay with its listening socket.
#[derive(Debug)]
pub struct Relay {
    front: Datagrams,
    address: SocketAddr,
    options: RelayOptions,
}

#[derive(Clone, Debug)]
struct Datagram {
    client: ClientId,
    bytes: Vec<u8>,
}

impl Body for Datagram {
    /// The servers follow a new address of a client.
    fn connection(&self) -> Option<Connection> {
        Some(Connection {
            number: self.client.number(),
            ..Connection::default()
        })
    }

    fn flip_bit(&mut self, choice: u64) {
        self.bytes.flip_bit(choice);
    }
}

impl Relay {
    /// Opens the listening socket.
    ///
    /// # Errors
    /// [`Error::Listen`] if the address is not available.
    pub fn bind(options: RelayOptions) -> Result<Self, Error> {
        let address = options.listen;
        let listen = |source| Error::Listen { address, source };
        let front = Datagrams::bind(address).map_err(listen)?;
        Ok(Self {
            address: front.local_address().map_err(listen)?,
            front,
            options,
        })
    }

    /// Returns the address that clients send to.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Relays until `tick` breaks; `tick` is called about 20 times a second with the counters so far.
    ///
    /// # Errors
    /// [`Error::Receive`] if the socket fails.
    pub fn run(self, tick: &mut dyn FnMut(&RelayReport) -> ControlFlow<()>) -> Result<RelayReport, Error> {
        wait::sharpen_timers();
        wait::raise_priority();
        let nobody = Peer::new(self.address);
        let mut relaying = RelayLoop {
            clock: Clock::new(),
            network: Network::two_hosts(&self.options.path, self.options.streams),
            clients: Clients::new(self.options.to, self.options.max_clients),
            to: Peer::new(self.options.to),
            front: self.front,
            arrivals: Vec::new(),
            front_ready: false,
            ready: Vec::new(),
            pool: Vec::new(),
            outbox: Outbox::new(nobody),
            towards: None,
            dropped: 0,
            refusals: Vec::new(),
            refused: 0,
            late: Histogram::new_with_bounds(1, 1_000_000_000, 2).ok(),
        };
        relaying.run(self.address, tick)
    }
}

struct Arrival {
    at: Instant,
    route: RouteId,
    datagram: Datagram,
}

struct RelayLoop {
    clock: Clock,
    network: Network<Datagram>,
    clients: Clients,
    to: Peer,
    front: Datagrams,
    arrivals: Vec<Arrival>,
    /// Whether clients have sent something.
    front_ready: bool,
    /// Clients whose upstream socket is readable.
    ready: Vec<ClientId>,
    pool: Vec<Vec<u8>>,
    outbox: Outbox,
    /// Direction and client of the train in the outbox.
    towards: Option<(RouteId, ClientId)>,
    dropped: u64,
    /// Clients with an unanswered refusal.
    refusals: Vec<ClientId>,
    refused: u64,
    late: Option<Histogram<u64>>,
}

impl RelayLoop {
    fn run(
        &mut self,
        address: SocketAddr,
        tick: &mut dyn FnMut(&RelayReport) -> ControlFlow<()>,
    ) -> Result<RelayReport, Error> {
        let mut inbox = Inbox::new(SLOTS);
        let mut budget = SpinBudget::new(SpinLimits::SHARED);
        let (mut next_tick, mut next_sweep) = (Instant::ZERO, Instant::ZERO + SWEEP);
        loop {
            if std::mem::take(&mut self.front_ready) {
                match self.front.receive(&mut inbox) {
                    Ok(_) => self.take_from_clients(&inbox),
                    Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => {}
                    Err(source) => return Err(Error::Receive { address, source }),
                }
            }
            self.take_from_server(&mut inbox);
            let now = self.clock.now();
            budget.count(now, self.arrivals.len() as u64);
            self.enter();
            if let Some(due) = self.network.poll_timeout().filter(|&due| due <= now) {
                if let Some(late) = &mut self.late {
                    late.saturating_record((now - due).as_nanos());
                }
                self.network.handle_timeout(now);
            }
            self.leave(now);
            self.answer_refusals(now);
            if now >= next_tick {
                next_tick = now + TICK;
                if tick(&self.report()).is_break() {
                    return Ok(self.report());
                }
            }
            if now >= next_sweep {
                next_sweep = now + SWEEP;
                self.clients.forget(now);
            }
            let longest = next_tick - now;
            let pause = budget.pause(self.clock.now(), self.network.poll_timeout(), longest);
            self.look_for_arrivals(match pause {
                Pause::Spin => Duration::ZERO,
                Pause::Sleep(span) => span,
            });
        }
    }

    fn look_for_arrivals(&mut self, timeout: Duration) {
        let mut sockets = vec![PollFd::new(self.front.socket(), PollFlags::IN)];
        sockets.extend(
            self.clients
                .iter()
                .map(|(_, client)| PollFd::new(client.upstream.socket(), PollFlags::IN)),
        );
        wait::wait_any(&mut sockets, timeout);
        self.ready.clear();
        self.front_ready = !sockets[0].revents().is_empty();
        for ((id, _), socket) in self.clients.iter().zip(&sockets[1..]) {
            if !socket.revents().is_empty() {
                self.ready.push(id);
            }
        }
    }

    fn take_from_clients(&mut self, inbox: &Inbox) {
        let stamps = self.clock.stamps();
        for train in inbox.trains() {
            match self.clients.admit(stamps.now(), train.from) {
                Ok(Some(client)) => self.note(&stamps, train, FORWARD, client),
                // All slots are taken, or no socket can be opened.
                Ok(None) | Err(_) => self.dropped += train.datagrams().count() as u64,
            }
        }
    }

    fn take_from_server(&mut self, inbox: &mut Inbox) {
        for client in std::mem::take(&mut self.ready) {
            let Some(upstream) = self.clients.get(client).map(|client| &client.upstream) else {
                continue;
            };
            match upstream.receive(inbox) {
                Ok(0) => continue,
                Ok(_) => {}
                Err(error) => {
                    self.note_refusal(client, &error);
                    continue;
                }
            }
            let stamps = self.clock.stamps();
            self.clients.record_reply(stamps.now(), client);
            for train in inbox.trains() {
                self.note(&stamps, train, REVERSE, client);
            }
        }
    }

    fn note(
        &mut self,
        stamps: &Stamps,
        train: crate::datagrams::Train<'_>,
        route: RouteId,
        client: ClientId,
    ) {
        let at = stamps.instant(train.stamp);
        for datagram in train.datagrams() {
            let mut bytes = self.pool.pop().unwrap_or_default();
            bytes.clear();
            bytes.extend_from_slice(datagram);
            let datagram = Datagram { client, bytes };
            self.arrivals.push(Arrival { at, route, datagram });
        }
    }

    /// Feeds datagrams of several sockets into the network in the order in which the kernel received them.
    fn enter(&mut self) {
        if self.arrivals.windows(2).any(|pair| pair[1].at < pair[0].at) {
            self.arrivals.sort_by_key(|arrival| arrival.at);
        }
        for arrival in self.arrivals.drain(..) {
            let size = arrival.datagram.bytes.len() as u32 + UDP_IPV4_OVERHEAD;
            self.network
                .send(arrival.at, Packet::new(arrival.route, size, arrival.datagram));
        }
    }

    /// Sends datagrams that have reached the far end of the network.
    fn leave(&mut self, now: Instant) {
        while let Some((_, packet)) = self.network.poll_delivery() {
            let Datagram { client, bytes } = packet.body;
            let towards = Some((packet.route, client));
            if self.towards != towards || !self.outbox.fits(bytes.len()) {
                self.flush();
                self.towards = towards;
            }
            if packet.route == REVERSE {
                self.clients.touch(now, client);
            } else {
                self.clients.send(now, client, &bytes);
            }
            self.outbox.push(|out| out.extend_from_slice(&bytes));
            if self.pool.len() < POOL {
                self.pool.push(bytes);
            }
        }
        self.flush();
    }

    fn flush(&mut self) {
        let waiting = self.outbox.len();
        let Some((route, id)) = self.towards.filter(|_| waiting > 0) else {
            return;
        };
        let Some(client) = self.clients.get(id) else {
            self.dropped += waiting as u64;
            return self.outbox.clear();
        };
        let sent = match route {
            REVERSE => self.outbox.send_to(client.peer, &self.front),
            _ => self.outbox.send_to(self.to, &client.upstream),
        };
        if let Err(error) = sent {
            // An error reported here concerns an earlier datagram; none of these was sent.
            self.note_refusal(id, &error);
            self.dropped += waiting as u64;
            self.outbox.clear();
        }
    }

    /// Counts ICMP errors that report a closed port at the server. Other errors count as losses.
    fn note_refusal(&mut self, client: ClientId, error: &std::io::Error) {
        if error.kind() == std::io::ErrorKind::ConnectionRefused {
            self.refused += 1;
            self.refusals.push(client);
        }
    }

    /// Sends refusals to clients over the link back, as a router would forward the ICMP error.
    fn answer_refusals(&mut self, now: Instant) {
        for client in std::mem::take(&mut self.refusals) {
            let refused = self.clients.take_refused(now, client);
            if let Some(bytes) = refused.and_then(|datagram| refusal::notice(&datagram)) {
                let size = bytes.len() as u32 + UDP_IPV4_OVERHEAD;
                self.network
                    .send(now, Packet::new(REVERSE, size, Datagram { client, bytes }));
            }
        }
    }

    fn report(&self) -> RelayReport {
        let late = |q| self.late.as_ref().map_or(0, |late| late.value_at_quantile(q));
        RelayReport {
            forward: self.network.counters(LinkId(0)),
            reverse: self.network.counters(LinkId(1)),
            clients: self.clients.seen(),
            dropped: self.dropped,
            refused: self.refused,
            late_p50: Duration::from_nanos(late(0.5)),
            late_p99: Duration::from_nanos(late(0.99)),
        }
    }
}
