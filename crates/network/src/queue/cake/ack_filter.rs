//! CAKE's ACK filter: an arriving ACK makes an older one of its flow redundant, which is dropped if another one follows that is
//! redundant too (Høiland-Jørgensen, Täht and Morton, LANMAN 2018, section III.D; the conservative mode of Linux's `sch_cake`).
//!
//! The older ACK must be pure: no data, no flag but ACK, ECE and CWR, no option but timestamps and SACK. The newer one must
//! acknowledge at least as much, cumulatively and selectively, and must not be its duplicate. ECE and CWR must be the same in
//! both redundant ACKs, since each change is a signal. So two ACKs of a flow always remain, and duplicate ACKs are kept.

use crate::packet::TcpAck;
use crate::queue::fifo::Fifo;
use crate::queue::{QueueActions, QueuedPacket};

/// How the selective acknowledgement of an ACK differs from that of an older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Selection {
    Less,
    Same,
    More,
}

/// Returns whether `one` is before `other`, modulo 2^32.
const fn is_before(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}

/// Compares the selective acknowledgements above the newer cumulative one.
fn selection(old: &TcpAck, new: &TcpAck) -> Selection {
    let matters = |block: &&(u32, u32)| is_before(new.number, block.1);
    let covers = |all: &[(u32, u32)], &(from, to): &(u32, u32)| {
        all.iter()
            .any(|block| !is_before(from, block.0) && !is_before(block.1, to))
    };
    let (before, after) = (old.selected(), new.selected());
    if !before.iter().filter(matters).all(|block| covers(after, block)) {
        return Selection::Less;
    }
    match after.iter().filter(matters).all(|block| covers(before, block)) {
        true => Selection::Same,
        false => Selection::More,
    }
}

/// Returns whether a newer ACK makes an older one redundant.
fn is_redundant(old: &TcpAck, new: &TcpAck) -> bool {
    let selection = selection(old, new);
    let is_older = |old: u32, new: u32| !is_before(new, old);
    let has_older_times = match (old.timestamps, new.timestamps) {
        (Some(old), Some(new)) => is_older(old.0, new.0) && is_older(old.1, new.1),
        (old, _) => old.is_none(),
    };
    let acknowledges = match old.number == new.number {
        true => selection == Selection::More,
        false => is_before(old.number, new.number) && selection != Selection::Less,
    };
    old.is_pure && has_older_times && acknowledges
}

/// Returns the position of the ACK in a queue that its last packet permits to drop.
pub(super) fn droppable(queue: &Fifo, actions: &dyn QueueActions) -> Option<usize> {
    let newest = queue.last()?;
    let new = actions.acknowledgement(newest)?;
    let is_same_flow = |packet: &QueuedPacket| (packet.route, packet.flow) == (newest.route, newest.flow);
    let mut found: Option<(usize, TcpAck)> = None;
    let older = queue.iter().take(queue.count().packets as usize - 1);
    for (position, packet) in older.enumerate().filter(|(_, packet)| is_same_flow(packet)) {
        let Some(old) = actions.acknowledgement(packet) else {
            continue;
        };
        found = found.filter(|(_, first)| first.signals == old.signals);
        if !is_redundant(&old, &new) {
            continue;
        }
        match found {
            Some((first, _)) => return Some(first),
            None => found = Some((position, old)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(number: u32, selected: &[(u32, u32)]) -> TcpAck {
        let mut ack = TcpAck::new(number);
        selected.iter().for_each(|&block| ack.select(block));
        ack
    }

    #[test]
    fn an_ack_is_redundant_if_a_newer_one_says_more() {
        let plain = |number| ack(number, &[]);
        assert!(is_redundant(&plain(100), &plain(200)));
        assert!(is_redundant(&plain(u32::MAX), &plain(5)), "across the wrap");
        assert!(!is_redundant(&plain(200), &plain(100)));
        assert!(!is_redundant(&plain(100), &plain(100)), "a duplicate is a signal");
        // Selective acknowledgements must not vanish, unless the cumulative one covers them.
        assert!(!is_redundant(&ack(100, &[(300, 400)]), &plain(200)));
        assert!(is_redundant(&ack(100, &[(300, 400)]), &plain(400)));
        assert!(is_redundant(&ack(100, &[(300, 400)]), &ack(100, &[(300, 500)])));
        assert!(!is_redundant(&ack(100, &[(300, 400)]), &ack(100, &[(300, 400)])));
        assert!(!is_redundant(&ack(100, &[(300, 500)]), &ack(100, &[(300, 400)])));
        let [mut old, mut new] = [plain(100), plain(200)];
        (old.is_pure, new.is_pure) = (false, false);
        assert!(!is_redundant(&old, &plain(200)));
        assert!(is_redundant(&plain(100), &new));
    }

    #[test]
    fn an_ack_with_newer_timestamps_is_kept() {
        let timed = |number, value, echo| {
            let mut ack = ack(number, &[]);
            ack.timestamps = Some((value, echo));
            ack
        };
        assert!(is_redundant(&timed(100, 7, 3), &timed(200, 8, 3)));
        assert!(is_redundant(&timed(100, u32::MAX, 3), &timed(200, 1, 3)));
        assert!(!is_redundant(&timed(100, 9, 3), &timed(200, 8, 3)));
        assert!(!is_redundant(&timed(100, 7, 4), &timed(200, 8, 3)));
        assert!(!is_redundant(&timed(100, 7, 3), &ack(200, &[])));
    }
}
