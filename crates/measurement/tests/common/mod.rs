//! What tests of real sockets share.

pub mod serving;
