//! Real-time frames: a source that sends a frame at a constant rate, and a sink that notes when each one is complete.
//!
//! A protocol with streams or datagrams carries each frame on its own. Over a single byte stream the frames follow one another, so a
//! lost packet delays all frames behind it.

use std::collections::BTreeMap;

use foundation::{Duration, Instant, Size};

use crate::application::Stream;
use crate::workload::WorkloadConfig;

/// Sends frames at a constant rate.
#[derive(Debug)]
pub struct FrameSource {
    size: u64,
    /// Frames per second.
    rate: f64,
    started_at: Instant,
    next_at: Instant,
    /// End of sending.
    stop_at: Instant,
    sent: u32,
}

impl FrameSource {
    /// Sends the first frame at the next timeout, which is due now.
    pub(crate) const fn start(&mut self, now: Instant) {
        self.started_at = now;
        self.next_at = now;
    }

    /// Returns when the next frame is due.
    pub(crate) const fn timeout(&self) -> Instant {
        self.next_at
    }

    /// Sends the frames that are due, and adds their times to `frames`.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        machine: &mut impl Stream,
        frames: &mut Vec<Instant>,
    ) {
        while self.next_at <= now {
            if self.next_at >= self.stop_at {
                machine.finish(now);
                self.next_at = Instant::MAX;
                return;
            }
            machine.send_message(now, self.sent, self.size);
            frames.push(now);
            self.sent += 1;
            // From the start, so that rounding does not add up.
            let since = Duration::from_secs_f64(f64::from(self.sent) / self.rate);
            self.next_at = self.started_at + since;
        }
    }
}

/// Receives frames.
#[derive(Debug)]
pub struct FrameSink {
    size: u64,
    /// Bytes read of each frame that is not complete.
    partial: BTreeMap<u32, u64>,
    /// The next frame of a single byte stream.
    next: u32,
}

impl FrameSink {
    /// Reads bytes of a single byte stream.
    pub(crate) fn read(&mut self, now: Instant, mut bytes: u64, frames: &mut Vec<Instant>) {
        while bytes > 0 {
            let before = self.partial.get(&self.next).copied().unwrap_or(0);
            let part = bytes.min(self.size - before);
            bytes -= part;
            let number = self.next;
            self.next += u32::from(before + part == self.size);
            self.read_message(now, number, part, frames);
        }
    }

    /// Reads bytes of frame `number`. Sets its time in `frames` if it is complete.
    pub(crate) fn read_message(&mut self, now: Instant, number: u32, bytes: u64, frames: &mut Vec<Instant>) {
        let read = self.partial.entry(number).or_default();
        *read += bytes;
        if *read >= self.size {
            self.partial.remove(&number);
            let place = number as usize;
            if frames.len() <= place {
                frames.resize(place + 1, Instant::MAX);
            }
            frames[place] = now;
        }
    }
}

/// Returns both ends of a flow of frames until `stop_at`.
pub(crate) fn ends(workload: &WorkloadConfig, stop_at: Instant) -> (FrameSource, FrameSink) {
    let size = workload.size.map_or(1, Size::bytes);
    let source = FrameSource {
        size,
        rate: workload.frame_rate(),
        started_at: Instant::MAX,
        next_at: Instant::MAX,
        stop_at,
        sent: 0,
    };
    let sink = FrameSink {
        size,
        partial: BTreeMap::new(),
        next: 0,
    };
    (source, sink)
}
