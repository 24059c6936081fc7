//! Connections that occupy a place without use.

use foundation::{Duration, Instant};

/// How long a sender may send no message. The time covers hashing of a large file before the transfer resumes.
const IDLE: Duration = Duration::from_secs(600);
/// How long a sender may take for its first offer.
const FIRST_OFFER: Duration = Duration::from_secs(30);
/// In each span of this length, a sender must send [`LEAST`] bytes of a file that it has started.
const SPAN: Duration = Duration::from_secs(60);
/// See [`SPAN`]: 100 B/s.
const LEAST: u64 = 6000;

/// A receiver's observation of a sender.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// When the sender last did something, or this end was busy for it.
    pub progress_at: Instant,
    /// Number of its offers.
    pub offered: u32,
    /// Whether the contents of a file are arriving.
    pub sends_contents: bool,
    /// Bytes of its stream.
    pub received: u64,
}

/// The pace of one sender.
#[derive(Debug, Default)]
pub struct Pace {
    /// Start of the current span, and the bytes until then.
    span: Option<(Instant, u64)>,
}

impl Pace {
    /// Returns why the connection has to end, if it has.
    pub fn check(&mut self, now: Instant, seen: Observation) -> Option<String> {
        let silence = now.saturating_since(seen.progress_at);
        if silence > IDLE {
            return Some(format!("it has sent nothing for {IDLE}"));
        }
        if seen.offered == 0 && silence > FIRST_OFFER {
            return Some(format!("it has offered no file for {FIRST_OFFER}"));
        }
        if !seen.sends_contents {
            self.span = None;
            return None;
        }
        let (since, before) = *self.span.get_or_insert((now, seen.received));
        if now.saturating_since(since) < SPAN {
            return None;
        }
        self.span = Some((now, seen.received));
        // A disk that is busy slows the sender down, but is progress.
        let slow = seen.received - before < LEAST && silence > Duration::ZERO;
        slow.then(|| format!("it has sent less than {LEAST} bytes in {SPAN}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(second: u64) -> Instant {
        Instant::from_nanos(second * 1_000_000_000)
    }

    /// Returns when the connection ends, in seconds, if `rate` bytes arrive per second after `offers`.
    fn end(offered: u32, sends_contents: bool, rate: u64) -> Option<(u64, String)> {
        let mut pace = Pace::default();
        (0..2000).find_map(|second| {
            let progress = if rate == 0 { 0 } else { second - 1.min(second) };
            let seen = Observation {
                progress_at: at(progress),
                offered,
                sends_contents,
                received: second * rate,
            };
            Some((second, pace.check(at(second), seen)?))
        })
    }

    #[test]
    fn ends_connections_that_offer_nothing_or_stall() {
        assert_eq!(
            end(0, false, 0),
            Some((31, "it has offered no file for 30s".to_owned()))
        );
        assert_eq!(
            end(1, false, 0),
            Some((601, "it has sent nothing for 600s".to_owned()))
        );
        let slow = Some((60, "it has sent less than 6000 bytes in 60s".to_owned()));
        assert_eq!(end(1, true, 0), slow);
        assert_eq!(end(1, true, 99), slow);
        assert_eq!(end(1, true, 100), None);
    }
}
