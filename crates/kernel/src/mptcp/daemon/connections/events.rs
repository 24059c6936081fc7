//! The kernel's events of connections.

use foundation::Instant;

use super::{Connections, PendingConnection};
use crate::mptcp::daemon::notification::Notification;
use crate::mptcp::daemon::peer::routed;
use crate::mptcp::director::Way;
use crate::mptcp::events::{Event, EventKind, SocketPair};
use crate::mptcp::manager::Manager;

impl Connections<'_> {
    pub(in super::super) fn handle_event(
        &mut self,
        now: Instant,
        event: Event,
        manager: &Manager,
        notify: &mut dyn FnMut(Notification),
    ) {
        if self.options.announce {
            self.announcements
                .handle_event(event, &self.paths, manager, notify);
        }
        let token = event.token;
        match event.kind {
            EventKind::Created { pair, server: false } => match self.connections.get_mut(&token) {
                Some(connection) => {
                    connection.subflows.insert(pair);
                }
                None => {
                    self.first_subflows.insert(token, pair);
                }
            },
            EventKind::Established { pair, server: false } => {
                self.first_subflows.remove(&token);
                if let Some(connection) = self.connections.get_mut(&token) {
                    connection.subflows.insert(pair);
                } else if !self.options.requested_only {
                    self.adopt(now, token, pair, notify);
                }
            }
            EventKind::SubflowEstablished(pair) => {
                if let Some(connection) = self.connections.get_mut(&token) {
                    connection.subflows.insert(pair);
                }
            }
            EventKind::SubflowClosed(pair) => {
                if let Some(connection) = self.connections.get_mut(&token) {
                    connection.subflows.remove(&pair);
                }
            }
            EventKind::Closed => self.close(token, notify),
            EventKind::Announced { id, remote } => self.learn(token, id, remote),
            EventKind::Removed(id) => self.forget(token, id, manager),
            EventKind::Created { .. } | EventKind::Established { .. } => {}
        }
    }

    /// Manages a connection that no application registered.
    fn adopt(&mut self, now: Instant, token: u32, pair: SocketPair, notify: &mut dyn FnMut(Notification)) {
        let to = pair.remote.ip().to_canonical();
        let Some((mut director, peer)) = self.open(now, to, None) else {
            return;
        };
        if let Some(place) = self.peers.get(&peer).and_then(|peer| peer.way_of(&pair)) {
            director.set_first(place);
        }
        let opening = PendingConnection {
            to,
            peer,
            size: None,
            director,
            at: now,
        };
        self.add(token, pair.remote.port(), opening, Some(pair), notify);
    }

    /// Adds a way to an address that the peer of a connection announced.
    fn learn(&mut self, token: u32, id: u8, remote: std::net::SocketAddr) {
        let address = remote.ip().to_canonical();
        let Some(connection) = self.connections.get_mut(&token) else {
            return;
        };
        connection.announced.insert(id, address);
        let path = routed(&self.paths, address);
        let (Some(path), Some(peer)) = (path, self.peers.get_mut(&connection.peer)) else {
            return;
        };
        let port = Some(remote.port()).filter(|&port| port != 0 && port != connection.port);
        let way = Way {
            path,
            remote: address,
            port,
        };
        peer.add(way);
        connection.director.reconsider(connection.size, &peer.account);
    }

    /// Closes the subflows to an address that the peer of a connection withdrew.
    fn forget(&mut self, token: u32, id: u8, manager: &Manager) {
        let Some(connection) = self.connections.get_mut(&token) else {
            return;
        };
        // 0 is the address of the first subflow.
        let remote = connection
            .announced
            .remove(&id)
            .or((id == 0).then_some(connection.to));
        let Some(remote) = remote else { return };
        if let Some(peer) = self.peers.get(&connection.peer) {
            connection.remove_ways(token, peer, &|way| way.remote == remote, manager);
            connection.director.reconsider(connection.size, &peer.account);
            self.current.remove(&connection.to);
        }
    }
}
