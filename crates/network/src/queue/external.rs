//! Disciplines from outside of the crate. The key `limit` is theirs too.

use foundation::extension::Configured;
use foundation::{Problem, reading};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::discipline::limit_key;
use super::{Discipline, DisciplineConfig, QueueContext, QueueLimit};

/// Name of the key.
const LIMIT: &str = "limit";

/// Settings of a kind of discipline from outside of the crate.
pub trait DisciplineSettings: Send + Sync {
    /// Returns the keys that are out of range.
    fn validate(&self) -> Vec<Problem>;

    /// Builds the discipline for a link. It must keep the queue, the packet in transmission included, within `limit`.
    fn build(&self, limit: QueueLimit, context: &QueueContext) -> Box<dyn Discipline + Send>;
}

foundation::role!(DisciplineSettings, "queue discipline", "red.py:Red");

/// A configured discipline from outside of the crate.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalQueue {
    limit: Option<QueueLimit>,
    configured: Configured<dyn DisciplineSettings>,
}

impl ExternalQueue {
    /// Reads the keys of the discipline `name`.
    pub(super) fn external(name: &str, keys: &Map<String, Value>) -> Result<Self, Problem> {
        let mut keys = keys.clone();
        let limit = keys.remove(LIMIT).map(reading::read_value);
        Ok(Self {
            limit: limit.transpose().map_err(|problem| problem.within(LIMIT))?,
            configured: Configured::external(name, &keys)?,
        })
    }

    /// Returns the name.
    pub(super) fn name(&self) -> &str {
        self.configured.name()
    }

    /// Returns the JSON Schemas of external disciplines.
    pub(super) fn schemas() -> [Value; 2] {
        Configured::<dyn DisciplineSettings>::schemas()
    }
}

impl DisciplineConfig for ExternalQueue {
    limit_key!();

    fn validate(&self) -> Vec<Problem> {
        let mut problems = QueueLimit::problems(self.limit);
        problems.extend(self.configured.validate());
        problems
    }

    fn build(&self, context: &QueueContext) -> Option<Box<dyn Discipline + Send>> {
        Some(self.configured.settings().build(self.limit(), context))
    }
}

impl Serialize for ExternalQueue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut given = self.configured.given().clone();
        if let Some(limit) = self.limit {
            given.insert(LIMIT.to_owned(), limit.to_string().into());
        }
        if given.is_empty() {
            return serializer.serialize_str(self.name());
        }
        given.insert(foundation::kinds::KIND.to_owned(), self.name().into());
        given.serialize(serializer)
    }
}
