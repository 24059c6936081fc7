//! Delivery traces recorded on real paths, in the mahimahi format.
//!
//! A trace is a text file with one non-decreasing time per line, in milliseconds since its start. Each line is an
//! opportunity to send 1500 bytes. The trace repeats after its last time, which is therefore its period.
//! Accounting is by bytes: packets smaller than 1500 bytes share an opportunity, larger ones take several,
//! and a packet leaves with its last byte. An opportunity that the queue does not fill is lost
//! (Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015, section 3, and its `mm-link`).
//!
//! A trial can start at any time of its traces ([`TraceStart`]), so that repeated trials meet different parts of them.

use std::sync::Arc;

use foundation::{Duration, Instant, Rate, Streams};
use rand::Rng;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Bytes per opportunity.
const OPPORTUNITY: u32 = 1500;

/// The text of [`TraceStart::Random`].
const RANDOM: &str = "random";

/// The time of a trace at which a trial starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum TraceStart {
    /// This time since the start of the trace, which repeats.
    At(Duration),
    /// A time that each trial draws, uniform over the trace. All traces of a network start at the same part of their period,
    /// so that recordings of both directions of one path stay together.
    Random,
}

impl TryFrom<String> for TraceStart {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == RANDOM {
            return Ok(Self::Random);
        }
        let start: Result<Duration, _> = text.parse();
        start
            .map(Self::At)
            .map_err(|error| format!("{error}, or \"{RANDOM}\""))
    }
}

impl From<TraceStart> for String {
    fn from(start: TraceStart) -> Self {
        match start {
            TraceStart::At(time) => time.to_string(),
            TraceStart::Random => RANDOM.to_owned(),
        }
    }
}

impl JsonSchema for TraceStart {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TraceStart".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [generator.subschema_for::<Duration>(), {"const": RANDOM}]})
    }
}

/// The recorded times at which a link may send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// Nanoseconds since the start of the period, non-decreasing; the last one is the period.
    times: Arc<[u64]>,
    start: TraceStart,
}

/// An error in a trace file: the line, its content, and the expected format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TraceError(String);

impl DeliveryTrace {
    /// Parses a trace: one time per line, in whole milliseconds, non-decreasing, the last above zero.
    ///
    /// # Errors
    /// For a line that is not such a number, decreasing times, an empty trace, and a trace that lasts 0 ms.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut times = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let number = number + 1;
            let millis: u64 = line.trim().parse().map_err(|_| {
                TraceError(format!(
                    "line {number}: {line:?} is not a time: write one whole number of milliseconds per line"
                ))
            })?;
            let nanos = millis
                .checked_mul(1_000_000)
                .filter(|&nanos| nanos < 1 << 53)
                .ok_or_else(|| TraceError(format!("line {number}: {millis} ms is too long for a trace")))?;
            if times.last().is_some_and(|&last| nanos < last) {
                return Err(TraceError(format!(
                    "line {number}: {millis} ms is earlier than the line before: times must not decrease"
                )));
            }
            times.push(nanos);
        }
        match times.last() {
            None => Err(TraceError(
                "the trace is empty: write at least one time in milliseconds".into(),
            )),
            Some(0) => Err(TraceError(
                "the trace lasts 0 ms: its last line must be above 0".into(),
            )),
            Some(_) => Ok(Self {
                times: times.into(),
                start: TraceStart::At(Duration::ZERO),
            }),
        }
    }

    /// Returns the same trace with another start.
    #[must_use]
    pub fn starting(mut self, start: TraceStart) -> Self {
        self.start = start;
        self
    }

    /// Returns the trace with a time in place of a random start, drawn from the streams of a trial's network. All traces draw
    /// the same part of their period; other streams do not change.
    #[must_use]
    pub fn drawn(&self, streams: Streams) -> Self {
        let start = match self.start {
            TraceStart::At(start) => start,
            TraceStart::Random => {
                let part = u128::from(streams.stream("trace start").next_u64());
                Duration::from_nanos(((part * u128::from(self.period_nanos())) >> 64) as u64)
            }
        };
        self.clone().starting(TraceStart::At(start))
    }

    /// Returns the start in nanoseconds; that of a random one before it is drawn is 0.
    fn start_nanos(&self) -> u64 {
        match self.start {
            TraceStart::At(start) => start.as_nanos() % self.period_nanos(),
            TraceStart::Random => 0,
        }
    }

    /// Returns the time after which the trace repeats.
    #[must_use]
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period_nanos())
    }

    /// Returns the mean rate; `None` below 1 bit/s.
    #[must_use]
    pub fn mean_rate(&self) -> Option<Rate> {
        let bits = self.times.len() as u128 * u128::from(OPPORTUNITY) * 8;
        let rate = bits * 1_000_000_000 / u128::from(self.period_nanos());
        Rate::from_bits_per_second(u64::try_from(rate).ok()?)
    }

    /// Returns the bytes of all opportunities after `from` and up to `until`, both since the start of the trial.
    #[must_use]
    pub fn bytes_between(&self, from: Instant, until: Instant) -> u64 {
        let by = |at: Instant| self.bytes_by(at.as_nanos().saturating_add(self.start_nanos()));
        by(until).saturating_sub(by(from))
    }

    /// Returns the time of the first opportunity after `at`, both in nanoseconds since the start of the trial.
    pub(crate) fn next_after(&self, at: u64) -> u64 {
        let start = self.start_nanos();
        self.recorded_after(at.saturating_add(start)) - start
    }

    fn recorded_after(&self, at: u64) -> u64 {
        let (base, phase) = (at - at % self.period_nanos(), at % self.period_nanos());
        // The last time is the period, so it is later than any phase.
        let index = self.times.partition_point(|&time| time <= phase);
        base.saturating_add(self.times[index])
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

/// A position in a trace: the opportunity that serves the next byte, and the bytes left in it.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    trace: Arc<DeliveryTrace>,
    /// Time of the trace at time 0.
    start: u64,
    /// Start of the current period.
    base: u64,
    index: usize,
    left: u32,
}

impl Cursor {
    pub(crate) fn new(trace: Arc<DeliveryTrace>) -> Self {
        Self {
            start: trace.start_nanos(),
            trace,
            base: 0,
            index: 0,
            left: OPPORTUNITY,
        }
    }

    /// Returns when `size` bytes that join at `now`, behind all earlier ones, have been sent.
    pub(crate) fn departure(&mut self, now: u64, size: u32) -> u64 {
        let now = now.saturating_add(self.start);
        // The opportunity at `now` has passed: mahimahi moves the link to `now` before a packet joins.
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
                return self.time() - self.start;
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

    /// Moves to the first opportunity after `now`.
    fn skip_beyond(&mut self, now: u64) {
        let period = self.trace.period_nanos();
        self.base += (now - self.base) / period * period;
        let phase = now - self.base;
        // A later time always exists in this period: the last time is the period itself.
        self.index = self.trace.times.partition_point(|&time| time <= phase);
        self.left = OPPORTUNITY;
    }
}
