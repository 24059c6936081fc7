//! Measuring real paths: round trips, transactions, and what passed the device meanwhile.
//!
//! What to send when, and what an answer means, are state machines without a clock or a socket; the drivers beside them
//! use Linux's sockets. All that is sent goes to the host that the caller names.

pub mod capture;
pub mod echo;
pub mod hops;
pub mod ping;
#[cfg(target_os = "linux")]
pub mod rights;
pub mod stamp;
#[cfg(target_os = "linux")]
pub mod system;
#[cfg(target_os = "linux")]
pub mod timestamps;

pub mod transact;
pub mod user;

pub use kernel::Error;
pub use stamp::Stamp;
