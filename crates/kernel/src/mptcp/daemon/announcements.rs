//! Addresses of this host that the path manager announced to clients.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::notification::Notification;
use crate::error::Error;
use crate::mptcp::events::{Event, EventKind};
use crate::mptcp::manager::Manager;
use crate::mptcp::paths::Path;

/// The announced addresses of each connection and their address IDs.
pub(super) struct Announcements(BTreeMap<u32, BTreeMap<IpAddr, u8>>);

impl Announcements {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(super) fn handle_event(
        &mut self,
        Event { token, kind }: Event,
        paths: &[Path],
        manager: &Manager,
        notify: &mut dyn FnMut(Notification),
    ) {
        match kind {
            EventKind::Established { pair, server: true } => {
                let own = pair.local.ip().to_canonical();
                let announced = self.0.entry(token).or_default();
                for (index, path) in paths.iter().enumerate() {
                    let address = path.address;
                    if address == own || address.is_ipv4() != own.is_ipv4() {
                        continue;
                    }
                    let id = index as u8 + 1;
                    let result = manager.announce(token, path, id);
                    if result.is_ok() {
                        announced.insert(address, id);
                    }
                    notify(outcome(token, result, Notification::Announced { token, address }));
                }
            }
            EventKind::Closed => {
                self.0.remove(&token);
            }
            _ => {}
        }
    }

    /// Withdraws addresses that this host lost from every peer that received them.
    pub(super) fn withdraw(
        &mut self,
        lost: &[IpAddr],
        manager: &Manager,
        notify: &mut dyn FnMut(Notification),
    ) {
        for (&token, announced) in &mut self.0 {
            for &from in lost {
                if let Some(id) = announced.remove(&from) {
                    let result = manager.remove(token, id);
                    notify(outcome(token, result, Notification::Left { token, from }));
                }
            }
        }
    }
}

fn outcome(token: u32, result: Result<(), Error>, success: Notification) -> Notification {
    match result {
        Ok(()) => success,
        Err(error) => Notification::Refused {
            token,
            reason: error.to_string(),
        },
    }
}
