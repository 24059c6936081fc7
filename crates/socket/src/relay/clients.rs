//! The relay's clients, each with its own socket to the server.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

use foundation::{Duration, Instant};

use crate::datagrams::{Datagrams, Peer};

/// Idle time after which a client is forgotten.
const IDLE: Duration = Duration::from_secs(120);
/// How long a refused server may take to come back after its last datagram, for example while it restarts.
const TIMEOUT: Duration = Duration::from_secs(3);
/// With all slots taken, a client that has been idle for this long is replaced by a new one.
const YIELDING: Duration = Duration::from_secs(10);

/// A client's slot and the number of its holder; each packet in flight carries both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientId {
    place: u32,
    holder: u32,
}

impl ClientId {
    /// Returns a number that no other client has.
    pub(crate) const fn number(self) -> u64 {
        (self.place as u64) << 32 | self.holder as u64
    }
}

/// A sender that uses the relay.
#[derive(Debug)]
pub struct Client {
    holder: u32,
    /// Its address.
    pub peer: Peer,
    /// The socket to the server on its behalf.
    pub upstream: Datagrams,
    active_at: Instant,
    /// When the server's last datagram for it arrived.
    last_arrival: Option<Instant>,
    /// The last datagram sent to a silent server; empty after a refusal was answered.
    unanswered: Vec<u8>,
}

impl Client {
    /// Whether the server has been silent towards this client for longer than a restart takes, or from the start.
    fn is_ignored(&self, now: Instant) -> bool {
        self.last_arrival.is_none_or(|at| now - at >= TIMEOUT)
    }
}

/// All clients, up to a maximum.
#[derive(Debug)]
pub struct Clients {
    to: SocketAddr,
    most: usize,
    places: Vec<Option<Client>>,
    by_address: HashMap<SocketAddr, ClientId>,
    holders: u32,
}

impl Clients {
    /// Creates an empty set for a server at `to`.
    #[must_use]
    pub fn new(to: SocketAddr, most: usize) -> Self {
        Self {
            to,
            most: most.max(1),
            places: Vec::new(),
            by_address: HashMap::new(),
            holders: 0,
        }
    }

    /// Returns how many clients there have been.
    #[must_use]
    pub const fn seen(&self) -> u32 {
        self.holders
    }

    /// Returns the client at this address, creating it if necessary; `None` if all slots are taken.
    ///
    /// # Errors
    /// The system's, if no socket can be opened.
    pub fn admit(&mut self, now: Instant, peer: Peer) -> io::Result<Option<ClientId>> {
        if let Some(&id) = self.by_address.get(&peer.address) {
            if let Some(client) = self.get_mut(id) {
                client.active_at = now;
            }
            return Ok(Some(id));
        }
        if self.by_address.len() >= self.most {
            self.forget_idle(now, YIELDING);
        }
        if self.by_address.len() >= self.most {
            return Ok(None);
        }
        let upstream = Datagrams::connect(self.to)?;
        let free = self.places.iter().position(Option::is_none);
        let place = free.unwrap_or(self.places.len());
        if place == self.places.len() {
            self.places.push(None);
        }
        let holder = self.holders;
        self.holders += 1;
        self.places[place] = Some(Client {
            holder,
            peer,
            upstream,
            active_at: now,
            last_arrival: None,
            unanswered: Vec::new(),
        });
        let place = place as u32;
        let id = ClientId { place, holder };
        self.by_address.insert(peer.address, id);
        Ok(Some(id))
    }

    /// Returns the client, if it still exists.
    #[must_use]
    pub fn get(&self, id: ClientId) -> Option<&Client> {
        let client = self.places.get(id.place as usize)?.as_ref()?;
        (client.holder == id.holder).then_some(client)
    }

    fn get_mut(&mut self, id: ClientId) -> Option<&mut Client> {
        let client = self.places.get_mut(id.place as usize)?.as_mut()?;
        (client.holder == id.holder).then_some(client)
    }

    /// Records activity of the client.
    pub fn touch(&mut self, now: Instant, id: ClientId) {
        if let Some(client) = self.get_mut(id) {
            client.active_at = now;
        }
    }

    /// Records a datagram from the server.
    pub fn record_reply(&mut self, now: Instant, id: ClientId) {
        if let Some(client) = self.get_mut(id) {
            client.active_at = now;
            client.last_arrival = Some(now);
            client.unanswered.clear();
        }
    }

    /// Records a datagram of the client to the server.
    pub fn send(&mut self, now: Instant, id: ClientId, datagram: &[u8]) {
        if let Some(client) = self.get_mut(id).filter(|client| client.is_ignored(now)) {
            client.unanswered.clear();
            client.unanswered.extend_from_slice(datagram);
        }
    }

    /// Returns the client's datagram that the server's port refused; `None` while the server may still come back, and
    /// if that refusal was answered before.
    pub fn take_refused(&mut self, now: Instant, id: ClientId) -> Option<Vec<u8>> {
        let client = self.get_mut(id).filter(|client| client.is_ignored(now))?;
        Some(std::mem::take(&mut client.unanswered)).filter(|datagram| !datagram.is_empty())
    }

    /// Returns all clients.
    pub fn iter(&self) -> impl Iterator<Item = (ClientId, &Client)> {
        self.places.iter().enumerate().filter_map(|(place, client)| {
            let client = client.as_ref()?;
            let (place, holder) = (place as u32, client.holder);
            Some((ClientId { place, holder }, client))
        })
    }

    /// Forgets clients that have been idle for long.
    pub fn forget(&mut self, now: Instant) {
        self.forget_idle(now, IDLE);
    }

    fn forget_idle(&mut self, now: Instant, idle: Duration) {
        for place in &mut self.places {
            if let Some(client) = place.take_if(|client| now - client.active_at >= idle) {
                self.by_address.remove(&client.peer.address);
            }
        }
    }
}
