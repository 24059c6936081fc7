//! What an ICMP message says of a probe.

use std::net::IpAddr;

use serde::Serialize;

/// What kind of answer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A router on the way where the time to live ended.
    TimeExceeded,
    /// The host itself.
    Reached,
    /// Somebody says that it cannot get there.
    Unreachable,
    /// The next link takes no packets of this size.
    TooBig,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// What it says.
    pub kind: Kind,
    /// Who says it.
    pub from: IpAddr,
    /// Its bytes with the IP header: they take time on the way back.
    pub size: u32,
    /// The MTU of the link that takes no more, where it is told.
    pub mtu: Option<u32>,
}

/// ICMP and ICMPv6 have other numbers for the same things (RFC 792, RFC 4443).
const V4: Numbers = Numbers {
    unreachable: 3,
    port: 3,
    exceeded: 11,
};
const V6: Numbers = Numbers {
    unreachable: 1,
    port: 4,
    exceeded: 3,
};
const FRAGMENTATION_NEEDED: u8 = 4;
const TOO_BIG_V6: u8 = 2;

struct Numbers {
    unreachable: u8,
    port: u8,
    exceeded: u8,
}

/// What type and code say that come from `from` about a probe to `to`; `None` for what is no answer to one.
pub(super) fn kind(to: IpAddr, from: IpAddr, (number, code): (u8, u8)) -> Option<Kind> {
    let is_v4 = to.is_ipv4();
    let numbers = if is_v4 { V4 } else { V6 };
    match (number, code) {
        (3, FRAGMENTATION_NEEDED) if is_v4 => Some(Kind::TooBig),
        (TOO_BIG_V6, _) if !is_v4 => Some(Kind::TooBig),
        (number, 0) if number == numbers.exceeded => Some(Kind::TimeExceeded),
        (number, code) if number == numbers.unreachable => match code == numbers.port && from == to {
            true => Some(Kind::Reached),
            false => Some(Kind::Unreachable),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_are_told_apart() {
        let v4: [IpAddr; 2] = ["10.0.0.9".parse().unwrap(), "10.0.0.1".parse().unwrap()];
        let v6: [IpAddr; 2] = ["fd00::9".parse().unwrap(), "fd00::1".parse().unwrap()];
        for ([to, router], exceeded, port, big) in
            [(v4, (11, 0), (3, 3), (3, 4)), (v6, (3, 0), (1, 4), (2, 0))]
        {
            assert_eq!(kind(to, router, exceeded), Some(Kind::TimeExceeded));
            assert_eq!(kind(to, to, port), Some(Kind::Reached));
            assert_eq!(kind(to, router, port), Some(Kind::Unreachable));
            assert_eq!(kind(to, router, (port.0, 1)), Some(Kind::Unreachable));
            assert_eq!(kind(to, router, big), Some(Kind::TooBig));
            // Reassembly took too long: no router's word on the time to live.
            assert_eq!(kind(to, router, (exceeded.0, 1)), None);
        }
    }

    proptest! {
        #[test]
        fn nothing_but_the_host_itself_means_that_it_is_reached(number: u8, code: u8, v4: bool) {
            let (to, from): (IpAddr, IpAddr) = match v4 {
                true => ("10.0.0.9".parse().unwrap(), "10.0.0.1".parse().unwrap()),
                false => ("fd00::9".parse().unwrap(), "fd00::1".parse().unwrap()),
            };
            prop_assert_ne!(kind(to, from, (number, code)), Some(Kind::Reached));
        }
    }
}
