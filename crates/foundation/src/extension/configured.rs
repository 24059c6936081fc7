//! Settings of a registered kind, with the keys that were written.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::{Role, read_external};
use crate::Problem;
use crate::kinds::KIND;

/// A name and settings of role `R`. Equal if name and written keys are.
pub struct Configured<R: ?Sized> {
    name: Cow<'static, str>,
    settings: Arc<R>,
    /// Configured keys, to be written back.
    given: Map<String, Value>,
}

impl<R: Role + ?Sized> Configured<R> {
    /// Creates a configuration; `given` are the keys to write back.
    #[must_use]
    pub const fn new(name: Cow<'static, str>, settings: Arc<R>, given: Map<String, Value>) -> Self {
        Self {
            name,
            settings,
            given,
        }
    }

    /// Reads the keys of the external kind `name`.
    ///
    /// # Errors
    /// The first problem.
    pub fn external(name: &str, keys: &Map<String, Value>) -> Result<Self, Problem> {
        read_external(name, keys).map_err(|mut problems| problems.swap_remove(0))
    }

    /// Returns the JSON Schemas of external kinds.
    #[must_use]
    pub fn schemas() -> [Value; 2] {
        super::schemas::<R>()
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the settings.
    #[must_use]
    pub fn settings(&self) -> &R {
        &self.settings
    }

    /// Returns the written keys.
    #[must_use]
    pub const fn given(&self) -> &Map<String, Value> {
        &self.given
    }

    /// Returns the keys that are out of range.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        self.settings.problems()
    }
}

impl<R: ?Sized> Clone for Configured<R> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            settings: Arc::clone(&self.settings),
            given: self.given.clone(),
        }
    }
}

impl<R: ?Sized> fmt::Debug for Configured<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Configured")
            .field("name", &self.name)
            .field("given", &self.given)
            .finish_non_exhaustive()
    }
}

impl<R: ?Sized> PartialEq for Configured<R> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.given == other.given
    }
}

impl<R: ?Sized> Serialize for Configured<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.given.is_empty() {
            return serializer.serialize_str(&self.name);
        }
        let kind = (KIND.to_owned(), Value::from(&*self.name));
        let given = self.given.iter().map(|(key, value)| (key.clone(), value.clone()));
        serializer.collect_map(std::iter::once(kind).chain(given))
    }
}
