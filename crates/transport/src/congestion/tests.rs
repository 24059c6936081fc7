//! Events for the tests of controllers.

use foundation::{Duration, Instant, Rate};

use super::{Acknowledgement, Controller, Loss, RateSample};

/// Returns an ACK of `bytes` that used the whole window, for a packet sent just now.
pub(crate) fn ack(now: Instant, bytes: u64) -> Acknowledgement {
    Acknowledgement {
        now,
        bytes,
        marked_bytes: 0,
        rtt: None,
        newest_sent_at: now,
        smoothed_rtt: Duration::ZERO,
        bytes_in_flight: 0,
        delivered: bytes,
        rate_sample: None,
        window_limited: true,
        in_recovery: false,
    }
}

/// Returns the loss of one packet of 1000 bytes sent at `sent_at`.
pub(crate) fn loss(now: Instant, sent_at: Instant, in_flight: u64) -> Loss {
    Loss {
        now,
        bytes: 1000,
        newest_sent_at: sent_at,
        prior_in_flight: in_flight,
        bytes_in_flight: in_flight.saturating_sub(1000),
        in_flight_at_send: in_flight,
        lost_since_send: 1000,
        application_limited: false,
        in_recovery: false,
    }
}

/// Returns a metric of a controller, NaN without one of this name.
pub(crate) fn metric(controller: &dyn Controller, wanted: &str) -> f64 {
    let mut found = f64::NAN;
    controller.metrics(&mut |name, value| {
        if name == wanted {
            found = value;
        }
    });
    found
}

#[test]
fn rate_sample_is_bytes_over_interval() {
    let sample = |delivered, nanos| RateSample {
        delivered,
        interval: Duration::from_nanos(nanos),
        prior_delivered: 0,
        lost: 0,
        in_flight_at_send: 0,
        application_limited: false,
    };
    let bits = |delivered, nanos| sample(delivered, nanos).rate().map(Rate::bits_per_second);
    assert_eq!(bits(125_000, 1_000_000_000), Some(1_000_000));
    assert_eq!(bits(1250, 0), None);
    assert_eq!(bits(0, 5), None);
    assert_eq!(bits(u64::MAX / 8, 1_000_000_000), Some(u64::MAX / 8 * 8));
    assert_eq!(bits(u64::MAX, 1), Some(u64::MAX));
}
