//! Loss detection and recovery (RFC 5681, 6582, 6675, 6298, 8985, 6937, 5682, 3522, 3708, 3168).

use foundation::{Duration, Size};
use transport::congestion::CongestionConfig;
use transport::tcp::{CongestionState, Ecn, EcnMode, Flags, Profile, Recovery, TcpConfig};

use crate::tcp::rig::{Peer, Rig};

const MS: fn(u64) -> Duration = Duration::from_millis;
const NONE: [u32; 0] = [];

fn with(profile: Profile, recovery: Recovery, controller: &str) -> TcpConfig {
    TcpConfig {
        recovery: Some(recovery),
        congestion: Some(CongestionConfig::named(controller).unwrap()),
        ..TcpConfig::new(profile)
    }
}

/// Returns a server 100 ms after it sent segments 1 to 10 of 1000 bytes.
fn flight(config: &TcpConfig, sack: bool) -> Rig {
    let mut rig = Rig::server(config, sack);
    assert_eq!(rig.write(10_000).len(), 10);
    rig.wait(100);
    rig
}

#[test]
fn three_duplicate_acks_indicate_a_loss() {
    // RFC 5681, section 3.2, and limited transmit (RFC 3042) on the first two.
    let mut rig = Rig::server(&with(Profile::Rfc, Recovery::Newreno, "reno"), false);
    rig.write(20_000);
    rig.wait(100);
    assert_eq!(rig.starts(Peer::ack(1)), [10_001]);
    assert_eq!(rig.starts(Peer::ack(1)), [11_001]);
    assert_eq!(rig.starts(Peer::ack(1)), [1], "fast retransmit");
    let info = rig.info();
    assert_eq!(
        (info.congestion_state, info.window_packets),
        (CongestionState::Recovery, 5),
        "half of ten; limited transmit does not count"
    );
    // Each further duplicate is a delivered segment; new ones leave once the pipe is below the window.
    let mut sent = Vec::new();
    for _ in 0..8 {
        sent.extend(rig.starts(Peer::ack(1)));
    }
    assert_eq!(
        sent,
        [12_001, 13_001, 14_001, 15_001],
        "RFC 6582: ssthresh + 3 and one more for each duplicate"
    );
}

#[test]
fn duplicate_acks_send_nothing_without_limited_transmit() {
    let config = TcpConfig {
        limited_transmit: Some(false),
        ..with(Profile::Rfc, Recovery::Newreno, "reno")
    };
    let mut rig = Rig::server(&config, false);
    rig.write(20_000);
    rig.wait(100);
    assert_eq!(rig.starts(Peer::ack(1)), NONE);
    assert_eq!(rig.starts(Peer::ack(1)), NONE);
    assert_eq!(rig.starts(Peer::ack(1)), [1]);
}

#[test]
fn each_partial_ack_repairs_one_loss() {
    // RFC 6582, section 3.2, step 3: segments 1 and 4 of ten are lost.
    let mut rig = flight(&with(Profile::Rfc, Recovery::Newreno, "reno"), false);
    for _ in 0..3 {
        rig.exchange(Peer::ack(1));
    }
    rig.wait(100);
    assert_eq!(
        rig.starts(Peer::ack(3001)),
        [3001],
        "the partial ACK reveals the next loss"
    );
    assert_eq!(rig.info().congestion_state, CongestionState::Recovery);
    rig.wait(100);
    assert_eq!(rig.starts(Peer::ack(10_001)), NONE);
    assert_eq!(rig.info().unacked, 0);
    // Step 1: recovery ends above the recovery point, so that duplicates do not start another one.
    rig.write(1000);
    rig.wait(100);
    rig.exchange(Peer::ack(11_001));
    assert_eq!(rig.info().congestion_state, CongestionState::Open);
    assert_eq!(rig.connection.statistics().retransmissions, 2);
}

#[test]
fn three_sacked_segments_indicate_a_loss() {
    // RFC 6675, section 5: three segments above the hole.
    let mut rig = flight(&with(Profile::Rfc, Recovery::Sack, "reno"), true);
    assert_eq!(rig.starts(Peer::ack(1).sack(&[(1001, 2001)])), NONE);
    assert_eq!(rig.starts(Peer::ack(1).sack(&[(1001, 3001)])), NONE);
    assert_eq!(rig.starts(Peer::ack(1).sack(&[(1001, 4001)])), [1]);
    // A second hole (segment 5), also with three segments above.
    assert_eq!(rig.starts(Peer::ack(1).sack(&[(5001, 6001), (1001, 4001)])), NONE);
    assert_eq!(rig.starts(Peer::ack(1).sack(&[(5001, 7001), (1001, 4001)])), NONE);
    assert_eq!(
        rig.starts(Peer::ack(1).sack(&[(5001, 8001), (1001, 4001)])),
        [4001]
    );
    assert_eq!(rig.info().lost, 2);
    rig.wait(100);
    rig.exchange(Peer::ack(10_001));
    let info = rig.info();
    assert_eq!(
        (info.congestion_state, info.window_packets),
        (CongestionState::Open, 5)
    );
    assert_eq!(
        (info.lost, info.sacked, info.retransmitted, info.unacked),
        (0, 0, 0, 0)
    );
    // One of them was marked before a segment above it was lost: no further retransmission.
    assert_eq!(rig.connection.statistics().retransmissions, 2);
}

#[test]
fn rack_waits_a_quarter_of_the_minimum_rtt() {
    // RFC 8985, section 6.2, step 4: the last of ten arrives first; 25 ms and the timer granularity later
    // the others are lost.
    let mut rig = flight(&with(Profile::Linux, Recovery::RackTlp, "reno"), true);
    assert_eq!(rig.starts(Peer::ack(1).sack(&[(9001, 10_001)])), NONE);
    let sent = rig.run(60);
    let times: Vec<(u64, u32)> = sent.iter().map(|(at, out)| (*at, out.sequence)).collect();
    assert_eq!(
        times,
        [(27, 1)],
        "one segment first: the window follows deliveries (RFC 6937)"
    );
    assert_eq!(rig.info().lost, 9);
    // Late arrivals are not retransmitted.
    assert_eq!(rig.starts(Peer::ack(9001).sack(&[(9001, 10_001)])), NONE);
    assert_eq!(rig.info().lost, 0);
}

#[test]
fn rack_detects_lost_retransmissions() {
    // RFC 8985, section 3.2: a segment sent after a retransmission arrives, the retransmission does not.
    let mut rig = Rig::server(&with(Profile::Linux, Recovery::RackTlp, "reno"), true);
    rig.write(30_000);
    rig.wait(100);
    let mut sent = rig.starts(Peer::ack(1).sack(&[(1001, 4001)]));
    assert_eq!(sent[0], 1, "three above: no reordering window");
    for end in 5..=10 {
        rig.wait(1);
        sent.extend(rig.starts(Peer::ack(1).sack(&[(1001, end * 1000 + 1)])));
    }
    let new: Vec<u32> = sent[1..].to_vec();
    assert!(new.len() > 2 && new[0] == 10_001, "{new:?}");
    rig.wait(94);
    let again = rig.starts(Peer::ack(1).sack(&[(1001, 11_001)]));
    assert_eq!(again.first(), Some(&1), "{again:?}");
}

#[test]
fn probes_for_a_tail_loss() {
    // RFC 8985, section 7.2: after two round trips, and 200 ms more for a single segment.
    let mut rig = Rig::server(&with(Profile::Linux, Recovery::RackTlp, "reno"), true);
    rig.write(3000);
    let sent = rig.run(290);
    let probe: Vec<(u64, u32)> = sent.iter().map(|(at, out)| (*at, out.sequence)).collect();
    assert_eq!(probe, [(202, 2001)], "the last segment");
    // The probe repaired the loss of the last segment, so the window is reduced (section 7.4.2).
    let mut repaired = rig;
    repaired.exchange(Peer::ack(3001));
    repaired.write(1000);
    repaired.wait(100);
    repaired.exchange(Peer::ack(4001));
    assert_eq!(repaired.info().window_packets, 5, "{:?}", repaired.info());
    // New data serves as the probe.
    let mut rig = Rig::server(&with(Profile::Linux, Recovery::RackTlp, "reno"), true);
    rig.write(11_000);
    let sent = rig.run(290);
    let probe: Vec<(u64, u32)> = sent.iter().map(|(at, out)| (*at, out.sequence)).collect();
    assert_eq!(probe, [(202, 10_001)]);
}

#[test]
fn timeout_backs_off_and_restarts_from_one_segment() {
    // RFC 6298, sections 5.4 to 5.6; RFC 5681, section 3.1.
    let mut rig = flight(&with(Profile::Rfc, Recovery::Sack, "reno"), true);
    let sent = rig.run(7000);
    let times: Vec<(u64, u32)> = sent.iter().map(|(at, out)| (*at, out.sequence)).collect();
    // SRTT 100, RTTVAR 50: at least 1 s, then 2 s, then 4 s, from the send time 100 ms ago.
    assert_eq!(times, [(900, 1), (2900, 1), (6900, 1)]);
    let info = rig.info();
    assert_eq!(
        (info.window_packets, info.ssthresh_packets, info.backoff),
        (1, Some(5), 3)
    );
    // Slow start over the lost segments, without RTT samples (Karn).
    assert_eq!(rig.starts(Peer::ack(1001)), [1001, 2001]);
    assert_eq!(rig.info().backoff, 3);
    assert_eq!(rig.connection.statistics().timeouts, 3);
}

#[test]
fn timestamps_undo_a_spurious_timeout() {
    // RFC 3522 (Eifel) and RFC 4015: the ACK echoes a time from before the retransmission.
    let syn = Peer::syn().offering(Some(7), true).stamped(1, 0);
    let mut rig = Rig::accepting(&TcpConfig::new(Profile::Linux), &syn);
    rig.out();
    rig.wait(100);
    rig.receive(Peer::ack(1).stamped(2, 0));
    rig.write(9880);
    let first = rig.run(600);
    assert!(first.len() == 2, "a probe and a timeout: {first:?}");
    assert_eq!(rig.info().window_packets, 1);
    // The segments sent at 100 ms were only late.
    rig.exchange(Peer::ack(989).stamped(3, 100));
    let info = rig.info();
    assert_eq!(
        (info.congestion_state, info.window_packets >= 10),
        (CongestionState::Open, true),
        "{info:?}"
    );
    assert_eq!(info.lost, 0);
}

#[test]
fn frto_undoes_a_spurious_timeout_without_timestamps() {
    // RFC 5682, section 3.1: new data after the first ACK, and no retransmission if the next ACK advances.
    let config = TcpConfig {
        tail_loss_probe: Some(false),
        ..with(Profile::Linux, Recovery::RackTlp, "reno")
    };
    let mut rig = Rig::server(&config, true);
    rig.write(40_000);
    let timeout = rig.run(350);
    assert_eq!((timeout.len(), timeout[0].1.sequence), (1, 1));
    // Step 2b.
    assert_eq!(rig.starts(Peer::ack(1001)), [10_001, 11_001]);
    // Step 3b: an original segment arrives.
    let next = rig.starts(Peer::ack(2001));
    assert!(next.iter().all(|&start| start >= 12_001), "{next:?}");
    assert_eq!(rig.info().congestion_state, CongestionState::Open);
    assert_eq!(rig.connection.statistics().retransmissions, 1);
    // Step 3a: a duplicate ACK; the timeout was genuine.
    let mut rig = Rig::server(&config, true);
    rig.write(40_000);
    rig.run(350);
    rig.exchange(Peer::ack(1001));
    let again = rig.starts(Peer::ack(1001).sack(&[(10_001, 11_001)]));
    assert_eq!(again.first(), Some(&1001), "{again:?}");
}

#[test]
fn dsacks_undo_a_spurious_recovery() {
    // RFC 3708: the retransmission arrives in addition to the late original.
    let mut rig = flight(&with(Profile::Linux, Recovery::RackTlp, "reno"), true);
    assert_eq!(rig.starts(Peer::ack(1).sack(&[(1001, 4001)])), [1]);
    rig.wait(5);
    rig.exchange(Peer::ack(4001));
    rig.wait(100);
    rig.exchange(Peer::ack(4001).sack(&[(1, 1001)]));
    let info = rig.info();
    assert_eq!(
        (info.congestion_state, info.window_packets >= 10),
        (CongestionState::Open, true),
        "{info:?}"
    );
    assert!(rig.connection.statistics().spurious_retransmissions > 0);
}

#[test]
fn marks_reduce_the_window_once_per_round_trip() {
    // RFC 3168, sections 6.1.2 and 6.1.3.
    let config = TcpConfig {
        ecn: Some(EcnMode::Classic),
        ..with(Profile::Linux, Recovery::RackTlp, "reno")
    };
    let mut rig = Rig::accepting(
        &config,
        &Peer::syn().with(Flags::ECE | Flags::CWR).offering(None, true),
    );
    rig.out();
    rig.wait(100);
    rig.receive(Peer::ack(1));
    let out = rig.write(40_000);
    assert!(out.iter().all(|o| o.packet.segment.ecn == Ecn::Ect0));
    rig.wait(100);
    let reduced = rig.exchange(Peer::ack(2001).with(Flags::ECE));
    assert_eq!(rig.info().congestion_state, CongestionState::Cwr);
    assert_eq!(rig.info().ssthresh_packets, Some(5));
    let mut after = reduced;
    for i in 3..=10 {
        after.extend(rig.exchange(Peer::ack(i * 1000 + 1).with(Flags::ECE)));
    }
    assert_eq!(
        rig.info().ssthresh_packets,
        Some(5),
        "one reduction per round trip"
    );
    let marked = after.iter().filter(|o| o.flags.contains(Flags::CWR)).count();
    assert_eq!(
        (marked, after[0].flags.contains(Flags::CWR)),
        (1, true),
        "{after:?}"
    );
    // The receiver echoes a mark until the peer reports a reduction.
    let echo = rig.exchange(Peer::ack(10_001).data(1000).marked(Ecn::Ce));
    assert!(echo.iter().all(|o| o.flags.contains(Flags::ECE)));
    let echo = rig.exchange(Peer::ack(10_001).from(1001).data(1000).marked(Ecn::Ect0));
    assert!(echo.iter().all(|o| o.flags.contains(Flags::ECE)));
    let quiet = rig.exchange(Peer::ack(10_001).from(2001).data(1000).with(Flags::CWR));
    assert!(!quiet.is_empty() && quiet.iter().all(|o| !o.flags.contains(Flags::ECE)));
}

#[test]
fn retransmissions_and_acks_are_not_ecn_capable() {
    // RFC 3168, sections 6.1.4 and 6.1.5.
    let config = TcpConfig {
        ecn: Some(EcnMode::Classic),
        ..with(Profile::Linux, Recovery::RackTlp, "reno")
    };
    let mut rig = Rig::accepting(
        &config,
        &Peer::syn().with(Flags::ECE | Flags::CWR).offering(None, true),
    );
    assert_eq!(rig.out()[0].packet.segment.ecn, Ecn::NotEct);
    rig.wait(100);
    rig.receive(Peer::ack(1));
    rig.write(10_000);
    rig.wait(100);
    let again = rig.exchange(Peer::ack(1).sack(&[(1001, 4001)]));
    assert_eq!((again[0].sequence, again[0].packet.segment.ecn), (1, Ecn::NotEct));
    let ack = rig.exchange(Peer::ack(1).data(500));
    assert_eq!(ack[0].packet.segment.ecn, Ecn::NotEct);
}

#[test]
fn smaller_path_mtu_splits_and_retransmits_segments() {
    // RFC 1191, section 6.4 and RFC 8201: no congestion, and no wait for a timeout.
    let mut rig = flight(&with(Profile::Linux, Recovery::RackTlp, "reno"), true);
    rig.connection.handle_path_mtu(rig.now, 640);
    let out = rig.out();
    assert_eq!((out[0].sequence, out[0].length, out[1].sequence), (1, 600, 601));
    assert!(out.iter().all(|o| o.length <= 600));
    assert_eq!(rig.info().segment, 600);
    // All data arrives.
    let mut acknowledged = 1;
    for _ in 0..100 {
        acknowledged = out
            .iter()
            .map(|o| o.sequence + o.length)
            .max()
            .unwrap()
            .max(acknowledged);
        rig.wait(1);
        let more = rig.exchange(Peer::ack(acknowledged));
        acknowledged = more
            .iter()
            .map(|o| o.sequence + o.length)
            .max()
            .unwrap_or(acknowledged);
    }
    assert_eq!((acknowledged, rig.info().unacked), (10_001, 0));
    assert_eq!(rig.info().ssthresh_packets, None, "no reduction");
}

#[test]
fn window_restarts_after_idle() {
    // RFC 5681, section 4.1; Linux halves the window per idle RTO, down to the initial window.
    let config = with(Profile::Linux, Recovery::RackTlp, "reno");
    let mut rig = flight(&config, true);
    rig.exchange(Peer::ack(10_001));
    assert_eq!(rig.info().window_packets, 20);
    rig.wait(5000);
    assert_eq!(rig.write(30_000).len(), 10);
    // Not with slow_start_after_idle = false.
    let mut rig = flight(
        &TcpConfig {
            slow_start_after_idle: Some(false),
            ..config
        },
        true,
    );
    rig.exchange(Peer::ack(10_001));
    rig.wait(5000);
    assert_eq!(rig.write(30_000).len(), 20);
}

#[test]
fn unused_window_does_not_grow() {
    // RFC 7661; in slow start Linux grows the window to twice its used part.
    let mut rig = Rig::server(&with(Profile::Linux, Recovery::RackTlp, "reno"), true);
    for i in 0..5 {
        rig.write(2000);
        rig.wait(100);
        rig.exchange(Peer::ack(2001 + i * 2000));
    }
    assert_eq!(rig.info().window_packets, 10);
}

#[test]
fn pacing_spreads_segments() {
    let mut rig = Rig::server(&with(Profile::Linux, Recovery::RackTlp, "bbr"), true);
    rig.write(10_000);
    rig.wait(100);
    rig.connection.write(rig.now, 50_000);
    let out = rig.starts(Peer::ack(10_001));
    assert!(out.len() < 10, "{out:?}");
    let later = rig.run(50);
    assert!(later.len() > 2 && later.last().unwrap().0 > 10, "{later:?}");
}

#[test]
fn retransmits_data_that_the_peer_reneged_on() {
    // RFC 2018, section 8: the peer may have discarded SACKed data by a timeout.
    let config = TcpConfig {
        tail_loss_probe: Some(false),
        ..with(Profile::Linux, Recovery::RackTlp, "reno")
    };
    let mut rig = flight(&config, true);
    rig.exchange(Peer::ack(1).sack(&[(1001, 10_001)]));
    rig.wait(100);
    // The first segment arrives, and the peer discards the rest.
    rig.exchange(Peer::ack(1001));
    let mut acknowledged = 1001;
    for _ in 0..60 {
        for (_, out) in rig.run(500) {
            if out.sequence == acknowledged {
                acknowledged += out.length;
            }
        }
        rig.receive(Peer::ack(acknowledged));
    }
    assert_eq!(acknowledged, 10_001);
}

#[test]
fn initial_window_and_fixed_controller() {
    let config = TcpConfig {
        initial_window: Some(4),
        ..TcpConfig::new(Profile::Linux)
    };
    let mut rig = Rig::server(&config, true);
    assert_eq!(rig.write(50_000).len(), 4);
    let config = TcpConfig {
        initial_window: Some(4),
        send_buffer: Some(Size::from_bytes(1 << 30)),
        ..with(Profile::Linux, Recovery::RackTlp, "fixed")
    };
    let mut rig = Rig::server(&config, true);
    assert_eq!(
        rig.write(500_000).len(),
        64,
        "a fixed window has no initial window"
    );
    assert!(rig.info().rto >= MS(200));
}
