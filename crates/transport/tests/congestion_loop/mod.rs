//! Controllers in a closed loop over one bottleneck.

mod any;
mod changes;
mod copa;
mod coupled;
mod dctcp;
mod facts;
mod flow;
mod laws;
mod ledbat;
mod model;
mod points;
mod sharing;
mod single;
mod vivace;

use foundation::{Duration, Instant};

/// Returns the instant at `secs` seconds.
fn at(secs: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(secs)
}
