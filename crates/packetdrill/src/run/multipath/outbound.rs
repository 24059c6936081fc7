//! Options of the machine's packets, and their comparison with those that the script expects.

use transport::mptcp::keys::Keys;
use transport::mptcp::segment::{Checksum, JoinHmac};
use transport::mptcp::wire::{CHECKSUMS, HMAC_SHA256, VERSION};
use transport::mptcp::{MptcpOption, Signal};

use super::{Addresses, Ends, Names};
use crate::language::{
    AddressName, ChecksumSpec, DssSpec, MultipathSpec, NumberSpec, OptionSpec, TokenSpec, Variable,
};

/// Returns the options of a segment of the machine in the script's notation.
pub fn spec_of(option: &MptcpOption, signal: &Signal, addresses: &Addresses) -> Vec<MultipathSpec> {
    let first = option_spec(option);
    first.into_iter().chain(signal_spec(signal, addresses)).collect()
}

fn key(value: u64) -> Variable {
    Variable {
        name: String::new(),
        value: Some(value),
    }
}

fn option_spec(option: &MptcpOption) -> Option<MultipathSpec> {
    Some(match *option {
        MptcpOption::None => return None,
        MptcpOption::Capable {
            sender,
            receiver,
            length,
            checksums,
            ..
        } => MultipathSpec::Capable {
            version: VERSION,
            flags: HMAC_SHA256 | if checksums { CHECKSUMS } else { 0 },
            keys: [sender, receiver].into_iter().flatten().map(key).collect(),
            length: (length > 0).then_some(length as u16),
        },
        MptcpOption::JoinSyn {
            nonce,
            address,
            backup,
            ..
        } => MultipathSpec::JoinSyn {
            backup,
            address: Some(address),
            token: TokenSpec::Auto,
            nonce: Some(nonce),
        },
        MptcpOption::JoinAnswer {
            nonce,
            address,
            backup,
            ..
        } => MultipathSpec::JoinAnswer {
            backup,
            address: Some(address),
            nonce: Some(nonce),
        },
        MptcpOption::JoinThird { .. } => MultipathSpec::JoinThird,
        MptcpOption::Dss {
            acknowledgement,
            mapping,
            fin,
            widths,
            checksum,
        } => MultipathSpec::Dss(DssSpec {
            acknowledgement: Some(NumberSpec {
                is_wide: widths.acknowledgement,
                value: Some(acknowledgement),
            }),
            data: mapping.map(|mapping| NumberSpec {
                is_wide: widths.data,
                value: Some(mapping.data),
            }),
            subflow: mapping.map(|mapping| mapping.subflow),
            length: mapping.map(|mapping| (mapping.length + u32::from(fin)) as u16),
            checksum: match checksum {
                Checksum::Absent => ChecksumSpec::Absent,
                _ => ChecksumSpec::Correct,
            },
            fin,
        }),
        MptcpOption::Fail { data } => MultipathSpec::Fail { data },
        MptcpOption::FastClose { receiver } => MultipathSpec::FastClose {
            key: Some(key(receiver)),
        },
        MptcpOption::Reset { transient, reason } => MultipathSpec::Reset { reason, transient },
    })
}

fn signal_spec(signal: &Signal, addresses: &Addresses) -> Option<MultipathSpec> {
    match *signal {
        Signal::None => None,
        Signal::Priority { backup } => Some(MultipathSpec::Priority {
            backup,
            address: None,
        }),
        Signal::AddAddress { id, echo, .. } => {
            let known = if echo { &addresses.peer } else { &addresses.own };
            let announcement = known.get(&id)?;
            Some(MultipathSpec::AddAddress {
                id: Some(id),
                address: AddressName {
                    name: String::new(),
                    value: Some(announcement.address),
                },
                port: announcement.port,
                echo,
            })
        }
        Signal::RemoveAddress { id } => Some(MultipathSpec::RemoveAddress { ids: vec![id] }),
    }
}

/// Returns how the options of a segment differ from those that a script expects. `keys` and `ends` are those of the machine, if
/// there is a connection.
pub fn mismatch(
    (option, signal): (&MptcpOption, &Signal),
    expected: &[OptionSpec],
    names: &mut Names,
    addresses: &Addresses,
    (keys, ends): (Keys, Option<&Ends>),
) -> Option<&'static str> {
    let actual = spec_of(option, signal, addresses);
    let expected = expected.iter().filter_map(|option| match option {
        OptionSpec::Multipath(spec) => Some(spec),
        _ => None,
    });
    let expected: Vec<&MultipathSpec> = expected.collect();
    let kind = std::mem::discriminant::<MultipathSpec>;
    if actual.len() < expected.len() {
        return Some("a missing MPTCP option");
    }
    for spec in &actual {
        let Some(wanted) = expected.iter().find(|wanted| kind(wanted) == kind(spec)) else {
            return Some("another MPTCP option");
        };
        if let Some(what) = differs(spec, wanted, names) {
            return Some(what);
        }
    }
    handshake_mismatch(option, &expected, names, keys, ends?)
}

fn any<T: PartialEq>(wanted: Option<T>, actual: Option<T>) -> bool {
    wanted.is_none() || wanted == actual
}

fn same_number(wanted: Option<NumberSpec>, actual: Option<NumberSpec>) -> bool {
    match (wanted, actual) {
        (None, None) => true,
        (Some(wanted), Some(actual)) => wanted.is_wide == actual.is_wide && any(wanted.value, actual.value),
        _ => false,
    }
}

fn differs(actual: &MultipathSpec, wanted: &MultipathSpec, names: &mut Names) -> Option<&'static str> {
    use MultipathSpec as Spec;
    let (same, what) = match (actual, wanted) {
        (
            Spec::Capable {
                version,
                flags,
                keys,
                length,
            },
            Spec::Capable {
                version: wanted_version,
                flags: wanted_flags,
                keys: wanted_keys,
                length: wanted_length,
            },
        ) => {
            let pairs = wanted_keys.iter().zip(keys);
            let mut same = (version, flags, length) == (wanted_version, wanted_flags, wanted_length);
            same &= keys.len() == wanted_keys.len();
            for (name, value) in pairs {
                same &= value.value.is_some_and(|value| names.key_is(name, value));
            }
            (same, "another MP_CAPABLE")
        }
        (
            Spec::JoinSyn { backup, address, .. },
            Spec::JoinSyn {
                backup: wanted_backup,
                address: wanted_address,
                ..
            },
        ) => (
            backup == wanted_backup && any(*wanted_address, *address),
            "another MP_JOIN",
        ),
        // As multipath-tcp/packetdrill does, the address ID is not compared.
        (Spec::JoinAnswer { backup, .. }, Spec::JoinAnswer { backup: wanted, .. }) => {
            (backup == wanted, "another MP_JOIN")
        }
        (Spec::Dss(actual), Spec::Dss(wanted)) => {
            let numbers = same_number(wanted.acknowledgement, actual.acknowledgement)
                && same_number(wanted.data, actual.data);
            let mapping = wanted.data.is_none()
                || any(wanted.subflow, actual.subflow)
                    && any(wanted.length, actual.length)
                    && wanted.checksum == actual.checksum;
            (
                numbers && mapping && wanted.fin == actual.fin,
                "another DSS option",
            )
        }
        (
            Spec::AddAddress {
                id,
                address,
                port,
                echo,
            },
            Spec::AddAddress {
                id: wanted_id,
                address: wanted_address,
                port: wanted_port,
                echo: wanted_echo,
            },
        ) => {
            let same_address = address
                .value
                .is_some_and(|value| names.address_is(wanted_address, value));
            let rest = (port, echo) == (wanted_port, wanted_echo);
            (
                any(*wanted_id, *id) && same_address && rest,
                "another ADD_ADDR option",
            )
        }
        (Spec::FastClose { key: Some(key) }, Spec::FastClose { key: Some(wanted) }) => (
            key.value.is_some_and(|value| names.key_is(wanted, value)),
            "another MP_FASTCLOSE",
        ),
        (Spec::JoinThird, Spec::JoinThird) | (Spec::FastClose { .. }, Spec::FastClose { .. }) => (true, ""),
        (actual, wanted) => (actual == wanted, "another MPTCP option"),
    };
    (!same).then_some(what)
}

/// Compares the tokens and HMACs of a join, which must belong to the keys and random numbers of the connection.
fn handshake_mismatch(
    option: &MptcpOption,
    expected: &[&MultipathSpec],
    names: &Names,
    keys: Keys,
    ends: &Ends,
) -> Option<&'static str> {
    use transport::mptcp::keys::token;
    use transport::mptcp::segment::Token;
    match *option {
        MptcpOption::JoinSyn { token: actual, .. } => {
            let actual = match actual {
                Token::Derived(key) => token(key),
                Token::Value(value) => value,
            };
            let wanted = expected.iter().find_map(|spec| match spec {
                MultipathSpec::JoinSyn { token, .. } => Some(token),
                _ => None,
            })?;
            let wanted = match wanted {
                TokenSpec::Auto => Some(token(keys.receiver)),
                TokenSpec::Value(value) => Some(*value),
                TokenSpec::OfKey(name) => names.key_named(name).map(token),
            };
            (wanted != Some(actual)).then_some("another token")
        }
        MptcpOption::JoinAnswer { hmac, .. } | MptcpOption::JoinThird { hmac } => {
            let derived = JoinHmac::Derived {
                keys,
                nonces: ends.nonces,
            };
            (hmac != derived).then_some("another HMAC")
        }
        _ => None,
    }
}
