//! Counters of a connection, the same in every world.

use foundation::duration_histogram::DurationTally;
use foundation::{Duration, Instant};
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
    /// Time in which the receive window, not the congestion window, kept TCP from sending; counted until the last
    /// acknowledgement.
    pub receiver_limited: Duration,
    /// Time in which the send buffer, not the congestion window, kept TCP from sending: all of it was sent, and the
    /// application had more. Counted until the application could write again.
    pub buffer_limited: Duration,
    /// Round-trip samples, if enabled.
    pub rtt: Option<Box<DurationTally>>,
}

impl Statistics {
    /// Returns statistics with a histogram of round-trip times.
    #[must_use]
    pub fn with_rtt_histogram() -> Self {
        Self {
            rtt: Some(Box::default()),
            ..Self::default()
        }
    }

    /// Adds a round-trip time to the histogram, if enabled.
    #[inline]
    pub fn record_rtt(&mut self, rtt: Duration) {
        if let Some(tally) = &mut self.rtt {
            tally.record(rtt);
        }
    }

    /// Returns the histogram of round-trip times in nanoseconds, if enabled.
    #[must_use]
    pub fn round_trips(&self) -> Option<Box<Histogram<u64>>> {
        self.rtt.as_ref().map(|tally| Box::new(tally.histogram()))
    }

    /// As [`round_trips`](Self::round_trips), and stops recording.
    pub fn take_round_trips(&mut self) -> Option<Box<Histogram<u64>>> {
        let histogram = self.round_trips();
        self.rtt = None;
        histogram
    }

    /// Returns the round-trip time at quantile `q` (0 to 1); `None` without samples.
    #[must_use]
    pub fn rtt_quantile(&self, q: f64) -> Option<Duration> {
        let histogram = self.round_trips()?;
        (!histogram.is_empty()).then(|| Duration::from_nanos(histogram.value_at_quantile(q)))
    }
}
