//! Counts of events by Wireshark's definitions, so that both agree on a file.
//!
//! The rules are those of version 4.0 (its dissector of TCP, "TCP Analysis" in its user's guide). They count what the
//! capture shows at first sight, which differs from what the [direction](crate::direction) of a sender derives: an early
//! retransmission can be out of order here, and a late packet a retransmission. One rule is not followed: ACKs of
//! Multipath TCP whose options differ are duplicates here.

use foundation::{Duration, Instant};
use serde::Serialize;

use crate::packet::TcpPacket;

/// Retransmissions this soon after the last duplicate ACK are fast.
const FAST: Duration = Duration::from_millis(20);
/// Duplicate ACKs before a fast retransmission.
const DUPLICATES: u32 = 2;
/// Marks a count of duplicates; Wireshark compares it as a large number.
const UNSEEN: u32 = u32::MAX;
/// Threshold of reordering without an initial RTT.
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

/// The RTT of the handshake as Wireshark measures it, at any place of the path.
#[derive(Clone, Copy, Debug, Default)]
pub struct InitialRtt {
    /// The last SYN; as in Wireshark, time 0 is none.
    syn: Instant,
    /// Nanoseconds from it to the first ACK of either end; 0 if there is none.
    nanos: u64,
}

impl InitialRtt {
    /// Takes a packet after its [`Analysis`].
    pub const fn packet(&mut self, packet: &TcpPacket) {
        match (packet.is_syn, packet.acknowledgement.is_some()) {
            (true, false) => self.syn = packet.time,
            (false, true) if self.nanos == 0 && self.syn.as_nanos() != 0 => {
                self.nanos = nanos_since(packet.time, self.syn);
            }
            _ => {}
        }
    }

    /// Returns the time within which a late packet counts as out of order.
    const fn reordering(self) -> u64 {
        if self.nanos == 0 {
            REORDERING.as_nanos()
        } else {
            self.nanos
        }
    }
}

/// What the counts of one sender depend on. As in Wireshark, number 0 is none.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// The counts.
    pub tallies: Tallies,
    /// Number after the highest one so far, and its time.
    next: u32,
    advanced: Instant,
    /// Number up to which the data has no hole.
    complete: u32,
    /// The last ACK number and its time.
    ack: u32,
    ack_time: Instant,
    /// Duplicate ACKs since the ACK number changed; [`UNSEEN`] after an ACK of data that was not captured.
    duplicates: u32,
    /// The last window, not scaled; above 16 bits before the first packet.
    window: u32,
    last: Last,
}

/// What the last packet of a sender was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Last {
    Probe,
    KeepAlive,
    #[default]
    Other,
}

impl Default for Analysis {
    fn default() -> Self {
        Self {
            tallies: Tallies::default(),
            next: 0,
            advanced: Instant::ZERO,
            complete: 0,
            ack: 0,
            ack_time: Instant::ZERO,
            duplicates: 0,
            window: u32::MAX,
            last: Last::Other,
        }
    }
}

/// Whether a number is before another one, within half of the space.
const fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Returns the nanoseconds between two times; very many if the order of both is reversed.
const fn nanos_since(time: Instant, earlier: Instant) -> u64 {
    time.as_nanos().wrapping_sub(earlier.as_nanos())
}

impl Analysis {
    /// Takes the first SYN again: a RST in between can have another number.
    pub const fn repeated_syn(&mut self) {
        self.next = self.complete;
    }

    /// Takes a packet of this sender; `peer` is the state of the other one.
    pub fn packet(&mut self, packet: &TcpPacket, peer: &mut Self, initial: InitialRtt) {
        let ack = packet.acknowledgement.unwrap_or(0);
        let kind = self.kind(packet, peer);
        if kind != Last::Probe {
            self.numbers(packet);
            self.tallies.keep_alives += u64::from(kind == Last::KeepAlive);
            if self.is_same_ack(packet, ack, peer) {
                self.duplicates = if self.duplicates == UNSEEN {
                    1
                } else {
                    self.duplicates + 1
                };
                self.tallies.duplicate_acks += 1;
            }
        }
        if ack != self.ack {
            self.duplicates = 0;
        }
        if packet.acknowledgement.is_some() {
            self.unseen(ack, peer);
        }
        if kind != Last::KeepAlive && (packet.length > 0 || packet.is_syn || packet.is_fin) {
            self.repeated(packet, peer, initial);
        }
        self.advance(packet, kind);
        self.ack = ack;
        self.ack_time = packet.time;
        self.window = u32::from(packet.window);
        self.last = kind;
    }

    /// Returns whether a packet probes a closed window or an idle peer.
    const fn kind(&self, packet: &TcpPacket, peer: &Self) -> Last {
        if packet.length == 1 && packet.sequence == self.next && peer.window == 0 {
            Last::Probe
        } else if packet.length <= 1
            && packet.sequence == self.next.wrapping_sub(1)
            && !(packet.is_syn || packet.is_fin || packet.is_rst)
        {
            Last::KeepAlive
        } else {
            Last::Other
        }
    }

    fn numbers(&mut self, packet: &TcpPacket) {
        if packet.window == 0 && !(packet.is_syn || packet.is_fin || packet.is_rst) {
            self.tallies.zero_windows += 1;
        }
        if self.next != 0 && is_before(self.next, packet.sequence) && !packet.is_rst {
            self.tallies.lost_segments += 1;
        }
    }

    /// Returns whether an ACK repeats the last one without an apparent reason.
    fn is_same_ack(&self, packet: &TcpPacket, ack: u32, peer: &Self) -> bool {
        packet.length == 0
            && packet.window != 0
            && u32::from(packet.window) == self.window
            && packet.sequence == self.next
            && ack == self.ack
            && !(packet.is_syn || packet.is_fin || packet.is_rst)
            && peer.last != Last::KeepAlive
    }

    /// Counts an ACK of data that was not captured, once for all data that is missing.
    fn unseen(&mut self, ack: u32, peer: &mut Self) {
        if peer.complete == 0 || !is_before(peer.complete, ack) {
            return;
        }
        if is_before(peer.complete, peer.next) {
            peer.complete = peer.next;
            self.tallies.acked_unseen += 1;
        } else {
            self.tallies.acked_unseen += u64::from(peer.duplicates == 0);
            peer.duplicates = UNSEEN;
        }
    }

    /// Counts a packet whose numbers were sent before.
    fn repeated(&mut self, packet: &TcpPacket, peer: &Self, initial: InitialRtt) {
        let end = packet.sequence.wrapping_add(packet.length);
        if packet.length > 0 && peer.ack != 0 && !is_before(peer.ack, end) {
            self.tallies.retransmissions += 1;
            self.tallies.spurious_retransmissions += 1;
            return;
        }
        // The data after a probe includes its byte.
        let follows_probe = packet.length > 1 && packet.sequence == self.next.wrapping_sub(1);
        if self.next == 0 || !is_before(packet.sequence, self.next) || follows_probe {
            return;
        }
        let end = end.wrapping_add(u32::from(packet.is_syn || packet.is_fin));
        if peer.duplicates >= DUPLICATES
            && peer.ack == packet.sequence
            && nanos_since(packet.time, peer.ack_time) < FAST.as_nanos()
        {
            self.tallies.retransmissions += 1;
            self.tallies.fast_retransmissions += 1;
        } else if nanos_since(packet.time, self.advanced) < initial.reordering() && end != self.next {
            self.tallies.out_of_order += 1;
        } else {
            self.tallies.retransmissions += 1;
        }
    }

    fn advance(&mut self, packet: &TcpPacket, kind: Last) {
        let control = u32::from(packet.is_syn || packet.is_fin);
        let end = packet.sequence.wrapping_add(packet.length).wrapping_add(control);
        if kind == Last::Probe {
            return;
        }
        if self.next == 0 || is_before(self.next, end) {
            self.next = end;
            self.advanced = packet.time;
        }
        if self.complete == 0 || packet.sequence == self.complete {
            self.complete = self.next;
        }
    }
}
