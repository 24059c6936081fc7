//! Files over one connection: offered, resumed after an interruption, verified by hash, renamed when complete.

mod approvals;
mod batch;
mod budget;
mod checksum;
mod claims;
mod connections;
mod directory;
mod file_event;
mod folder;
mod incoming;
mod input;
mod message;
mod name;
mod one_time;
mod outgoing;
mod pace;
mod partial_file;
mod piece;
mod prefix;
mod publisher;
mod reader;
mod receive;
mod refusals;
mod send;
mod stream_buffer;
mod writer;

pub use approvals::Approvals;
pub use file_event::FileEvent;
pub use outgoing::Outcome;
pub use receive::{ReceiveEvent, ReceiveOptions, ReceiveReport, receive};
pub use send::{SendOptions, SendProgress, SendReport, SentFile, send_files};
