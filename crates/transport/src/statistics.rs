//! Counters of a connection, the same in every world.

use foundation::{Duration, Instant, duration_histogram};
use hdrhistogram::Histogram;

/// Counters of one connection's sending direction, and its round-trip samples.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Data frames sent, retransmissions included.
    pub packets_sent: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Retransmitted data frames.
    pub retransmissions: u64,
    /// Payload bytes of retransmissions.
    pub bytes_retransmitted: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Retransmissions that proved spurious, by an echoed timestamp (RFC 3522) or DSACK.
    pub spurious_retransmissions: u64,
    /// Frames sent with an acknowledgement only.
    pub acknowledgements_sent: u64,
    /// When the application opened the connection.
    pub opened_at: Option<Instant>,
    /// When the first data frame was sent.
    pub first_data_at: Option<Instant>,
    /// When the last acknowledgement of new data arrived.
    pub last_acknowledged_at: Option<Instant>,
    /// Payload bytes acknowledged in order.
    pub bytes_acknowledged: u64,
    /// Data frames received, duplicates included.
    pub packets_received: u64,
    /// Duplicate data frames received.
    pub duplicates_received: u64,
    /// Histogram of round-trip samples in nanoseconds, if enabled.
    pub rtt: Option<Box<Histogram<u64>>>,
}

impl Statistics {
    /// Returns statistics with a histogram of round-trip times.
    #[must_use]
    pub fn with_rtt_histogram() -> Self {
        Self {
            rtt: Some(Box::new(duration_histogram::new())),
            ..Self::default()
        }
    }

    /// Adds a round-trip time to the histogram, if enabled.
    pub fn record_rtt(&mut self, rtt: Duration) {
        if let Some(histogram) = &mut self.rtt {
            duration_histogram::record(histogram, rtt);
        }
    }

    /// Returns the round-trip time at quantile `q` (0 to 1); `None` without samples.
    #[must_use]
    pub fn rtt_quantile(&self, q: f64) -> Option<Duration> {
        let histogram = self.rtt.as_ref().filter(|h| !h.is_empty())?;
        Some(Duration::from_nanos(histogram.value_at_quantile(q)))
    }
}
