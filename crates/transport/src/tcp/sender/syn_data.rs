//! Data in a SYN or SYN-ACK (RFC 7413, section 4.2.1; RFC 1644, section 3.4).

use foundation::Instant;

use super::scoreboard::Scoreboard;
use super::sent_segment::Marks;
use super::{DataSegment, Sender};

impl Sender {
    /// Returns the first segment of the stream, of at most `room` bytes, for a SYN; with the FIN only if `may_finish`.
    /// `None` if nothing was written or data was already sent. The timer of the SYN covers the data.
    pub fn poll_syn_data(&mut self, now: Instant, room: u32, may_finish: bool) -> Option<DataSegment> {
        if self.next > 1 || !self.has_unsent() {
            return None;
        }
        let length = (self.writes.limit(self.next) - self.next).min(u64::from(room)) as u32;
        let ends = self.writes.finishing && may_finish;
        if length == 0 && (!ends || self.next < self.writes.end) {
            return None;
        }
        let finishing = std::mem::replace(&mut self.writes.finishing, ends);
        let small_end = self.writes.small_end;
        // The record's end counts again if the peer rejects the data.
        let records = self.writes.records.clone();
        let segment = self.send_new(now, length);
        self.writes.records = records;
        // Nagle's algorithm does not wait for its acknowledgement (`tcp_minshall_update`).
        self.writes.small_end = small_end;
        self.writes.finishing = finishing;
        self.timeout.timer = None;
        self.burst.has_new = true;
        Some(segment)
    }

    /// Returns the window of the peer's SYN in bytes.
    pub const fn first_window(&self) -> u64 {
        self.peer.window
    }

    /// Excludes the SYN's data from RTT samples: the SYN was retransmitted without it.
    pub fn mark_syn_data_ambiguous(&mut self) {
        if !self.scoreboard.is_empty() {
            self.scoreboard.push_back_mark(Marks::EVER_RETRANSMITTED);
        }
    }

    /// Whether the data of the SYN fits into the peer's window and a segment, which were unknown when it left.
    pub fn syn_data_fits(&self) -> bool {
        let is_whole = self
            .scoreboard
            .front()
            .is_none_or(|record| record.length <= self.segment);
        is_whole && self.next <= self.una + self.peer.window
    }

    /// Retransmits the SYN's unacknowledged data in segments of the negotiated size, without a reduction of the window
    /// (`tcp_rcv_fastopen_synack` of Linux).
    pub fn lose_syn_data(&mut self) {
        self.scoreboard.resegment(self.segment, u64::MAX);
        for number in self.scoreboard.first_number()..self.scoreboard.end_number() {
            self.scoreboard.mark_lost(number);
        }
        self.timeout.timer = None;
        self.burst.segments = 0;
        self.burst.has_new = false;
        self.retransmit_without_reduction();
    }

    /// Treats the SYN's unacknowledged data as unsent: the peer did not accept it.
    pub fn retract_syn_data(&mut self) {
        self.scoreboard = Scoreboard::default();
        self.next = self.una;
        self.writes.pushed = self.una;
        self.writes.small_end = 0;
        self.timeout.timer = None;
        self.burst.segments = 0;
        self.burst.has_new = false;
    }

    /// Starts the retransmission timer for data sent before the end of the handshake.
    pub fn start_timer_after_syn(&mut self, now: Instant) {
        if self.timeout.timer.is_none() {
            self.rearm(now);
        }
    }
}
