//! Closing and resets (RFC 9293, section 3.6; RFC 5961; RFC 2525, section 2.17).

use transport::tcp::{Error, Event, Flags, Profile, State, TcpConfig};

use crate::tcp::rig::{Peer, Rig};

fn server() -> Rig {
    Rig::server(&TcpConfig::new(Profile::Linux), true)
}

#[test]
fn peer_sends_after_half_close() {
    let mut rig = server();
    rig.connection.finish(rig.now);
    let fin = rig.out();
    assert_eq!(
        (fin[0].flags, fin[0].sequence, fin.len()),
        (Flags::FIN | Flags::ACK, 1, 1)
    );
    rig.exchange(Peer::ack(2));
    assert_eq!(rig.state(), State::FinWait2);
    rig.exchange(Peer::ack(2).data(700));
    assert_eq!(rig.connection.read(rig.now, 1000), 700);
    let last = rig.exchange(Peer::ack(2).from(701).with(Flags::FIN));
    assert_eq!((last[0].acknowledgement, last[0].sequence), (702, 2));
    assert_eq!(rig.state(), State::TimeWait);
    assert!(rig.events.ends_with(&[Event::PeerFinished, Event::Finished]));
    // The last ACK was lost: the FIN is acknowledged again, and TIME-WAIT restarts (RFC 9293, section 3.10.7.4).
    rig.wait(50_000);
    let again = rig.exchange(Peer::ack(2).from(701).with(Flags::FIN));
    assert_eq!(again[0].acknowledgement, 702);
    assert!(rig.run(59_000).is_empty());
    assert_eq!(rig.state(), State::TimeWait);
    rig.run(2000);
    assert_eq!(
        (rig.state(), rig.events.last()),
        (State::Closed, Some(&Event::Closed))
    );
}

#[test]
fn a_fin_in_place_of_received_data_is_ignored() {
    let mut rig = server();
    rig.exchange(Peer::ack(1).data(700));
    assert_eq!(rig.connection.read(rig.now, 1000), 700);
    let answer = rig.exchange(Peer::ack(1).from(700).with(Flags::FIN));
    assert_eq!(
        (answer[0].acknowledgement, rig.state()),
        (701, State::Established)
    );
    assert_eq!(rig.connection.readable(), 0);
    rig.exchange(Peer::ack(1).from(701).data(50).with(Flags::FIN));
    assert_eq!(
        (rig.connection.read(rig.now, 1000), rig.state()),
        (50, State::CloseWait)
    );
}

#[test]
fn simultaneous_close_succeeds() {
    // RFC 9293, section 3.6, figure 13.
    let mut rig = server();
    rig.connection.finish(rig.now);
    rig.out();
    rig.exchange(Peer::ack(1).with(Flags::FIN));
    assert_eq!(rig.state(), State::Closing);
    rig.exchange(Peer::ack(2).from(2));
    assert_eq!(rig.state(), State::TimeWait);
}

#[test]
fn the_peer_closes_first() {
    let mut rig = server();
    let ack = rig.exchange(Peer::ack(1).with(Flags::FIN));
    assert_eq!((ack[0].acknowledgement, rig.state()), (2, State::CloseWait));
    let data = rig.write(300);
    assert_eq!(data[0].length, 300, "this direction is open");
    rig.connection.finish(rig.now);
    assert!(rig.out()[0].flags.contains(Flags::FIN));
    assert_eq!(rig.state(), State::LastAck);
    rig.exchange(Peer::ack(302).from(2));
    assert_eq!(rig.state(), State::Closed);
    assert!(rig.events.ends_with(&[Event::Finished, Event::Closed]));
}

#[test]
fn retransmits_a_lost_fin() {
    let mut rig = server();
    rig.connection.finish(rig.now);
    let fins = rig.run(1000);
    assert!(fins.len() > 1 && fins.iter().all(|(_, out)| out.flags.contains(Flags::FIN)));
}

#[test]
fn close_with_unread_data_sends_a_reset() {
    // RFC 2525, section 2.17: a close with unread data sends a reset.
    let mut rig = server();
    rig.exchange(Peer::ack(1).data(500));
    rig.connection.close(rig.now);
    let reset = rig.out();
    assert_eq!(
        (reset[0].flags, reset[0].acknowledgement),
        (Flags::RST | Flags::ACK, 501)
    );
    assert_eq!(rig.state(), State::Closed);
    // So does data that arrives after the close.
    let mut rig = server();
    rig.connection.close(rig.now);
    rig.out();
    let reset = rig.exchange(Peer::ack(2).data(500));
    assert_eq!((reset[0].flags, reset[0].sequence), (Flags::RST, 2));
    assert_eq!(rig.state(), State::Closed);
}

#[test]
fn fin_wait_2_is_limited_after_close() {
    let mut rig = server();
    rig.connection.close(rig.now);
    rig.out();
    rig.exchange(Peer::ack(2));
    rig.run(59_000);
    assert_eq!(rig.state(), State::FinWait2);
    rig.run(2000);
    assert_eq!(rig.state(), State::Closed);
    // A connection whose application still reads waits.
    let mut rig = server();
    rig.connection.finish(rig.now);
    rig.out();
    rig.exchange(Peer::ack(2));
    rig.run(1_000_000);
    assert_eq!(rig.state(), State::FinWait2);
}

#[test]
fn reset_needs_the_next_sequence_number() {
    // RFC 5961, section 3.2: the next number resets, another number in the window is challenged, all others are ignored.
    let mut rig = server();
    let reset = |sequence| Peer::ack(1).from(sequence).flags(Flags::RST);
    assert_eq!(rig.exchange(reset(200_000)), []);
    let challenge = rig.exchange(reset(100));
    assert_eq!(
        (challenge[0].flags, challenge[0].acknowledgement),
        (Flags::ACK, 1)
    );
    assert_eq!(rig.state(), State::Established);
    rig.exchange(reset(1));
    assert_eq!(
        (rig.state(), rig.events.last()),
        (State::Closed, Some(&Event::Failed(Error::Reset)))
    );
}

#[test]
fn syn_in_a_connection_triggers_rate_limited_challenge_acks() {
    // RFC 5961, sections 4.2 and 7; Linux: one per 500 ms.
    let mut rig = server();
    let syn = Peer::ack(1).flags(Flags::SYN);
    assert_eq!(rig.exchange(syn).len(), 1);
    assert_eq!(rig.exchange(syn).len(), 0);
    rig.wait(499);
    assert_eq!(rig.exchange(syn).len(), 0);
    rig.wait(1);
    assert_eq!(rig.exchange(syn).len(), 1);
    assert_eq!(rig.state(), State::Established);
}

#[test]
fn invalid_acknowledgements_are_rejected() {
    // RFC 5961, section 5.2: an ACK older than any window is challenged.
    let mut rig = server();
    for i in 0..80 {
        rig.write(1000);
        rig.exchange(Peer::ack(1001 + i * 1000));
    }
    assert_eq!(rig.exchange(Peer::ack(81_001 - 70_000)).len(), 1);
    // So is an ACK of unsent data, or from before the stream.
    for number in [90_000, 3 << 30] {
        for profile in [Profile::Linux, Profile::Rfc] {
            let mut rig = Rig::server(&TcpConfig::new(profile), true);
            let answer = rig.exchange(Peer::ack(number).data(10));
            assert_eq!(answer[0].acknowledgement, 1, "{profile:?}: {number}");
            assert_eq!(rig.connection.readable(), 0, "the rest of the segment is ignored");
        }
    }
}

#[test]
fn linux_delays_the_ack_of_a_fin_after_data() {
    // RFC 9293, section 3.10.7.4, acknowledges a FIN at once. `tcp_fin` of Linux expects the FIN of this end.
    for (profile, delay) in [(Profile::Linux, 40), (Profile::Rfc, 0)] {
        let mut rig = Rig::server(&TcpConfig::new(profile), true);
        rig.receive(Peer::ack(1).data(1000));
        rig.run(300);
        rig.receive(Peer::ack(1).from(1001).with(Flags::FIN));
        let sent = rig.run(300);
        let times: Vec<(u64, u32)> = sent.iter().map(|(at, out)| (*at, out.acknowledgement)).collect();
        assert_eq!(times, [(delay, 1002)], "{profile:?}");
    }
}

#[test]
fn abort_sends_a_reset() {
    let mut rig = server();
    rig.write(1500);
    rig.connection.abort(rig.now);
    let reset = rig.out();
    assert_eq!(
        (reset[0].flags, reset[0].sequence),
        (Flags::RST | Flags::ACK, 1501)
    );
    assert!(rig.connection.statistics().packets_sent > 0);
    assert_eq!(rig.run(100_000), []);
}
