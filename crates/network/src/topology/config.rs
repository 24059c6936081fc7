//! The keys of `[topology]`.

use std::borrow::Cow;

use foundation::Problem;
use foundation::kinds::{self, Written};
use serde_json::{Map, Value};

use super::draft::Draft;
use super::{Topology, TopologyConfig};

/// The keys of a kind of topology.
pub(super) trait TopologyKind {
    /// Adds its hosts, routers, links and pairs to the draft, and problems of the keys.
    fn draw(&self, draft: &mut Draft<'_>);
}

impl Written for TopologyConfig {
    fn expected() -> Cow<'static, str> {
        "a table such as { kind = \"dumbbell\", pairs = 2, bottleneck = { rate = \"10Mbit/s\" } }".into()
    }

    fn from_table(table: Map<String, Value>) -> Result<Self, Problem> {
        kinds::from_table(table)
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
