//! Handshakes without their last message: bounded, timed out, and no amplifier.

use foundation::Duration;
use proptest::prelude::*;
use security::{Admission, HELLO_LENGTH, Initiator, Responder};

use crate::ends::*;

fn hello(connection: u32, seed: u8) -> Vec<u8> {
    let mut initiator = Initiator::new(
        NOW,
        connection,
        &keys(1, &[2]),
        PROPOSAL,
        true,
        [seed; 32],
        Duration::from_secs(9),
    );
    initiator.poll_transmit(NOW).unwrap()
}

fn flood(responder: &mut Responder, count: u32, host: impl Fn(u32) -> [u8; 4]) -> usize {
    let mut replied = 0;
    for number in 0..count {
        let hello = hello(number, number as u8);
        let from = (host(number), 1000).into();
        if let Admission::Reply(reply) = responder.handle(NOW, from, &hello, false) {
            assert!(reply.len() <= hello.len());
            replied += reply.len();
        }
    }
    assert!(replied <= count as usize * HELLO_LENGTH);
    replied
}

#[test]
fn openers_prove_their_address_when_many_are_half_open() {
    let mut responder = responder(keys(2, &[1]));
    flood(&mut responder, 1000, |number| {
        [198, 51, (number >> 8) as u8, number as u8]
    });
    assert_eq!(
        responder.half_open(),
        16,
        "spoofed addresses occupy no further slots"
    );
    // An honest opener gets in with one more round trip.
    let mut initiator = initiator(&keys(1, &[2]));
    let retry = reply(&mut responder, &initiator.poll_transmit(NOW).unwrap()).unwrap();
    assert!(initiator.handle(NOW, &retry).unwrap().is_none());
    assert!(complete(&mut initiator, &mut responder).is_ok());
}

#[test]
fn a_token_is_valid_for_its_address_only() {
    let mut responder = responder(keys(2, &[1]));
    flood(&mut responder, 16, |number| [198, 51, 100, number as u8]);
    let mut initiator = initiator(&keys(1, &[2]));
    let retry = reply(&mut responder, &initiator.poll_transmit(NOW).unwrap()).unwrap();
    initiator.handle(NOW, &retry).unwrap();
    let hello = initiator.poll_transmit(NOW).unwrap();
    let elsewhere = responder.handle(NOW, address(2), &hello, false);
    assert!(matches!(elsewhere, Admission::Reply(reply) if reply.len() == 32));
    assert_eq!(responder.half_open(), 16);
}

#[test]
fn one_host_cannot_occupy_all_slots() {
    let mut responder = responder(keys(2, &[1]));
    let mut admitted = 0;
    for number in 0..100_u32 {
        let from = ([203, 0, 113, if number < 20 { 1 } else { number as u8 }], 1000).into();
        let mut datagram = hello(number, number as u8);
        if let Admission::Reply(reply) = responder.handle(NOW, from, &datagram, false)
            && reply.len() == 32
        {
            // The opener owns this address, so it repeats its request with the token.
            datagram[8..32].copy_from_slice(&reply[8..]);
            responder.handle(NOW, from, &datagram, false);
        }
        admitted = responder.half_open();
        assert!(number >= 20 || admitted <= 16, "{admitted}");
        assert!(admitted <= 64);
    }
    assert_eq!(admitted, 64);
}

#[test]
fn half_open_handshakes_time_out() {
    let mut responder = responder(keys(2, &[1]));
    let mut initiator = initiator(&keys(1, &[2]));
    let answer = reply(&mut responder, &initiator.poll_transmit(NOW).unwrap()).unwrap();
    initiator.handle(NOW, &answer).unwrap().unwrap();
    let finish = initiator.poll_transmit(NOW).unwrap();
    let late = NOW + Duration::from_secs(11);
    assert!(matches!(
        responder.handle(late, address(1), &finish, false),
        Admission::Ignore
    ));
    assert_eq!(responder.half_open(), 0);
}

#[test]
fn a_full_listener_is_busy() {
    let (mut initiator, mut responder) = (initiator(&code(1)), responder(code(1)));
    let hello = initiator.poll_transmit(NOW).unwrap();
    let Admission::Reply(refusal) = responder.handle(NOW, address(1), &hello, true) else {
        panic!()
    };
    let error = initiator.handle(NOW, &refusal).unwrap_err().to_string();
    assert!(error.contains("busy"), "{error}");
    assert_eq!(responder.half_open(), 0);
}

proptest! {
    #[test]
    fn any_datagram_is_harmless(
        mut datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..HELLO_LENGTH + 1), 1..20),
        kinds in prop::collection::vec(0_u8..16, 20), under_keys: bool,
    ) {
        let credentials = if under_keys { keys(2, &[1]) } else { code(1) };
        let (mut responder, mut initiator) = (responder(credentials.clone()), initiator(&credentials));
        for (datagram, kind) in datagrams.iter_mut().zip(kinds) {
            if datagram.len() >= 8 {
                datagram[0] = 0x20 | kind;
                let length = if kind == 10 { 49 } else { datagram.len() - 8 };
                datagram[2..4].copy_from_slice(&(length as u16).to_be_bytes());
                datagram[4..8].copy_from_slice(&CONNECTION.to_be_bytes());
                if kind == 10 {
                    datagram.resize(HELLO_LENGTH, 0);
                    datagram[8 + 24 + 49..].fill(0);
                }
            }
            match responder.handle(NOW, address(1), datagram, false) {
                Admission::Reply(reply) => prop_assert!(reply.len() <= datagram.len()),
                Admission::Admit(_) => prop_assert!(false, "admitted"),
                Admission::Ignore => {}
            }
            prop_assert!(!matches!(initiator.handle(NOW, datagram), Ok(Some(_))));
            while initiator.poll_transmit(NOW).is_some() {}
        }
        prop_assert!(responder.half_open() <= 16);
    }
}
