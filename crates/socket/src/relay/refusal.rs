//! Resets for clients whose server's port is closed.

use security::{Reason, Refusal};
use transport::arq::frame::{FrameType, ResetReason, StreamRange};
use transport::arq::{Frame, codec};

use crate::wire;

/// Returns a datagram that resets or refuses the connection of a refused `datagram`. Returns `None` for other protocols,
/// because a relay without privileges cannot send an ICMP error, and for a reset, which is never answered by a reset.
pub fn notice(datagram: &[u8]) -> Option<Vec<u8>> {
    if let Some(refusal) = Refusal::of(datagram, Reason::Closed) {
        return Some(refusal);
    }
    let refused = codec::decode(datagram).ok()?;
    if refused.kind == FrameType::Reset {
        return None;
    }
    let mut reset: Frame<StreamRange> = Frame::new(FrameType::Reset, refused.connection);
    reset.sequence = ResetReason::Refused.code();
    reset.echo = refused.timestamp;
    let mut bytes = Vec::new();
    wire::plain(&reset, &mut bytes, |_, _| {});
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(kind: FrameType) -> Vec<u8> {
        let mut frame: Frame<StreamRange> = Frame::new(kind, 7);
        frame.timestamp = 99;
        let mut bytes = Vec::new();
        wire::plain(&frame, &mut bytes, |_, _| {});
        bytes
    }

    #[test]
    fn ends_the_connection_of_the_refused_frame() {
        let answer = notice(&bytes(FrameType::Ping)).unwrap();
        let reset = codec::decode(&answer).unwrap();
        assert_eq!(
            (reset.kind, reset.connection, reset.echo),
            (FrameType::Reset, 7, 99)
        );
        assert_eq!(ResetReason::from_code(reset.sequence), ResetReason::Refused);
    }

    #[test]
    fn refuses_protected_datagrams() {
        let answer = notice(&[0x24, 0, 0, 0, 0, 0, 0, 7, 1, 2, 3]).unwrap();
        let refusal = Refusal::decode(&answer).unwrap();
        assert_eq!((refusal.connection, refusal.reason), (7, Reason::Closed));
        assert_eq!(notice(&answer), None);
    }

    #[test]
    fn ignores_resets_and_other_protocols() {
        assert_eq!(notice(&bytes(FrameType::Reset)), None);
        assert_eq!(notice(b"GET / HTTP/1.1"), None);
    }
}
