//! What running a script gives.

use foundation::Instant;

/// How a script ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything happened as the script says.
    Pass,
    /// Something did not.
    Fail(Departure),
    /// The script needs what this program does not know.
    Unsupported {
        /// Line in the script, from one.
        line: u32,
        /// What it needs.
        what: String,
    },
    /// The text is no script.
    Invalid {
        /// Line in the script, from one.
        line: u32,
        /// What is wrong with it.
        message: String,
    },
}

/// The first place where the machine departs from the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Line of the event.
    pub line: u32,
    /// What the script says.
    pub expected: String,
    /// What happened.
    pub seen: String,
    /// When it was noticed, since the start of the script.
    pub at: Instant,
}

/// What running a script gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How it ended.
    pub outcome: Outcome,
    /// What its snippets printed.
    pub printed: Vec<String>,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pass => write!(f, "pass"),
            Self::Fail(departure) => write!(f, "line {}: {departure}", departure.line),
            Self::Unsupported { line, what } => write!(f, "line {line}: unsupported: {what}"),
            Self::Invalid { line, message } => write!(f, "line {line}: {message}"),
        }
    }
}

impl std::fmt::Display for Departure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "expected {}, seen {} [{}]", self.expected, self.seen, self.at)
    }
}
