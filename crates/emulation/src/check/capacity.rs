//! Measures how many packets a second this machine can emulate.

use std::time::Duration;

use foundation::{Duration as Span, Streams};
use network::{HostId, LinkSpec, PathSpec, QueueConfig, QueueLimit, Topology};
use serde::Serialize;

use super::load::{PacketLoad, send};
use crate::emulation::Emulation;
use crate::error::{Error, system_error};
use crate::options::EmulationOptions;

/// Loads in packets a second.
const STEPS: [f64; 7] = [2e3, 5e3, 10e3, 25e3, 50e3, 100e3, 200e3];
/// Delay of the path in either direction.
const DELAY: Duration = Duration::from_millis(1);
/// Duration of each load.
const SPAN: Duration = Duration::from_millis(400);
/// Attempts before a load counts as too high: a short disturbance must not count.
const TRIES: usize = 3;
/// A load is sustained if at most this share is lost unexpectedly,
const LOST: f64 = 1e-3;
/// at least this share was sent,
const CAME_ABOUT: f64 = 0.9;
/// and the 99th percentile of the added delay is at most this, in seconds.
const LATE: f64 = 2e-3;

/// The capacity of this machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Capacity {
    /// The highest sustained load over one link, in packets a second; 0 if none was sustained.
    pub packets_per_second: f64,
    /// 99th percentile of the added delay at the lightest load, in seconds: the smallest delay that makes sense to
    /// emulate.
    pub late_p99_s: f64,
    /// Whether the processors had other work, so that the capacity may be higher.
    pub is_busy: bool,
}

/// Measures increasing loads until one fails three times or `enough` packets a second are sustained: 5 s at most.
///
/// # Errors
/// Those of [`Emulation::start`], and the system's.
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
    let busy_before = crate::doctor::is_busy();
    // Trials run without offload.
    let emulation = Emulation::start(EmulationOptions {
        offload: false,
        ..EmulationOptions::new(Topology::path(&path), Streams::new(1, 0))
    })?;
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
    found.is_busy |= crate::doctor::is_busy();
    Ok(found)
}

/// The result of one load.
struct LoadResult {
    /// Share of packets lost unexpectedly.
    lost: f64,
    /// Share of packets that were sent.
    came_about: f64,
    /// 99th percentile of the added delay, in seconds.
    late_s: f64,
}

impl LoadResult {
    /// On a busy machine the delay does not count.
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
