//! Opening and what it settles (RFC 9293, section 3.5; RFC 7323; RFC 2018; RFC 3168).

use foundation::Duration;
use transport::tcp::{Error, Event, Flags, Profile, State, TcpConfig};

use crate::tcp::rig::{Peer, Rig};

fn linux() -> TcpConfig {
    TcpConfig::new(Profile::Linux)
}

#[test]
fn options_are_used_only_where_both_ask() {
    // A bare SYN: RFC 9293, section 3.7.1: 536 bytes where nothing else is said.
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
    // Everything: timestamps take 12 bytes of each segment (RFC 6691).
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
fn both_may_open_at_once() {
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
fn a_syn_is_sent_again_and_given_up() {
    // RFC 6298, section 5.5: doubled each time; RFC 9293 has the peer wait as long as the user wants.
    let config = TcpConfig {
        syn_retries: Some(3),
        ..TcpConfig::new(Profile::Rfc)
    };
    let mut rig = Rig::client(&config);
    let times: Vec<u64> = rig.run(60_000).iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0, 1000, 3000, 7000]);
    assert_eq!(rig.events, [Event::Failed(Error::TimedOut)]);
    // Linux repeats four times before it backs off (net.ipv4.tcp_syn_linear_timeouts), six times in all.
    let mut rig = Rig::client(&linux());
    let times: Vec<u64> = rig.run(300_000).iter().map(|(at, _)| *at / 1000).collect();
    assert_eq!(times, [0, 1, 2, 3, 4, 5, 7]);
}

#[test]
fn after_a_lost_syn_the_window_is_one_segment() {
    // RFC 5681, section 3.1; RFC 6298, section 5.7: the timeout is 3 s without a sample.
    let mut rig = Rig::client(&TcpConfig::new(Profile::Rfc));
    rig.run(1500);
    let mut answer = Peer::syn().flags(Flags::SYN | Flags::ACK);
    answer.acknowledgement = 1;
    rig.exchange(answer);
    assert_eq!(rig.info().window_packets, 1);
    assert_eq!(rig.info().rto, Duration::from_secs(3));
}

#[test]
fn an_answer_to_another_syn_is_reset() {
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
fn a_reset_refuses_the_connection() {
    let mut rig = Rig::client(&linux());
    rig.out();
    // One that acknowledges nothing is not believed.
    assert_eq!(rig.exchange(Peer::ack(0).from(0).flags(Flags::RST)), []);
    assert_eq!(rig.state(), State::SynSent);
    rig.exchange(Peer::ack(1).from(0).flags(Flags::RST | Flags::ACK));
    assert_eq!(
        (rig.state(), &rig.events[..]),
        (State::Closed, &[Event::Failed(Error::Refused)][..])
    );
}

#[test]
fn ecn_is_agreed_on() {
    // RFC 3168, section 6.1.1.
    let on = TcpConfig {
        ecn: Some(true),
        ..linux()
    };
    let mut rig = Rig::client(&on);
    assert_eq!(rig.out()[0].flags, Flags::SYN | Flags::ECE | Flags::CWR);
    let mut answer = Peer::syn().flags(Flags::SYN | Flags::ACK | Flags::ECE);
    answer.acknowledgement = 1;
    rig.exchange(answer);
    assert!(rig.info().ecn);
    // By default Linux agrees but does not ask.
    let mut rig = Rig::client(&linux());
    assert_eq!(rig.out()[0].flags, Flags::SYN);
    let asking = Peer::syn().with(Flags::ECE | Flags::CWR);
    let mut rig = Rig::accepting(&linux(), &asking);
    assert_eq!(rig.out()[0].flags, Flags::SYN | Flags::ACK | Flags::ECE);
    let mut rig = Rig::accepting(&TcpConfig::new(Profile::Rfc), &asking);
    assert_eq!(rig.out()[0].flags, Flags::SYN | Flags::ACK);
}

#[test]
fn a_repeated_syn_is_answered_again() {
    let mut rig = Rig::accepting(&linux(), &Peer::syn());
    assert_eq!(rig.out().len(), 1);
    let again = rig.exchange(Peer::syn());
    assert_eq!((again.len(), again[0].flags), (1, Flags::SYN | Flags::ACK));
    // An ACK of something else is reset (RFC 9293, section 3.10.7.4).
    let reset = rig.exchange(Peer::ack(500));
    assert_eq!((reset[0].flags, reset[0].sequence), (Flags::RST, 500));
    assert_eq!(rig.state(), State::SynReceived);
}

#[test]
fn closing_before_the_answer_forgets_the_syn() {
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
fn what_was_written_and_finished_before_leaves_after() {
    let mut rig = Rig::client(&linux());
    assert_eq!(rig.connection.write(rig.now, 100), 100);
    rig.connection.finish(rig.now);
    assert_eq!(rig.connection.write(rig.now, 5), 0, "nothing after the end");
    assert_eq!(rig.out().len(), 1);
    let mut answer = Peer::syn().flags(Flags::SYN | Flags::ACK);
    answer.acknowledgement = 1;
    let out = rig.exchange(answer);
    assert_eq!((out.len(), out[0].length), (1, 100));
    assert!(out[0].flags.contains(Flags::FIN | Flags::ACK));
    assert_eq!(rig.state(), State::FinWait1);
}
