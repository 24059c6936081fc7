//! What every other room speaks: points and spans of time, quantities that carry their unit,
//! named random streams, and the Internet's checksum. No clock and no global state lives here.

#![forbid(unsafe_code)]

pub mod checksum;
pub mod problem;
pub mod quantity;
pub mod random;
pub mod time;

pub use problem::Problem;
pub use quantity::{Frequency, Probability, QuantityError, Rate, Size};
pub use random::{Generator, Streams};
pub use time::{Duration, Instant};
