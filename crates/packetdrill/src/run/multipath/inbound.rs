//! Options of the script's packets as the machine reads them. Each passes the encoder and the decoder of headers.

use transport::mptcp::keys::{Keys, initial_data_sequence, join_hmac, token};
use transport::mptcp::wire::{
    Announcement, Near, Number, WireMapping, WireOption, checksum_of, supported, supported_signal,
};
use transport::mptcp::{Connection, MptcpOption, Signal};

use super::{Addresses, Ends, Names};
use crate::language::{
    ChecksumSpec, DssSpec, MultipathSpec, NumberSpec, OptionSpec, TcpSpec, TokenSpec, Variable,
};

/// What options refer to.
pub struct Context<'a> {
    /// Names of keys and addresses.
    pub names: &'a mut Names,
    /// The connection, if it exists.
    pub connection: Option<&'a Connection>,
    /// Announced addresses of the connection.
    pub addresses: &'a mut Addresses,
    /// The subflow.
    pub ends: &'a mut Ends,
}

/// Returns the options of a packet of the script.
///
/// # Errors
/// If an option refers to an unknown name, or has no form in headers.
pub fn decode(spec: &TcpSpec, context: &mut Context<'_>) -> Result<(MptcpOption, Signal), String> {
    let mut found = (MptcpOption::None, Signal::None);
    for option in spec.options.iter().flatten() {
        let OptionSpec::Multipath(option) = option else {
            continue;
        };
        let written = context.encode(option, spec.length)?;
        let own = context.connection.map_or_else(Keys::default, Connection::keys);
        let keys = Keys {
            sender: own.receiver,
            receiver: own.sender,
        };
        let near = context.connection.map_or_else(Near::default, Connection::near);
        let bytes = written.bytes();
        let length = usize::from(bytes[1]);
        // An address ID is the fourth byte of MP_PRIO in version 0.
        let is_old = matches!(option, MultipathSpec::Priority { address: Some(_), .. });
        let Some(read) = WireOption::read(&bytes[..length]).filter(|_| !is_old) else {
            continue;
        };
        let (option, signal) = (supported(&read, keys, near), supported_signal(&read, keys));
        if option != MptcpOption::None {
            found.0 = option;
        }
        if signal != Signal::None {
            found.1 = signal;
        }
    }
    Ok(found)
}

impl Context<'_> {
    fn encode(&mut self, option: &MultipathSpec, payload: u32) -> Result<WireOption, String> {
        let own = self.connection.map_or_else(Keys::default, Connection::keys);
        let peer = Keys {
            sender: own.receiver,
            receiver: own.sender,
        };
        Ok(match option {
            MultipathSpec::Capable {
                version,
                flags,
                keys,
                length,
            } => {
                let mut value = |at: usize| {
                    let key = keys.get(at).map(|key| self.names.key(key));
                    key.transpose()
                };
                WireOption::Capable {
                    version: *version,
                    flags: *flags,
                    sender: value(0)?,
                    receiver: value(1)?,
                    data: length.map(|length| (length, None)),
                }
            }
            MultipathSpec::JoinSyn {
                backup,
                address,
                token: wanted,
                nonce,
            } => {
                self.ends.nonces.receiver = nonce.unwrap_or(NONCE);
                WireOption::JoinSyn {
                    backup: *backup,
                    address: self.own_id(*address),
                    token: match wanted {
                        TokenSpec::Value(token) => *token,
                        TokenSpec::Auto => token(own.sender),
                        TokenSpec::OfKey(name) => token(self.known_key(name)?),
                    },
                    nonce: self.ends.nonces.receiver,
                }
            }
            MultipathSpec::JoinAnswer {
                backup,
                address,
                nonce,
            } => {
                self.ends.nonces.receiver = nonce.unwrap_or(NONCE);
                let mut hmac = [0; 8];
                hmac.copy_from_slice(&join_hmac(peer, self.ends.nonces.reversed())[..8]);
                WireOption::JoinAnswer {
                    backup: *backup,
                    address: self.own_id(*address),
                    hmac,
                    nonce: self.ends.nonces.receiver,
                }
            }
            MultipathSpec::JoinThird => WireOption::JoinThird {
                hmac: join_hmac(peer, self.ends.nonces.reversed()),
            },
            MultipathSpec::Dss(spec) => dss(spec, peer, payload)?,
            MultipathSpec::AddAddress {
                id,
                address,
                port,
                echo,
            } => {
                let announcement = if *echo {
                    let value = self.names.address(address);
                    let known = self
                        .addresses
                        .own
                        .values()
                        .find(|known| Some(known.address) == value);
                    let id = id.or(known.map(|known| known.id)).unwrap_or(0);
                    let address = value.ok_or_else(|| format!("the address {}", address.name))?;
                    Announcement {
                        id,
                        address,
                        port: *port,
                    }
                } else {
                    self.announce(*id, address, *port)
                };
                announcement.on_wire((!echo).then_some(peer))
            }
            MultipathSpec::RemoveAddress { ids } => WireOption::RemoveAddress { ids: ids.clone() },
            MultipathSpec::Priority { backup, .. } => WireOption::Priority { backup: *backup },
            MultipathSpec::Fail { data } => WireOption::Fail {
                data: initial_data_sequence(peer.sender).wrapping_add(*data),
            },
            MultipathSpec::FastClose { key } => WireOption::FastClose {
                receiver: match key {
                    Some(key) => self.fast_close_key(key)?,
                    None => own.sender,
                },
            },
            MultipathSpec::Reset { reason, transient } => WireOption::Reset {
                flags: u8::from(*transient),
                reason: *reason,
            },
        })
    }

    /// An assigned key replaces the known one in this option only.
    fn fast_close_key(&mut self, key: &Variable) -> Result<u64, String> {
        match key.value {
            Some(value) => Ok(value),
            None => self.known_key(&key.name),
        }
    }

    fn known_key(&self, name: &str) -> Result<u64, String> {
        let known = self.names.key_named(name);
        known.ok_or_else(|| format!("the key {name}, which has no value yet"))
    }

    /// Returns the ID of the script's address: the given one, or that of its announcement.
    fn own_id(&self, given: Option<u8>) -> u8 {
        let remote = self.ends.remote;
        let known = self.addresses.peer.values().find(|known| known.address == remote);
        given.or(known.map(|known| known.id)).unwrap_or(0)
    }

    /// Announces an address of the script, which is an unused one unless it has a value.
    fn announce(
        &mut self,
        id: Option<u8>,
        name: &crate::language::AddressName,
        port: Option<u16>,
    ) -> Announcement {
        let address = match self.names.address(name) {
            Some(address) => address,
            None => {
                let unused = self.names.next_remote(self.ends.remote);
                self.names.address_or(name, unused)
            }
        };
        let known = self
            .addresses
            .peer
            .values()
            .find(|known| known.address == address);
        let next = || {
            self.addresses
                .peer
                .keys()
                .max()
                .map_or(1, |last| last.wrapping_add(1))
        };
        let id = id.or(known.map(|known| known.id)).unwrap_or_else(next);
        let announcement = Announcement { id, address, port };
        self.addresses.peer.insert(id, announcement);
        announcement
    }
}

/// The script's random number in a join, unless it chooses one.
const NONCE: u32 = 0x1234_5678;

fn dss(spec: &DssSpec, peer: Keys, payload: u32) -> Result<WireOption, String> {
    let number = |number: NumberSpec, key: u64| -> Result<Number, String> {
        let value = number.value.ok_or("a data sequence number without value")?;
        let whole = initial_data_sequence(key).wrapping_add(value);
        Ok(if number.is_wide {
            Number::Eight(whole)
        } else {
            Number::Four(whole as u32)
        })
    };
    let acknowledgement = spec
        .acknowledgement
        .map(|position| number(position, peer.receiver))
        .transpose()?;
    let mapping = spec.data.map(|position| -> Result<WireMapping, String> {
        let whole = payload + u32::from(spec.fin);
        let subflow = spec.subflow.unwrap_or(u32::from(payload > 0));
        let length = spec.length.unwrap_or(whole as u16);
        let first = initial_data_sequence(peer.sender).wrapping_add(position.value.unwrap_or(0));
        let correct = checksum_of(first, subflow, length, &[]);
        Ok(WireMapping {
            data: number(position, peer.sender)?,
            subflow,
            length,
            checksum: match spec.checksum {
                ChecksumSpec::Absent => None,
                ChecksumSpec::Correct => Some(correct),
                ChecksumSpec::Value(value) => Some(value),
            },
        })
    });
    Ok(WireOption::Dss {
        acknowledgement,
        mapping: mapping.transpose()?,
        fin: spec.fin,
    })
}
