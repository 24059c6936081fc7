//! The memory that the connections of a server share.

/// Bytes of all connections together, if there are few.
const TOTAL: u64 = 512 << 20;
/// Bytes that the application of one connection holds at most: pieces of files on their way to the disk.
const APPLICATION: u64 = 9 << 20;
/// Most bytes of one receive buffer: 2.6 Gbit/s at 100 ms.
const MOST: u64 = 32 << 20;
/// Fewest bytes of one receive buffer.
const LEAST: u64 = 1 << 20;
/// Bytes that a buffered packet takes in addition to its payload.
const PER_PACKET: u64 = 64;
/// Fewest packets of a receive buffer.
const LEAST_PACKETS: u64 = 16;

/// Returns the bytes of the receive buffer of one more connection, when the receive buffers of `live` ones have `used`
/// bytes and at most `most` connections are open at a time. All together never exceed 512 MiB, or 10 MiB per connection
/// if that is more.
#[must_use]
pub fn grant(live: usize, most: usize, used: u64) -> u64 {
    let (live, most) = (live as u64, most as u64);
    let total = TOTAL.max(most * (APPLICATION + LEAST));
    let reserved = used + (live + 1) * APPLICATION + most.saturating_sub(live + 1) * (APPLICATION + LEAST);
    (total.saturating_sub(reserved) / 2).clamp(LEAST, MOST)
}

/// Returns how many packets with `segment` bytes fit a receive buffer of `bytes`.
#[must_use]
pub fn packets(bytes: u64, segment: u16) -> u32 {
    let packets = bytes / (u64::from(segment) + PER_PACKET);
    u32::try_from(packets.max(LEAST_PACKETS)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_connections_together_stay_below_the_limit() {
        for most in [1, 2, 32, 51, 52, 500, 4096] {
            let mut used = 0;
            for live in 0..most {
                let bytes = grant(live, most, used);
                assert!((LEAST..=MOST).contains(&bytes));
                used += bytes;
            }
            let total = used + most as u64 * APPLICATION;
            assert!(total <= TOTAL.max(most as u64 * (10 << 20)), "{most}: {total}");
        }
        assert_eq!(grant(0, 32, 0), MOST, "one connection gets the most");
    }

    #[test]
    fn small_packets_count_their_overhead() {
        assert_eq!(packets(MOST, 1400), 22_919);
        assert_eq!(packets(LEAST, 1), 16_131);
        assert_eq!(packets(LEAST, 65_459), 16);
    }
}
