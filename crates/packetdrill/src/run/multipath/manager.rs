//! The path manager of the host under test, configured by `ip mptcp` as Linux's in-kernel one.

use std::net::IpAddr;

use foundation::Duration;
use transport::mptcp::wire::Announcement;

use super::names::following;

/// How long after the handshake it acts: Linux's runs in a separate task.
pub const DELAY: Duration = Duration::from_millis(1);

/// An address of the host (`ip mptcp endpoint add`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Address ID.
    pub id: u8,
    /// Address.
    pub address: IpAddr,
    /// Port to announce.
    pub port: Option<u16>,
}

/// Endpoints and limits, and the setting of checksums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathManager {
    /// The endpoints that it announces.
    pub signals: Vec<Endpoint>,
    /// Further subflows that it opens or accepts, and announced addresses that it uses, at most.
    pub subflows: usize,
    pub accepted: usize,
    /// Whether connections require checksums (`net.mptcp.checksum_enabled`).
    pub checksums: bool,
}

impl Default for PathManager {
    /// Linux's limits.
    fn default() -> Self {
        Self {
            signals: Vec::new(),
            subflows: 2,
            accepted: 0,
            checksums: false,
        }
    }
}

impl Endpoint {
    /// Returns its announcement.
    pub fn announcement(&self) -> Announcement {
        Announcement {
            id: self.id,
            address: self.address,
            port: self.port,
        }
    }
}

impl PathManager {
    /// Runs `ip mptcp` with these arguments; `Err` if they are not supported.
    pub fn command(&mut self, arguments: &[&str]) -> Result<(), ()> {
        match arguments {
            ["endpoint", "flush"] => self.signals.clear(),
            ["endpoint", "add", address, rest @ ..] => {
                let address = address.parse().map_err(|_| ())?;
                self.add(address, rest)?;
            }
            ["limits", "set", limits @ ..] => {
                for pair in limits.chunks(2) {
                    let [name, number] = pair else { return Err(()) };
                    let number = number.parse().map_err(|_| ())?;
                    match *name {
                        "add_addr_accepted" => self.accepted = number,
                        "subflows" | "subflow" => self.subflows = number,
                        _ => return Err(()),
                    }
                }
            }
            _ => return Err(()),
        }
        Ok(())
    }

    /// Applies the settings of the `client.sh` of multipath-tcp/packetdrill.
    pub fn use_client(&mut self) {
        self.signals.clear();
        (self.subflows, self.accepted) = (8, 8);
    }

    /// Applies the settings of its `server.sh`: the address after `local` is announced.
    pub fn use_server(&mut self, local: IpAddr) {
        self.use_client();
        self.signals.push(Endpoint {
            id: 1,
            address: following(local),
            port: None,
        });
    }

    fn add(&mut self, address: IpAddr, flags: &[&str]) -> Result<(), ()> {
        let mut port = None;
        let mut announced = false;
        let mut flags = flags.iter();
        while let Some(flag) = flags.next() {
            match *flag {
                "signal" => announced = true,
                "port" => port = Some(flags.next().and_then(|port| port.parse().ok()).ok_or(())?),
                "dev" => {
                    flags.next().ok_or(())?;
                }
                _ => return Err(()),
            }
        }
        if !announced {
            return Err(());
        }
        let id = self.signals.iter().map(|known| known.id).max().unwrap_or(0) + 1;
        self.signals.push(Endpoint { id, address, port });
        Ok(())
    }
}
