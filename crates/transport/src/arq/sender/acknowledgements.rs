//! What an ACK does to the sending direction: newly acknowledged packets, the RTT sample, detected losses, and the reports
//! to the controller.

use foundation::{Duration, Instant};

use super::{AckInfo, LossSummary, Sender, count_lost_frame, wire_clock};
use crate::arq::retransmission::AckFacts;
use crate::arq::sequence::expand;
use crate::arq::window::{Slot, State};
use crate::congestion::{Acknowledgement, Loss};
use crate::statistics::Statistics;

impl Sender {
    /// Handles the acknowledgement fields of a frame. Numbers that were never sent are ignored.
    pub fn handle_acknowledgement(&mut self, now: Instant, info: AckInfo<'_>, statistics: &mut Statistics) {
        let cumulative = expand(self.window.base(), info.acknowledgement);
        if cumulative > self.window.next() {
            return;
        }
        let allowed = cumulative.saturating_add(u64::from(info.window));
        if allowed > self.allowed {
            self.allowed = allowed;
            self.probe_at = None;
            self.probes = 0;
        }
        if self.window.is_empty() {
            return;
        }
        let prior_in_flight = self.window.bytes_in_flight();
        let mut facts = AckFacts {
            duplicate: false,
            delivered_order: None,
            spurious: false,
        };
        let mut rtt = None;
        if let Some((wire, echo)) = info.trigger {
            rtt = self.read_trigger(now, wire, echo, &mut facts, statistics);
        }
        let base = self.window.base();
        let (mut newly, mut payload, mut newest) = (0_u64, 0_u64, None::<Slot>);
        let mut shared = false;
        let mut estimator = self.congestion.as_mut().map(|c| &mut c.estimator);
        let mut note = |slot: &Slot| {
            newly += 1;
            payload += u64::from(slot.range.length);
            shared |= slot.shared;
            if let Some(estimator) = &mut estimator {
                let bytes = u64::from(slot.range.length);
                estimator.on_packet_acknowledged(now, &slot.snapshot, bytes, slot.sent_at);
                if newest.is_none_or(|n| n.order < slot.order) {
                    newest = Some(*slot);
                }
            }
        };
        let mut in_order = 0;
        if cumulative > base {
            self.window.acknowledge(cumulative, &mut note);
        }
        for &(start, end) in info.sack.as_slice() {
            let (start, end) = (expand(cumulative, start), expand(cumulative, end));
            if start < end && end <= self.window.next() {
                self.window.acknowledge_range(start, end, &mut note);
            }
        }
        if cumulative > base {
            in_order = self.acknowledged_bytes() - statistics.bytes_acknowledged;
        }
        statistics.bytes_acknowledged += in_order;
        if payload > 0 {
            statistics.last_acknowledged_at = Some(now);
        }
        if newly > 0 {
            self.last_progress = now;
            if let Some(probe) = &mut self.tail_probe {
                probe.on_progress(now);
            }
        }
        if shared {
            self.lost_frames.0 = 0;
        }
        if let Some(rtt) = rtt {
            self.timer.sample(now, rtt);
            statistics.record_rtt(rtt);
        }
        facts.duplicate =
            newly == 0 && cumulative == base && info.trigger.is_some() && self.window.packets_in_flight() > 0;
        let mut losses = LossSummary::default();
        let frames = &mut self.lost_frames;
        self.policy.on_acknowledgement(&mut self.window, facts, |slot| {
            count_lost_frame(frames, slot);
            losses.add(slot);
        });
        self.report_losses(now, losses, prior_in_flight - payload.min(prior_in_flight));
        self.report_acknowledged(now, payload, rtt, newest);
    }

    /// Returns the bytes of the stream that arrived in order, measured at the oldest unacknowledged packet.
    fn acknowledged_bytes(&self) -> u64 {
        self.window
            .get(self.window.base())
            .map_or(self.cut, |slot| slot.range.offset)
    }

    fn read_trigger(
        &self,
        now: Instant,
        wire: u32,
        echo: u32,
        facts: &mut AckFacts,
        statistics: &mut Statistics,
    ) -> Option<Duration> {
        let micros = wire_clock(now).wrapping_sub(echo);
        // An echo from the future, or from before the first packet, is not valid.
        let coarse = Duration::from_micros(u64::from(micros));
        let oldest = statistics
            .first_data_at
            .map_or(Duration::ZERO, |first| now - first);
        let coarse = (coarse <= oldest + Duration::from_micros(1)).then_some(coarse);
        let slot = self.window.get(expand(self.window.base(), wire))?;
        if wire_clock(slot.sent_at) == echo {
            facts.delivered_order = Some(slot.order);
            return Some(now - slot.sent_at);
        }
        if slot.transmissions > 1 && slot.state == State::InFlight {
            facts.spurious = !slot.probed;
            statistics.spurious_retransmissions += 1;
        }
        coarse
    }

    pub(super) fn report_losses(&mut self, now: Instant, losses: LossSummary, prior_in_flight: u64) {
        let (Some(congestion), Some(newest)) = (&mut self.congestion, losses.newest) else {
            return;
        };
        congestion.estimator.on_lost(losses.bytes);
        congestion.controller.on_lost(&Loss {
            now,
            bytes: losses.bytes,
            newest_sent_at: newest.sent_at,
            prior_in_flight,
            bytes_in_flight: self.window.bytes_in_flight(),
            in_flight_at_send: newest.snapshot.in_flight(),
            lost_since_send: congestion.estimator.lost_since(&newest.snapshot),
            application_limited: newest.snapshot.application_limited(),
            in_recovery: false,
        });
    }

    fn report_acknowledged(&mut self, now: Instant, bytes: u64, rtt: Option<Duration>, newest: Option<Slot>) {
        let (Some(congestion), Some(newest)) = (&mut self.congestion, newest) else {
            return;
        };
        let estimate = self.timer.rtt();
        let rate_sample = congestion
            .estimator
            .finish_ack(estimate.minimum().unwrap_or_default());
        congestion.controller.on_acknowledged(&Acknowledgement {
            now,
            bytes,
            marked_bytes: 0,
            newest_sent_at: newest.sent_at,
            rtt,
            smoothed_rtt: estimate.smoothed(),
            bytes_in_flight: self.window.bytes_in_flight(),
            delivered: congestion.estimator.delivered(),
            rate_sample,
            window_limited: std::mem::take(&mut congestion.limited),
            in_recovery: false,
        });
    }
}
