//! Rates recorded on real paths, in mahimahi's format.
//!
//! A trace is a text with one time a line, in milliseconds since its start, not falling. Each line is an
//! opportunity to send 1500 bytes. At its last time the trace starts over, so that this time is also its period.
//! Accounting is by bytes: packets smaller than 1500 bytes share an opportunity, larger ones take several,
//! and a packet has left when its last byte has. An opportunity that finds the queue empty, in whole
//! or in part, is lost (Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015,
//! section 3, and its `mm-link`).

use std::sync::Arc;

use foundation::{Duration, Instant, Rate};

/// Bytes that one opportunity lets through.
const OPPORTUNITY: u32 = 1500;

/// The times at which a link may send, as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// Nanoseconds since the start of the period, not falling; the last one is the period.
    times: Vec<u64>,
}

/// Why a text is not a trace: the line, what stands there, and what belongs there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TraceError(String);

impl DeliveryTrace {
    /// Reads a trace: one time a line, in whole milliseconds, not falling, the last above zero.
    ///
    /// # Errors
    /// Where a line is not such a number, where times fall, where there is none, and where the trace lasts no time.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut times = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let number = number + 1;
            let millis: u64 = line.trim().parse().map_err(|_| {
                TraceError(format!(
                    "line {number}: {line:?} is not a time: one whole number of milliseconds a line"
                ))
            })?;
            let nanos = millis
                .checked_mul(1_000_000)
                .filter(|&nanos| nanos < 1 << 53)
                .ok_or_else(|| TraceError(format!("line {number}: {millis} ms is too long for a trace")))?;
            if times.last().is_some_and(|&last| nanos < last) {
                return Err(TraceError(format!(
                    "line {number}: {millis} ms comes after a later time: times must not fall"
                )));
            }
            times.push(nanos);
        }
        match times.last() {
            None => Err(TraceError(
                "the trace is empty: it needs at least one time in milliseconds".into(),
            )),
            Some(0) => Err(TraceError(
                "the trace lasts no time: its last line must be above 0".into(),
            )),
            Some(_) => Ok(Self { times }),
        }
    }

    /// How long the trace lasts until it starts over.
    #[must_use]
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period_nanos())
    }

    /// What the trace lets through on average; `None` below 1 bit/s.
    #[must_use]
    pub fn mean_rate(&self) -> Option<Rate> {
        let bits = self.times.len() as u128 * u128::from(OPPORTUNITY) * 8;
        let rate = bits * 1_000_000_000 / u128::from(self.period_nanos());
        Rate::from_bits_per_second(u64::try_from(rate).ok()?)
    }

    /// Bytes that the trace lets through after `from` and by `until`, both since its first start.
    #[must_use]
    pub fn bytes_between(&self, from: Instant, until: Instant) -> u64 {
        self.bytes_by(until.as_nanos())
            .saturating_sub(self.bytes_by(from.as_nanos()))
    }

    fn bytes_by(&self, at: u64) -> u64 {
        let (turns, phase) = (at / self.period_nanos(), at % self.period_nanos());
        let opportunities =
            turns * self.times.len() as u64 + self.times.partition_point(|&time| time <= phase) as u64;
        opportunities * u64::from(OPPORTUNITY)
    }

    fn period_nanos(&self) -> u64 {
        self.times[self.times.len() - 1]
    }
}

/// A place in a trace: the opportunity that serves the next byte, and what is left of it.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    trace: Arc<DeliveryTrace>,
    /// When the present turn of the trace began.
    base: u64,
    index: usize,
    left: u32,
}

impl Cursor {
    pub(crate) fn new(trace: Arc<DeliveryTrace>) -> Self {
        Self {
            trace,
            base: 0,
            index: 0,
            left: OPPORTUNITY,
        }
    }

    /// When `size` bytes that join at `now`, behind all before them, have been sent.
    pub(crate) fn departure(&mut self, now: u64, size: u32) -> u64 {
        // The opportunity at `now` itself is gone: mahimahi moves the link to `now` before a packet joins.
        if self.time() <= now {
            self.skip_beyond(now);
        }
        let mut bytes = size;
        loop {
            if self.left == 0 {
                self.advance();
            }
            let sent = bytes.min(self.left);
            self.left -= sent;
            bytes -= sent;
            if bytes == 0 {
                return self.time();
            }
        }
    }

    fn time(&self) -> u64 {
        self.base.saturating_add(self.trace.times[self.index])
    }

    fn advance(&mut self) {
        self.left = OPPORTUNITY;
        self.index += 1;
        if self.index == self.trace.times.len() {
            self.index = 0;
            self.base = self.base.saturating_add(self.trace.period_nanos());
        }
    }

    /// Goes to the first opportunity after `now`.
    fn skip_beyond(&mut self, now: u64) {
        let period = self.trace.period_nanos();
        self.base += (now - self.base) / period * period;
        let phase = now - self.base;
        // Below the period there is always a later time in this turn: the last one is the period itself.
        self.index = self.trace.times.partition_point(|&time| time <= phase);
        self.left = OPPORTUNITY;
    }
}
