//! Rules of a stack for loss-based controllers: the RFCs, Linux or ns-3. The algorithms are the same; stacks differ
//! in the unit they count, in the value they reduce, and in when a window counts as used.

use serde::{Deserialize, Serialize};

/// Rules of a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rules {
    /// Count bytes (RFC 3465), with at most eight packets of growth per ACK without pacing (RFC 9406, section 4.3);
    /// reduce the bytes in flight (RFC 5681, equation 4).
    #[default]
    Rfc,
    /// Count whole packets (`net/ipv4/tcp_cong.c`): slow start grows by all acknowledged packets, a loss reduces the
    /// window, and the sender determines whether the window was used.
    Linux,
    /// Count ACKs, regardless of the bytes they acknowledge and of the use of the window (`TcpNewReno`); a loss
    /// halves the bytes in flight without the lost packets.
    Ns3,
}

/// Rules supported by every loss-based controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StackRules {
    /// Count bytes, reduce the bytes in flight.
    #[default]
    Rfc,
    /// Count packets, reduce the window.
    Linux,
}

impl From<Rules> for StackRules {
    /// ns-3 follows the RFCs, except for Reno.
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

/// Returns the packets in `bytes`, rounded up as in stacks that count packets.
pub(super) const fn packets(bytes: u64, segment: u64) -> u64 {
    bytes.div_ceil(segment)
}

/// Returns the ssthresh in bytes that Linux keeps of a window: a half plus a quarter of its packets, each rounded
/// down (`tcp_current_ssthresh` of `include/net/tcp.h`).
pub(super) const fn kept_ssthresh(window: u64, segment: u64) -> u64 {
    let packets = window / segment;
    (packets / 2 + packets / 4) * segment
}

/// Growth by one packet per number of acknowledged packets (`tcp_cong_avoid_ai` of `net/ipv4/tcp_cong.c`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacketCount {
    acknowledged: u64,
}

impl PacketCount {
    /// Counts acknowledged packets and returns the growth, one packet per `every`.
    ///
    /// A surplus from a larger `every` counts as one packet at most.
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
    fn kept_ssthresh_is_in_whole_packets() {
        // 11 packets: 5 + 2, not 8 as for three quarters of the bytes.
        assert_eq!(kept_ssthresh(11 * 1448, 1448), 7 * 1448);
        assert_eq!(kept_ssthresh(12 * 1448 + 700, 1448), 9 * 1448);
    }

    #[test]
    fn grows_by_one_packet_per_count() {
        let mut count = PacketCount::default();
        let growth: Vec<_> = [3, 3, 3, 9, 25].map(|packets| count.grow(packets, 10)).into();
        assert_eq!(growth, [0, 0, 0, 1, 3]);
        // 13 packets were counted at one in 20; at one in 7 they count as one packet, not two.
        let mut count = PacketCount::default();
        assert_eq!(count.grow(13, 20), 0);
        assert_eq!(count.grow(1, 7), 1);
        assert_eq!(count.grow(5, 7), 0);
        assert_eq!(count.grow(1, 7), 1);
    }
}
