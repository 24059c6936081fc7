//! The state of a sender at one time.

use foundation::{Duration, Rate};
use transport::congestion::Controller;
use transport::{arq, tcp};

/// The state of the sender of a flow. Values that a world does not report are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probe {
    /// Congestion window in bytes.
    pub window: Option<u64>,
    /// Slow-start threshold in bytes, once set.
    pub threshold: Option<u64>,
    /// Smoothed round-trip time in seconds, after a first sample.
    pub smoothed_rtt: Option<f64>,
    /// The latest round-trip sample in seconds.
    pub rtt: Option<f64>,
    /// Mean deviation of the round-trip time in seconds, after a first sample.
    pub rtt_variation: Option<f64>,
    /// Pacing rate in bit/s, if paced.
    pub pacing_rate: Option<f64>,
    /// Latest sample of the delivery rate of payload, in bit/s.
    pub delivery_rate: Option<f64>,
    /// Payload bytes in flight.
    pub in_flight: u64,
    /// Retransmitted data packets so far.
    pub retransmissions: Option<u64>,
    /// Seconds so far in which the receive window, not cwnd, limited the sender.
    pub receiver_limited: Option<f64>,
    /// Seconds so far in which the send buffer limited the sender.
    pub buffer_limited: Option<f64>,
    /// Loss recovery state: "open", "recovery", "loss", …
    pub state: &'static str,
    /// Names and values of the controller's state ([`Controller::metrics`]), if requested.
    pub controller: Vec<(&'static str, f64)>,
}

impl Probe {
    /// Returns the state of a connection of the transport crate's TCP.
    #[must_use]
    pub fn of_tcp(connection: &tcp::Connection) -> Self {
        let info = connection.info();
        Self {
            window: Some(info.window_bytes),
            threshold: info
                .ssthresh_packets
                .map(|packets| packets * u64::from(info.segment)),
            smoothed_rtt: info.smoothed_rtt.map(Duration::as_secs_f64),
            rtt: info.latest_rtt.map(Duration::as_secs_f64),
            rtt_variation: info.smoothed_rtt.map(|_| info.rtt_variation.as_secs_f64()),
            pacing_rate: info.pacing_rate.map(bits_per_second),
            in_flight: info.bytes_in_flight,
            retransmissions: Some(info.total_retransmitted),
            receiver_limited: Some(connection.statistics().receiver_limited.as_secs_f64()),
            buffer_limited: Some(connection.statistics().buffer_limited.as_secs_f64()),
            state: info.congestion_state.name(),
            ..Self::default()
        }
    }

    /// Adds the state of a controller.
    #[must_use]
    pub fn with_controller(mut self, controller: Option<&dyn Controller>) -> Self {
        if let Some(controller) = controller {
            controller.metrics(&mut |name, value| self.controller.push((name, value)));
        }
        self
    }

    /// Returns the state of an ARQ connection.
    #[must_use]
    pub fn of_arq<P: arq::Payload>(connection: &arq::Connection<P>) -> Self {
        let sender = connection.sender();
        let rtt = sender.timer().rtt();
        Self {
            window: Some(sender.window_bytes()),
            threshold: sender.ssthresh(),
            smoothed_rtt: rtt.has_sample().then(|| rtt.smoothed().as_secs_f64()),
            rtt: rtt.has_sample().then(|| rtt.latest().as_secs_f64()),
            in_flight: sender.bytes_in_flight(),
            retransmissions: Some(connection.statistics().retransmissions),
            state: "open",
            ..Self::default()
        }
    }
}

#[cfg(feature = "quic")]
impl Probe {
    /// Returns the state of a QUIC connection.
    #[must_use]
    pub fn of_quic(connection: &quic::Connection) -> Self {
        let rtt = connection.rtt();
        let sampled = |value: foundation::Duration| rtt.has_sample().then(|| value.as_secs_f64());
        let mut probe = Self {
            window: connection.window(),
            threshold: connection.ssthresh(),
            smoothed_rtt: sampled(rtt.smoothed()),
            rtt: sampled(rtt.latest()),
            rtt_variation: sampled(rtt.variation()),
            pacing_rate: connection.pacing_rate().map(|rate| rate as f64),
            in_flight: connection.in_flight(),
            retransmissions: Some(connection.statistics().retransmissions),
            state: "open",
            ..Self::default()
        };
        connection.with_controller(|controller| {
            controller.metrics(&mut |name, value| probe.controller.push((name, value)));
        });
        probe
    }
}

fn bits_per_second(rate: Rate) -> f64 {
    rate.bits_per_second() as f64
}
