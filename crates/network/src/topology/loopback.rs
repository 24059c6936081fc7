//! One host that talks to itself over its own loopback interface: no link, no queue, only its stack.

use foundation::Size;

use super::TopologyConfig;
use super::draft::Draft;

pub(super) const KEYS: &[&str] = &["mtu"];

/// Linux's MTU of `lo`, in bytes.
const USUAL: u32 = 65_536;
/// The least that IPv4 needs (RFC 791), and the most that fragments and offloads leave sensible, in bytes.
const RANGE: std::ops::RangeInclusive<u64> = 68..=65_536;

pub(super) fn draw(config: &TopologyConfig, draft: &mut Draft<'_>) {
    let mtu = config.mtu.map_or(u64::from(USUAL), Size::bytes);
    if !RANGE.contains(&mtu) {
        draft.problem("mtu", format!("\"{mtu}B\" is out of range: \"68B\" to \"64KiB\""));
        return;
    }
    let node = draft.router("host");
    let host = draft.topology.add_host("host", node);
    draft.pair(host, host);
    draft.topology.loopback = Some(mtu as u32);
}
