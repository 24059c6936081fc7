//! DCTCP's feedback (RFC 8257, sections 3.2 and 3.3): each ACK covers segments with the same mark.

use foundation::{Duration, Instant};
use transport::congestion::CongestionConfig;
use transport::tcp::{Ecn, EcnMode, Flags, Profile, TcpConfig};

use super::rig::{Out, Peer, Rig};

fn dctcp(profile: Profile) -> TcpConfig {
    TcpConfig {
        congestion: Some(CongestionConfig::named("dctcp").unwrap()),
        ..TcpConfig::new(profile)
    }
}

/// Returns a connection that accepted ECN.
fn server(config: &TcpConfig) -> Rig {
    let syn = Peer::syn().with(Flags::ECE | Flags::CWR).offering(None, true);
    let mut rig = Rig::accepting(config, &syn);
    assert_eq!(rig.out()[0].flags, Flags::SYN | Flags::ACK | Flags::ECE);
    rig.wait(100);
    rig.receive(Peer::ack(1));
    assert_eq!(rig.out(), []);
    rig
}

/// Returns the acknowledged bytes of each segment and whether it has ECE.
fn echoes(out: &[Out]) -> Vec<(u32, bool)> {
    let echo = |out: &Out| (out.acknowledgement - 1, out.flags.contains(Flags::ECE));
    out.iter().map(echo).collect()
}

/// RFC 8257, section 3.2, figure 1, with an ACK for every second segment.
#[test]
fn acknowledges_at_once_when_the_mark_changes() {
    let mut rig = server(&dctcp(Profile::Rfc));
    let mut arrive = |number: u32, ecn: Ecn, flags: Flags| {
        let segment = Peer::ack(1)
            .from(1 + 1000 * number)
            .data(1000)
            .marked(ecn)
            .with(flags);
        echoes(&rig.exchange(segment))
    };
    let none = Flags::ACK;
    assert_eq!(arrive(0, Ecn::Ect0, none), []);
    // The delayed ACK reports the segment without a mark, the second one the mark.
    assert_eq!(arrive(1, Ecn::Ce, none), [(1000, false), (2000, true)]);
    assert_eq!(arrive(2, Ecn::Ce, none), []);
    assert_eq!(arrive(3, Ecn::Ce, none), [(4000, true)]);
    // No ACK is delayed, so one is enough.
    assert_eq!(arrive(4, Ecn::Ect0, none), [(5000, false)]);
    assert_eq!(arrive(5, Ecn::Ce, none), [(6000, true)]);
    // CWR does not end the echo.
    assert_eq!(arrive(6, Ecn::Ce, Flags::CWR), []);
    assert_eq!(arrive(7, Ecn::Ect0, Flags::CWR), [(7000, true), (8000, false)]);
}

#[test]
fn congestion_dctcp_requests_ecn_unless_ecn_is_off() {
    for profile in [Profile::Linux, Profile::Rfc, Profile::Ns3] {
        let config = dctcp(profile);
        let mut rig = Rig::client(&config);
        assert_eq!(rig.out()[0].flags, Flags::SYN | Flags::ECE | Flags::CWR);
        let off = TcpConfig {
            ecn: Some(EcnMode::Off),
            ..config
        };
        assert_eq!(Rig::client(&off).out()[0].flags, Flags::SYN);
    }
}

/// RFC 8257, section 3.3: bytes that an ACK with ECE acknowledges are marked bytes.
#[test]
fn the_sender_counts_marked_bytes() {
    let mut rig = server(&dctcp(Profile::Rfc));
    let alpha = |rig: &Rig| {
        let mut alpha = f64::NAN;
        rig.connection.controller().metrics(&mut |name, value| {
            if name == "alpha" {
                alpha = value;
            }
        });
        alpha
    };
    assert_eq!(rig.write(10_000).len(), 10);
    assert!(rig.out().iter().all(|out| out.packet.segment.ecn == Ecn::Ect0));
    rig.now += Duration::from_millis(10);
    // The first window of data ends with its first ACK.
    rig.exchange(Peer::ack(1001));
    assert_eq!(alpha(&rig), 0.9375);
    rig.write(10_000);
    let window = rig.connection.controller().window();
    rig.exchange(Peer::ack(4001).with(Flags::ECE));
    // Half of alpha, before the window of data ends.
    let reduced = (window as f64 * (1.0 - 0.9375 / 2.0)) as u64;
    assert_eq!(rig.connection.controller().window(), reduced);
    rig.exchange(Peer::ack(10_001));
    assert_eq!(alpha(&rig), 0.9375);
    rig.now += Duration::from_millis(10);
    // Three of ten segments were marked in this window of data, which ends with the first segment sent in it.
    rig.exchange(Peer::ack(11_001));
    assert_eq!(alpha(&rig), 0.9375 * 0.9375 + 0.0625 * 3.0 / 10.0);
    assert!(rig.now > Instant::ZERO);
}
