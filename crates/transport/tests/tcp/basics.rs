//! Connection setup, data transfer and close.

use foundation::Duration;
use transport::tcp::{Event, Flags, Profile, State, TcpConfig};

use crate::tcp::pair::{Fate, Pair, Side};

const PROFILES: [Profile; 3] = [Profile::Linux, Profile::Rfc, Profile::Ns3];
const MS: fn(u64) -> Duration = Duration::from_millis;

#[test]
fn transfers_a_file_and_closes() {
    for profile in PROFILES {
        let mut pair = Pair::lossless(&TcpConfig::new(profile), MS(10));
        pair.end(Side::Client).to_write = 1_000_000;
        pair.end(Side::Client).finish = true;
        pair.end(Side::Server).finish = true;
        pair.open(Side::Client);
        let done = pair.run_until(MS(10_000), |p| p.ends.iter().all(|end| end.saw(Event::Finished)));
        assert!(
            done,
            "{profile:?}: {:?} {:?}",
            pair.ends[0].state(),
            pair.ends[1].state()
        );
        assert_eq!(pair.ends[1].received, 1_000_000);
        let statistics = pair.ends[0].connection().statistics();
        assert_eq!(statistics.retransmissions, 0, "{profile:?}");
        assert_eq!(statistics.bytes_acknowledged, 1_000_000);
        let states = [pair.ends[0].state(), pair.ends[1].state()];
        assert!(states.contains(&State::TimeWait), "{states:?}");
        pair.run_for(MS(500_000));
        assert_eq!(pair.ends[0].state(), State::Closed);
        assert_eq!(pair.next_time(), None);
    }
}

#[test]
fn recovers_from_losses() {
    for profile in PROFILES {
        let mut data = 0;
        let path = move |_, side, segment: &transport::tcp::Segment| {
            data += u32::from(side == Side::Client && segment.length > 0);
            if data % 40 == 7 && side == Side::Client {
                data += 1;
                return Fate::lost();
            }
            Fate::arrives(MS(20))
        };
        let config = TcpConfig::new(profile);
        let mut pair = Pair::new(&config, &config, Box::new(path));
        pair.end(Side::Client).to_write = 3_000_000;
        pair.end(Side::Client).finish = true;
        pair.end(Side::Server).finish = true;
        pair.open(Side::Client);
        let done = pair.run_until(MS(120_000), |p| p.ends.iter().all(|end| end.saw(Event::Finished)));
        let statistics = pair.ends[0].connection().statistics();
        eprintln!(
            "{profile:?}: {:?} {} resent, {} timeouts",
            pair.now, statistics.retransmissions, statistics.timeouts
        );
        assert!(
            done,
            "{profile:?}: {:?} {:?}",
            pair.ends[0].state(),
            pair.ends[1].state()
        );
        assert_eq!(pair.ends[1].received, 3_000_000);
        assert!(statistics.retransmissions > 10);
    }
}

#[test]
fn syn_offers_the_configured_options() {
    let mut pair = Pair::lossless(&TcpConfig::new(Profile::Linux), MS(10));
    pair.connect();
    let sent = pair.sent();
    let syn = sent[0].packet.segment;
    assert_eq!((syn.flags, syn.header_length()), (Flags::SYN, 40));
    assert_eq!((syn.options.mss, syn.options.window_scale), (Some(1460), Some(7)));
    assert_eq!(syn.window, 64_240, "44 segments of 1460 bytes");
    assert_eq!(sent[1].packet.segment.flags, Flags::SYN | Flags::ACK);
    assert_eq!((sent[2].packet.segment.flags, sent.len()), (Flags::ACK, 3));
}
