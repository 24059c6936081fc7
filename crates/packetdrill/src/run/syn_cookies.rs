//! SYN cookies (`tcp_syncookies=2`): what a listener that keeps no state remembers of a SYN (Linux's `syncookies.c`).

use transport::tcp::Segment;

/// The segment sizes that a cookie represents, with IPv4 and IPv6.
const SIZES: [[u16; 4]; 2] = [[536, 1300, 1440, 1460], [1220, 1420, 1440, 8940]];

/// Returns a SYN with the options that its cookie preserves. The timestamp of the SYN-ACK carries the flags of the others.
pub fn remembered(syn: &Segment, ipv6: bool) -> Segment {
    let mut syn = *syn;
    let sizes = SIZES[usize::from(ipv6)];
    let smallest = sizes[0];
    syn.options.mss = syn.options.mss.map(|mss| {
        let below = sizes.into_iter().rev().find(|size| *size <= mss);
        below.unwrap_or(smallest)
    });
    if syn.options.timestamps.is_none() {
        syn.options.sack_permitted = false;
        syn.options.window_scale = None;
    }
    syn
}

#[cfg(test)]
mod tests {
    use super::*;
    use transport::tcp::{Flags, SequenceNumber, Timestamps};

    #[test]
    fn a_cookie_holds_one_of_four_sizes_and_no_other_option_without_timestamps() {
        let mut syn = Segment::bare(SequenceNumber(0), SequenceNumber(0), Flags::SYN);
        (syn.options.mss, syn.options.sack_permitted) = (Some(8960), true);
        let kept = remembered(&syn, false);
        assert_eq!(
            (kept.options.mss, kept.options.sack_permitted),
            (Some(1460), false)
        );
        syn.options.timestamps = Some(Timestamps { value: 1, echo: 0 });
        let kept = remembered(&syn, true);
        assert_eq!(
            (kept.options.mss, kept.options.sack_permitted),
            (Some(8940), true)
        );
        syn.options.mss = Some(500);
        assert_eq!(remembered(&syn, false).options.mss, Some(536));
    }
}
