//! Closing and resets (RFC 9293, section 3.6; RFC 5961; RFC 2525, section 2.17).

use transport::tcp::{Error, Event, Flags, Profile, State, TcpConfig};

use crate::tcp::rig::{Peer, Rig};

fn server() -> Rig {
    Rig::server(&TcpConfig::new(Profile::Linux), true)
}

#[test]
fn half_closed_the_peer_goes_on() {
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
    // The last ACK was lost: another answers, and the wait begins anew (RFC 9293, section 3.10.7.4).
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
fn both_may_close_at_once() {
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
fn a_lost_fin_is_sent_again() {
    let mut rig = server();
    rig.connection.finish(rig.now);
    let fins = rig.run(1000);
    assert!(fins.len() > 1 && fins.iter().all(|(_, out)| out.flags.contains(Flags::FIN)));
}

#[test]
fn unread_data_is_not_thrown_away_in_silence() {
    // RFC 2525, section 2.17: closing with unread data resets.
    let mut rig = server();
    rig.exchange(Peer::ack(1).data(500));
    rig.connection.close(rig.now);
    let reset = rig.out();
    assert_eq!(
        (reset[0].flags, reset[0].acknowledgement),
        (Flags::RST | Flags::ACK, 501)
    );
    assert_eq!(rig.state(), State::Closed);
    // And data that arrives after the close.
    let mut rig = server();
    rig.connection.close(rig.now);
    rig.out();
    let reset = rig.exchange(Peer::ack(2).data(500));
    assert_eq!((reset[0].flags, reset[0].sequence), (Flags::RST, 2));
    assert_eq!(rig.state(), State::Closed);
}

#[test]
fn a_closed_connection_does_not_wait_for_a_fin_for_ever() {
    let mut rig = server();
    rig.connection.close(rig.now);
    rig.out();
    rig.exchange(Peer::ack(2));
    rig.run(59_000);
    assert_eq!(rig.state(), State::FinWait2);
    rig.run(2000);
    assert_eq!(rig.state(), State::Closed);
    // One whose application still reads does.
    let mut rig = server();
    rig.connection.finish(rig.now);
    rig.out();
    rig.exchange(Peer::ack(2));
    rig.run(1_000_000);
    assert_eq!(rig.state(), State::FinWait2);
}

#[test]
fn a_reset_must_name_the_next_number() {
    // RFC 5961, section 3.2: the very number resets, one in the window is challenged, another is ignored.
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
fn a_syn_in_a_connection_is_challenged_but_not_too_often() {
    // RFC 5961, sections 4.2 and 7; Linux: one in 500 ms.
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
fn acknowledgements_are_checked() {
    // RFC 5961, section 5.2: older than any window is challenged.
    let mut rig = server();
    for i in 0..80 {
        rig.write(1000);
        rig.exchange(Peer::ack(1001 + i * 1000));
    }
    assert_eq!(rig.exchange(Peer::ack(81_001 - 70_000)).len(), 1);
    // What was never sent: Linux is silent, RFC 9293 (section 3.10.7.4) wants an ACK.
    rig.wait(1000);
    assert_eq!(rig.exchange(Peer::ack(90_000)), []);
    let mut rig = Rig::server(&TcpConfig::new(Profile::Rfc), true);
    assert_eq!(rig.exchange(Peer::ack(90_000).data(10))[0].acknowledgement, 1);
    assert_eq!(
        rig.connection.readable(),
        0,
        "and nothing else of the segment counts"
    );
}

#[test]
fn abort_resets() {
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
