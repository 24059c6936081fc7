//! The free topology: listed hosts, routers and links.

use std::collections::BTreeMap;

use foundation::{Duration, Probability, Rate, Size, omit_unset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bottlenecks::BottleneckSource;
use super::config::TopologyKind;
use super::draft::Draft;
use super::{NodeId, unknown};
use crate::config::{LinkConfig, Outage, PathConfig, PathSpec, Preset, Subscriber, with_link_keys};
use crate::impairment::{JitterConfig, LossConfig, ReorderConfig};
use crate::medium::{CellConfig, WifiConfig};
use crate::nat::NatConfig;
use crate::packet::{HostId, LinkId};
use crate::queue::{QueueConfig, SharedBuffer};
use crate::trace::TraceStart;

/// Limit of nodes and of links.
const MAX_NODES: usize = 20_000;

with_link_keys! {
    /// A link of a free topology. Its keys apply to both directions unless `reverse` overrides them.
    #[serde(expecting = "a table such as { from = \"a\", to = \"b\", rate = \"1Mbit/s\", delay = \"5ms\" }")]
    #[schemars(rename = "FreeLink")]
    pub struct FreeLink {
        /// Host or router at the near end.
        pub from: Option<String>,
        /// Host or router at the far end.
        pub to: Option<String>,
        /// Name of the link; the other direction is named name/reverse; default: from-to.
        pub name: Option<String>,
        /// Weight of the link among those of equally short routes, from 1 to 65535; default 1. If any link has a weight, each pair of hosts takes one of its shortest routes by a hash, and the shares of the pairs follow the weights; otherwise the route of the links declared first.
        pub weight: Option<u64>,
        /// Preset with typical values, which other keys override; default: none.
        pub preset: Option<Preset>,
        /// End of the subscriber of an asymmetric preset: "far" (`to`; forward is the download) or "near" (`from`; forward is the upload); default "far".
        pub subscriber: Option<Subscriber>,
        /// Keys of the direction from `to` to `from` that differ; default: none.
        pub reverse: Option<LinkConfig>,
    }
}

impl FreeLink {
    fn path(&self) -> PathConfig {
        PathConfig {
            preset: self.preset,
            subscriber: self.subscriber,
            reverse: self.reverse.clone(),
            ..PathConfig::symmetric(self.link_keys())
        }
    }
}

/// Nodes by name.
type Names = BTreeMap<String, NodeId>;

omit_unset! {
    /// The listed hosts, routers and links.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct Free {
        /// Names of the hosts, which send and receive.
        pub hosts: Option<Vec<String>>,
        /// Names of the routers, which forward packets; default: none.
        pub routers: Option<Vec<String>>,
        /// Links, tables such as { from = "a", to = "b" } with path keys; each has both directions.
        pub links: Option<Vec<FreeLink>>,
        /// Pairs of sender and receiver, a list such as [["a", "b"]]; default: the first host to the last.
        pub pairs: Option<Vec<(String, String)>>,
        /// Names of the links whose queue and utilisation are measured, in the direction of the name; default: the slowest link on the path of the measured data.
        pub bottlenecks: Option<Vec<String>>,
        /// Time after which the routers avoid a failed link, or use a recovered one, e.g. "50ms"; default "0s".
        pub detection: Option<Duration>,
        /// Buffer of each router for the queues of all its outgoing links: a size such as "4MB", or a table such as { size = "4MB", alpha = 0.5 }; default: none. A queue accepts a packet while it is shorter than alpha (default 1) times the free part of the buffer, and within its limit.
        pub shared_buffer: Option<SharedBuffer>,
    }
}

impl TopologyKind for Free {
    fn draw(&self, draft: &mut Draft<'_>) {
        let hosts = draft.required("hosts", self.hosts.as_ref());
        let links = draft.required("links", self.links.as_ref());
        let (Some(hosts), Some(links)) = (hosts, links) else {
            return;
        };
        let routers = self.routers.as_deref().unwrap_or_default();
        if hosts.len() < 2 {
            draft.problem("hosts", "at least two hosts are required");
        }
        if hosts.len() + routers.len() > MAX_NODES || links.len() > MAX_NODES {
            draft.problem(
                "",
                format!("too large: at most {MAX_NODES} hosts and routers, and {MAX_NODES} links"),
            );
            return;
        }
        let mut names = Names::new();
        for name in hosts {
            let node = add_node(draft, &mut names, "hosts", name, false);
            draft.topology.add_host(name, node);
        }
        for name in routers {
            add_node(draft, &mut names, "routers", name, true);
        }
        draft.detect_failures(self.detection);
        let links = add_links(draft, &names, links);
        if !draft.problems.is_empty() {
            return;
        }
        add_pairs(draft, self.pairs.as_deref());
        add_bottlenecks(draft, self.bottlenecks.as_deref(), &links);
        draft.share_buffers(self.shared_buffer);
    }
}

fn add_node(draft: &mut Draft<'_>, names: &mut Names, key: &str, name: &str, forwards: bool) -> NodeId {
    let node = draft.topology.add_node(name, forwards);
    if name.is_empty() {
        draft.problem(key, "names must not be empty");
    } else if names.insert(name.to_owned(), node).is_some() {
        draft.problem(
            key,
            format!("two hosts or routers are named {name:?}: names must be unique"),
        );
    }
    node
}

fn add_links(draft: &mut Draft<'_>, names: &Names, links: &[FreeLink]) -> BTreeMap<String, LinkId> {
    let mut known = BTreeMap::new();
    for (number, link) in links.iter().enumerate() {
        let key = format!("links[{number}]");
        let spec = match link.path().resolve(draft.load) {
            Ok(spec) => spec,
            Err(found) => {
                draft
                    .problems
                    .extend(found.into_iter().map(|problem| problem.within(&key)));
                PathSpec::default()
            }
        };
        let mut end = |name: &str, node: Option<&String>| {
            let key = format!("{key}.{name}");
            let node = draft.required(&key, node)?;
            let found = names.get(node).copied();
            if found.is_none() {
                draft.problem(
                    &key,
                    unknown("host or router", node, names.keys().map(String::as_str)),
                );
            }
            found
        };
        let (Some(from), Some(to)) = (end("from", link.from.as_ref()), end("to", link.to.as_ref())) else {
            continue;
        };
        if from == to {
            draft.problem(&key, "from and to are the same: a link joins two nodes");
            continue;
        }
        let node = |node: NodeId| &draft.topology.nodes[node.0 as usize].name;
        let name = link
            .name
            .clone()
            .unwrap_or_else(|| format!("{}-{}", node(from), node(to)));
        let reverse = format!("{name}/reverse");
        if let Some(taken) = [&name, &reverse]
            .into_iter()
            .find(|name| known.contains_key(*name))
        {
            let message = format!("two links are named {taken:?}: names must be unique");
            draft.problem(&format!("{key}.name"), message);
            continue;
        }
        let forward = draft.cable(&name, &spec, from, to);
        if let Some(weight) = link.weight {
            let both = [forward, LinkId(forward.0 + 1)];
            draft.weigh(&format!("{key}.weight"), both.map(|link| (link, weight)));
            draft.spread_over_equal_routes();
        }
        known.insert(name, forward);
        known.insert(reverse, LinkId(forward.0 + 1));
    }
    known
}

fn add_pairs(draft: &mut Draft<'_>, named: Option<&[(String, String)]>) {
    let Some(named) = named else {
        let last = draft.topology.hosts().len() as u32 - 1;
        return add_each(draft, &[(HostId(0), HostId(last))]);
    };
    if named.is_empty() {
        draft.problem("pairs", "the list is empty: write at least one pair");
    }
    let hosts = (0..).zip(draft.topology.hosts());
    let ids: BTreeMap<String, HostId> = hosts.map(|(id, name)| (name.clone(), HostId(id))).collect();
    let mut ends = Vec::with_capacity(named.len());
    for (from, to) in named {
        let mut host = |name: &String| {
            let found = ids.get(name).copied();
            if found.is_none() {
                draft.problem("pairs", unknown("host", name, ids.keys().map(String::as_str)));
            }
            found
        };
        if let (Some(from), Some(to)) = (host(from), host(to)) {
            ends.push((from, to));
        }
    }
    add_each(draft, &ends);
}

fn add_each(draft: &mut Draft<'_>, pairs: &[(HostId, HostId)]) {
    for &(from, to) in pairs {
        if from == to {
            let name = draft.topology.hosts()[from.0 as usize].clone();
            draft.problem(
                "pairs",
                format!("{name:?} is both sender and receiver: write two different hosts"),
            );
        }
    }
    // Every link has both directions, so a reverse route of the same length exists.
    draft.check_ways("pairs", pairs);
    draft.topology.pairs.extend(pairs);
}

fn add_bottlenecks(draft: &mut Draft<'_>, named: Option<&[String]>, links: &BTreeMap<String, LinkId>) {
    let Some(named) = named else {
        let topology = &draft.topology;
        let mut search = topology.search();
        let pairs = topology.pairs.iter();
        let ways: Vec<Vec<LinkId>> = pairs
            .filter_map(|&(from, to)| search.links_between(from, to))
            .collect();
        let slowest = topology.slowest_of(ways.iter().map(Vec::as_slice));
        draft.topology.bottlenecks = slowest;
        draft.topology.bottleneck_source = BottleneckSource::Slowest;
        return;
    };
    draft.topology.bottleneck_source = BottleneckSource::Named;
    for name in named {
        match links.get(name) {
            Some(&link) => draft.bottleneck(link),
            None => {
                let message = unknown("link", name, links.keys().map(String::as_str));
                draft.problem("bottlenecks", message);
            }
        }
    }
}
