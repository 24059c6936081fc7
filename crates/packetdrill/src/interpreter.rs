//! The interface to the language of code snippets.

use std::collections::BTreeMap;

/// Runs the code snippets of one script, which share their variables.
pub trait Interpreter {
    /// Runs `code` with `values` defined: the values of `tcp_info`, if there is a connection, and constants.
    fn run(&mut self, code: &str, values: &BTreeMap<&'static str, u64>) -> Evaluation;
}

/// Result of a snippet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluation {
    /// The printed lines.
    pub printed: Vec<String>,
    /// Why the snippet stopped early.
    pub failure: Option<Failure>,
}

/// Why a snippet stopped early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An assertion failed.
    Assertion {
        /// The source of the assertion.
        expected: String,
        /// The values of its names, and its message.
        seen: String,
    },
    /// The snippet is not valid or needs something that is not supported.
    Unsupported(String),
}
