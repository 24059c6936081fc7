//! The free topology: hosts, routers and links as a person lists them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use foundation::quantity::nearest;
use foundation::{Duration, Probability, Rate, Size};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::bottlenecks::BottleneckSource;
use super::draft::Draft;
use super::{NodeId, TopologyConfig};
use crate::config::{LinkConfig, PathConfig, PathSpec, Preset, Subscriber, with_link_keys};
use crate::impairment::{JitterConfig, LossConfig, ReorderConfig};
use crate::packet::{HostId, LinkId};
use crate::queue::QueueConfig;

pub(super) const KEYS: &[&str] = &["hosts", "routers", "links", "pairs", "bottlenecks"];

/// More nodes or links than these were not meant.
const MAX_NODES: usize = 20_000;

with_link_keys! {
    /// A link of a free topology, in both directions. Its keys hold in both, unless `reverse` says otherwise.
    #[serde(expecting = "a table such as { from = \"a\", to = \"b\", rate = \"1Mbit/s\", delay = \"5ms\" }")]
    #[schemars(rename = "FreeLink")]
    pub struct FreeLink {
        /// The host or router that it begins at.
        #[schemars(with = "String")]
        pub from: Option<String>,
        /// The host or router that it leads to.
        #[schemars(with = "String")]
        pub to: Option<String>,
        /// Its name; the other direction is named name/reverse. Default: from-to.
        #[schemars(with = "String")]
        pub name: Option<String>,
        /// A kind of path with typical figures; the other keys take the place of its own. Default: none.
        #[schemars(with = "Preset")]
        pub preset: Option<Preset>,
        /// Which end the subscriber of an asymmetric preset is at: "far" (`to`) makes forward the download, "near" (`from`) the upload; default "far".
        #[schemars(with = "Subscriber")]
        pub subscriber: Option<Subscriber>,
        /// Keys that differ from `to` back to `from`; default: none.
        #[schemars(with = "LinkConfig")]
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

/// Who sends to whom: a number of pairs, or the pairs by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// So many, whose hosts the topology names.
    Count(u64),
    /// Sender and receiver of each.
    Named(Vec<(String, String)>),
}

impl Pairs {
    /// The number, where names have no meaning.
    pub(super) fn count(&self, draft: &mut Draft<'_>) -> Option<u64> {
        match self {
            Self::Count(count) => Some(*count),
            Self::Named(_) => {
                draft.problem(
                    "pairs",
                    "a number of pairs is needed: names are for the kind \"free\"",
                );
                Some(1)
            }
        }
    }
}

/// The nodes of a topology by their name.
type Names = BTreeMap<String, NodeId>;

pub(super) fn draw(config: &TopologyConfig, draft: &mut Draft<'_>) {
    let hosts = draft.required("hosts", config.hosts.as_ref());
    let links = draft.required("links", config.links.as_ref());
    let (Some(hosts), Some(links)) = (hosts, links) else {
        return;
    };
    let routers = config.routers.as_deref().unwrap_or_default();
    if hosts.len() < 2 {
        draft.problem("hosts", "a topology has at least two hosts");
    }
    if hosts.len() + routers.len() > MAX_NODES || links.len() > MAX_NODES {
        draft.problem(
            "",
            format!("too large: at most {MAX_NODES} hosts and routers, and as many links"),
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
    let links = add_links(draft, &names, links);
    if !draft.problems.is_empty() {
        return;
    }
    add_pairs(draft, config.pairs.as_ref());
    add_bottlenecks(draft, config.bottlenecks.as_deref(), &links);
}

fn add_node(draft: &mut Draft<'_>, names: &mut Names, key: &str, name: &str, forwards: bool) -> NodeId {
    let node = draft.topology.add_node(name, forwards);
    if name.is_empty() {
        draft.problem(key, "a name is empty");
    } else if names.insert(name.to_owned(), node).is_some() {
        draft.problem(
            key,
            format!("the name {name:?} is given twice: each host and router has its own"),
        );
    }
    node
}

/// Says that a word is not among the known ones.
fn unknown<'a>(what: &str, word: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    const SHOWN: usize = 12;
    let hint = nearest(word, known.clone()).map_or(String::new(), |near| format!("did you mean {near:?}? "));
    let more = if known.clone().count() > SHOWN {
        ", …"
    } else {
        ""
    };
    let list: Vec<&str> = known.take(SHOWN).collect();
    format!(
        "there is no {what} {word:?}: {hint}known: {}{more}",
        list.join(", ")
    )
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
            draft.problem(
                &key,
                "a link leads from one node to another: from and to are the same",
            );
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
            let message = format!("a second link is named {taken:?}: give each a name of its own");
            draft.problem(&format!("{key}.name"), message);
            continue;
        }
        let forward = draft.cable(&name, &spec, from, to);
        known.insert(name, forward);
        known.insert(reverse, LinkId(forward.0 + 1));
    }
    known
}

fn add_pairs(draft: &mut Draft<'_>, pairs: Option<&Pairs>) {
    let Some(pairs) = pairs else {
        let last = draft.topology.hosts().len() as u32 - 1;
        return add_each(draft, &[(HostId(0), HostId(last))]);
    };
    let Pairs::Named(named) = pairs else {
        return draft.problem("pairs", "a list of pairs is needed, e.g. [[\"a\", \"b\"]]");
    };
    if named.is_empty() {
        draft.problem("pairs", "the list is empty: at least one pair is needed");
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
            draft.problem("pairs", format!("{name:?} does not send to itself"));
        }
    }
    // Every link leads in both directions, so there is a way back of the same length.
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

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountOrNames;

        impl<'de> Visitor<'de> for CountOrNames {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of pairs, or a list of pairs of hosts such as [[\"a\", \"b\"]]")
            }

            fn visit_u64<E: serde::de::Error>(self, count: u64) -> Result<Pairs, E> {
                Ok(Pairs::Count(count))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Pairs, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Pairs::Named)
            }
        }

        deserializer.deserialize_any(CountOrNames)
    }
}

impl Serialize for Pairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => count.serialize(serializer),
            Self::Named(named) => named.serialize(serializer),
        }
    }
}

impl JsonSchema for Pairs {
    fn schema_name() -> Cow<'static, str> {
        "Pairs".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pair = serde_json::json!({ "type": "array", "items": { "type": "string" }, "minItems": 2, "maxItems": 2 });
        json_schema!({
            "description": "A number of pairs, or a list of sender and receiver",
            "anyOf": [
                { "type": "integer", "minimum": 1, "maximum": 10_000 },
                { "type": "array", "items": pair, "minItems": 1 },
            ],
        })
    }
}
