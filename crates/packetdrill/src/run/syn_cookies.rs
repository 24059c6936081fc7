//! SYN cookies (`tcp_syncookies=2`): the part of a SYN that a cookie preserves (Linux's `syncookies.c`).

use transport::tcp::{Flags, Segment};

/// The segment sizes that a cookie represents, with IPv4 and IPv6.
const SIZES: [[u16; 4]; 2] = [[536, 1300, 1440, 1460], [1220, 1420, 1440, 8940]];

/// Returns a SYN with the options that its cookie preserves. The timestamp of the SYN-ACK carries the use of SACK, the window
/// scale and ECN, so that none of them is used without timestamps; Fast Open never is.
pub fn preserved(syn: &Segment, ipv6: bool) -> Segment {
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
        syn.flags = syn.flags.without(Flags::from_ace(7));
    }
    syn
}
#[cfg(test)]
mod tests {
    use super::*;
    use transport::tcp::{SequenceNumber, Timestamps};

    #[test]
    fn a_cookie_represents_four_sizes_and_only_timestamps_carry_the_rest() {
        let flags = Flags::SYN | Flags::ECE | Flags::CWR;
        let mut syn = Segment::bare(SequenceNumber(0), SequenceNumber(0), flags);
        (syn.options.mss, syn.options.sack_permitted) = (Some(8960), true);
        let kept = preserved(&syn, false);
        assert_eq!(
            (kept.options.mss, kept.options.sack_permitted, kept.flags),
            (Some(1460), false, Flags::SYN)
        );
        syn.options.timestamps = Some(Timestamps { value: 1, echo: 0 });
        let kept = preserved(&syn, true);
        assert_eq!(
            (kept.options.mss, kept.options.sack_permitted, kept.flags),
            (Some(8940), true, flags)
        );
        syn.options.mss = Some(500);
        assert_eq!(preserved(&syn, false).options.mss, Some(536));
    }
}
