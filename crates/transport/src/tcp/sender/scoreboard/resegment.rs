//! Splitting of segments in flight after a reduction of the path MTU, or for a window unknown when they left.

use std::cmp::Reverse;

use super::{Marks, Scoreboard};

impl Scoreboard {
    /// Splits segments longer than `length` payload bytes or across the position `edge`, and marks the pieces as lost.
    pub fn resegment(&mut self, length: u32, edge: u64) {
        let limit = |start: u64| match edge.saturating_sub(start) {
            0 => length,
            room => u64::from(length).min(room) as u32,
        };
        if self.records.iter().all(|r| r.length <= limit(r.start)) {
            return;
        }
        let mut lost = Vec::new();
        let old = std::mem::take(&mut self.records);
        for record in old.iter() {
            let too_long = record.length > limit(record.start) && !record.marks.has(Marks::SACKED);
            let mut rest = record;
            while too_long && rest.length > limit(rest.start) {
                let mut piece = rest;
                piece.length = limit(rest.start);
                piece.marks.clear(Marks::FIN);
                piece.marks.clear(Marks::PUSH);
                lost.push(self.base + self.records.len() as u64);
                self.records.push(piece);
                rest.start += u64::from(piece.length);
                rest.length -= piece.length;
            }
            if too_long {
                lost.push(self.base + self.records.len() as u64);
            }
            self.records.push(rest);
        }
        (self.out_bytes, self.sacked, self.lost, self.retransmitted) = Default::default();
        let waiting = &mut self.repair.get_or_insert_default().waiting;
        waiting.clear();
        for (index, record) in self.records.iter().enumerate() {
            self.out_bytes += record.length;
            if record.marks.has(Marks::SACKED) {
                self.sacked.add(&record);
            }
            if record.marks.has(Marks::LOST) {
                self.lost.add(&record);
            }
            if record.marks.has(Marks::RETRANSMITTED) {
                self.retransmitted.add(&record);
            } else if record.marks.has(Marks::LOST) {
                waiting.push(Reverse(self.base + index as u64));
            }
        }
        self.recount();
        for number in lost {
            self.mark_lost(number);
        }
    }
}
