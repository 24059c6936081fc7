//! Types that all other crates share: points and spans of time, quantities with units, named random streams, the Internet
//! checksum, ECN code points and ICMP headers. It depends on no other crate of the workspace and must not read a clock or keep global state.

// Only `prefetch` has any.
#![deny(unsafe_code)]

pub mod checksum;
pub mod confinement;
pub mod dimension;
pub mod duration_histogram;
mod ecn;
pub mod extension;
pub mod icmp;
pub mod kinds;
mod omit_unset;
mod prefetch;
pub mod problem;
pub mod quantity;
pub mod random;
pub mod reading;
mod ring;
pub mod time;
pub mod wrong_value;

pub use ecn::Ecn;
pub use prefetch::prefetch;
pub use problem::Problem;
pub use quantity::{Frequency, Probability, QuantityError, Rate, Size};
pub use random::{Generator, Streams};
pub use ring::Ring;
pub use time::{Duration, Instant};
