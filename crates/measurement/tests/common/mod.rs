//! Shared code of tests with real sockets.

pub mod serving;
