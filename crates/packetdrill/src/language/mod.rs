//! The script language: parses text into a [`Script`].
//!
//! The grammar is that of packetdrill (Cardwell et al., "packetdrill: Scriptable Network Stack Testing,
//! from Sockets to Packets", USENIX ATC 2013, section 3): options, an optional set-up command, then events,
//! each a time and an action.

mod call;
mod cursor;
mod expression;
mod lexer;
mod multipath;
mod options;
mod packet;
mod parser;
mod script;

pub use expression::{Entry, Expression};
pub use multipath::{
    AddressName, ChecksumSpec, DssSpec, MultipathSpec, NumberSpec, Route, TokenSpec, Variable,
};
pub use packet::{Direction, EcnMark, Icmp, OptionSpec, PacketSpec, Payload, TcpSpec, letters};
pub use parser::parse;
pub use script::{Action, Call, Event, Script, Time};

/// Why a text cannot be run as a script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text breaks the grammar.
    #[error("line {line}: {message}")]
    Syntax {
        /// Line in the script, from one.
        line: u32,
        /// What was expected and what was found.
        message: String,
    },
    /// A valid construct that is not supported.
    #[error("line {line}: unsupported: {what}")]
    Unsupported {
        /// Line in the script, from one.
        line: u32,
        /// The construct.
        what: String,
    },
}
