//! Problems of configurations.

use std::fmt;

/// A problem of a configuration: a key, and an error message for its value.
///
/// `validate()` functions return all problems at once, so that users can fix a study file in one pass.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// The key, with dots between tables: `reverse.loss.every`. Relative to the validated table until [`Problem::within`]
    /// prefixes it; empty for the table itself.
    pub key: String,
    /// One sentence with the value and the allowed values.
    pub message: String,
}

impl Problem {
    /// Returns a problem of `key`.
    #[must_use]
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            message: message.into(),
        }
    }

    /// Returns a problem if the value of `key` is not `valid`; `allowed` describes the allowed values.
    ///
    /// ```
    /// use foundation::Problem;
    /// let problem = Problem::range("every", 0, false, "at least 1").unwrap();
    /// assert_eq!(problem.to_string(), "every: 0 is out of range: at least 1");
    /// ```
    #[must_use]
    pub fn range(key: &str, value: impl fmt::Display, valid: bool, allowed: &str) -> Option<Self> {
        (!valid).then(|| Self::new(key, format!("{value} is out of range: {allowed}")))
    }

    /// Returns problems as seen from the table that holds `table`.
    pub fn all_within(problems: impl IntoIterator<Item = Self>, table: &str) -> Vec<Self> {
        problems
            .into_iter()
            .map(|problem| problem.within(table))
            .collect()
    }

    /// The same problem seen from the table that holds `table`.
    ///
    /// ```
    /// use foundation::Problem;
    /// let problem = Problem::new("every", "0 is out of range: at least 1");
    /// assert_eq!(problem.within("loss").within("path").key, "path.loss.every");
    /// assert_eq!(Problem::new("", "nothing allowed").within("loss").key, "loss");
    /// ```
    #[must_use]
    pub fn within(mut self, table: &str) -> Self {
        self.key = match (table, self.key.as_str()) {
            ("", _) => self.key,
            (_, "") => table.to_owned(),
            (_, key) => format!("{table}.{key}"),
        };
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.key, self.message)
    }
}
