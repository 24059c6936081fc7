//! Interpretation of ICMP messages about probes.

use std::net::IpAddr;

use serde::Serialize;

/// Type of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerKind {
    /// From a router on the path where the time to live expired.
    TimeExceeded,
    /// From the destination.
    Reached,
    /// The destination is unreachable.
    Unreachable,
    /// The next link's MTU is smaller than the packet.
    TooBig,
}

/// An answer to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// Its type.
    pub kind: AnswerKind,
    /// Its sender.
    pub from: IpAddr,
    /// Its length with the IP header, which affects the time on the way back.
    pub size: u32,
    /// The MTU of the next link, if reported.
    pub mtu: Option<u32>,
}

/// The numbers of ICMP and ICMPv6 (RFC 792, RFC 4443).
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

/// Returns the meaning of an ICMP type and code that `from` sent about a probe to `to`; `None` if it does not answer a
/// probe.
pub(super) fn kind(to: IpAddr, from: IpAddr, (number, code): (u8, u8)) -> Option<AnswerKind> {
    let is_v4 = to.is_ipv4();
    let numbers = if is_v4 { V4 } else { V6 };
    match (number, code) {
        (3, FRAGMENTATION_NEEDED) if is_v4 => Some(AnswerKind::TooBig),
        (TOO_BIG_V6, _) if !is_v4 => Some(AnswerKind::TooBig),
        (number, 0) if number == numbers.exceeded => Some(AnswerKind::TimeExceeded),
        (number, code) if number == numbers.unreachable => match code == numbers.port && from == to {
            true => Some(AnswerKind::Reached),
            false => Some(AnswerKind::Unreachable),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn classifies_messages() {
        let v4: [IpAddr; 2] = ["10.0.0.9".parse().unwrap(), "10.0.0.1".parse().unwrap()];
        let v6: [IpAddr; 2] = ["fd00::9".parse().unwrap(), "fd00::1".parse().unwrap()];
        for ([to, router], exceeded, port, big) in
            [(v4, (11, 0), (3, 3), (3, 4)), (v6, (3, 0), (1, 4), (2, 0))]
        {
            assert_eq!(kind(to, router, exceeded), Some(AnswerKind::TimeExceeded));
            assert_eq!(kind(to, to, port), Some(AnswerKind::Reached));
            assert_eq!(kind(to, router, port), Some(AnswerKind::Unreachable));
            assert_eq!(kind(to, router, (port.0, 1)), Some(AnswerKind::Unreachable));
            assert_eq!(kind(to, router, big), Some(AnswerKind::TooBig));
            // A reassembly timeout does not concern the time to live.
            assert_eq!(kind(to, router, (exceeded.0, 1)), None);
        }
    }

    proptest! {
        #[test]
        fn only_the_destination_counts_as_reached(number: u8, code: u8, v4: bool) {
            let (to, from): (IpAddr, IpAddr) = match v4 {
                true => ("10.0.0.9".parse().unwrap(), "10.0.0.1".parse().unwrap()),
                false => ("fd00::9".parse().unwrap(), "fd00::1".parse().unwrap()),
            };
            prop_assert_ne!(kind(to, from, (number, code)), Some(AnswerKind::Reached));
        }
    }
}
