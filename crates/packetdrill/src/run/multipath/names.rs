//! The names that a script gives to keys and addresses.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::language::{AddressName, Variable};

/// Values by name. A name without value gets one when a packet first shows it.
#[derive(Clone, Debug, Default)]
pub struct Names {
    keys: BTreeMap<String, u64>,
    addresses: BTreeMap<String, IpAddr>,
    /// The addresses of the script's side.
    remote: Vec<IpAddr>,
}

impl Names {
    /// Returns the value of a key, after its assignment if there is one.
    ///
    /// # Errors
    /// If the key has no value.
    pub fn key(&mut self, variable: &Variable) -> Result<u64, String> {
        if let Some(value) = variable.value {
            self.keys.insert(variable.name.clone(), value);
        }
        let unknown = || format!("the key {}, which has no value yet", variable.name);
        self.keys.get(&variable.name).copied().ok_or_else(unknown)
    }

    /// Whether a key has the value `actual`; a key without value gets it.
    pub fn key_is(&mut self, variable: &Variable, actual: u64) -> bool {
        let wanted = variable.value.unwrap_or(actual);
        let known = self.keys.entry(variable.name.clone()).or_insert(wanted);
        *known == actual && wanted == actual
    }

    /// Returns the value of a key by its name.
    pub fn key_named(&self, name: &str) -> Option<u64> {
        self.keys.get(name).copied()
    }

    /// Returns the value of an address, after its assignment if there is one.
    pub fn address(&mut self, name: &AddressName) -> Option<IpAddr> {
        if let Some(value) = name.value {
            self.addresses.insert(name.name.clone(), value);
        }
        self.addresses.get(&name.name).copied()
    }

    /// Returns the value of an address, which is `otherwise` if it has none yet.
    pub fn address_or(&mut self, name: &AddressName, otherwise: IpAddr) -> IpAddr {
        let known = self.address(name).unwrap_or(otherwise);
        self.addresses.insert(name.name.clone(), known);
        known
    }

    /// Whether an address has the value `actual`; an address without value gets it.
    pub fn address_is(&mut self, name: &AddressName, actual: IpAddr) -> bool {
        self.address_or(name, actual) == actual
    }

    /// Records an address of the script's side.
    pub fn add_remote(&mut self, address: IpAddr) {
        if !self.remote.contains(&address) {
            self.remote.push(address);
        }
    }

    /// Returns an unused address of the script's side: the one after the last.
    pub fn next_remote(&mut self, first: IpAddr) -> IpAddr {
        let last = self.remote.iter().max().copied().unwrap_or(first);
        let next = following(last);
        self.remote.push(next);
        next
    }
}

/// Returns the address after `address`.
pub fn following(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits().wrapping_add(1)).into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits().wrapping_add(1)).into(),
    }
}
