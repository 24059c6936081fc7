//! Consistency of segments on the wire between two TCPs.

use foundation::Duration;
use transport::tcp::{Event, Flags, Profile, TcpConfig};

use crate::tcp::pair::{Fate, Pair, Side};

const PROFILES: [Profile; 3] = [Profile::Linux, Profile::Rfc, Profile::Ns3];
const MS: fn(u64) -> Duration = Duration::from_millis;

/// Transfers data both ways with some losses.
fn transfer(profile: Profile) -> Pair {
    let mut count = 0_u32;
    let path = move |_, _, _: &transport::tcp::Segment| {
        count += 1;
        if count % 97 == 50 {
            Fate::lost()
        } else {
            Fate::arrives(MS(15))
        }
    };
    let config = TcpConfig::new(profile);
    let mut pair = Pair::new(&config, &config, Box::new(path));
    for side in [Side::Client, Side::Server] {
        pair.end(side).to_write = 400_000;
        pair.end(side).finish = true;
    }
    pair.connect();
    assert!(pair.run_until(MS(100_000), |p| p.ends.iter().all(|end| end.saw(Event::Finished))));
    pair
}

#[test]
fn new_data_leaves_in_order_and_is_no_retransmission() {
    for profile in PROFILES {
        let pair = transfer(profile);
        for side in [Side::Client, Side::Server] {
            let mut end = 0;
            let (mut resent, mut resent_bytes) = (0, 0);
            for sent in pair.sent().iter().filter(|sent| sent.from == side) {
                let packet = &sent.packet;
                let length = u64::from(packet.segment.length);
                if length == 0 {
                    continue;
                }
                if packet.retransmission {
                    assert!(
                        packet.offset < end,
                        "{profile:?}: a retransmission of something new"
                    );
                    (resent, resent_bytes) = (resent + 1, resent_bytes + length);
                } else {
                    assert_eq!(packet.offset, end, "{profile:?}: a gap at {:?}", sent.at);
                    end = packet.offset + length;
                }
            }
            assert_eq!(end, 400_000);
            let statistics = pair.ends[side as usize].connection().statistics();
            assert_eq!(statistics.retransmissions, resent);
            assert_eq!(statistics.bytes_sent, 400_000 + resent_bytes);
        }
    }
}

#[test]
fn timestamps_acks_and_windows_never_move_back() {
    for profile in PROFILES {
        let pair = transfer(profile);
        for side in [Side::Client, Side::Server] {
            let (mut stamp, mut echo, mut acknowledged, mut edge) = (None, None, None, None);
            for sent in pair.sent().iter().filter(|sent| sent.from == side) {
                let segment = &sent.packet.segment;
                let stamps = segment.options.timestamps.expect("timestamps are negotiated");
                let older =
                    |new: u32, old: Option<u32>| old.is_some_and(|old| (new.wrapping_sub(old) as i32) < 0);
                assert!(!older(stamps.value, stamp), "RFC 7323, section 5.4");
                stamp = Some(stamps.value);
                if !segment.has(Flags::ACK) {
                    continue;
                }
                assert!(!older(stamps.echo, echo));
                echo = Some(stamps.echo);
                let ack = segment.acknowledgement.0;
                assert!(!older(ack, acknowledged), "an acknowledgement moves back");
                acknowledged = Some(ack);
                if !segment.has(Flags::SYN) {
                    let shift = pair.ends[side as usize].connection().info().receive_scale;
                    let right = ack.wrapping_add(u32::from(segment.window) << shift);
                    assert!(!older(right, edge), "RFC 9293, section 3.8.6: the window shrinks");
                    edge = Some(right);
                }
            }
        }
    }
}

#[test]
fn payload_leaves_room_for_the_options() {
    // RFC 6691: the segment with all its options fits the MSS announced.
    for profile in PROFILES {
        let pair = transfer(profile);
        let fits = |sent: &crate::tcp::pair::Sent| {
            let segment = &sent.packet.segment;
            segment.length + segment.header_length() <= 1460 + 20
        };
        assert!(pair.sent().iter().all(fits));
        let with_blocks = |sent: &&crate::tcp::pair::Sent| {
            let segment = &sent.packet.segment;
            segment.length > 0 && !segment.options.sack.is_empty()
        };
        assert!(
            pair.sent().iter().filter(with_blocks).count() > 0,
            "data with SACK blocks"
        );
    }
}
