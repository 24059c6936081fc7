//! The loopback interface of one host: no link and no queue, only the host's stack.

use foundation::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::TopologyKind;
use super::draft::Draft;

/// Default MTU of `lo` in Linux, in bytes.
const DEFAULT_MTU: u32 = 65_536;
/// Minimum MTU of IPv4 (RFC 791), and maximum of `lo`, in bytes.
const RANGE: std::ops::RangeInclusive<u64> = 68..=65_536;

/// One host that communicates over its loopback interface, without links; world netns only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Loopback {
    /// MTU of the interface, from "68B" to "64KiB"; default "64KiB".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Size>,
}

impl TopologyKind for Loopback {
    fn draw(&self, draft: &mut Draft<'_>) {
        let mtu = self.mtu.map_or(u64::from(DEFAULT_MTU), Size::bytes);
        if !RANGE.contains(&mtu) {
            draft.problem("mtu", format!("\"{mtu}B\" is out of range: \"68B\" to \"64KiB\""));
            return;
        }
        let node = draft.router("host");
        let host = draft.topology.add_host("host", node);
        draft.pair(host, host);
        draft.topology.loopback = Some(mtu as u32);
    }
}
