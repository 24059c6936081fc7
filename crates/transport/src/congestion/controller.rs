//! The interface of congestion controllers.

use foundation::{Duration, Instant, Rate};

use super::pacer::Bursts;
use super::siblings::Siblings;

/// Delivery-rate sample over the flight of one packet (draft-cheng-iccrg-delivery-rate-estimation-02, section 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered over the sampling interval.
    pub delivered: u64,
    /// Sampling interval: the longer one of the send and the ACK phase. Zero if it was shorter than the minimum
    /// round-trip time and therefore gives no rate (an ACK of the original transmission was attributed to a
    /// retransmission).
    pub interval: Duration,
    /// Bytes that the connection had delivered when the sampled packet was sent.
    pub prior_delivered: u64,
    /// Bytes declared lost between the sampled packet's transmission and now.
    pub lost: u64,
    /// Bytes in flight when the sampled packet was sent, itself included.
    pub in_flight_at_send: u64,
    /// Whether the sender ran out of data during the sample, which makes the rate a lower bound.
    pub application_limited: bool,
}

impl RateSample {
    /// Returns the delivered bytes over the interval as a rate; `None` if the interval is zero.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        let nanos = self.interval.as_nanos();
        // 64 bits suffice for 2.3 GB, such as 10 Gbit/s for 1.8 s; larger samples use 128 bits.
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

/// An ACK that newly acknowledges data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Arrival time.
    pub now: Instant,
    /// Newly acknowledged payload bytes, selectively or cumulatively.
    pub bytes: u64,
    /// The part of `bytes` that the receiver reports as marked Congestion Experienced.
    ///
    /// Exact with DCTCP's feedback (RFC 8257, section 3.2; [`EcnMode::Dctcp`](crate::tcp::EcnMode)). With that of RFC 3168,
    /// all bytes of an ACK with ECE, which repeats until the sender announces a reduction: an upper bound. 0 for the ARQ
    /// protocols.
    pub marked_bytes: u64,
    /// Round-trip time of the newest acknowledged packet, if unambiguous (Karn).
    pub rtt: Option<Duration>,
    /// Send time of the newest acknowledged packet: windows do not grow on packets sent before the last reduction
    /// (RFC 9002, section 7.3.2), and it delimits rounds.
    pub newest_sent_at: Instant,
    /// Smoothed round-trip time (RFC 6298), this sample included.
    pub smoothed_rtt: Duration,
    /// Payload bytes in flight after this ACK.
    pub bytes_in_flight: u64,
    /// Payload bytes delivered since the connection started, this ACK included.
    pub delivered: u64,
    /// Delivery-rate sample completed by this ACK.
    pub rate_sample: Option<RateSample>,
    /// Whether the window, or the pacing that follows from it, kept a packet from leaving since the last ACK, not the
    /// application or the receiver. An unused window provides no information about the network (RFC 7661);
    /// controllers treat a window limit in this or the last round as use.
    pub window_limited: bool,
    /// Whether the sender is in loss recovery (RFC 6675, section 5): the window was reduced for the losses being
    /// repaired, and does not grow before they are repaired (RFC 5681, section 3.2; RFC 9438, section 4.6). False for
    /// senders without such a phase, as the ARQ protocols.
    pub in_recovery: bool,
}

/// Detection of lost packets by gaps, not by timeout.
///
/// All losses revealed by one ACK are reported together. `in_flight_at_send`, `lost_since_send` and
/// `application_limited` describe the newest lost packet, from its [`Snapshot`](super::Snapshot).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Detection time.
    pub now: Instant,
    /// Payload bytes newly declared lost.
    pub bytes: u64,
    /// Send time of the newest lost packet: losses of packets sent before the last reduction belong to the same
    /// congestion episode (RFC 6582; RFC 9002, section 7.3.2).
    pub newest_sent_at: Instant,
    /// Payload bytes in flight before the detection.
    pub prior_in_flight: u64,
    /// Payload bytes in flight after the detection.
    pub bytes_in_flight: u64,
    /// Bytes in flight when the newest lost packet was sent, itself included.
    pub in_flight_at_send: u64,
    /// Bytes declared lost since the newest lost packet was sent, `bytes` included.
    pub lost_since_send: u64,
    /// Whether the sender had run out of data when that packet was sent.
    pub application_limited: bool,
    /// Whether the sender was already in loss recovery. Controllers that follow RFC 6675, section 5, reduce their
    /// window only on entry, even if a retransmission is lost. False for senders without such a phase, as the ARQ
    /// protocols.
    pub in_recovery: bool,
}

/// What a controller allows at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outputs {
    /// Congestion window in bytes.
    pub window: u64,
    /// Pacing rate, or `None` if bursts up to the window are allowed.
    pub pacing_rate: Option<Rate>,
    /// Whether the controller is in slow start.
    pub in_slow_start: bool,
}

impl Outputs {
    /// Returns a window of `bytes` without pacing, outside of slow start.
    #[must_use]
    pub const fn unpaced(bytes: u64) -> Self {
        Self {
            window: bytes,
            pacing_rate: None,
            in_slow_start: false,
        }
    }
}

/// A congestion controller.
///
/// The sender calls `on_sent` for each transmitted data packet. For each ACK it calls `on_lost` if the ACK revealed
/// losses, then `on_acknowledged`. `outputs` may be read at any time and changes only in the methods that handle an
/// event, and in `on_sent` only if `changes_on_sent`. Sizes are in payload bytes. A packet may leave if the bytes in flight, itself included, do not exceed the
/// window, and always if nothing is in flight.
///
/// Four methods are required. The defaults of the others ignore their event.
pub trait Controller: std::fmt::Debug + Send {
    /// Handles the transmission of a packet of `bytes`; `bytes_in_flight` includes it.
    fn on_sent(&mut self, _now: Instant, _bytes: u64, _bytes_in_flight: u64) {}
    /// Handles an ACK that newly acknowledged data.
    fn on_acknowledged(&mut self, ack: &Acknowledgement);
    /// Handles losses revealed by ACKs of later packets.
    fn on_lost(&mut self, loss: &Loss);
    /// Handles a retransmission timeout, before which `bytes_in_flight` were in flight. (The expiration of a single
    /// packet's timer while ACKs of others arrive is reported by `on_lost`.)
    fn on_timeout(&mut self, now: Instant, bytes_in_flight: u64);
    /// Handles an ACK that reports that packets were marked Congestion Experienced (RFC 3168).
    ///
    /// This reports that marks arrived, not how many. TCP calls it for the first ACK with ECE, and then at most once per
    /// round trip: not until all data sent before that call is acknowledged, and not during loss recovery (RFC 3168,
    /// section 6.1.2). With many marks there are far fewer calls than marked packets;
    /// [`Acknowledgement::marked_bytes`] counts them, in the `on_acknowledged` that follows. The echo does not identify
    /// the marked packet, so `sent_at` equals `now`, the arrival time of the ACK. The ARQ protocols do not call it.
    fn on_congestion_experienced(&mut self, _now: Instant, _sent_at: Instant) {}
    /// Handles the detection that the last reduction, by `on_lost` or `on_timeout`, was spurious: the packets were
    /// not lost (Eifel, RFC 3522 and 4015; DSACK, RFC 3708; F-RTO, RFC 5682). The reduction may be undone.
    fn on_spurious(&mut self, _now: Instant) {}
    /// Handles the start of a transmission after `idle` without packets in flight (RFC 5681, section 4.1); `rto` is
    /// the RTO. Not called if the settings of the sender forbid the restart.
    fn on_idle(&mut self, _now: Instant, _idle: Duration, _rto: Duration) {}
    /// Returns whether the window depends on those of other subflows of a multipath connection (RFC 6356). If so,
    /// [`on_siblings`](Self::on_siblings) precedes each ACK and each loss.
    fn is_coupled(&self) -> bool {
        false
    }
    /// Receives the current state of all subflows of the connection, this one included. The outputs change only with the
    /// ACK or loss that follows.
    fn on_siblings(&mut self, _siblings: &Siblings<'_>) {}
    /// Returns the ssthresh in bytes: `None` for controllers without one, `u64::MAX` until it is set.
    fn ssthresh(&self) -> Option<u64> {
        None
    }
    /// Returns the congestion windows that the send buffer has room for, so that fast recovery can send new data (`sndbuf_expand`
    /// of Linux).
    fn buffered_windows(&self) -> u64 {
        2
    }
    /// Returns how paced packets leave, which does not change.
    fn bursts(&self) -> Bursts {
        Bursts::Usual
    }
    /// Returns whether [`on_sent`](Self::on_sent) may change the [outputs](Self::outputs), which are then read after each packet.
    fn changes_on_sent(&self) -> bool {
        true
    }
    /// Returns the window, the pacing rate and whether the controller is in slow start.
    fn outputs(&self) -> Outputs;
    /// Handles an ACK that newly acknowledged data, and returns the outputs after it: one dynamic call instead of two.
    fn acknowledge(&mut self, ack: &Acknowledgement) -> Outputs {
        self.on_acknowledged(ack);
        self.outputs()
    }
    /// Returns the name of the current phase, for traces.
    fn phase(&self) -> &'static str {
        if self.outputs().in_slow_start {
            "slow-start"
        } else {
            "congestion-avoidance"
        }
    }
    /// Reports names and values of the internal state, for the series of traces ("ssthresh_bytes", …); by default the
    /// window. A name ends with its unit (`_bytes`, `_bps`, `_seconds`), if it has one; a value without a number now is
    /// omitted.
    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("window_bytes", self.outputs().window as f64);
    }
}

impl dyn Controller + '_ {
    /// Returns the congestion window in bytes.
    #[must_use]
    pub fn window(&self) -> u64 {
        self.outputs().window
    }

    /// Returns the pacing rate, or `None` if bursts up to the window are allowed.
    #[must_use]
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.outputs().pacing_rate
    }

    /// Returns whether the controller is in slow start.
    #[must_use]
    pub fn in_slow_start(&self) -> bool {
        self.outputs().in_slow_start
    }
}
