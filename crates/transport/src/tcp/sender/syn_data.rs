//! What leaves with a SYN or with the answer to one (RFC 7413, section 4.2.1; RFC 1644, section 3.4).

use foundation::Instant;

use super::scoreboard::Scoreboard;
use super::sent_segment::Marks;
use super::{DataSegment, Sender};

impl Sender {
    /// The first segment of the stream, of at most `room` bytes, to leave with a SYN; with the FIN only if it `may_finish`.
    /// `None` where nothing was written, or something has left already. The SYN's own timer covers it.
    pub fn poll_syn_data(&mut self, now: Instant, room: u32, may_finish: bool) -> Option<DataSegment> {
        if self.next > 1 || !self.has_unsent() {
            return None;
        }
        let length = (self.written - self.next).min(u64::from(room)) as u32;
        let ends = self.finishing && may_finish;
        if length == 0 && (!ends || self.next < self.written) {
            return None;
        }
        let finishing = std::mem::replace(&mut self.finishing, ends);
        let departure = self.send_new(now, length);
        self.finishing = finishing;
        self.timer = None;
        self.sent_new = true;
        Some(departure)
    }

    /// Bytes that the peer's window takes, as its SYN told.
    pub const fn first_window(&self) -> u64 {
        self.window
    }

    /// The SYN was sent again without what it carried: an acknowledgement of that says nothing about the round trip.
    pub fn mark_syn_data_ambiguous(&mut self) {
        if !self.scoreboard.is_empty() {
            self.scoreboard.push_back_mark(Marks::EVER_RETRANSMITTED);
        }
    }

    /// Whether all that left with the SYN fits into the peer's window, which was not known then.
    pub const fn syn_data_fits(&self) -> bool {
        self.next <= self.una + self.window
    }

    /// The peer has not taken what came with the SYN, or not all of it: it is sent anew, as if it never had been.
    pub fn retract_syn_data(&mut self) {
        self.scoreboard = Scoreboard::default();
        self.next = self.una;
        self.pushed = self.una;
        self.small_end = 0;
        self.timer = None;
        self.burst = 0;
        self.sent_new = false;
    }

    /// The SYN's timer has ended: what it carried, or what followed it, has one of its own.
    pub fn start_timer_after_syn(&mut self, now: Instant) {
        if self.timer.is_none() {
            self.rearm(now);
        }
    }
}
