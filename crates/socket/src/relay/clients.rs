//! The relay's clients, and a socket towards the server for each of them.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

use foundation::{Duration, Instant};

use crate::datagrams::{Datagrams, Peer};

/// A client that has sent and got nothing for so long is forgotten.
const IDLE: Duration = Duration::from_secs(120);
/// A server whose port is closed may be about to return (it is being restarted) for this long after it was last heard.
const PATIENCE: Duration = Duration::from_secs(3);
/// With all places taken, one that was idle for so long makes room for a new one.
const YIELDING: Duration = Duration::from_secs(10);

/// A client's place and the number of its holder; a packet under way remembers both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientId {
    place: u32,
    holder: u32,
}

/// Somebody who sends through the relay.
#[derive(Debug)]
pub struct Client {
    holder: u32,
    /// How it is reached.
    pub peer: Peer,
    /// The socket that speaks to the server in its name.
    pub upstream: Datagrams,
    active_at: Instant,
    /// When the server last sent it something.
    heard_at: Option<Instant>,
    /// The last datagram that it sent to a silent server; empty once a refusal was answered.
    unanswered: Vec<u8>,
}

impl Client {
    /// Whether the server has sent this client nothing for as long as a restart takes, or nothing ever.
    fn is_ignored(&self, now: Instant) -> bool {
        self.heard_at.is_none_or(|at| now - at >= PATIENCE)
    }
}

/// All clients, at most so many.
#[derive(Debug)]
pub struct Clients {
    to: SocketAddr,
    most: usize,
    places: Vec<Option<Client>>,
    by_address: HashMap<SocketAddr, ClientId>,
    holders: u32,
}

impl Clients {
    /// No clients yet, of a server at `to`; at most `most`.
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

    /// How many there have been.
    #[must_use]
    pub const fn seen(&self) -> u32 {
        self.holders
    }

    /// The client at this address, made if it is new; `None` if there is no place.
    ///
    /// # Errors
    /// The system's, if there can be no socket for it.
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
            heard_at: None,
            unanswered: Vec::new(),
        });
        let place = place as u32;
        let id = ClientId { place, holder };
        self.by_address.insert(peer.address, id);
        Ok(Some(id))
    }

    /// The client, if it is still here.
    #[must_use]
    pub fn get(&self, id: ClientId) -> Option<&Client> {
        let client = self.places.get(id.place as usize)?.as_ref()?;
        (client.holder == id.holder).then_some(client)
    }

    fn get_mut(&mut self, id: ClientId) -> Option<&mut Client> {
        let client = self.places.get_mut(id.place as usize)?.as_mut()?;
        (client.holder == id.holder).then_some(client)
    }

    /// Notes that something passed for the client.
    pub fn touch(&mut self, now: Instant, id: ClientId) {
        if let Some(client) = self.get_mut(id) {
            client.active_at = now;
        }
    }

    /// Notes that the server has sent something to the client.
    pub fn hear(&mut self, now: Instant, id: ClientId) {
        if let Some(client) = self.get_mut(id) {
            client.active_at = now;
            client.heard_at = Some(now);
            client.unanswered.clear();
        }
    }

    /// Notes a datagram of the client to the server.
    pub fn send(&mut self, now: Instant, id: ClientId, datagram: &[u8]) {
        if let Some(client) = self.get_mut(id).filter(|client| client.is_ignored(now)) {
            client.unanswered.clear();
            client.unanswered.extend_from_slice(datagram);
        }
    }

    /// The client's datagram that a refusal of the server's port is about; `None` as long as the server may be about to
    /// return, and where the datagram's refusal was answered before.
    pub fn take_refused(&mut self, now: Instant, id: ClientId) -> Option<Vec<u8>> {
        let client = self.get_mut(id).filter(|client| client.is_ignored(now))?;
        Some(std::mem::take(&mut client.unanswered)).filter(|datagram| !datagram.is_empty())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (ClientId, &Client)> {
        self.places.iter().enumerate().filter_map(|(place, client)| {
            let client = client.as_ref()?;
            let (place, holder) = (place as u32, client.holder);
            Some((ClientId { place, holder }, client))
        })
    }

    /// Forgets those who have been idle for long.
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
