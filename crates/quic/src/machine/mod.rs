//! The protocol machine on top of noq-proto.

mod clock;
mod connection;
mod controller;
mod crypto;
mod ledger;
mod migration;
mod path_info;
mod paths;
mod selection;
mod setup;
mod streams;
mod tap;
mod unreliable;

pub use connection::{Connection, Event};
pub use migration::client_address;
pub use path_info::{PathInfo, PathReport};
pub use setup::Cryptography;
