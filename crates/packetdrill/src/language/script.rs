//! What a script says.

use foundation::Duration;

use super::expression::Expression;
use super::packet::PacketSpec;

/// A whole script.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// The `--name=value` lines at its head, with their lines.
    pub options: Vec<(String, Option<String>, u32)>,
    /// The commands before the first event, with the line they begin on.
    pub setup: Option<(String, u32)>,
    /// What happens, in order.
    pub events: Vec<Event>,
    /// The command after the last event.
    pub cleanup: Option<(String, u32)>,
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Line of its time, from one.
    pub line: u32,
    /// When.
    pub time: Time,
    /// What.
    pub action: Action,
}

/// When an event happens, since the start of the script or since the event before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// `1.5`.
    Absolute(Duration),
    /// `+.1`.
    Relative(Duration),
    /// `*`: whenever it comes.
    Any,
    /// `1.0~1.2`.
    AbsoluteRange(Duration, Duration),
    /// `+.1~+.2`.
    RelativeRange(Duration, Duration),
}

/// What an event does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A packet, injected or expected.
    Packet(Box<PacketSpec>),
    /// A system call and its result.
    Call(Call),
    /// A shell command.
    Command(String),
    /// A snippet of Python.
    Code(String),
}

/// A system call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// For a call that blocks: when it returns, counted from where its beginning is counted.
    pub end: Option<Duration>,
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<Expression>,
    /// What it returns.
    pub result: Expression,
    /// The error it sets (`EINPROGRESS`).
    pub errno: Option<String>,
}
