//! Data goes to subflows: what waits at them, what is sent again, what is new.

use foundation::Instant;

use super::subflow::Role;
use super::{Connection, Level};
use crate::mptcp::scheduler::{Choice, DataView};
use crate::mptcp::segment::CAPABLE_EXTRA;

impl Connection {
    /// Gives the next segment to a subflow. Gives whether anything may leave for it.
    #[inline]
    pub(super) fn schedule(&mut self, now: Instant) -> bool {
        if self.over || self.level == Level::Opening {
            return false;
        }
        if self.queued && self.serve_queues(now) {
            return true;
        }
        self.schedule_again(now) || self.schedule_new(now)
    }

    /// What waits at a subflow leaves when that has room.
    fn serve_queues(&mut self, now: Instant) -> bool {
        let una = self.outgoing.una;
        let mut waits = false;
        for place in 0..self.subflows.len() {
            let most = self.most_at(place);
            let subflow = &mut self.subflows[place];
            if !subflow.usable || !subflow.queue.waits(una) {
                continue;
            }
            waits = true;
            let segment = subflow.tcp.segment_size();
            if subflow.tcp.has_room(now, segment)
                && let Some((start, end)) = subflow.queue.pop(most, una)
            {
                self.give(now, place, start, end);
                return true;
            }
        }
        self.queued = waits;
        false
    }

    /// The most bytes of the next segment on a subflow: the first one has the longer option (RFC 8684, section 3.1).
    pub(super) fn most_at(&self, place: usize) -> u64 {
        let subflow = &self.subflows[place];
        let segment = u64::from(subflow.tcp.segment_size());
        let first = subflow.written == 0 && subflow.role == Role::Initial && self.opener;
        if first && self.level == Level::Multipath {
            segment - u64::from(CAPABLE_EXTRA)
        } else {
            segment
        }
    }

    /// `start..end` of the data goes out on a subflow.
    pub(super) fn give(&mut self, now: Instant, place: usize, start: u64, end: u64) {
        let subflow = &mut self.subflows[place];
        let taken = subflow.tcp.write(now, end - start);
        debug_assert_eq!(taken, end - start, "a subflow's send buffer does not limit");
        subflow.sent.append(subflow.written, start, taken);
        subflow.written += taken;
        if place == 0
            && let Some(scatter) = &self.scatter
        {
            subflow.backup |= subflow.written >= scatter.bytes;
        }
        self.dirty |= 1 << place;
        self.untold |= 1 << place;
        self.arm_resend(now);
    }

    /// The subflows that may take `bytes`, but for number `except`.
    pub(super) fn look(&mut self, now: Instant, bytes: u64, except: std::option::Option<u8>) {
        self.views.clear();
        for subflow in &mut self.subflows {
            if subflow.usable && Some(subflow.id) != except {
                self.views.push(subflow.view(now, bytes));
            }
        }
    }

    /// The scheduler's word on a segment of at most `bytes` at `start`: gives how much went where, if anything did.
    fn ask(&mut self, now: Instant, data: &DataView, start: u64, bytes: u64) -> std::option::Option<u64> {
        if self.views.is_empty() {
            return None;
        }
        match self.scheduler.choose(now, data, &self.views) {
            Choice::Wait => None,
            Choice::Take(at) => self.place_at(now, at, start, bytes),
            Choice::Copies(set) => {
                // One length for all copies, so that they end together.
                let places = (0..self.views.len()).filter(|&at| set >> at & 1 == 1);
                let most = places
                    .clone()
                    .filter_map(|at| Some(self.most_at(self.place(self.views[at].id)?)));
                let bytes = most.min()?.min(bytes);
                let places: Vec<usize> = places.collect();
                for at in places {
                    self.place_at(now, at, start, bytes);
                }
                Some(bytes)
            }
        }
    }

    /// The subflow at place `at` of what the scheduler saw takes the segment, or lets it wait.
    fn place_at(&mut self, now: Instant, at: usize, start: u64, bytes: u64) -> std::option::Option<u64> {
        let view = *self.views.get(at)?;
        let place = self.place(view.id)?;
        let bytes = bytes.min(self.most_at(place));
        if view.room {
            self.give(now, place, start, start + bytes);
        } else {
            self.subflows[place].queue.push(start, start + bytes);
            self.queued = true;
            self.untold |= 1 << place;
        }
        Some(bytes)
    }

    /// What another subflow had goes first.
    fn schedule_again(&mut self, now: Instant) -> bool {
        let again = loop {
            let Some(again) = self.outgoing.next_again() else {
                return false;
            };
            self.look(now, again.end - again.start, Some(again.had));
            // Where no other is left, the one that had it brings it over, or it waits for one that does.
            let had_alive = || self.subflows.iter().any(|s| s.id == again.had && !s.gone);
            if !self.views.is_empty() || !had_alive() {
                break again;
            }
            self.outgoing.take_again(again.end - again.start);
        };
        let bytes = again.end - again.start;
        let data = DataView {
            reinjection: true,
            ..self.data_view()
        };
        let Some(taken) = self.ask(now, &data, again.start, bytes) else {
            return false;
        };
        self.outgoing.take_again(taken);
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
        self.look(now, bytes, None);
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
            self.ask(now, &data, start, bytes)
        };
        let Some(taken) = taken else { return false };
        self.outgoing.next = start + taken;
        self.watch_tail(now);
        true
    }

    fn probe_with(&mut self, now: Instant, start: u64, bytes: u64) -> std::option::Option<u64> {
        let idle = |place: &usize| {
            let subflow = &self.subflows[*place];
            subflow.usable && !subflow.tcp.has_unsent()
        };
        let place = (0..self.subflows.len()).find(idle)?;
        let bytes = bytes.min(self.most_at(place));
        self.give(now, place, start, start + bytes);
        Some(bytes)
    }
}
