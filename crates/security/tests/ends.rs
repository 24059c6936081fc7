//! The two ends of a handshake without a network.

use std::net::SocketAddr;

use foundation::{Duration, Instant};
use security::{
    Admission, Admitted, Channel, Code, Credentials, HandshakeError, Initiator, InitiatorOutcome, Proposal,
    Responder, SecretKey, TrustedKeys,
};
use transport::arq::frame::{FrameType, Parameters};
use transport::arq::{Frame, Payload, StreamRange};

pub const CONNECTION: u32 = 0x1234_5678;
pub const NOW: Instant = Instant::from_nanos(5_000_000_000);

pub fn address(port: u16) -> SocketAddr {
    ([192, 0, 2, 1], port).into()
}

pub fn secret(number: u8) -> SecretKey {
    SecretKey::new([number; 32])
}

pub fn code(number: u8) -> Credentials {
    Credentials::Code(Code::new([number; 12]))
}

/// Keys of `own`, which trusts the keys of `trusted`.
pub fn keys(own: u8, trusted: &[u8]) -> Credentials {
    let list: String = trusted
        .iter()
        .map(|&number| format!("{} number {number}\n", secret(number).public()))
        .collect();
    Credentials::Keys {
        identity: secret(own),
        trusted: TrustedKeys::parse(&list).unwrap(),
    }
}

/// The payload of a received packet.
#[derive(Debug)]
pub struct Bytes(pub Vec<u8>);

impl Payload for Bytes {
    fn length(&self) -> u32 {
        self.0.len() as u32
    }

    fn split(self, size: u32) -> Vec<Self> {
        let parts = self.0.chunks(size as usize);
        parts.map(|part| Self(part.to_vec())).collect()
    }
}

/// Returns the number in an environment variable, which makes a run longer.
pub const PROPOSAL: Proposal = Proposal {
    parameters: Parameters {
        protocol: 3,
        segment_size: 1400,
        acknowledge_every: 16,
        acknowledge_delay: 10,
    },
    first: 77,
    receive_window: 1000,
};

pub fn initiator_with(credentials: &Credentials, aes: bool, seed: u8) -> Initiator {
    let give_up = Duration::from_secs(30);
    Initiator::new(NOW, CONNECTION, credentials, PROPOSAL, aes, [seed; 32], give_up)
}

pub fn initiator(credentials: &Credentials) -> Initiator {
    initiator_with(credentials, true, 8)
}

pub fn responder(credentials: Credentials) -> Responder {
    Responder::new(credentials, [9; 32], 512, true)
}

/// Returns what the responder replies to the initiator's datagram.
pub fn reply(responder: &mut Responder, datagram: &[u8]) -> Option<Vec<u8>> {
    match responder.handle(NOW, address(1), datagram, false) {
        Admission::Reply(reply) => Some(reply),
        Admission::Ignore => None,
        Admission::Admit(_) => panic!("admitted too early"),
    }
}

/// Returns the result of the initiator's last datagram, which the responder must admit.
pub fn admit(responder: &mut Responder, datagram: &[u8]) -> Option<Admitted> {
    match responder.handle(NOW, address(1), datagram, false) {
        Admission::Admit(admitted) => Some(*admitted),
        _ => None,
    }
}

/// The datagrams of a complete handshake, and its results.
pub struct Completed {
    pub hello: Vec<u8>,
    pub reply: Vec<u8>,
    pub finish: Vec<u8>,
    pub opener: InitiatorOutcome,
    pub listener: Admitted,
}

pub fn complete(initiator: &mut Initiator, responder: &mut Responder) -> Result<Completed, HandshakeError> {
    let hello = initiator.poll_transmit(NOW).unwrap();
    let reply = reply(responder, &hello).unwrap();
    let opener = initiator
        .handle(NOW, &reply)?
        .expect("the responder's reply is authentic");
    let finish = initiator.poll_transmit(NOW).unwrap();
    let listener = match responder.handle(NOW, address(1), &finish, false) {
        Admission::Admit(admitted) => *admitted,
        Admission::Reply(refusal) => {
            let refusal = security::Refusal::decode(&refusal).unwrap();
            return Err(HandshakeError::Refused(refusal.reason));
        }
        Admission::Ignore => panic!("ignored"),
    };
    Ok(Completed {
        hello,
        reply,
        finish,
        opener,
        listener,
    })
}

/// Sends a frame through both channels; returns whether it arrives.
pub fn passes(from: &mut Channel, to: &mut Channel) -> bool {
    let mut frame = Frame::new(FrameType::Data, CONNECTION);
    frame.payload = Some(StreamRange {
        offset: 0,
        length: 10,
    });
    let mut bytes = Vec::new();
    from.seal(&frame, &mut bytes, |_, out| out.extend([0x55; 10]));
    to.open(&mut bytes)
        .is_ok_and(|frame| bytes[frame.payload.unwrap()] == [0x55; 10])
}
