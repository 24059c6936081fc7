//! Path estimates of hosts, and the path choice of single-path flows.

use std::collections::BTreeMap;

use foundation::Duration;
use network::HostId;
use transport::mptcp::HostPaths;
use transport::mptcp::policy::{PathChoice, RttSource};

use crate::plan::{Group, Pair, Protocol};

/// Returns the path estimates of all senders, one per receiver, and their indices by group and pair. A multipath connection
/// restricted to one path (`each_path`) has separate estimates for it.
#[must_use]
pub fn accounts(groups: &[Group]) -> (Vec<HostPaths>, Vec<Vec<u32>>) {
    let mut all: BTreeMap<(HostId, HostId, Option<u8>), Vec<Duration>> = BTreeMap::new();
    let key = |group: &Group, pair: &Pair| {
        let own = group.protocol.is_multipath() && group.workload.each_path == Some(true);
        (pair.from, pair.to, own.then_some(pair.ways[0].number))
    };
    for group in groups {
        for pair in group.pairs.iter() {
            let base_rtts = all.entry(key(group, pair)).or_default();
            for way in &pair.ways {
                let place = usize::from(way.number - key(group, pair).2.unwrap_or(0));
                if base_rtts.len() <= place {
                    base_rtts.resize(place + 1, Duration::ZERO);
                }
                base_rtts[place] = way.base_rtt;
            }
        }
    }
    let places: BTreeMap<_, u32> = all.keys().copied().zip(0..).collect();
    let of_group = |group: &Group| group.pairs.iter().map(|pair| places[&key(group, pair)]).collect();
    (
        all.into_values().map(HostPaths::new).collect(),
        groups.iter().map(of_group).collect(),
    )
}

impl Group {
    /// Returns the path of a single-path flow as an index of the pair's paths; `host` are the path estimates of the opener.
    pub fn choose_way(&mut self, pair: &Pair, host: &mut HostPaths) -> u8 {
        let choose = match &self.protocol {
            Protocol::Tcp(config) if pair.ways.len() > 1 => config.path.unwrap_or(PathChoice::First),
            _ => return 0,
        };
        let path = choose.path(host, RttSource::Latest, &mut self.paths);
        host.on_connection();
        path.0
    }
}
