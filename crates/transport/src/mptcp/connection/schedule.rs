//! Assignment of data to subflows: queued data first, then reinjections, then new data.

use foundation::Instant;

use super::subflow::Role;
use super::{Connection, Mode};
use crate::mptcp::scheduler::{Choice, DataView};
use crate::mptcp::segment::CAPABLE_EXTRA;
use crate::mptcp::sender::Nagle;

impl Connection {
    /// Assigns the next segment to a subflow. Returns whether a segment may leave.
    #[inline]
    pub(super) fn schedule(&mut self, now: Instant) -> bool {
        if self.over || self.mode == Mode::Handshake {
            return false;
        }
        if self.queued && self.serve_queues(now) {
            return true;
        }
        if self.outgoing.has_scheduled_all() {
            return false;
        }
        self.schedule_reinjection(now) || self.schedule_new(now)
    }

    /// Assigns queued data to subflows that have room.
    fn serve_queues(&mut self, now: Instant) -> bool {
        let una = self.outgoing.una;
        let mut waits = false;
        for index in 0..self.subflows.len() {
            let most = self.max_payload(index);
            let subflow = &mut self.subflows[index];
            // Acknowledged data leaves the queue.
            self.changed |= u64::from(!subflow.queue.is_empty()) << index;
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

    /// Returns the maximum payload of the next segment on a subflow: the first one has the longer option (RFC 8684,
    /// section 3.1).
    pub(super) fn max_payload(&self, index: usize) -> u64 {
        let subflow = &self.subflows[index];
        let segment = u64::from(subflow.tcp.segment_size());
        let first =
            subflow.written == 0 && subflow.role == Role::Initial && self.is_client && !self.confirmed;
        if first && self.mode == Mode::Multipath {
            segment - u64::from(CAPABLE_EXTRA)
        } else {
            segment
        }
    }

    /// Writes `start..end` of the data to a subflow.
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

    /// Collects the views of the usable subflows but `except`, for a segment of at most `bytes`. The views of all for a
    /// full segment remain, and only those of changed subflows are renewed.
    pub(super) fn collect_views(&mut self, now: Instant, bytes: u64, except: Option<u8>) {
        let is_kept = except.is_none() && self.full_views.is_some_and(|segment| segment <= bytes);
        if is_kept && self.renew_views(now, bytes) {
            let usable = self.subflows.iter_mut().filter(|subflow| subflow.usable);
            let views = usable.map(|subflow| subflow.view(now, bytes));
            debug_assert!(views.eq(self.views.iter().copied()), "a view is outdated");
            return;
        }
        self.views.clear();
        self.changed = 0;
        for (index, subflow) in self.subflows.iter().enumerate() {
            self.changed |= u64::from(subflow.tcp.is_pacing()) << index;
        }
        for subflow in &mut self.subflows {
            if subflow.usable && Some(subflow.id) != except {
                self.views.push(subflow.view(now, bytes));
            }
        }
        let segments = self.views.iter().map(|view| u64::from(view.segment));
        self.full_views = segments
            .max()
            .filter(|&segment| except.is_none() && segment <= bytes);
    }

    /// Renews the views of the subflows that changed. Returns false if others are usable than before.
    fn renew_views(&mut self, now: Instant, bytes: u64) -> bool {
        let mut left = std::mem::take(&mut self.changed);
        while left != 0 {
            let index = left.trailing_zeros() as usize;
            left &= left - 1;
            let Some(subflow) = self.subflows.get_mut(index) else {
                return false;
            };
            let view = self.views.iter_mut().find(|view| view.id == subflow.id);
            match view {
                Some(view) if subflow.usable => *view = subflow.view(now, bytes),
                None if !subflow.usable => {}
                _ => return false,
            }
            // A pacer's room depends on the time.
            self.changed |= u64::from(subflow.tcp.is_pacing()) << index;
        }
        true
    }

    /// Runs the scheduler for a segment of at most `bytes` at `start`. Returns the assigned bytes, if any.
    #[inline]
    fn run_scheduler(&mut self, now: Instant, data: &DataView, start: u64, bytes: u64) -> Option<u64> {
        if self.views.is_empty() {
            return None;
        }
        match self.scheduler.choose(now, data, &self.views) {
            Choice::Wait => None,
            Choice::Take(at) => self.assign_to_view(now, at, start, bytes),
            Choice::Copies(set) => {
                // All copies have the same length, so that their boundaries agree.
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

    /// Assigns the segment to the subflow of a view, or queues it there.
    #[inline]
    fn assign_to_view(&mut self, now: Instant, at: usize, start: u64, bytes: u64) -> Option<u64> {
        let view = *self.views.get(at)?;
        let index = self.index_of(view.id)?;
        let bytes = bytes.min(self.max_payload(index));
        if view.room {
            self.assign(now, index, start, start + bytes);
        } else {
            self.subflows[index].queue.push(start, start + bytes);
            self.changed |= 1 << index;
            self.queued = true;
            self.unreported |= 1 << index;
        }
        Some(bytes)
    }

    /// Schedules data that another subflow carried before.
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
            // Without another subflow, the previous one retransmits the data itself.
            let previous_alive = || {
                self.subflows
                    .iter()
                    .any(|s| s.id == reinjection.previous && !s.gone)
            };
            if !self.views.is_empty() || !previous_alive() {
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
            window: outgoing.right_edge.saturating_sub(outgoing.next),
            reinjection: false,
        }
    }

    fn schedule_new(&mut self, now: Instant) -> bool {
        let data = self.data_view();
        if data.unsent == 0 {
            return false;
        }
        // With a closed window and nothing in flight, no ACK would report its opening. A subflow gets the segment
        // nevertheless, and its TCP probes the window (RFC 9293, section 3.8.6.1).
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
        let longest = || self.views.iter().map(|view| u64::from(view.segment)).max();
        let Some(segment) = self.full_views.or_else(longest) else {
            return false;
        };
        if bytes < segment && data.in_flight > 0 {
            // A small segment waits for the window or for more data (RFC 9293, sections 3.7.4 and 3.8.6.2.1).
            if bytes < data.unsent {
                return self.unblock(now);
            }
            // A writer that waits for the send buffer completes the segment.
            let waits = match self.setup.nagle() {
                Some(Nagle::Minshall) => self.write_blocked || self.outgoing.small_end > self.outgoing.una,
                Some(Nagle::Classic) => true,
                None => false,
            };
            if waits && !self.outgoing.finishing {
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
        if taken < segment && taken == data.unsent {
            self.outgoing.small_end = self.outgoing.next;
        }
        self.restart_tail_timer(now);
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
