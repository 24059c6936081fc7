//! Connection setup and option negotiation (RFC 9293, section 3.5; RFC 7323; RFC 2018; RFC 3168).

use foundation::Duration;
use transport::tcp::{EcnMode, Error, Event, Flags, Profile, State, TcpConfig};

use crate::tcp::rig::{Peer, Rig};

fn linux() -> TcpConfig {
    TcpConfig::new(Profile::Linux)
}

#[test]
fn options_need_both_ends() {
    // A SYN without options: 536 bytes by default (RFC 9293, section 3.7.1).
    let mut syn = Peer::syn();
    syn.mss = None;
    let mut rig = Rig::accepting(&linux(), &syn);
    let answer = rig.out()[0];
    assert_eq!(answer.flags, Flags::SYN | Flags::ACK);
    let options = answer.options();
    assert_eq!((options.mss, options.window_scale), (Some(1460), None));
    assert!(!options.sack_permitted && options.timestamps.is_none());
    rig.receive(Peer::ack(1));
    assert_eq!(rig.info().segment, 536);
    // All options: timestamps take 12 bytes of each segment (RFC 6691).
    let syn = Peer::syn().offering(Some(7), true).stamped(500, 0);
    let mut rig = Rig::accepting(&linux(), &syn);
    let answer = rig.out()[0];
    assert_eq!(
        answer.options().timestamps.unwrap().echo,
        500,
        "RFC 7323, section 3.2"
    );
    assert_eq!(answer.options().window_scale, Some(7));
    rig.receive(Peer::ack(1).stamped(501, 0).window(10));
    assert_eq!((rig.info().segment, rig.info().send_window), (988, 10 << 7));
    assert!(rig.info().sack && rig.info().timestamps);
}

#[test]
fn a_window_shift_beyond_14_is_14() {
    // RFC 7323, section 2.3.
    let mut rig = Rig::accepting(&linux(), &Peer::syn().offering(Some(200), true));
    rig.out();
    rig.receive(Peer::ack(1).window(1));
    assert_eq!(rig.info().send_window, 1 << 14);
}

#[test]
fn simultaneous_open_succeeds() {
    // RFC 9293, section 3.5, figure 7.
    let mut rig = Rig::client(&linux());
    assert_eq!(rig.out()[0].flags, Flags::SYN);
    let answer = rig.exchange(Peer::syn().offering(Some(7), true));
    assert_eq!(rig.state(), State::SynReceived);
    assert_eq!(
        (answer[0].flags, answer[0].sequence),
        (Flags::SYN | Flags::ACK, 0)
    );
    let mut theirs = Peer::syn().offering(Some(7), true);
    theirs.acknowledgement = 1;
    rig.receive(theirs.flags(Flags::SYN | Flags::ACK));
    assert_eq!(rig.state(), State::Established);
    rig.out();
    assert_eq!(rig.events, [Event::Connected]);
}

#[test]
fn syn_is_retransmitted_until_the_limit() {
    // RFC 6298, section 5.5: the timeout doubles each time.
    let config = TcpConfig {
        syn_retries: Some(3),
        ..TcpConfig::new(Profile::Rfc)
    };
    let mut rig = Rig::client(&config);
    let times: Vec<u64> = rig.run(60_000).iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0, 1000, 3000, 7000]);
    assert_eq!(rig.events, [Event::Failed(Error::TimedOut)]);
    // Linux retransmits four times before back-off (net.ipv4.tcp_syn_linear_timeouts), and six times more.
    let mut rig = Rig::client(&linux());
    let times: Vec<u64> = rig.run(130_999).iter().map(|(at, _)| *at / 1000).collect();
    assert_eq!(times, [0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67]);
    assert_eq!(rig.events, []);
    assert_eq!(rig.run(1), []);
    assert_eq!(rig.events, [Event::Failed(Error::TimedOut)]);
}

#[test]
fn initial_window_is_one_segment_after_syn_loss() {
    // RFC 5681, section 3.1; RFC 6298, section 5.7: the timeout is 3 s without a sample.
    let mut rig = Rig::client(&TcpConfig::new(Profile::Rfc));
    rig.run(1500);
    let mut answer = Peer::syn().flags(Flags::SYN | Flags::ACK);
    answer.acknowledgement = 1;
    rig.exchange(answer);
    assert_eq!(rig.info().window_packets, 1);
    assert_eq!(rig.info().rto, Duration::from_secs(3));
    // Linux keeps the window after one retransmission (`tcp_init_transfer`).
    for (ms, window) in [(1500, 10), (2500, 1)] {
        let mut rig = Rig::client(&linux());
        rig.run(ms);
        rig.exchange(answer);
        assert_eq!(rig.info().window_packets, window, "after {ms} ms");
    }
}

#[test]
fn a_reset_elsewhere_in_the_window_is_challenged_in_syn_received() {
    // RFC 9293, section 3.10.7.4; RFC 5961, section 3.2.
    for profile in [Profile::Linux, Profile::Rfc] {
        let mut rig = Rig::accepting(&TcpConfig::new(profile), &Peer::syn());
        rig.out();
        let reset = Peer::ack(0).flags(Flags::RST);
        assert_eq!(rig.exchange(reset.from(100_000)), [], "{profile:?}");
        let answer = rig.exchange(reset.from(500));
        assert_eq!(
            (answer[0].flags, answer[0].sequence, answer[0].acknowledgement),
            (Flags::ACK, 1, 1),
            "{profile:?}"
        );
        assert_eq!((answer.len(), rig.state()), (1, State::SynReceived));
        rig.exchange(reset.from(1));
        assert_eq!(rig.events, [Event::Failed(Error::Refused)], "{profile:?}");
    }
}

#[test]
fn syn_ack_for_another_syn_is_reset() {
    // RFC 9293, section 3.5.2, figure 8.
    let mut rig = Rig::client(&linux());
    rig.out();
    let mut old = Peer::syn().flags(Flags::SYN | Flags::ACK);
    old.acknowledgement = 77;
    let reset = rig.exchange(old);
    assert_eq!((reset[0].flags, reset[0].sequence), (Flags::RST, 77));
    assert_eq!(rig.state(), State::SynSent);
}

#[test]
fn reset_refuses_the_connection() {
    let mut rig = Rig::client(&linux());
    rig.out();
    // A reset without an acknowledgement is ignored.
    assert_eq!(rig.exchange(Peer::ack(0).from(0).flags(Flags::RST)), []);
    assert_eq!(rig.state(), State::SynSent);
    rig.exchange(Peer::ack(1).from(0).flags(Flags::RST | Flags::ACK));
    assert_eq!(
        (rig.state(), &rig.events[..]),
        (State::Closed, &[Event::Failed(Error::Refused)][..])
    );
}

#[test]
fn negotiates_ecn() {
    // RFC 3168, section 6.1.1.
    let on = TcpConfig {
        ecn: Some(EcnMode::Classic),
        ..linux()
    };
    let mut rig = Rig::client(&on);
    assert_eq!(rig.out()[0].flags, Flags::SYN | Flags::ECE | Flags::CWR);
    let mut answer = Peer::syn().flags(Flags::SYN | Flags::ACK | Flags::ECE);
    answer.acknowledgement = 1;
    rig.exchange(answer);
    assert!(rig.info().ecn);
    // By default Linux accepts ECN but does not request it.
    let mut rig = Rig::client(&linux());
    assert_eq!(rig.out()[0].flags, Flags::SYN);
    let asking = Peer::syn().with(Flags::ECE | Flags::CWR);
    let mut rig = Rig::accepting(&linux(), &asking);
    assert_eq!(rig.out()[0].flags, Flags::SYN | Flags::ACK | Flags::ECE);
    let mut rig = Rig::accepting(&TcpConfig::new(Profile::Rfc), &asking);
    assert_eq!(rig.out()[0].flags, Flags::SYN | Flags::ACK);
}

#[test]
fn repeated_syn_gets_another_syn_ack() {
    let mut rig = Rig::accepting(&linux(), &Peer::syn());
    assert_eq!(rig.out().len(), 1);
    let again = rig.exchange(Peer::syn());
    assert_eq!((again.len(), again[0].flags), (1, Flags::SYN | Flags::ACK));
    // Any other ACK is answered with a reset (RFC 9293, section 3.10.7.4).
    let reset = rig.exchange(Peer::ack(500));
    assert_eq!((reset[0].flags, reset[0].sequence), (Flags::RST, 500));
    assert_eq!(rig.state(), State::SynReceived);
}

#[test]
fn close_before_the_syn_ack_abandons_the_syn() {
    // RFC 9293, section 3.10.4: no FIN, no reset.
    let mut rig = Rig::client(&linux());
    rig.out();
    rig.connection.close(rig.now);
    assert_eq!((rig.out(), rig.state()), (vec![], State::Closed));
    let mut answer = Peer::syn().flags(Flags::SYN | Flags::ACK);
    answer.acknowledgement = 1;
    let reset = rig.exchange(answer);
    assert_eq!((reset[0].flags, reset[0].sequence), (Flags::RST, 1));
}

#[test]
fn data_written_before_the_handshake_leaves_after_it() {
    let mut rig = Rig::client(&linux());
    assert_eq!(rig.connection.write(rig.now, 100), 100);
    rig.connection.finish(rig.now);
    assert_eq!(rig.connection.write(rig.now, 5), 0, "no write after the close");
    assert_eq!(rig.out().len(), 1);
    let mut answer = Peer::syn().flags(Flags::SYN | Flags::ACK);
    answer.acknowledgement = 1;
    let out = rig.exchange(answer);
    assert_eq!((out.len(), out[0].length), (1, 100));
    assert!(out[0].flags.contains(Flags::FIN | Flags::ACK));
    assert_eq!(rig.state(), State::FinWait1);
}

#[test]
fn only_linux_closes_a_handshake_with_an_unreachable_peer() {
    // RFC 9293, section 3.9.2.2, MUST-56; `tcp_v4_err` of Linux.
    for (profile, closes) in [(Profile::Linux, true), (Profile::Rfc, false)] {
        let mut rig = Rig::client(&TcpConfig::new(profile));
        assert_eq!(rig.out().len(), 1);
        assert_eq!(rig.connection.handle_unreachable(false), closes, "{profile:?}");
        let state = if closes { State::Closed } else { State::SynSent };
        assert_eq!((rig.state(), rig.out().len()), (state, 0), "{profile:?}");
    }
    let mut established = Rig::server(&linux(), true);
    assert!(!established.connection.handle_unreachable(false));
    assert_eq!(established.state(), State::Established);
}
