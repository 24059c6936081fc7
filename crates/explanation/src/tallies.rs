//! Counts of events by Wireshark's definitions (its analysis of sequence numbers), so that both agree on a file.

use foundation::{Duration, Instant};
use serde::Serialize;

use crate::packet::TcpPacket;

/// Retransmissions this soon after the second duplicate ACK are fast.
const FAST: Duration = Duration::from_millis(20);
/// Threshold of reordering without a sample of the RTT.
const REORDERING: Duration = Duration::from_millis(3);

/// Events of one sender, as Wireshark names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tallies {
    /// `tcp.analysis.retransmission`, including fast and spurious ones.
    pub retransmissions: u64,
    /// `tcp.analysis.fast_retransmission`.
    pub fast_retransmissions: u64,
    /// `tcp.analysis.spurious_retransmission`.
    pub spurious_retransmissions: u64,
    /// `tcp.analysis.out_of_order`.
    pub out_of_order: u64,
    /// `tcp.analysis.duplicate_ack`.
    pub duplicate_acks: u64,
    /// `tcp.analysis.zero_window`.
    pub zero_windows: u64,
    /// `tcp.analysis.lost_segment`: earlier data was not captured.
    pub lost_segments: u64,
    /// `tcp.analysis.ack_lost_segment`: acknowledged data was not captured.
    pub acked_unseen: u64,
    /// `tcp.analysis.keep_alive`.
    pub keep_alives: u64,
}

/// What the counts of one sender depend on.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// The counts.
    pub tallies: Tallies,
    next: Option<(u32, Instant)>,
    last_ack: Option<(u32, Instant)>,
    duplicates: u32,
    window: u16,
    was_probe: bool,
    was_keep_alive: bool,
}

fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Analysis {
    /// Takes a packet of this sender; `peer` is the state of the other one, `first_rtt` that of the handshake.
    pub fn packet(&mut self, packet: &TcpPacket, peer: &mut Self, first_rtt: Option<Duration>) {
        let TcpPacket {
            sequence,
            acknowledgement,
            time,
            length,
            ..
        } = *packet;
        let is_control = packet.is_syn || packet.is_fin || packet.is_rst;
        if let (Some(ack), Some((next, at))) = (acknowledgement, peer.next)
            && is_before(next, ack)
        {
            self.tallies.acked_unseen += 1;
            peer.next = Some((ack, at));
        }
        let at_next = self.next.is_some_and(|(next, _)| next == sequence);
        let is_probe = length == 1 && at_next && peer.window == 0;
        if packet.window == 0 && !is_control && acknowledgement.is_some() {
            self.tallies.zero_windows += 1;
        }
        let is_lost = self.next.is_some_and(|(next, _)| is_before(next, sequence)) && !packet.is_rst;
        self.tallies.lost_segments += u64::from(is_lost && !is_probe);
        let is_keep_alive =
            length <= 1 && !is_control && self.next.is_some_and(|(next, _)| sequence == next.wrapping_sub(1));
        self.tallies.keep_alives += u64::from(is_keep_alive);
        let same_ack = acknowledgement.is_some() && self.last_ack.map(|(ack, _)| ack) == acknowledgement;
        let answers = peer.was_probe || peer.was_keep_alive;
        if length == 0 && packet.window != 0 && packet.window == self.window && at_next && same_ack && !is_control {
            if !answers {
                self.duplicates += 1;
                self.tallies.duplicate_acks += 1;
            }
        } else if !same_ack {
            self.duplicates = 0;
        }
        if length > 0 || packet.is_syn || packet.is_fin {
            self.repeated(packet, peer, first_rtt, is_keep_alive || is_probe);
        }
        let end = sequence
            .wrapping_add(length)
            .wrapping_add(u32::from(packet.is_syn) + u32::from(packet.is_fin));
        if self.next.is_none_or(|(next, _)| is_before(next, end)) && !is_probe && !packet.is_rst {
            self.next = Some((end, time));
        }
        if let Some(ack) = acknowledgement {
            self.last_ack = Some((ack, time));
        }
        self.window = packet.window;
        self.was_probe = is_probe;
        self.was_keep_alive = is_keep_alive;
    }

    fn repeated(&mut self, packet: &TcpPacket, peer: &Self, first_rtt: Option<Duration>, is_probe: bool) {
        let Some((next, advanced)) = self.next else {
            return;
        };
        if is_probe || !is_before(packet.sequence, next) {
            return;
        }
        let end = packet.sequence.wrapping_add(packet.length);
        let acked = peer.last_ack;
        if packet.length > 0 && acked.is_some_and(|(ack, _)| !is_before(ack, end)) {
            self.tallies.retransmissions += 1;
            self.tallies.spurious_retransmissions += 1;
        } else if peer.duplicates >= 2
            && acked.is_some_and(|(ack, at)| ack == packet.sequence && packet.time.saturating_since(at) < FAST)
        {
            self.tallies.retransmissions += 1;
            self.tallies.fast_retransmissions += 1;
        } else if packet.time.saturating_since(advanced) < first_rtt.unwrap_or(REORDERING) && end != next {
            self.tallies.out_of_order += 1;
        } else {
            self.tallies.retransmissions += 1;
        }
    }
}
