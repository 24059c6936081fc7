//! The congestion controller and its outputs, which are read once per event instead of once per segment.

use std::ops::Deref;

use foundation::{Duration, Instant, Rate};

use crate::congestion::{Acknowledgement, Bursts, Controller, Loss, Outputs, Siblings};

/// A controller with its current outputs.
#[derive(Debug)]
pub struct CachedController {
    controller: Box<dyn Controller>,
    /// Payload bytes of the controller's segments.
    segment: u32,
    changes_on_sent: bool,
    bursts: Bursts,
    outputs: Outputs,
    /// The window in segments, at least one.
    packets: u64,
}

impl CachedController {
    /// Returns a controller that counts in segments of `segment` bytes.
    pub fn new(controller: Box<dyn Controller>, segment: u32) -> Self {
        let outputs = controller.outputs();
        Self {
            segment,
            changes_on_sent: controller.changes_on_sent(),
            bursts: controller.bursts(),
            outputs,
            packets: (outputs.window / u64::from(segment)).max(1),
            controller,
        }
    }

    fn update(&mut self) {
        self.set(self.controller.outputs());
    }

    #[inline]
    fn set(&mut self, outputs: Outputs) {
        if outputs.window != self.outputs.window {
            self.packets = (outputs.window / self.segment()).max(1);
        }
        self.outputs = outputs;
    }

    /// Returns the payload bytes of the controller's segments.
    #[inline]
    pub const fn segment(&self) -> u64 {
        self.segment as u64
    }

    /// Returns the congestion window in bytes.
    #[inline]
    pub const fn window(&self) -> u64 {
        self.outputs.window
    }

    /// Returns the congestion window in segments.
    #[inline]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the pacing rate.
    #[inline]
    pub const fn pacing_rate(&self) -> Option<Rate> {
        self.outputs.pacing_rate
    }

    /// Returns how paced packets leave.
    #[inline]
    pub const fn bursts(&self) -> Bursts {
        self.bursts
    }

    /// Returns whether the controller is in slow start.
    #[inline]
    pub const fn in_slow_start(&self) -> bool {
        self.outputs.in_slow_start
    }

    /// See [`Controller::on_sent`].
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: u64, bytes_in_flight: u64) {
        self.controller.on_sent(now, bytes, bytes_in_flight);
        if self.changes_on_sent {
            self.update();
        }
    }

    /// See [`Controller::on_acknowledged`].
    #[inline]
    pub fn on_acknowledged(&mut self, ack: &Acknowledgement) {
        let outputs = self.controller.acknowledge(ack);
        self.set(outputs);
    }

    /// See [`Controller::on_lost`].
    pub fn on_lost(&mut self, loss: &Loss) {
        self.controller.on_lost(loss);
        self.update();
    }

    /// See [`Controller::on_timeout`].
    pub fn on_timeout(&mut self, now: Instant, bytes_in_flight: u64) {
        self.controller.on_timeout(now, bytes_in_flight);
        self.update();
    }

    /// See [`Controller::on_congestion_experienced`].
    pub fn on_congestion_experienced(&mut self, now: Instant, sent_at: Instant) {
        self.controller.on_congestion_experienced(now, sent_at);
        self.update();
    }

    /// See [`Controller::on_spurious`].
    pub fn on_spurious(&mut self, now: Instant) {
        self.controller.on_spurious(now);
        self.update();
    }

    /// See [`Controller::on_idle`].
    pub fn on_idle(&mut self, now: Instant, idle: Duration, rto: Duration) {
        self.controller.on_idle(now, idle, rto);
        self.update();
    }

    /// See [`Controller::on_siblings`].
    #[inline]
    pub fn on_siblings(&mut self, siblings: &Siblings<'_>) {
        self.controller.on_siblings(siblings);
    }
}

impl Deref for CachedController {
    type Target = dyn Controller;

    fn deref(&self) -> &Self::Target {
        &*self.controller
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::CongestionConfig;
    use crate::congestion::tests::{ack, loss};

    #[test]
    fn outputs_follow_every_event() {
        let at = Instant::from_nanos;
        for kind in ["reno", "bbr", "bbr1", "cubic"] {
            let config: CongestionConfig = serde_json::from_str(&format!("\"{kind}\"")).unwrap();
            let mut controller = CachedController::new(config.build(1000), 1000);
            let check = |controller: &CachedController| {
                assert_eq!(controller.outputs, controller.controller.outputs(), "{kind}");
                assert_eq!(controller.packets(), controller.window() / 1000, "{kind}");
            };
            check(&controller);
            for step in 1..20 {
                let now = step * 100_000_000;
                controller.on_sent(at(now), 1000, 1000);
                check(&controller);
                controller.on_acknowledged(&ack(at(now + 50_000_000), 1000));
                check(&controller);
            }
            controller.on_lost(&loss(at(2_100_000_000), at(2_050_000_000), 5000));
            check(&controller);
            controller.on_spurious(at(2_150_000_000));
            check(&controller);
            controller.on_timeout(at(2_200_000_000), 5000);
            check(&controller);
        }
    }
}
