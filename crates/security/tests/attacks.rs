//! Active attackers: changed, replayed, reordered and reflected handshakes, and stolen keys.

use security::{Admission, Credentials, HandshakeError};
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};

use crate::ends::*;

fn both() -> [(Credentials, Credentials); 2] {
    [(code(1), code(1)), (keys(1, &[2]), keys(2, &[1]))]
}

/// Where the token of a `Hello` is. Only a listener with many half-open handshakes reads it.
const TOKEN: std::ops::Range<usize> = 8..32;

#[test]
fn every_changed_bit_of_the_handshake_is_detected() {
    for (opener, listener) in both() {
        let reference = complete(&mut initiator(&opener), &mut responder(listener.clone())).unwrap();
        for bit in (0..reference.hello.len() * 8).filter(|bit| !TOKEN.contains(&(bit / 8))) {
            let (mut initiator, mut responder) = (initiator(&opener), responder(listener.clone()));
            let mut hello = initiator.poll_transmit(NOW).unwrap();
            hello[bit / 8] ^= 1 << (bit % 8);
            let Some(reply) = reply(&mut responder, &hello) else {
                continue;
            };
            assert!(!matches!(initiator.handle(NOW, &reply), Ok(Some(_))), "bit {bit}");
        }
        for bit in 0..reference.reply.len() * 8 {
            let (mut initiator, mut responder) = (initiator(&opener), responder(listener.clone()));
            let mut reply = reply(&mut responder, &initiator.poll_transmit(NOW).unwrap()).unwrap();
            reply[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(initiator.handle(NOW, &reply), Ok(Some(_))), "bit {bit}");
            // The forgery does not end the handshake.
            reply[bit / 8] ^= 1 << (bit % 8);
            assert!(initiator.handle(NOW, &reply).unwrap().is_some(), "bit {bit}");
            assert!(
                admit(&mut responder, &initiator.poll_transmit(NOW).unwrap()).is_some(),
                "bit {bit}"
            );
        }
        for bit in 0..reference.finish.len() * 8 {
            let (mut initiator, mut responder) = (initiator(&opener), responder(listener.clone()));
            let reply = reply(&mut responder, &initiator.poll_transmit(NOW).unwrap()).unwrap();
            initiator.handle(NOW, &reply).unwrap().unwrap();
            let mut finish = initiator.poll_transmit(NOW).unwrap();
            finish[bit / 8] ^= 1 << (bit % 8);
            assert!(admit(&mut responder, &finish).is_none(), "bit {bit}");
            finish[bit / 8] ^= 1 << (bit % 8);
            assert!(admit(&mut responder, &finish).is_some(), "bit {bit}");
        }
    }
}

#[test]
fn truncated_messages_are_ignored() {
    for (opener, listener) in both() {
        let (mut initiator, mut responder) = (initiator(&opener), responder(listener));
        let hello = initiator.poll_transmit(NOW).unwrap();
        for cut in 0..hello.len() {
            assert_eq!(reply(&mut responder, &hello[..cut]), None);
        }
        let reply = reply(&mut responder, &hello).unwrap();
        for cut in 0..reply.len() {
            assert!(initiator.handle(NOW, &reply[..cut]).unwrap().is_none());
        }
        initiator.handle(NOW, &reply).unwrap().unwrap();
        let finish = initiator.poll_transmit(NOW).unwrap();
        for cut in 0..finish.len() {
            assert!(admit(&mut responder, &finish[..cut]).is_none());
        }
        assert!(admit(&mut responder, &finish).is_some());
    }
}

#[test]
fn reordered_messages_are_ignored() {
    for (opener, listener) in both() {
        let done = complete(&mut initiator(&opener), &mut responder(listener.clone())).unwrap();
        let (mut initiator, mut responder) = (initiator(&opener), responder(listener));
        assert!(admit(&mut responder, &done.finish).is_none());
        assert!(initiator.handle(NOW, &done.finish).unwrap().is_none());
        let hello = initiator.poll_transmit(NOW).unwrap();
        assert!(initiator.handle(NOW, &hello).unwrap().is_none());
        assert!(admit(&mut responder, &done.reply).is_none());
        let reply = reply(&mut responder, &hello).unwrap();
        assert!(initiator.handle(NOW, &reply).unwrap().is_some());
    }
}

/// An attacker that recorded a whole handshake repeats the opener's part, also to a restarted listener.
#[test]
fn a_replayed_handshake_admits_nobody() {
    for (opener, listener) in both() {
        let mut old = responder(listener.clone());
        let done = complete(&mut initiator(&opener), &mut old).unwrap();
        let mut restarted = security::Responder::new(listener, [10; 32], 512, true);
        for responder in [&mut old, &mut restarted] {
            let fresh = reply(responder, &done.hello).unwrap();
            assert_ne!(fresh, done.reply, "the listener's randomness repeats");
            assert!(admit(responder, &done.finish).is_none());
        }
        // An opener rejects a reply to an earlier handshake.
        let mut other = initiator_with(&opener, true, 7);
        other.poll_transmit(NOW).unwrap();
        assert!(other.handle(NOW, &done.reply).unwrap().is_none());
        let end = other.poll_timeout() + foundation::Duration::from_secs(40);
        assert!(matches!(other.check(end), Err(HandshakeError::Forged(_))));
    }
}

#[test]
fn reflected_messages_are_ignored() {
    for (opener, listener) in both() {
        let mut initiator = initiator(&opener);
        let hello = initiator.poll_transmit(NOW).unwrap();
        assert!(initiator.handle(NOW, &hello).unwrap().is_none());
        // The listener's own reply, in a hello to itself.
        let mut responder = responder(listener);
        let reply = reply(&mut responder, &hello).unwrap();
        assert!(matches!(
            responder.handle(NOW, address(2), &reply, false),
            Admission::Ignore
        ));
        let mut forged = hello.clone();
        forged[32..32 + 48].copy_from_slice(&reply[8..56]);
        let answer = responder.handle(NOW, address(2), &forged, false);
        if let Admission::Reply(answer) = answer {
            assert!(
                initiator
                    .handle(NOW, &answer)
                    .map_or(true, |outcome| outcome.is_none())
            );
        }
    }
}

/// An X25519 implementation that claims a public key without its secret key.
struct Impostor {
    exchange: Box<dyn Dh>,
    claimed: [u8; 32],
}

impl Dh for Impostor {
    fn name(&self) -> &'static str {
        self.exchange.name()
    }
    fn pub_len(&self) -> usize {
        32
    }
    fn priv_len(&self) -> usize {
        32
    }
    fn set(&mut self, privkey: &[u8]) {
        self.exchange.set(privkey);
    }
    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), snow::Error> {
        self.exchange.generate(rng)
    }
    fn pubkey(&self) -> &[u8] {
        &self.claimed
    }
    fn privkey(&self) -> &[u8] {
        self.exchange.privkey()
    }
    fn dh(&self, pubkey: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        self.exchange.dh(pubkey, out)
    }
}

struct Fixed;

impl Random for Fixed {
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), snow::Error> {
        out.fill(0x42);
        Ok(())
    }
}

/// Gives an [`Impostor`] as the first key exchange, which snow uses for the static key.
struct ImpostorResolver {
    claimed: [u8; 32],
    given: std::cell::Cell<bool>,
}

impl CryptoResolver for ImpostorResolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Fixed))
    }
    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        let exchange = DefaultResolver.resolve_dh(choice)?;
        if self.given.replace(true) {
            return Some(exchange);
        }
        let claimed = self.claimed;
        Some(Box::new(Impostor { exchange, claimed }))
    }
    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }
    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

/// An attacker that calculates with the secret key of `stolen` and claims the public key of `claimed`.
fn attacker(stolen: u8, claimed: u8) -> snow::Builder<'static> {
    let mut public = [0; 32];
    let mut exchange = DefaultResolver.resolve_dh(&DHChoice::Curve25519).unwrap();
    exchange.set(secret(claimed).bytes());
    public.copy_from_slice(exchange.pubkey());
    let resolver = ImpostorResolver {
        claimed: public,
        given: std::cell::Cell::new(false),
    };
    let params = "Noise_XX_25519_ChaChaPoly_BLAKE2s".parse().unwrap();
    let prologue = [&b"longfat transfer 1"[..], &CONNECTION.to_be_bytes()].concat();
    snow::Builder::with_resolver(params, Box::new(resolver))
        .prologue(prologue.leak())
        .unwrap()
        .local_private_key(secret(stolen).bytes().to_vec().leak())
        .unwrap()
}

fn datagram(kind: u8, method: u8, message: &[u8], length: usize) -> Vec<u8> {
    let mut out = vec![0x20 | kind, method];
    out.extend((message.len() as u16).to_be_bytes());
    out.extend(CONNECTION.to_be_bytes());
    if kind == 10 {
        out.extend([0; 24]);
    }
    out.extend(message);
    out.resize(out.len().max(length), 0);
    out
}

/// Runs the opener's side of a handshake with `builder`; returns whether the responder of key 2 admits it.
fn is_admitted(builder: snow::Builder<'_>) -> bool {
    let mut state = builder.build_initiator().unwrap();
    let mut responder = responder(keys(2, &[1]));
    let mut out = [0; 200];
    let length = state.write_message(&[1], &mut out).unwrap();
    let answer = reply(
        &mut responder,
        &datagram(10, 1, &out[..length], security::HELLO_LENGTH),
    )
    .unwrap();
    let mut payload = [0; 200];
    state.read_message(&answer[8..], &mut payload).unwrap();
    // A valid proposal: selective repeat, and the numbers 1 to 1.
    let proposal = [3, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1];
    let length = state.write_message(&proposal, &mut out).unwrap();
    admit(&mut responder, &datagram(13, 0, &out[..length], 0)).is_some()
}

/// Key-compromise impersonation: the attacker stole the receiver's key (2), and claims to be the trusted sender (1).
#[test]
fn a_stolen_receiver_key_does_not_impersonate_a_sender() {
    assert!(is_admitted(attacker(1, 1)), "the owner of key 1 is admitted");
    assert!(!is_admitted(attacker(2, 1)));
    assert!(
        !is_admitted(attacker(2, 2)),
        "the key of the receiver itself is not trusted"
    );
    assert!(!is_admitted(attacker(3, 1)));
}

/// Runs the listener's side with `builder`; returns whether the initiator of key 1 accepts it.
fn is_accepted(builder: snow::Builder<'_>) -> bool {
    let mut state = builder.build_responder().unwrap();
    let mut initiator = initiator(&keys(1, &[2]));
    let hello = initiator.poll_transmit(NOW).unwrap();
    let (mut payload, mut out) = ([0; 200], [0; 200]);
    let length = usize::from(hello[3]);
    state.read_message(&hello[32..32 + length], &mut payload).unwrap();
    let length = state.write_message(&[1, 0, 0, 1, 0], &mut out).unwrap();
    matches!(
        initiator.handle(NOW, &datagram(12, 0, &out[..length], 0)),
        Ok(Some(_))
    )
}

/// The attacker stole the sender's key (1), and claims to be the trusted receiver (2).
#[test]
fn a_stolen_sender_key_does_not_impersonate_a_receiver() {
    assert!(is_accepted(attacker(2, 2)), "the owner of key 2 is accepted");
    assert!(!is_accepted(attacker(1, 2)));
    assert!(!is_accepted(attacker(1, 1)));
    assert!(!is_accepted(attacker(3, 2)));
}
