//! Resets for clients whose server's port is closed.

use transport::arq::frame::{FrameType, ResetReason, StreamRange};
use transport::arq::{Frame, codec};

/// Returns a datagram that resets the ARQ connection of a refused `datagram`. Returns `None` for other protocols,
/// because a relay without privileges cannot send an ICMP error, and for a reset, which is never answered by a reset.
pub fn notice(datagram: &[u8]) -> Option<Vec<u8>> {
    let refused = codec::decode(datagram).ok()?;
    if refused.kind == FrameType::Reset {
        return None;
    }
    let mut reset: Frame<StreamRange> = Frame::new(FrameType::Reset, refused.connection);
    reset.sequence = ResetReason::Refused.code();
    reset.echo = refused.timestamp;
    let mut bytes = Vec::new();
    let written: Result<(), std::convert::Infallible> = codec::encode(&reset, &mut bytes, |_, _| Ok(()));
    match written {
        Ok(()) => Some(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(kind: FrameType) -> Vec<u8> {
        let mut frame: Frame<StreamRange> = Frame::new(kind, 7);
        frame.timestamp = 99;
        let mut bytes = Vec::new();
        let written: Result<(), std::convert::Infallible> = codec::encode(&frame, &mut bytes, |_, _| Ok(()));
        assert!(written.is_ok());
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
    fn ignores_resets_and_other_protocols() {
        assert_eq!(notice(&bytes(FrameType::Reset)), None);
        assert_eq!(notice(b"GET / HTTP/1.1"), None);
    }
}
