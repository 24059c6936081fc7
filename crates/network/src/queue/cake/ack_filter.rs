//! CAKE's ACK filter: an arriving ACK makes an older one of its flow redundant, which is dropped if another one follows that is
//! redundant too (Høiland-Jørgensen, Täht and Morton, LANMAN 2018, section III.D; the conservative mode of Linux's `sch_cake`).
//!
//! The older ACK must be pure: no data, no flag but ACK, ECE and CWR, no option but timestamps and SACK. The newer one must
//! acknowledge at least as much, cumulatively and with its SACK blocks, and must not be its duplicate. An ACK with a duplicate
//! SACK (RFC 2883) is kept, as is one with blocks that the newer one does not contain, even if it acknowledges them cumulatively. ECE and CWR must be the same in
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

/// Compares the SACK blocks of both ACKs. A duplicate SACK in the older ACK (RFC 2883), which reports bytes below its cumulative
/// acknowledgement, has no equal.
fn selection(old: &TcpAck, new: &TcpAck) -> Selection {
    let (before, after) = (old.selected(), new.selected());
    let is_kept = |&(from, to): &(u32, u32)| {
        !is_before(from, old.number)
            && after
                .iter()
                .any(|block| !is_before(from, block.0) && !is_before(block.1, to))
    };
    let bytes = |blocks: &[(u32, u32)]| -> u64 {
        let lengths = blocks.iter().map(|&(from, to)| to.wrapping_sub(from));
        lengths.map(u64::from).sum()
    };
    if !before.iter().all(is_kept) {
        Selection::Less
    } else if bytes(after) > bytes(before) {
        Selection::More
    } else {
        Selection::Same
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
    use foundation::{Ecn, Instant};

    use super::*;
    use crate::queue::fifo::tests::packet;

    fn ack(number: u32, selected: &[(u32, u32)]) -> TcpAck {
        let mut ack = TcpAck::new(number);
        selected.iter().for_each(|&block| ack.select(block));
        ack
    }

    #[test]
    fn an_ack_is_redundant_if_a_newer_one_acknowledges_more() {
        let plain = |number| ack(number, &[]);
        assert!(is_redundant(&plain(100), &plain(200)));
        assert!(is_redundant(&plain(u32::MAX), &plain(5)), "across the wrap");
        assert!(!is_redundant(&plain(200), &plain(100)));
        assert!(!is_redundant(&plain(100), &plain(100)), "a duplicate is a signal");
        let [mut old, mut new] = [plain(100), plain(200)];
        (old.is_pure, new.is_pure) = (false, false);
        assert!(!is_redundant(&old, &plain(200)));
        assert!(is_redundant(&plain(100), &new));
    }

    /// As `cake_tcph_sack_compare` of Linux decides.
    #[test]
    fn an_ack_whose_blocks_a_newer_one_lacks_is_kept() {
        let old = ack(100, &[(300, 400)]);
        assert!(!is_redundant(&old, &ack(200, &[])));
        assert!(
            !is_redundant(&old, &ack(400, &[])),
            "Linux does not compare with the number"
        );
        assert!(!is_redundant(&old, &ack(100, &[(300, 400)])));
        assert!(!is_redundant(&ack(100, &[(300, 500)]), &old));
        assert!(is_redundant(&old, &ack(100, &[(300, 500)])));
        assert!(is_redundant(&old, &ack(100, &[(600, 700), (300, 400)])));
        assert!(is_redundant(&old, &ack(200, &[(300, 400)])));
        assert!(is_redundant(&ack(100, &[]), &ack(100, &[(300, 400)])));
    }

    /// A receiver reports a duplicate once (RFC 2883, section 4).
    #[test]
    fn a_duplicate_sack_is_kept() {
        let duplicate = ack(500, &[(300, 400)]);
        assert!(!is_redundant(&duplicate, &ack(600, &[])));
        assert!(!is_redundant(&duplicate, &ack(600, &[(300, 400)])));
        assert!(!is_redundant(
            &ack(500, &[(300, 400), (700, 800)]),
            &ack(600, &[(700, 800)])
        ));
        // Across the wrap.
        assert!(!is_redundant(
            &ack(5, &[(u32::MAX - 9, 2)]),
            &ack(600, &[(u32::MAX - 9, 2)])
        ));
        assert!(is_redundant(&ack(500, &[]), &ack(600, &[(300, 400)])));
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

    /// The ACKs of a queue. The size of a packet is the index of its ACK.
    struct Acks(Vec<Option<TcpAck>>);

    impl QueueActions for Acks {
        fn drop(&mut self, _: QueuedPacket) {}

        fn ecn(&self, _: &QueuedPacket) -> Ecn {
            Ecn::NotEct
        }

        fn priority(&self, _: &QueuedPacket) -> u8 {
            0
        }

        fn acknowledgement(&self, packet: &QueuedPacket) -> Option<TcpAck> {
            self.0[packet.size() as usize]
        }

        fn mark(&mut self, _: &QueuedPacket) -> bool {
            false
        }

        fn transmission_end(&self, _: &QueuedPacket) -> Option<Instant> {
            None
        }
    }

    /// Returns the droppable position in a queue of packets of flows; `None` is a packet without acknowledgement.
    fn droppable_of(packets: &[(u64, Option<TcpAck>)]) -> Option<usize> {
        let mut queue = Fifo::default();
        for (size, &(flow, _)) in (0..).zip(packets) {
            queue.push(packet(flow, size));
        }
        let acks = packets.iter().map(|&(_, ack)| ack).collect();
        droppable(&queue, &Acks(acks))
    }

    #[test]
    fn the_first_of_two_redundant_acks_is_droppable() {
        let plain = |number| (1, Some(ack(number, &[])));
        assert_eq!(droppable_of(&[]), None);
        assert_eq!(droppable_of(&[plain(100), plain(200)]), None, "one must remain");
        assert_eq!(droppable_of(&[plain(100), plain(200), plain(300)]), Some(0));
        assert_eq!(droppable_of(&[plain(100), plain(100), plain(100)]), None);
        // Data, the ACKs of another flow, and an ACK that must be kept stay in the queue.
        let (data, other) = ((1, None), (2, Some(ack(150, &[]))));
        let kept = (1, Some(ack(150, &[(120, 130)])));
        assert_eq!(
            droppable_of(&[other, data, kept, plain(160), plain(200), plain(300)]),
            Some(3)
        );
        assert_eq!(droppable_of(&[other, other, plain(200), plain(300)]), None);
        assert_eq!(droppable_of(&[plain(100), plain(200), plain(300), data]), None);
    }

    #[test]
    fn a_change_of_ece_or_cwr_is_kept() {
        for which in 0..2 {
            let flagged = |number, is_set| {
                let mut ack = ack(number, &[]);
                ack.signals[which] = is_set;
                (1, Some(ack))
            };
            let [before, after] = [flagged(100, false), flagged(200, true)];
            assert_eq!(droppable_of(&[before, after, flagged(300, true)]), None);
            // After the change, two redundant ACKs are equal again, and the older one leaves.
            let again = flagged(300, true);
            assert_eq!(
                droppable_of(&[before, after, again, flagged(400, false)]),
                Some(1)
            );
        }
    }
}
