//! Results of scripts.

use foundation::Instant;

use crate::language::ParseError;

/// The result of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything happened as described.
    Pass,
    /// The first difference.
    Fail(Mismatch),
    /// The script needs something that is not supported.
    Unsupported {
        /// Line in the script, from one.
        line: u32,
        /// The missing feature.
        what: String,
    },
    /// The text is not a valid script.
    Invalid {
        /// Line in the script, from one.
        line: u32,
        /// The problem.
        message: String,
    },
}

impl From<ParseError> for Outcome {
    fn from(error: ParseError) -> Self {
        match error {
            ParseError::Syntax { line, message } => Self::Invalid { line, message },
            ParseError::Unsupported { line, what } => Self::Unsupported { line, what },
        }
    }
}

/// The first difference between the machine's behaviour and the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Line of the event.
    pub line: u32,
    /// The script's expectation.
    pub expected: String,
    /// The machine's behaviour.
    pub seen: String,
    /// When it was detected, since the start of the script.
    pub at: Instant,
}

/// The report of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The result.
    pub outcome: Outcome,
    /// The lines printed by its snippets.
    pub printed: Vec<String>,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pass => write!(f, "pass"),
            Self::Fail(mismatch) => write!(f, "line {}: {mismatch}", mismatch.line),
            Self::Unsupported { line, what } => write!(f, "line {line}: unsupported: {what}"),
            Self::Invalid { line, message } => write!(f, "line {line}: {message}"),
        }
    }
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "expected {}, seen {} [{}]", self.expected, self.seen, self.at)
    }
}
