//! Handshakes of honest ends.

use foundation::Duration;
use security::{Admission, Cipher, HandshakeError, OpenError, Reason, Responder};
use transport::arq::frame::FrameType;
use transport::arq::{Frame, StreamRange};

use crate::ends::*;

#[test]
fn both_ends_agree_on_keys_and_terms() {
    for (opener, listener, name) in [
        (code(1), code(1), None),
        (keys(1, &[2]), keys(2, &[3, 1]), Some("number 1".to_owned())),
    ] {
        let mut done = complete(&mut initiator(&opener), &mut responder(listener)).unwrap();
        assert_eq!(done.listener.proposal, PROPOSAL);
        assert_eq!(done.listener.connection, CONNECTION);
        assert_eq!(done.listener.name, name);
        assert_eq!(done.opener.acceptance.receive_window, 512);
        assert_eq!(done.opener.rtt, Some(Duration::ZERO));
        for _ in 0..3 {
            assert!(passes(&mut done.opener.channel, &mut done.listener.channel));
            assert!(passes(&mut done.listener.channel, &mut done.opener.channel));
        }
        // Each direction has its own key: an end rejects its own frames.
        let frame = Frame::<StreamRange>::new(FrameType::Ping, CONNECTION);
        for channel in [&mut done.opener.channel, &mut done.listener.channel] {
            let mut bytes = Vec::new();
            channel.seal(&frame, &mut bytes, |_, _| {});
            assert_eq!(channel.open(&mut bytes), Err(OpenError::Forged));
        }
    }
}

#[test]
fn aes_requires_both_processors() {
    for (opener, listener, expected) in [
        (true, true, Cipher::Aes128Gcm),
        (true, false, Cipher::ChaCha20Poly1305),
        (false, true, Cipher::ChaCha20Poly1305),
    ] {
        let mut responder = Responder::new(code(1), [9; 32], 512, listener);
        let mut done = complete(&mut initiator_with(&code(1), opener, 8), &mut responder).unwrap();
        assert_eq!(done.opener.channel.cipher(), expected);
        assert_eq!(done.listener.channel.cipher(), expected);
        assert!(passes(&mut done.opener.channel, &mut done.listener.channel));
    }
}

#[test]
fn the_same_randomness_gives_the_same_bytes() {
    let run = |seed| {
        let done = complete(&mut initiator_with(&code(1), true, seed), &mut responder(code(1))).unwrap();
        (done.hello, done.reply, done.finish)
    };
    assert_eq!(run(8), run(8));
    let (one, other) = (run(8), run(7));
    assert!(one.0 != other.0 && one.1 != other.1 && one.2 != other.2);
}

#[test]
fn a_wrong_code_is_refused_without_state() {
    let (mut initiator, mut responder) = (initiator(&code(1)), responder(code(2)));
    let refusal = reply(&mut responder, &initiator.poll_transmit(NOW).unwrap()).unwrap();
    assert_eq!(
        initiator.handle(NOW, &refusal).unwrap_err(),
        HandshakeError::Refused(Reason::WrongCode)
    );
    assert_eq!(responder.half_open(), 0);
}

#[test]
fn keys_that_are_not_trusted_are_refused_by_either_end() {
    // The opener reveals its key only to a trusted listener.
    let (mut first, mut listener) = (initiator(&keys(1, &[3])), responder(keys(2, &[1])));
    let answer = reply(&mut listener, &first.poll_transmit(NOW).unwrap()).unwrap();
    assert_eq!(
        first.handle(NOW, &answer).unwrap_err(),
        HandshakeError::Untrusted(secret(2).public())
    );
    assert_eq!(first.poll_transmit(NOW), None);

    let error = complete(&mut initiator(&keys(1, &[2])), &mut responder(keys(2, &[3]))).err();
    assert_eq!(error, Some(HandshakeError::Refused(Reason::UntrustedKey)));
}

#[test]
fn a_different_method_is_refused() {
    for (opener, listener, reason) in [
        (code(1), keys(2, &[1]), Reason::NeedsKey),
        (keys(1, &[2]), code(1), Reason::NeedsCode),
    ] {
        let (mut initiator, mut responder) = (initiator(&opener), responder(listener));
        let refusal = reply(&mut responder, &initiator.poll_transmit(NOW).unwrap()).unwrap();
        assert_eq!(
            initiator.handle(NOW, &refusal).unwrap_err(),
            HandshakeError::Refused(reason)
        );
    }
}

#[test]
fn lost_datagrams_are_repeated() {
    let (mut initiator, mut responder) = (initiator(&code(1)), responder(code(1)));
    let lost = initiator.poll_transmit(NOW).unwrap();
    assert_eq!(initiator.poll_transmit(NOW), None);
    let later = initiator.poll_timeout();
    assert_eq!(later, NOW + Duration::from_millis(100));
    let hello = initiator.poll_transmit(later).unwrap();
    assert_eq!(hello, lost);
    let answer = reply(&mut responder, &hello).unwrap();
    // The reply was lost: the responder repeats it without a second handshake.
    assert_eq!(reply(&mut responder, &hello).unwrap(), answer);
    assert_eq!(responder.half_open(), 1);
    let outcome = initiator.handle(later, &answer).unwrap().unwrap();
    let bound = Some(Duration::from_millis(100));
    assert_eq!(outcome.rtt, bound, "an upper bound after a repetition");
    assert!(initiator.handle(later, &answer).unwrap().is_none());
    let finish = initiator.poll_transmit(later).unwrap();
    let again = initiator.poll_timeout();
    assert_eq!(initiator.poll_transmit(again).unwrap(), finish);
    let admitted = admit(&mut responder, &finish).expect("authentic");
    assert_eq!(admitted.rtt, Some(Duration::ZERO));
    assert!(admit(&mut responder, &finish).is_none(), "admitted twice");
    initiator.confirm();
    assert_eq!(initiator.poll_transmit(again + Duration::from_secs(9)), None);
}

#[test]
fn a_long_wait_for_an_answer_bounds_no_round_trip() {
    for (wait, bound) in [(999, Some(Duration::from_millis(999))), (1000, None)] {
        let (mut initiator, mut responder) = (initiator(&code(1)), responder(code(1)));
        let hello = initiator.poll_transmit(NOW).unwrap();
        let answer = reply(&mut responder, &hello).unwrap();
        let later = NOW + Duration::from_millis(wait);
        let outcome = initiator.handle(later, &answer).unwrap().unwrap();
        assert_eq!(outcome.rtt, bound);
        let finish = initiator.poll_transmit(later).unwrap();
        let Admission::Admit(admitted) = responder.handle(later, address(1), &finish, false) else {
            panic!("not admitted");
        };
        assert_eq!(admitted.rtt, bound);
    }
}

/// The opener's address changes between the messages of its handshake.
#[test]
fn a_handshake_survives_changes_of_address() {
    for (opener, listener) in [(code(1), code(1)), (keys(1, &[2]), keys(2, &[1]))] {
        let (mut initiator, mut responder) = (initiator(&opener), responder(listener));
        let hello = initiator.poll_transmit(NOW).unwrap();
        let answer = reply(&mut responder, &hello).unwrap();
        // The same message from another address gets the same reply.
        let repeated = responder.handle(NOW, address(2), &hello, false);
        assert!(matches!(repeated, Admission::Reply(repeated) if repeated == answer));
        assert_eq!(responder.half_open(), 1);
        initiator.handle(NOW, &answer).unwrap().unwrap();
        let finish = initiator.poll_transmit(NOW).unwrap();
        let admission = responder.handle(NOW, address(3), &finish, false);
        assert!(matches!(admission, Admission::Admit(_)), "{admission:?}");
    }
}

#[test]
fn silence_is_an_error() {
    let mut initiator = initiator(&code(1));
    let mut now = NOW;
    let mut sent = 0;
    while initiator.check(now).is_ok() {
        sent += u32::from(initiator.poll_transmit(now).is_some());
        now = initiator.poll_timeout();
    }
    assert_eq!(now, NOW + Duration::from_secs(30));
    assert!((17..21).contains(&sent), "{sent}");
    assert_eq!(
        initiator.check(now),
        Err(HandshakeError::Silent(Duration::from_secs(30)))
    );
}
