//! The requests of applications.

use foundation::{Duration, Instant};

use super::{Connections, PendingConnection};
use crate::mptcp::daemon::connection::by_address;
use crate::mptcp::daemon::control::{
    ConnectionStatus, PathStatus, PeerStatus, Reply, Request, SubflowStatus,
};
use crate::mptcp::daemon::notification::Notification;

impl Connections<'_> {
    /// Answers a request of an application.
    pub(in super::super) fn answer(
        &mut self,
        now: Instant,
        request: Request,
        notify: &mut dyn FnMut(Notification),
    ) -> Reply {
        match request {
            Request::Open { to, size } => {
                let to = to.to_canonical();
                let opened = self.open(now, to, size);
                let Some((director, peer)) = opened else {
                    return Reply::Error(format!("no path of this host leads to {to}"));
                };
                let from = self.peers[&peer].ways[director.first().index()].path.address;
                let number = self.opened;
                let opening = PendingConnection {
                    to,
                    peer,
                    size,
                    director,
                    at: now,
                };
                self.openings.insert(number, opening);
                Reply::Opening {
                    opening: number,
                    from,
                }
            }
            Request::Begin { opening, token, port } => {
                let Some(opening) = self.openings.remove(&opening) else {
                    return Reply::Error(format!("no registration {opening}"));
                };
                let first = self.first_subflows.remove(&token);
                // The connection's event may arrive before this request; the request has more information.
                let adopted = self.connections.remove(&token);
                let first = first.or_else(|| adopted.and_then(|adopted| adopted.subflows.first().copied()));
                self.add(token, port, opening, first, notify);
                Reply::Begun { token }
            }
            Request::Status {} => self.status(),
        }
    }

    fn status(&self) -> Reply {
        let millis = |duration: Duration| Some(duration.as_secs_f64() * 1e3).filter(|millis| *millis > 0.0);
        let current = self.current.values().filter_map(|number| self.peers.get(number));
        let peers = current.map(|peer| PeerStatus {
            address: peer.address,
            paths: peer
                .ways
                .iter()
                .zip(peer.account.paths())
                .map(|(way, account)| PathStatus {
                    address: way.path.address,
                    remote: way.remote,
                    rtt_ms: millis(account.rtt),
                    base_rtt_ms: millis(account.base_rtt),
                    unfinished: account.unfinished,
                    acknowledged: account.acknowledged,
                    subflows: account.subflows,
                })
                .collect(),
        });
        let connections = self.connections.iter().map(|(&token, connection)| {
            let peer = self.peers.get(&connection.peer);
            let by_address = |bytes| peer.map(|peer| by_address(bytes, peer)).unwrap_or_default();
            let subflows = connection.subflows.iter().map(|pair| SubflowStatus {
                local: pair.local,
                remote: pair.remote,
            });
            ConnectionStatus {
                token,
                to: connection.to,
                size: connection.size,
                bytes: by_address(&connection.bytes),
                received: by_address(&connection.received),
                subflows: subflows.collect(),
            }
        });
        Reply::Status {
            policy: self.options.policy.kind().into(),
            peers: peers.collect(),
            connections: connections.collect(),
        }
    }
}
