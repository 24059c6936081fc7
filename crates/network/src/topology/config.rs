//! The vocabulary of `[topology]`.

use foundation::{Problem, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::draft::Draft;
use super::free::{FreeLink, Pairs};
use super::links::Links;
use super::multipath::Delays;
use super::{Topology, dumbbell, free, loopback, multipath, parking_lot, star, tree};

/// The shape of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TopologyKind {
    /// Senders s1, s2, … left, receivers r1, r2, … right, and one bottleneck between that all share.
    Dumbbell,
    /// Bottlenecks in a row: s0 sends to r0 over all of them, s1 to r1 over the first alone, s2 to r2 over the second, …
    ParkingLot,
    /// Hosts around a switch, each behind one access link: h1, h2, … all send to the host hub (incast).
    Star,
    /// Hosts h1, h2, … at the leaves that all send to the host server at the root.
    Tree,
    /// The hosts sender and receiver with several paths side by side, for protocols that use more than one.
    Multipath,
    /// One host that talks to itself over its loopback interface, without any link; only between real kernels.
    Loopback,
    /// Hosts, routers and links as they are listed.
    Free,
}

impl TopologyKind {
    /// Its name in a study file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dumbbell => "dumbbell",
            Self::ParkingLot => "parking-lot",
            Self::Star => "star",
            Self::Tree => "tree",
            Self::Multipath => "multipath",
            Self::Loopback => "loopback",
            Self::Free => "free",
        }
    }

    /// The keys that belong to it.
    const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Dumbbell => dumbbell::KEYS,
            Self::ParkingLot => parking_lot::KEYS,
            Self::Star => star::KEYS,
            Self::Tree => tree::KEYS,
            Self::Multipath => multipath::KEYS,
            Self::Loopback => loopback::KEYS,
            Self::Free => free::KEYS,
        }
    }
}

/// Declares the keys of a topology besides its kind, each of which may be left out.
macro_rules! keys {
    ($($(#[$help:meta])* $key:ident: $value:ty = $schema:literal,)*) => {
        /// Hosts and routers joined by links, whose tables have the keys of a path.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[serde(expecting = "a table such as { kind = \"dumbbell\", pairs = 2, bottleneck = { rate = \"10Mbit/s\" } }")]
        #[schemars(rename = "Topology")]
        pub struct TopologyConfig {
            /// The shape: dumbbell, parking-lot, star, tree, multipath, loopback (one host that talks to itself; world netns alone), or free (hosts, routers and links as listed).
            pub kind: TopologyKind,
            $(
                $(#[$help])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                #[schemars(with = $schema)]
                pub $key: Option<$value>,
            )*
        }

        impl TopologyConfig {
            /// A topology of which only the kind is known.
            #[must_use]
            pub const fn new(kind: TopologyKind) -> Self {
                Self { kind, $($key: None,)* }
            }

            /// The keys that are given.
            fn given(&self) -> impl Iterator<Item = &'static str> + use<> {
                [$((stringify!($key), self.$key.is_some()),)*]
                    .into_iter()
                    .filter_map(|(key, given)| given.then_some(key))
            }
        }
    };
}

keys! {
    /// dumbbell: number of senders, from 1 to 10000; default: as many as access lists. free: who sends to whom, a list such as [["a", "b"]]; default: the first host to the last.
    pairs: Pairs = "Pairs",
    /// dumbbell: number of receivers, which senders share in turn (1 = all send to r1); default: one for each sender.
    receivers: u64 = "u64",
    /// dumbbell, parking-lot: the shared link or links, a table of a path's keys; parking-lot: or a list with one for each hop.
    bottleneck: Links = "Links",
    /// dumbbell, parking-lot: links from senders to their router, a table for all or a list with one for each; default: senders stand at the router.
    access: Links = "Links",
    /// dumbbell, parking-lot: links from routers to receivers, a table for all or a list with one for each; default: receivers stand at the router.
    exit: Links = "Links",
    /// parking-lot: number of bottlenecks in a row, from 1 to 250; default: as many as bottleneck lists.
    hops: u64 = "u64",
    /// star: number of hosts that send to the hub, from 1 to 10000; default: as many as leaf lists.
    leaves: u64 = "u64",
    /// star: access links from the hosts to the switch, a table for all or a list with one for each.
    leaf: Links = "Links",
    /// star: access link from the switch to the host hub, which all that send to it share; default: like leaf, if that is one table.
    hub: Links = "Links",
    /// tree: number of levels of links, from 1 to 100; default: as many as level lists, or else 2.
    depth: u64 = "u64",
    /// tree: branches below each node; at most 10000 leaves altogether; default 2.
    fan_out: u64 = "u64",
    /// tree: links towards the root, a table for all or a list with one for each level, from the root down.
    level: Links = "Links",
    /// multipath: number of paths, from 1 to 64; default: as many as path lists.
    paths: u64 = "u64",
    /// multipath: the paths, a table of a path's keys for all or a list with one for each.
    path: Links = "Links",
    /// multipath: one-way delays from the first path to the last in even steps, such as "10ms..100ms"; default: those of path.
    delays: Delays = "String",
    /// loopback: MTU of the interface, from 68B to 64KiB; default "64KiB".
    mtu: Size = "Size",
    /// free: names of the hosts, which send and receive.
    hosts: Vec<String> = "Vec<String>",
    /// free: names of the routers, which pass packets on; default: none.
    routers: Vec<String> = "Vec<String>",
    /// free: the links, each { from = "a", to = "b" } with the keys of a path; it leads in both directions.
    links: Vec<FreeLink> = "Vec<FreeLink>",
    /// free: names of the links whose queue and use are measured, in the direction of the name; default: the slowest link on the way of the measured data.
    bottlenecks: Vec<String> = "Vec<String>",
}

impl TopologyConfig {
    /// What is out of range, missing or does not fit together.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        // Any trace will do to see whether the rest is right.
        self.resolve(&mut |_| Ok("1".into())).err().unwrap_or_default()
    }

    /// The topology that these keys describe. `load` gives the text of a trace's file, or why it cannot.
    ///
    /// # Errors
    /// Everything that is out of range, missing or does not fit together, and a trace that cannot be had or read.
    pub fn resolve(
        &self,
        load: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Topology, Vec<Problem>> {
        let mut draft = Draft::new(load);
        let allowed = self.kind.keys();
        for key in self.given().filter(|key| !allowed.contains(key)) {
            let kind = self.kind.name();
            draft.problem(
                key,
                format!(
                    "does not belong to the kind {kind:?}, which has the keys {}",
                    allowed.join(", ")
                ),
            );
        }
        match self.kind {
            TopologyKind::Dumbbell => dumbbell::draw(self, &mut draft),
            TopologyKind::ParkingLot => parking_lot::draw(self, &mut draft),
            TopologyKind::Star => star::draw(self, &mut draft),
            TopologyKind::Tree => tree::draw(self, &mut draft),
            TopologyKind::Multipath => multipath::draw(self, &mut draft),
            TopologyKind::Loopback => loopback::draw(self, &mut draft),
            TopologyKind::Free => free::draw(self, &mut draft),
        }
        draft.finish()
    }
}
