//! The syntax tree of a script.

use foundation::Duration;

use super::expression::Expression;
use super::packet::PacketSpec;

/// A whole script.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// The `--name=value` lines at its start, with their line numbers.
    pub options: Vec<(String, Option<String>, u32)>,
    /// The commands before the first event, with their first line.
    pub setup: Option<(String, u32)>,
    /// The events in order.
    pub events: Vec<Event>,
    /// The command after the last event.
    pub cleanup: Option<(String, u32)>,
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Line of its time, from one.
    pub line: u32,
    /// Its time.
    pub time: Time,
    /// Its action.
    pub action: Action,
}

/// The time of an event, since the start of the script or since the last event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// `1.5`.
    Absolute(Duration),
    /// `+.1`.
    Relative(Duration),
    /// `*`: any time.
    Any,
    /// `1.0~1.2`.
    AbsoluteRange(Duration, Duration),
    /// `+.1~+.2`.
    RelativeRange(Duration, Duration),
}

/// The action of an event.
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
    /// For a blocking call: when it returns, counted from the same origin as the event's time.
    pub end: Option<Duration>,
    /// Name.
    pub name: String,
    /// Arguments.
    pub arguments: Vec<Expression>,
    /// Expected result.
    pub result: Expression,
    /// Expected error (`EINPROGRESS`).
    pub errno: Option<String>,
}
