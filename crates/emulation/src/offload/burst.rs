//! How much hosts may pass at a time.

use foundation::Duration;
use network::Topology;

/// A burst lasts at most this long on the slowest link.
const LONGEST: Duration = Duration::from_micros(100);
/// Bytes of the largest packet that the kernel accepts (RFC 791, section 3.1).
const MOST: u64 = 65_535;

/// Returns the most bytes that hosts may pass as one packet: what the slowest link transmits in 100 µs. A larger burst
/// would enter the network at once, while simulated (and paced) hosts send segments one by one.
pub fn most_bytes(topology: &Topology) -> u32 {
    let rates = topology
        .links()
        .iter()
        .filter_map(|link| link.spec.capacity.mean_rate());
    rates.min().map_or(MOST, |rate| rate.bytes_in(LONGEST).min(MOST)) as u32
}

/// Returns the number of packets of `mtu` bytes in a burst; 1 means that hosts send packets one by one.
pub fn packets(most_bytes: u32, mtu: u32) -> u32 {
    (most_bytes / mtu).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use network::PathConfig;

    fn packets_of(keys: &str) -> u32 {
        let path: PathConfig = serde_json::from_str(keys).unwrap();
        let links = path.links(&mut |_| Err("no files".into())).unwrap();
        packets(most_bytes(&Topology::chain(&links)), 1500)
    }

    #[test]
    fn the_slowest_link_limits_a_burst() {
        assert_eq!(packets_of(r#"{"delay": "5ms"}"#), 43);
        assert_eq!(packets_of(r#"{"rate": "10Gbit/s"}"#), 43);
        assert_eq!(packets_of(r#"{"rate": "1Gbit/s"}"#), 8);
        assert_eq!(packets_of(r#"{"rate": "240Mbit/s"}"#), 2);
        assert_eq!(packets_of(r#"{"rate": "239Mbit/s"}"#), 1);
        assert_eq!(
            packets_of(r#"{"rate": "1Gbit/s", "reverse": {"rate": "1Mbit/s"}}"#),
            1
        );
        assert_eq!(
            packets_of(r#"{"hops": [{"delay": "1ms"}, {"rate": "500Mbit/s"}]}"#),
            4
        );
    }
}
