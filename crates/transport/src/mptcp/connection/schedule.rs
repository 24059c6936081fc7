//! Data goes to subflows: what waits at them, what is sent again, what is new.

use foundation::Instant;

use super::subflow::Role;
use super::{Connection, Mode};
use crate::mptcp::scheduler::{Choice, DataView};
use crate::mptcp::segment::CAPABLE_EXTRA;

impl Connection {
    /// Gives the next segment to a subflow. Gives whether anything may leave for it.
    #[inline]
    pub(super) fn schedule(&mut self, now: Instant) -> bool {
        if self.over || self.mode == Mode::Handshake {
            return false;
        }
        if self.queued && self.serve_queues(now) {
            return true;
        }
        self.schedule_reinjection(now) || self.schedule_new(now)
    }

    /// What waits at a subflow leaves when that has room.
    fn serve_queues(&mut self, now: Instant) -> bool {
        let una = self.outgoing.una;
        let mut waits = false;
        for index in 0..self.subflows.len() {
            let most = self.max_payload(index);
            let subflow = &mut self.subflows[index];
            if !subflow.usable || !subflow.queue.waits(una) {
                continue;
            }
            waits = true;
            let segment = subflow.tcp.segment_size();
            if subflow.tcp.has_room(now, segment)
                && let Some((start, end)) = subflow.queue.pop(most, una)
            {
                self.assign(now, index, start, end);
                return true;
            }
        }
        self.queued = waits;
        false
    }

    /// The most bytes of the next segment on a subflow: the first one has the longer option (RFC 8684, section 3.1).
    pub(super) fn max_payload(&self, index: usize) -> u64 {
        let subflow = &self.subflows[index];
        let segment = u64::from(subflow.tcp.segment_size());
        let first = subflow.written == 0 && subflow.role == Role::Initial && self.is_client;
        if first && self.mode == Mode::Multipath {
            segment - u64::from(CAPABLE_EXTRA)
        } else {
            segment
        }
    }

    /// `start..end` of the data goes out on a subflow.
    pub(super) fn assign(&mut self, now: Instant, index: usize, start: u64, end: u64) {
        let subflow = &mut self.subflows[index];
        let taken = subflow.tcp.write(now, end - start);
        debug_assert_eq!(taken, end - start, "a subflow's send buffer does not limit");
        subflow.sent.append(subflow.written, start, taken);
        subflow.written += taken;
        if index == 0
            && let Some(scatter) = &self.scatter
        {
            subflow.backup |= subflow.written >= scatter.bytes;
        }
        self.dirty |= 1 << index;
        self.unreported |= 1 << index;
        self.arm_resend(now);
    }

    /// The subflows that may take `bytes`, but for number `except`.
    pub(super) fn collect_views(&mut self, now: Instant, bytes: u64, except: Option<u8>) {
        self.views.clear();
        for subflow in &mut self.subflows {
            if subflow.usable && Some(subflow.id) != except {
                self.views.push(subflow.view(now, bytes));
            }
        }
    }

    /// The scheduler's word on a segment of at most `bytes` at `start`: gives how much went where, if anything did.
    fn run_scheduler(&mut self, now: Instant, data: &DataView, start: u64, bytes: u64) -> Option<u64> {
        if self.views.is_empty() {
            return None;
        }
        match self.scheduler.choose(now, data, &self.views) {
            Choice::Wait => None,
            Choice::Take(at) => self.assign_to_view(now, at, start, bytes),
            Choice::Copies(set) => {
                // One length for all copies, so that they end together.
                let indices = (0..self.views.len()).filter(|&at| set >> at & 1 == 1);
                let most = indices
                    .clone()
                    .filter_map(|at| Some(self.max_payload(self.index_of(self.views[at].id)?)));
                let bytes = most.min()?.min(bytes);
                let indices: Vec<usize> = indices.collect();
                for at in indices {
                    self.assign_to_view(now, at, start, bytes);
                }
                Some(bytes)
            }
        }
    }

    /// The subflow at index `at` of what the scheduler saw takes the segment, or lets it wait.
    fn assign_to_view(&mut self, now: Instant, at: usize, start: u64, bytes: u64) -> Option<u64> {
        let view = *self.views.get(at)?;
        let index = self.index_of(view.id)?;
        let bytes = bytes.min(self.max_payload(index));
        if view.room {
            self.assign(now, index, start, start + bytes);
        } else {
            self.subflows[index].queue.push(start, start + bytes);
            self.queued = true;
            self.unreported |= 1 << index;
        }
        Some(bytes)
    }

    /// What another subflow had goes first.
    fn schedule_reinjection(&mut self, now: Instant) -> bool {
        let reinjection = loop {
            let Some(reinjection) = self.outgoing.next_reinjection() else {
                return false;
            };
            self.collect_views(
                now,
                reinjection.end - reinjection.start,
                Some(reinjection.previous),
            );
            // Where no other is left, the one that had it brings it over, or it waits for one that does.
            let had_alive = || {
                self.subflows
                    .iter()
                    .any(|s| s.id == reinjection.previous && !s.gone)
            };
            if !self.views.is_empty() || !had_alive() {
                break reinjection;
            }
            self.outgoing
                .consume_reinjection(reinjection.end - reinjection.start);
        };
        let bytes = reinjection.end - reinjection.start;
        let data = DataView {
            reinjection: true,
            ..self.data_view()
        };
        let Some(taken) = self.run_scheduler(now, &data, reinjection.start, bytes) else {
            return false;
        };
        self.outgoing.consume_reinjection(taken);
        true
    }

    fn data_view(&self) -> DataView {
        let outgoing = &self.outgoing;
        DataView {
            unsent: outgoing.unsent(),
            in_flight: outgoing.in_flight(),
            window: outgoing.edge.saturating_sub(outgoing.next),
            reinjection: false,
        }
    }

    fn schedule_new(&mut self, now: Instant) -> bool {
        let data = self.data_view();
        if data.unsent == 0 {
            return false;
        }
        // The peer's window is shut and nothing is in flight that would hear of its opening: the segment goes to a
        // subflow all the same, whose TCP probes the window (RFC 9293, section 3.8.6.1).
        let probes = data.in_flight == 0 && data.window == 0;
        let bytes = if probes {
            data.unsent
        } else {
            data.unsent.min(data.window)
        };
        if bytes == 0 {
            return self.unblock(now);
        }
        self.collect_views(now, bytes, None);
        let Some(segment) = self.views.iter().map(|view| u64::from(view.segment)).max() else {
            return false;
        };
        if bytes < segment && data.in_flight > 0 {
            // RFC 9293, sections 3.7.4 and 3.8.6.2.1: a small segment waits, for the window or for more to write.
            let nagle = self.setup.nagle() && !self.outgoing.finishing;
            if bytes < data.unsent {
                return self.unblock(now);
            }
            if nagle {
                return false;
            }
        }
        let start = self.outgoing.next;
        let taken = if probes {
            self.probe_with(now, start, bytes)
        } else {
            self.run_scheduler(now, &data, start, bytes)
        };
        let Some(taken) = taken else { return false };
        self.outgoing.next = start + taken;
        self.watch_tail(now);
        true
    }

    fn probe_with(&mut self, now: Instant, start: u64, bytes: u64) -> Option<u64> {
        let idle = |index: &usize| {
            let subflow = &self.subflows[*index];
            subflow.usable && !subflow.tcp.has_unsent()
        };
        let index = (0..self.subflows.len()).find(idle)?;
        let bytes = bytes.min(self.max_payload(index));
        self.assign(now, index, start, start + bytes);
        Some(bytes)
    }
}
