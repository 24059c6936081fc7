//! All integration tests of the crate in one binary.

mod all_reduce;
mod allocations;
mod captures;
#[cfg(feature = "quic")]
mod client_migration;
mod closed_form;
mod coupling;
mod directions;
mod flows;
#[cfg(feature = "quic")]
mod frames;
mod measured_time;
mod path_bytes;
mod protocol_changes;
#[cfg(feature = "quic")]
mod quic;
#[cfg(feature = "quic")]
mod rebinding;
mod requests;
mod sessions;
mod short_timeouts;
mod slowdown;
mod timeless;
mod traces;
mod traffic;
mod transactions;
mod transfers;
