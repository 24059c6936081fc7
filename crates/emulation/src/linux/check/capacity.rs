//! How many packets a second this machine emulates.

use std::time::Duration;

use foundation::{Duration as Span, Streams};
use network::{HostId, LinkSpec, PathSpec, QueueConfig, QueueLimit, Topology};
use serde::Serialize;

use super::load::{PacketLoad, send};
use crate::error::{Error, system_error};
use crate::linux::emulation::Emulation;
use crate::options::EmulationOptions;

/// Loads that are tried, in packets a second.
const STEPS: [f64; 7] = [2e3, 5e3, 10e3, 25e3, 50e3, 100e3, 200e3];
/// Each way's delay meanwhile.
const DELAY: Duration = Duration::from_millis(1);
/// How long each is.
const SPAN: Duration = Duration::from_millis(400);
/// A load that is not held is tried so often in all: whoever else works for a moment must not pass for the machine.
const TRIES: usize = 3;
/// A load is held where no more than this part of it is lost without having been asked for,
const LOST: f64 = 1e-3;
/// where at least this part of it came about,
const CAME_ABOUT: f64 = 0.9;
/// and where the 99th percentile of what is added to a delay is no more than this, in seconds.
const LATE: f64 = 2e-3;

/// What this machine holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Capacity {
    /// The highest load that was held, in packets a second over one link; 0 where none was.
    pub packets_per_second: f64,
    /// How late packets were at the lightest load, 99th percentile, in seconds: shorter delays cannot be told from it.
    pub late_p99_s: f64,
    /// Whether the machine's processors had other work meanwhile, so that it may hold more.
    pub is_busy: bool,
}

/// Measures loads in rising order until one is not held in three tries, or `enough` packets a second are: 5 s at most.
///
/// # Errors
/// What stands in the way of emulation, and the system's.
pub fn capacity(enough: f64, stopped: &mut dyn FnMut() -> bool) -> Result<Capacity, Error> {
    let link = LinkSpec {
        delay: Span::from_millis(1),
        queue: QueueConfig::drop_tail(QueueLimit::Packets(1_000_000)),
        ..LinkSpec::default()
    };
    let path = PathSpec {
        forward: link.clone(),
        reverse: link,
    };
    let busy_before = crate::linux::doctor::is_busy();
    let emulation = Emulation::start(EmulationOptions::new(Topology::path(&path), Streams::new(1, 0)))?;
    let mut found = Capacity {
        packets_per_second: 0.0,
        late_p99_s: SPAN.as_secs_f64(),
        is_busy: busy_before,
    };
    'steps: for (number, per_second) in STEPS.into_iter().enumerate() {
        for attempt in 1..=TRIES {
            let load = offer(&emulation, per_second, stopped)?;
            if number == 0 {
                found.late_p99_s = found.late_p99_s.min(load.late_s.max(0.0));
            }
            if load.is_met(busy_before) {
                break;
            }
            if attempt == TRIES {
                break 'steps;
            }
        }
        found.packets_per_second = per_second;
        if per_second >= enough {
            break;
        }
    }
    found.is_busy |= crate::linux::doctor::is_busy();
    Ok(found)
}

/// What became of a load.
struct LoadResult {
    /// The part that was lost without having been asked for.
    lost: f64,
    /// The part of it that could be sent.
    came_about: f64,
    /// What was added to the delay, 99th percentile, in seconds.
    late_s: f64,
}

impl LoadResult {
    /// Lateness says nothing of a machine that has other work.
    fn is_met(&self, is_busy: bool) -> bool {
        self.lost <= LOST && self.came_about >= CAME_ABOUT && (self.late_s <= LATE || is_busy)
    }
}

fn offer(
    emulation: &Emulation,
    per_second: f64,
    stopped: &mut dyn FnMut() -> bool,
) -> Result<LoadResult, Error> {
    let before = emulation.report().written;
    let stream = PacketLoad {
        bytes: 1500,
        per_second,
        burst: 0,
        span: SPAN,
        way: DELAY,
    };
    let arrivals = send(emulation, HostId(0), HostId(1), stream, stopped)
        .map_err(|error| system_error("load an emulated path", error))?;
    let written = emulation.report().written - before;
    let delays = &arrivals.delays;
    Ok(LoadResult {
        lost: 1.0 - written as f64 / (arrivals.sent.max(1)) as f64,
        came_about: arrivals.sent as f64 / (per_second * SPAN.as_secs_f64()),
        late_s: delays
            .get(delays.len() * 99 / 100)
            .map_or(SPAN.as_secs_f64(), |delay| delay - DELAY.as_secs_f64()),
    })
}
