//! A relay that behaves like a network: datagrams go in, wait, are lost, delayed or damaged as its
//! links say, and come out. The same links as in simulation, on the wall's time, between real
//! processes, without any privilege.

mod clients;
mod refusal;

use std::net::SocketAddr;
use std::ops::ControlFlow;

use foundation::{Duration, Instant, Streams};
use hdrhistogram::Histogram;
use network::{
    Body, FORWARD, LinkCounters, LinkId, Network, Packet, PathSpec, REVERSE, RouteId, UDP_IPV4_OVERHEAD,
};
use rustix::event::{PollFd, PollFlags};

use crate::clock::{Clock, Stamps};
use crate::datagrams::{Datagrams, Inbox, Peer};
use crate::error::Error;
use crate::outbox::Outbox;
use crate::spin::{Pause, SpinBudget, SpinLimits};
use crate::wait;
use clients::{ClientId, Clients};

/// The caller is asked at least this often whether to go on.
const TICK: Duration = Duration::from_millis(50);
/// Clients that have gone are looked for this often.
const SWEEP: Duration = Duration::from_secs(5);
/// Receive slots: as many as the system fills at once.
const SLOTS: usize = 32;
/// Buffers kept for datagrams to come.
const POOL: usize = 16_384;

/// What to relay.
#[derive(Clone, Debug)]
pub struct RelayOptions {
    /// Where clients send to. Port 0 takes any free one.
    pub listen: SocketAddr,
    /// Where their datagrams go.
    pub to: SocketAddr,
    /// The links: forward is from the clients to the server.
    pub path: PathSpec,
    /// The source of what happens by chance.
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

/// What a relay has done.
#[derive(Clone, Debug, Default)]
pub struct RelayReport {
    /// The link from the clients to the server.
    pub forward: LinkCounters,
    /// The link back.
    pub reverse: LinkCounters,
    /// Clients that there were.
    pub clients: u32,
    /// Datagrams that the relay itself dropped: no place for their client, or no room in the system.
    pub dropped: u64,
    /// How often the server's machine reported that nothing listens at the server's port.
    pub refused: u64,
    /// How late departures were: median.
    pub late_p50: Duration,
    /// How late departures were: 99th percentile.
    pub late_p99: Duration,
}

/// A relay that listens.
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
    fn flip_bit(&mut self, choice: u64) {
        self.bytes.flip_bit(choice);
    }
}

impl Relay {
    /// Listens.
    ///
    /// # Errors
    /// [`Error::Listen`] if the address is not to be had.
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

    /// Where clients send to.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Relays until `tick` breaks; it is called about 20 times a second with what was done so far.
    ///
    /// # Errors
    /// [`Error::Receive`] if the socket fails.
    pub fn run(self, tick: &mut dyn FnMut(&RelayReport) -> ControlFlow<()>) -> Result<RelayReport, Error> {
        wait::sharpen_timers();
        wait::raise_priority();
        let nobody = Peer::new(self.address);
        let mut relaying = Relaying {
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

struct Relaying {
    clock: Clock,
    network: Network<Datagram>,
    clients: Clients,
    to: Peer,
    front: Datagrams,
    arrivals: Vec<Arrival>,
    /// Whether clients have sent something.
    front_ready: bool,
    /// Clients whose upstream socket has something to read.
    ready: Vec<ClientId>,
    pool: Vec<Vec<u8>>,
    outbox: Outbox,
    /// Which way, and for whom, the train in the outbox goes.
    towards: Option<(RouteId, ClientId)>,
    dropped: u64,
    /// Clients whose datagrams the server's port refused, still to be told.
    refusals: Vec<ClientId>,
    refused: u64,
    late: Option<Histogram<u64>>,
}

impl Relaying {
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
                // No place, or no more sockets.
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
            self.clients.hear(stamps.now(), client);
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

    /// What was read from several sockets enters the network in the order in which the kernel received it.
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

    /// Sends on what has reached the far end.
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
            // What the system reports here is about an earlier datagram; it has sent none of these.
            self.note_refusal(id, &error);
            self.dropped += waiting as u64;
            self.outbox.clear();
        }
    }

    /// Counts an ICMP error by which the server's machine says that nothing listens there. Other errors are losses.
    fn note_refusal(&mut self, client: ClientId, error: &std::io::Error) {
        if error.kind() == std::io::ErrorKind::ConnectionRefused {
            self.refused += 1;
            self.refusals.push(client);
        }
    }

    /// Tells clients of refusals over the link back, as a router would pass the ICMP error on.
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
            forward: *self.network.counters(LinkId(0)),
            reverse: *self.network.counters(LinkId(1)),
            clients: self.clients.seen(),
            dropped: self.dropped,
            refused: self.refused,
            late_p50: Duration::from_nanos(late(0.5)),
            late_p99: Duration::from_nanos(late(0.99)),
        }
    }
}
