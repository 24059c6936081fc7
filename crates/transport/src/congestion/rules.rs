//! By whose rules a loss-based controller counts: the RFCs', Linux's or ns-3's. The algorithms are the
//! same; the stacks differ in what they count, in what they reduce and in when a window counts as used.

use serde::{Deserialize, Serialize};

/// Whose rules count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// Bytes (RFC 3465), at most eight packets of growth per ACK without pacing (RFC 9406, section 4.3); a
    /// loss reduces what was in flight (RFC 5681, equation 4).
    #[default]
    Rfc,
    /// Whole packets (`net/ipv4/tcp_cong.c`): slow start grows by all that an ACK acknowledges, a loss
    /// reduces the window, and the owner alone says whether the window was in use.
    Linux,
    /// ns-3's `TcpNewReno`: ACKs are counted, however much they acknowledge, whether or not the window was
    /// in use, and a loss halves what is in flight once the lost packets are taken out.
    Ns3,
}

/// The rules that every loss-based controller knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StackRules {
    /// As the RFCs say: counts bytes, reduces what was in flight.
    #[default]
    Rfc,
    /// As Linux does: counts packets, reduces the window.
    Linux,
}

/// The rules that Reno knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RenoRules {
    /// As the RFCs say: counts bytes, reduces what was in flight.
    #[default]
    Rfc,
    /// As Linux does: counts packets, reduces the window.
    Linux,
    /// As ns-3's TcpNewReno does: counts ACKs, so that delayed ACKs halve its growth, and reduces what is
    /// in flight without the lost packets.
    Ns3,
}

impl From<Rules> for StackRules {
    /// ns-3's are the RFCs', but for Reno.
    fn from(rules: Rules) -> Self {
        match rules {
            Rules::Linux => Self::Linux,
            Rules::Rfc | Rules::Ns3 => Self::Rfc,
        }
    }
}

impl From<StackRules> for Rules {
    fn from(rules: StackRules) -> Self {
        match rules {
            StackRules::Rfc => Self::Rfc,
            StackRules::Linux => Self::Linux,
        }
    }
}

impl From<RenoRules> for Rules {
    fn from(rules: RenoRules) -> Self {
        match rules {
            RenoRules::Rfc => Self::Rfc,
            RenoRules::Linux => Self::Linux,
            RenoRules::Ns3 => Self::Ns3,
        }
    }
}

/// Packets that `bytes` make: a part of one counts as one, as in stacks that count packets.
pub(super) const fn packets(bytes: u64, segment: u64) -> u64 {
    bytes.div_ceil(segment)
}

/// Bytes of a window that Linux remembers as the threshold to come back to: a half and a quarter of its
/// packets, each rounded down (`tcp_current_ssthresh` of `include/net/tcp.h`).
pub(super) const fn remembered(window: u64, segment: u64) -> u64 {
    let packets = window / segment;
    (packets / 2 + packets / 4) * segment
}

/// Growth by a packet for every so many acknowledged, in whole packets
/// (`tcp_cong_avoid_ai` of `net/ipv4/tcp_cong.c`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacketCount {
    acknowledged: u64,
}

impl PacketCount {
    /// `packets` were acknowledged and the window grows by one for every `every`: by how many now?
    ///
    /// What was collected while growth was slower counts for one packet at once, not for several.
    pub(super) const fn grow(&mut self, packets: u64, every: u64) -> u64 {
        let every = if every == 0 { 1 } else { every };
        let mut growth = 0;
        if self.acknowledged >= every {
            self.acknowledged = 0;
            growth = 1;
        }
        self.acknowledged += packets;
        growth += self.acknowledged / every;
        self.acknowledged %= every;
        growth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_and_quarters_are_remembered_in_whole_packets() {
        // 11 packets: 5 and 2, not the 8 that three quarters of the bytes make.
        assert_eq!(remembered(11 * 1448, 1448), 7 * 1448);
        assert_eq!(remembered(12 * 1448 + 700, 1448), 9 * 1448);
    }

    #[test]
    fn a_packet_of_growth_for_every_so_many() {
        let mut count = PacketCount::default();
        let growth: Vec<_> = [3, 3, 3, 9, 25].map(|packets| count.grow(packets, 10)).into();
        assert_eq!(growth, [0, 0, 0, 1, 3]);
        // 13 were saved up at a rate of one in 20; at one in 7 they are worth one packet, not two.
        let mut count = PacketCount::default();
        assert_eq!(count.grow(13, 20), 0);
        assert_eq!(count.grow(1, 7), 1);
        assert_eq!(count.grow(5, 7), 0);
        assert_eq!(count.grow(1, 7), 1);
    }
}
