//! ACKs of the receiver, which take effect when they have reached the sender.

use foundation::{Duration, Instant};

use super::Direction;
use crate::delayed_acks::{DELAYED, Sample};
use crate::packet::TcpPacket;
use crate::pauses::SUDDEN;

/// ACKs on their way from the capture to the sender, at most.
const MOST_PENDING: usize = 1 << 16;
/// Weight of the newest time between ACKs.
const NEWEST: f64 = 0.125;

/// An ACK on its way to the sender.
#[derive(Clone, Debug)]
pub(super) struct Ack {
    due: Instant,
    captured: Instant,
    number: u64,
    window: u64,
    blocks: [(u64, u64); 4],
    block_count: usize,
}

impl Direction {
    /// Takes an ACK of the receiver. `scale` shifts its window field.
    pub fn acknowledged(&mut self, packet: &TcpPacket, scale: u8) {
        let (Some(number), Some(numbering)) = (packet.acknowledgement, &self.numbering) else {
            return;
        };
        let number = numbering.unwrapped(number);
        let scale = if packet.is_syn { 0 } else { scale };
        let mut blocks = [(0, 0); 4];
        for (place, &(start, end)) in blocks.iter_mut().zip(packet.sack_blocks()) {
            *place = (numbering.unwrapped(start), numbering.unwrapped(end));
        }
        let ack = Ack {
            due: packet.time + self.round_trips.near_now,
            captured: packet.time,
            number,
            window: u64::from(packet.window) << scale,
            blocks,
            block_count: packet.sack_blocks().len(),
        };
        if let Some((stamp, _)) = packet.timestamps {
            self.round_trips.stamp(stamp, packet.time);
        }
        self.pending.push_back(ack);
        if self.round_trips.near_now.is_zero() || self.pending.len() > MOST_PENDING {
            self.apply(packet.time);
        }
    }

    /// Ends the capture. What the sender would answer to its last ACKs is not there to wait in a queue, so they take the
    /// shortest time between the capture and the sender.
    pub fn end(&mut self) {
        if let Some(least) = self.round_trips.near {
            for ack in &mut self.pending {
                ack.due = ack.due.min(ack.captured + least);
            }
        }
        self.apply(Instant::MAX);
    }

    /// Applies the ACKs that have reached the sender.
    pub(super) fn apply(&mut self, until: Instant) {
        while self.pending.front().is_some_and(|ack| ack.due <= until) {
            if let Some(ack) = self.pending.pop_front() {
                self.acknowledge(&ack);
            }
        }
    }

    fn acknowledge(&mut self, ack: &Ack) {
        // A late or forged number changes nothing.
        if ack.number > self.next + 1 && self.slices.is_some() {
            self.skip_to(ack);
        }
        let time = ack.due;
        let interval = time.saturating_since(self.last_any_ack);
        self.ack_interval =
            if self.ack_interval.is_zero() || interval > self.round_trips.now.unwrap_or(interval) {
                self.ack_interval.max(Duration::from_micros(1))
            } else {
                self.ack_interval.mul_f64(1.0 - NEWEST) + interval.mul_f64(NEWEST)
            };
        self.last_any_ack = time;
        if !self.is_idle() || self.is_blocked() {
            self.spend(self.state(), time);
        }
        let mut newest = None;
        let mut bytes = 0;
        self.delayed_acks.forget();
        if ack.block_count > 0 && ack.blocks[0].1 <= ack.number {
            self.totals.spurious_packets += 1;
            if let Some(slices) = &mut self.slices {
                slices.open().spurious += 1;
            }
        }
        let is_single = self.outstanding.is_single();
        for &(start, end) in &ack.blocks[..ack.block_count] {
            // A block at or below the acknowledgement reports a duplicate (RFC 2883).
            if start >= ack.number && end > start {
                let covered = self.outstanding.sack(start, end);
                bytes += covered.bytes;
                self.totals.unseen_bytes += covered.unseen;
                newest = newest.max(covered.newest);
            }
        }
        let covered = self.outstanding.acknowledge(ack.number);
        bytes += covered.bytes;
        self.totals.unseen_bytes += covered.unseen;
        // Of data behind a hole, SACK blocks may have been missing: it arrived long before.
        if !covered.has_repeated {
            newest = newest.max(covered.newest);
        }
        self.acked = self.acked.max(ack.number.min(self.next));
        self.delivered += bytes;
        if ack.number >= self.acked || self.right_edge == u64::MAX {
            self.window = ack.window;
            self.most_window = self.most_window.max(ack.window);
            self.right_edge = ack.number + ack.window;
        }
        if self.recovery.is_some_and(|point| self.acked >= point) {
            self.recovery = None;
            self.trains.interrupt();
        }
        if bytes > 0 {
            self.last_ack = time;
        }
        // SACK blocks that were left out appear later: only the latest transmission so far gives a sample.
        if let Some(sent) = newest.filter(|&sent| sent >= self.last_sample) {
            self.last_sample = sent;
            let far = ack.captured.saturating_since(sent);
            let sample = Sample {
                at: time,
                far,
                least: self.round_trips.far.unwrap_or(far),
                is_segment: bytes <= u64::from(self.mss),
                is_last: self.outstanding.is_paused_after(sent, DELAYED),
                is_everything: is_single && self.acked >= self.next,
            };
            if !self.delayed_acks.is_delayed(&sample) {
                self.round_trips.far_now = far;
                let least = self.gap().max(self.ack_interval.mul_f64(SUDDEN));
                let paused = self.pauses.part_of((sent, far), time, least);
                let steady = self.sample(far).saturating_sub(paused);
                if let Some(slices) = &mut self.slices {
                    let slice = slices.open();
                    slice.steady_rtt = slice.steady_rtt.max(Some(steady));
                }
                if covered.newest == Some(sent) && paused.is_zero() {
                    self.in_order = Some(steady);
                }
            }
            if bytes > 0 {
                let rtt = self.round_trips.now.unwrap_or(Duration::ZERO);
                self.trains
                    .acknowledge((ack.captured, sent), self.delivered, self.mss, rtt);
            }
        }
        if let Some(slices) = &mut self.slices {
            let slice = slices.open();
            slice.delivered += bytes;
            slice.arrival += ack.captured.saturating_since(self.last_captured);
            slice.window = slice.window.max(ack.window);
            if self.acked >= self.mark {
                self.mark = self.next;
                slices.close();
                self.round_trips.end_round();
            }
        }
        self.last_captured = self.last_captured.max(ack.captured);
    }

    /// Continues after data that the capture missed.
    fn skip_to(&mut self, ack: &Ack) {
        self.totals.unseen_bytes += ack.number - self.next;
        self.next = ack.number;
    }

    fn sample(&mut self, far: Duration) -> Duration {
        let rtt = self.round_trips.sample(far);
        if let Some(slices) = &mut self.slices {
            let slice = slices.open();
            slice.sample(rtt, self.last_any_ack);
        }
        rtt
    }
}
