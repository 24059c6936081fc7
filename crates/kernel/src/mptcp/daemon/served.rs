//! Connections that peers have opened: they are told of this host's other addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::Told;
use crate::mptcp::{Event, Manager, Path};

/// The addresses that the peer of each connection was told of, with their numbers.
pub(super) struct Served(BTreeMap<u32, BTreeMap<IpAddr, u8>>);

impl Served {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(super) fn hear(
        &mut self,
        event: Event,
        paths: &[Path],
        manager: &Manager,
        tell: &mut dyn FnMut(Told),
    ) {
        match event {
            Event::Established {
                token,
                peers,
                server: true,
            } => {
                let own = peers.local.ip().to_canonical();
                let told = self.0.entry(token).or_default();
                for (place, path) in paths.iter().enumerate() {
                    if path.address == own || path.address.is_ipv4() != own.is_ipv4() {
                        continue;
                    }
                    let id = place as u8 + 1;
                    match manager.announce(token, path, id) {
                        Ok(()) => {
                            told.insert(path.address, id);
                            tell(Told::Announced {
                                token,
                                address: path.address,
                            });
                        }
                        Err(error) => tell(Told::Refused {
                            token,
                            reason: error.to_string(),
                        }),
                    }
                }
            }
            Event::Closed { token } => {
                self.0.remove(&token);
            }
            _ => {}
        }
    }

    /// Addresses are gone: peers that were told of them are told so.
    pub(super) fn lose(&mut self, gone: &[IpAddr], manager: &Manager, tell: &mut dyn FnMut(Told)) {
        for (&token, told) in &mut self.0 {
            for address in gone {
                let Some(id) = told.remove(address) else {
                    continue;
                };
                match manager.remove(token, id) {
                    Ok(()) => tell(Told::Left {
                        token,
                        from: *address,
                    }),
                    Err(error) => tell(Told::Refused {
                        token,
                        reason: error.to_string(),
                    }),
                }
            }
        }
    }
}
