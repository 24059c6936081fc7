//! Validation of the MTU of paths against the header sizes of protocols.

use foundation::Problem;
use transport::mptcp::segment::LEAST_MTU;

use super::{Group, Protocol, place};

/// Returns a problem for each group, the measured flows first, that runs multipath TCP over links whose MTU leaves no room
/// for payload.
pub(super) fn check(groups: &[Group], hosts: &[String]) -> impl Iterator<Item = Problem> {
    let multipath = |group: &&Group| matches!(group.protocol, Protocol::Mptcp(_));
    groups.iter().enumerate().filter(move |(_, group)| multipath(group)).filter_map(|(number, group)| {
        let ways = group.pairs.iter().flat_map(|pair| pair.ways.iter().map(move |way| (pair, way.mtu)));
        let (pair, mtu) = ways.min_by_key(|&(_, mtu)| mtu).filter(|&(_, mtu)| mtu < LEAST_MTU)?;
        let [from, to] = [pair.from, pair.to].map(|host| &hosts[host.0 as usize]);
        let message = format!(
            "\"mptcp\" requires an MTU of at least \"{LEAST_MTU}B\", but links from {from:?} to {to:?} have \"{mtu}B\""
        );
        Some(Problem::new("kind", message).within(&place(number, "protocol")))
    })
}
