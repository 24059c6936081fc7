//! The keys of `[topology]`.

use std::borrow::Cow;

use foundation::kinds::Written;
use foundation::{Problem, kinds};
use serde::{Deserialize, Deserializer};

use super::Topology;
use super::draft::Draft;
use super::dumbbell::Dumbbell;
use super::free::Free;
use super::loopback::Loopback;
use super::multipath::Multipath;
use super::parking_lot::ParkingLot;
use super::star::Star;
use super::tree::Tree;

/// The keys of a kind of topology.
pub(super) trait TopologyKind {
    /// Adds its hosts, routers, links and pairs to the draft, and problems of the keys.
    fn draw(&self, draft: &mut Draft<'_>);
}

kinds! {
    /// Hosts and routers joined by links, whose tables have the keys of a path.
    #[serde(tag = "kind")]
    #[schemars(rename = "Topology")]
    pub enum TopologyConfig: TopologyKind {
        /// Senders s1, s2, … on the left, receivers r1, r2, … on the right, and one shared bottleneck between them.
        "dumbbell" => Dumbbell,
        /// Bottlenecks in series: s0 sends to r0 across all of them, s1 to r1 across the first alone, s2 to r2 across the second, …
        "parking-lot" => ParkingLot,
        /// Hosts h1, h2, … around a switch, each behind one access link; all send to the host hub (incast).
        "star" => Star,
        /// Hosts h1, h2, … at the leaves, which all send to the host server at the root.
        "tree" => Tree,
        /// The hosts sender and receiver joined by parallel paths, for multipath protocols.
        "multipath" => Multipath,
        /// One host that communicates over its loopback interface, without links; world netns only.
        "loopback" => Loopback,
        /// The listed hosts, routers and links.
        "free" => Free,
    }
}

impl Written for TopologyConfig {
    fn expected() -> Cow<'static, str> {
        "a table such as { kind = \"dumbbell\", pairs = 2, bottleneck = { rate = \"10Mbit/s\" } }".into()
    }
}

impl<'de> Deserialize<'de> for TopologyConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        kinds::deserialize(deserializer)
    }
}

impl TopologyConfig {
    /// Returns all problems of the keys.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        // Any valid trace suffices to validate the other keys.
        self.resolve(&mut |_| Ok("1".into())).err().unwrap_or_default()
    }

    /// Builds the topology. `load` returns the content of a trace file or an error.
    ///
    /// # Errors
    /// All problems of the keys, and a trace that cannot be loaded or parsed.
    pub fn resolve(
        &self,
        load: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Topology, Vec<Problem>> {
        let mut draft = Draft::new(load);
        self.settings().draw(&mut draft);
        draft.finish()
    }
}
