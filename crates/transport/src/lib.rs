//! Transport protocols as state machines without a clock or a socket.

#![forbid(unsafe_code)]

pub mod congestion;
