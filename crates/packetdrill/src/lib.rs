//! Runs packetdrill scripts against the project's TCP on virtual time, and says where it departs.

#![forbid(unsafe_code)]

pub mod code;
pub mod files;
pub mod language;
pub mod run;
