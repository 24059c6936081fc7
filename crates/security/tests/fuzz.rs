//! Mutated sequences of real handshakes and records, delivered to both ends.
//!
//! `LONGFAT_FUZZ` is the number of datagrams of each test.

use foundation::{Duration, Generator, Instant, Streams};
use rand::RngExt;
use security::{Admission, Channel, HELLO_LENGTH, Initiator, InitiatorOutcome, Responder};
use transport::Machine;
use transport::arq::frame::FrameType;
use transport::arq::{ArqConfig, Connection, Frame, StreamRange};

use crate::ends::*;

/// Changes a datagram in up to four ways. `other` is a different real datagram.
fn mutate(random: &mut Generator, datagram: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..random.random_range(0..5) {
        let length = datagram.len();
        match random.random_range(0..8) {
            0 if length > 0 => datagram[random.random_range(0..length)] ^= 1 << random.random_range(0..8),
            1 if length > 0 => datagram[random.random_range(0..length)] = random.random(),
            2 if length > 0 => datagram.truncate(random.random_range(0..length)),
            3 => datagram.resize(length + random.random_range(1..100), random.random()),
            // The type, or the declared length.
            4 if length > 0 => datagram[0] = datagram[0] & 0xf0 | random.random_range(0..16),
            5 if length > 3 => datagram[3] = random.random(),
            // The connection of the other datagram.
            6 if length > 7 && other.len() > 7 => datagram[4..8].copy_from_slice(&other[4..8]),
            7 => {
                let cut = random.random_range(0..=length.min(other.len()));
                datagram.truncate(cut);
                datagram.extend_from_slice(&other[cut..]);
            }
            _ => {}
        }
    }
}

/// An opener, and its channel after the reply.
struct Opener {
    connection: u32,
    initiator: Initiator,
    channel: Option<Channel>,
    /// Whether the opener has given up; its last message may still be in flight.
    over: bool,
}

/// Whether a datagram reached a responder unchanged.
fn is_authentic(opener: &mut Opener, admitted: &mut Channel) -> bool {
    let Some(channel) = &mut opener.channel else {
        return false;
    };
    passes(channel, admitted) && passes(admitted, channel)
}

#[test]
fn mutated_handshakes_are_harmless() {
    let datagrams = testing::count("LONGFAT_FUZZ", 5000);
    let mut random = Streams::new(15, 0).stream("handshakes");
    let sides = [(code(1), code(1)), (keys(1, &[2]), keys(2, &[1]))];
    let mut responders = sides.each_ref().map(|(_, listener)| responder(listener.clone()));
    let mut openers: [Vec<Opener>; 2] = [Vec::new(), Vec::new()];
    let mut pool: Vec<Vec<u8>> = vec![vec![0; 8]];
    let (mut now, mut admissions, mut errors) = (NOW, 0_u64, 0_u64);
    for _ in 0..datagrams {
        now += Duration::from_micros(random.random_range(0..200_000));
        let side = usize::from(random.random_bool(0.5));
        if openers[side].iter().filter(|opener| !opener.over).count() < 8 {
            let connection = random.random_range(0..16);
            let give_up = Duration::from_secs(30);
            let credentials = &sides[side].0;
            let initiator = Initiator::new(
                now,
                connection,
                credentials,
                PROPOSAL,
                random.random(),
                random.random(),
                give_up,
            );
            openers[side].push(Opener {
                connection,
                initiator,
                channel: None,
                over: false,
            });
        }
        for opener in openers[side].iter_mut().filter(|opener| !opener.over) {
            while let Some(datagram) = opener.initiator.poll_transmit(now) {
                pool.push(datagram);
            }
        }
        // Prefers newer datagrams.
        let newest = pool.len().saturating_sub(random.random_range(1..=64));
        let mut datagram = pool[random.random_range(newest.min(pool.len() - 1)..pool.len())].clone();
        if random.random_bool(0.6) {
            let other = pool[random.random_range(0..pool.len())].clone();
            mutate(&mut random, &mut datagram, &other);
        }
        let from = ([192, 0, 2, random.random_range(1..5)], random.random_range(1..5)).into();
        let full = random.random_bool(0.02);
        match responders[side].handle(now, from, &datagram, full) {
            Admission::Reply(reply) => {
                assert!(reply.len() <= datagram.len(), "an amplifier");
                pool.push(reply);
            }
            Admission::Ignore => {}
            Admission::Admit(mut admitted) => {
                assert_eq!(admitted.proposal, PROPOSAL);
                let number = admitted.connection;
                let at = openers[side].iter_mut().position(|opener| {
                    opener.connection == number && is_authentic(opener, &mut admitted.channel)
                });
                let at = at.expect("only an authentic opener is admitted");
                openers[side].remove(at);
                admissions += 1;
            }
        }
        assert!(responders[side].half_open() <= 64);
        for opener in openers[side].iter_mut().filter(|opener| !opener.over) {
            let handled = opener.initiator.handle(now, &datagram);
            errors += u64::from(handled.is_err());
            opener.over =
                handled.is_err() || opener.initiator.check(now).is_err() || random.random_bool(0.001);
            if let Ok(Some(InitiatorOutcome { channel, .. })) = handled {
                assert!(opener.channel.replace(channel).is_none(), "two replies");
            }
        }
        if openers[side].len() > 400 {
            openers[side].drain(..100);
        }
        if pool.len() > 1000 {
            pool.drain(..500);
        }
    }
    println!("{datagrams} datagrams: {admissions} openers admitted, {errors} refused");
    assert!(admissions > 0 && errors > 0);
    // Both still admit an honest opener.
    for (responder, (opener, _)) in responders.iter_mut().zip(&sides) {
        assert!(still_admits(responder, opener, now + Duration::from_secs(60)));
    }
}

fn still_admits(responder: &mut Responder, credentials: &security::Credentials, now: Instant) -> bool {
    let give_up = Duration::from_secs(30);
    let mut initiator = Initiator::new(now, CONNECTION, credentials, PROPOSAL, true, [3; 32], give_up);
    for _ in 0..3 {
        let Some(datagram) = initiator.poll_transmit(now) else {
            return false;
        };
        match responder.handle(now, address(9), &datagram, false) {
            Admission::Reply(reply) => drop(initiator.handle(now, &reply)),
            Admission::Admit(_) => return true,
            Admission::Ignore => return false,
        }
    }
    false
}

/// Returns an authentic frame with any header, as a hostile peer may send.
fn any_frame(random: &mut Generator, near: u32) -> Frame<StreamRange> {
    let kinds = [
        FrameType::Data,
        FrameType::Fin,
        FrameType::Ack,
        FrameType::Ping,
        FrameType::Update,
        FrameType::Reset,
    ];
    let number = |random: &mut Generator| {
        if random.random_bool(0.8) {
            near.wrapping_add(random.random_range(0..400)).wrapping_sub(200)
        } else {
            random.random()
        }
    };
    let reset = random.random_bool(0.001);
    let kind = kinds[if reset { 5 } else { random.random_range(0..5) }];
    let mut frame = Frame::new(kind, CONNECTION);
    frame.sequence = number(random);
    frame.acknowledgement = number(random);
    frame.window = random.random();
    frame.timestamp = random.random();
    frame.echo = random.random();
    for _ in 0..random.random_range(0..5) {
        frame.sack.push(number(random), number(random));
    }
    if kind == FrameType::Data {
        let length = random.random_range(1..64);
        frame.payload = Some(StreamRange { offset: 0, length });
    }
    frame
}

/// Half of the records are changed on the path; the others are authentic, but from a peer that sends any header.
#[test]
fn mutated_records_and_hostile_peers_are_harmless() {
    let datagrams = testing::count("LONGFAT_FUZZ", 20_000);
    let mut random = Streams::new(15, 1).stream("records");
    let (mut opened, mut rejected, mut connections, mut done) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut last = Vec::new();
    while done < datagrams {
        connections += 1;
        let seed = random.random();
        let finished = complete(&mut initiator_with(&code(1), seed, 8), &mut responder(code(1))).unwrap();
        let (mut peer, mut own) = (finished.opener.channel, finished.listener.channel);
        let config = ArqConfig {
            receive_buffer: 32,
            ..ArqConfig::for_files()
        };
        let mut now = NOW;
        // All connections of this test have the same keys.
        last.clear();
        let mut authentic = Vec::new();
        let mut connection: Connection<Bytes> =
            Connection::established(now, (CONNECTION, PROPOSAL.first), &config, 1000, None);
        connection.write(100_000);
        let lifetime = random.random_range(100..5000);
        for _ in 0..lifetime {
            done += 1;
            now += Duration::from_micros(random.random_range(0..100_000));
            let frame = any_frame(&mut random, PROPOSAL.first);
            let mut datagram = Vec::new();
            peer.seal(&frame, &mut datagram, |range, out| {
                out.extend(std::iter::repeat_n(7, range.length as usize));
            });
            authentic.push(datagram.clone());
            if random.random_bool(0.5) {
                mutate(&mut random, &mut datagram, &last);
            }
            last.clone_from(&datagram);
            let Ok(frame) = own.open(&mut datagram) else {
                assert!(
                    authentic.last() != Some(&last),
                    "an authentic record was rejected"
                );
                rejected += 1;
                continue;
            };
            assert!(
                authentic.iter().rev().any(|datagram| *datagram == last),
                "a changed record was opened"
            );
            opened += 1;
            let frame = frame.map_payload(|range| Bytes(datagram[range].to_vec()));
            connection.handle_frame(now, frame);
            connection.handle_timeout(now);
            let mut sent = 0;
            while connection.poll_transmit(now).is_some() {
                sent += 1;
                assert!(sent < 100_000, "the sender never stops");
            }
            while connection.poll_event().is_some() {}
            assert!(connection.early().count() <= 32, "unbounded memory");
            if random.random_bool(0.5) {
                while connection.read().is_some() {}
            }
            if connection.is_closed() {
                break;
            }
        }
    }
    println!("{done} records: {opened} opened, {rejected} rejected, {connections} connections");
    assert!(opened > 0 && rejected > 0);
}

#[test]
fn a_hello_is_the_longest_datagram_of_a_handshake() {
    for (opener, listener) in [(code(1), code(1)), (keys(1, &[2]), keys(2, &[1]))] {
        let done = complete(&mut initiator(&opener), &mut responder(listener)).unwrap();
        assert_eq!(done.hello.len(), HELLO_LENGTH);
        assert!(done.reply.len() <= HELLO_LENGTH && done.finish.len() <= HELLO_LENGTH);
    }
}
