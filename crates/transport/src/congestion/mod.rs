//! Congestion control: how much may be in flight, and how fast it may leave.
//!
//! A [`Controller`] is told facts and answers with a window and, if it paces, a rate. It never sees
//! a connection. The facts carry everything that published controllers need: bytes, round-trip
//! samples, delivery-rate samples, losses and the bytes in flight.

mod arithmetic;
mod balia;
mod bbr;
mod bbr1;
pub mod config;
mod coupled;
mod cubic;
mod cubic_linux;
pub mod delivery_rate;
mod fixed;
mod hystart;
mod hystart_classic;
mod lia;
mod loss_based;
mod olia;
pub mod pacer;
mod registry;
mod reno;
mod rules;
mod settings;
mod siblings;
mod vegas;
mod westwood;
mod wvegas;

pub use balia::{Balia, BaliaSettings};
pub use bbr::{BbrSettings, BbrTolerantSettings};
pub use bbr1::Bbr1Settings;
pub use config::CongestionConfig;
pub use coupled::{CoupledGains, CoupledSettings, Coupling};
pub use cubic::CubicSettings;
pub use delivery_rate::{Estimator, Snapshot};
pub use fixed::FixedSettings;
pub use hystart::HyStartKind;
pub use lia::{LiaSettings, alpha as lia_alpha};
pub use olia::{Olia, OliaSettings};
pub use pacer::Pacer;
pub use registry::{ParsedSettings, Registration, Registry, Resolver, SEPARATOR, install_resolver};
pub use reno::RenoSettings;
pub use rules::{RenoRules, Rules, StackRules};
pub use settings::{ConnectionContext, ControllerSettings};
pub use siblings::{Sibling, Siblings};
pub use vegas::{VegasRules, VegasSettings};
pub use westwood::WestwoodSettings;
pub use wvegas::{WvegasDrain, WvegasSettings};

use foundation::{Duration, Instant, Rate};

/// A measurement of how fast the network delivered, over the flight of one packet
/// (draft-cheng-iccrg-delivery-rate-estimation-02, section 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes newly delivered over the sampling interval.
    pub delivered: u64,
    /// The sampling interval: the longer one of the send and the ACK phase. Zero where it came out
    /// shorter than the least round-trip time, so that no rate may be read from it (an ACK of an
    /// earlier transmission was taken for one of a retransmission).
    pub interval: Duration,
    /// Bytes that the connection had delivered when the sampled packet left.
    pub prior_delivered: u64,
    /// Bytes of the flight declared lost between the sampled packet's departure and now.
    pub lost: u64,
    /// Bytes in flight when the sampled packet left, itself included.
    pub in_flight_at_send: u64,
    /// Whether the sender ran out of data during the sample: the rate is then a lower bound.
    pub application_limited: bool,
}

impl RateSample {
    /// Delivered bytes over the interval, as a rate; `None` where the interval is empty.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        let nanos = self.interval.as_nanos();
        // 64 bits hold 2.3 GB; the slow way is for the rest, or 10 Gbit/s over more than 1.8 s.
        let bits = match self.delivered.checked_mul(8_000_000_000) {
            Some(scaled) => scaled.checked_div(nanos)?,
            None => {
                let scaled = u128::from(self.delivered) * 8_000_000_000;
                u64::try_from(scaled.checked_div(u128::from(nanos))?).unwrap_or(u64::MAX)
            }
        };
        Rate::from_bits_per_second(bits)
    }
}

/// What one arriving ACK told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// When the ACK arrived.
    pub now: Instant,
    /// Payload bytes that this ACK newly acknowledged, selectively or cumulatively.
    pub bytes: u64,
    /// Round-trip time of the newest packet acknowledged, if the sample is unambiguous (Karn).
    pub rtt: Option<Duration>,
    /// When the newest packet acknowledged had left: windows do not grow on packets from before
    /// the last reduction (RFC 9002, section 7.3.2), and rounds are counted with it.
    pub newest_sent_at: Instant,
    /// Smoothed round-trip time (RFC 6298) after this sample.
    pub smoothed_rtt: Duration,
    /// Payload bytes still in flight after this ACK.
    pub bytes_in_flight: u64,
    /// Payload bytes delivered since the connection began, this ACK included.
    pub delivered: u64,
    /// The delivery-rate sample that this ACK completed.
    pub rate_sample: Option<RateSample>,
    /// Whether, since the last ACK, the window (or the pacing that follows from it), and not the
    /// application or the receiver, kept a packet from leaving. A window that is not used says nothing
    /// about the network (RFC 7661); controllers take one that was in this or the last round for used.
    pub window_limited: bool,
    /// Whether the sender is between entry and exit of loss recovery (RFC 6675, section 5): the window
    /// has been lowered for the losses it repairs, and does not grow until they are repaired (RFC 5681,
    /// section 3.2; RFC 9438, section 4.6). False for an owner without such a phase, as the ARQ protocols.
    pub in_recovery: bool,
}

/// One detection of lost packets (by gap, not by timeout).
///
/// One ACK may reveal many: they are reported together. The last three fields describe the newest
/// of them, from its [`Snapshot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// When the loss was detected.
    pub now: Instant,
    /// Payload bytes newly declared lost.
    pub bytes: u64,
    /// When the newest of the lost packets had left: losses from before the last reduction
    /// belong to the same congestion episode (RFC 6582, RFC 9002 section 7.3.2).
    pub newest_sent_at: Instant,
    /// Payload bytes in flight before the loss was detected.
    pub prior_in_flight: u64,
    /// Payload bytes in flight after it.
    pub bytes_in_flight: u64,
    /// Bytes in flight when the newest lost packet left, itself included ([`Snapshot::in_flight`]).
    pub in_flight_at_send: u64,
    /// Bytes declared lost since the newest lost packet left, `bytes` included
    /// ([`Estimator::lost_since`]).
    pub lost_since_send: u64,
    /// Whether the sender lacked data when that packet left ([`Snapshot::application_limited`]).
    pub application_limited: bool,
    /// Whether the sender was in loss recovery already when it detected this loss. Controllers that follow
    /// RFC 6675, section 5, reduce their window on entry alone, also where a retransmission is lost again.
    /// False for an owner without such a phase, as the ARQ protocols.
    pub in_recovery: bool,
}

/// A congestion controller.
///
/// The owner calls `on_sent` for every data packet that leaves, then for every ACK first `on_lost`
/// (if the ACK revealed losses), then `on_acknowledged`. `window` and `pacing_rate` may be read at
/// any time. All sizes are payload bytes. A packet may leave while the bytes in flight, itself
/// included, stay within `window`, and always when nothing is in flight.
pub trait Controller: std::fmt::Debug + Send {
    /// A packet of `bytes` left; `bytes_in_flight` includes it.
    fn on_sent(&mut self, now: Instant, bytes: u64, bytes_in_flight: u64);
    /// An ACK arrived that newly acknowledged something.
    fn on_acknowledged(&mut self, ack: &Acknowledgement);
    /// Packets were declared lost by what later packets' ACKs revealed.
    fn on_lost(&mut self, loss: &Loss);
    /// The retransmission timer expired: nothing was heard for a whole timeout. `bytes_in_flight`
    /// is what was in flight until then. (The timer of a single packet that runs out while ACKs of
    /// others still arrive is a loss like any other: `on_lost`.)
    fn on_timeout(&mut self, now: Instant, bytes_in_flight: u64);
    /// An ACK reported a packet marked Congestion Experienced (RFC 3168), sent at `sent_at`.
    fn on_congestion_experienced(&mut self, now: Instant, sent_at: Instant);
    /// The last reduction, by `on_lost` or `on_timeout`, was needless: the packets had not been lost
    /// (Eifel, RFC 3522 and 4015; DSACK, RFC 3708; F-RTO, RFC 5682). What it took may be given back.
    fn on_spurious(&mut self, _now: Instant) {}
    /// About to send after `idle` without a packet in flight (RFC 5681, section 4.1); `rto` is the
    /// retransmission timeout. Not called by owners whose settings forbid the restart.
    fn on_idle(&mut self, _now: Instant, _idle: Duration, _rto: Duration) {}
    /// Whether the window depends on those of the other subflows of a multipath connection (RFC 6356): then
    /// [`on_siblings`](Self::on_siblings) is called before each ACK and each loss is told.
    fn is_coupled(&self) -> bool {
        false
    }
    /// The windows of all subflows of the connection as they stand now, this one's included.
    fn on_siblings(&mut self, _siblings: &Siblings<'_>) {}
    /// Whether the window still grows to find the path's capacity.
    fn in_slow_start(&self) -> bool {
        false
    }
    /// The slow start threshold in bytes: `None` for controllers without one, `u64::MAX` where it has
    /// not been set yet.
    fn ssthresh(&self) -> Option<u64> {
        None
    }
    /// Bytes that may be in flight.
    fn window(&self) -> u64;
    /// The rate at which packets should leave, or `None` if bursts up to the window are fine.
    fn pacing_rate(&self) -> Option<Rate>;
    /// Names and values of the controller's inner state, for traces ("ssthresh_bytes", …).
    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ACK of `bytes` that used the window, of a packet that left as late as can be.
    pub(super) fn ack(now: Instant, bytes: u64) -> Acknowledgement {
        Acknowledgement {
            now,
            bytes,
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

    /// The loss of one packet of 1000 bytes, which left at `sent_at`.
    pub(super) fn loss(now: Instant, sent_at: Instant, in_flight: u64) -> Loss {
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

    #[test]
    fn a_rate_sample_is_bytes_over_time() {
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
}
