//! What a connection counts about itself, in every world alike.

use foundation::{Duration, Instant};
use hdrhistogram::Histogram;

/// Counters of one connection's sending direction, and its round-trip samples.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Data frames sent, retransmissions included.
    pub packets_sent: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Data frames sent again.
    pub retransmissions: u64,
    /// Their payload bytes.
    pub bytes_retransmitted: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Retransmissions that an echoed timestamp proved needless (RFC 3522).
    pub spurious_retransmissions: u64,
    /// Frames that only acknowledge, sent.
    pub acknowledgements_sent: u64,
    /// When the application asked for the connection.
    pub opened_at: Option<Instant>,
    /// When the first data frame left.
    pub first_data_at: Option<Instant>,
    /// When the newest payload byte was acknowledged.
    pub last_acknowledged_at: Option<Instant>,
    /// Payload bytes acknowledged in order.
    pub bytes_acknowledged: u64,
    /// Data frames that arrived here, duplicates included.
    pub packets_received: u64,
    /// Data frames that arrived here and had been received before.
    pub duplicates_received: u64,
    /// Round-trip samples in nanoseconds, if asked for.
    pub rtt: Option<Box<Histogram<u64>>>,
}

impl Statistics {
    /// Statistics that also keep a histogram of round-trip times: 1 µs to 1000 s, three digits.
    ///
    /// # Panics
    /// Never: the bounds are constants that the histogram accepts.
    #[must_use]
    pub fn with_rtt_histogram() -> Self {
        let histogram = Histogram::new_with_bounds(1_000, 1_000_000_000_000, 3).expect("constant bounds");
        Self {
            rtt: Some(Box::new(histogram)),
            ..Self::default()
        }
    }

    /// Takes in a round-trip time, where they are kept.
    pub fn record_rtt(&mut self, rtt: Duration) {
        if let Some(histogram) = &mut self.rtt {
            histogram.saturating_record(rtt.as_nanos());
        }
    }

    /// The round-trip time at quantile `q` (0 to 1), `None` without samples.
    #[must_use]
    pub fn rtt_quantile(&self, q: f64) -> Option<Duration> {
        let histogram = self.rtt.as_ref().filter(|h| !h.is_empty())?;
        Some(Duration::from_nanos(histogram.value_at_quantile(q)))
    }
}
