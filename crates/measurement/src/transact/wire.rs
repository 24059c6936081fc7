//! Evaluation of the frames of one transaction.

use foundation::Duration;
use transport::tcp::Flags;

use crate::capture::{Direction, Frame, Transport};

/// A transaction as seen at the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// From the client's first frame to the server's last one that counts: for TCP its FIN, for UDP the last fragment
    /// of the datagram.
    pub time: Duration,
    /// Packets both ways, including fragments, acknowledgements and retransmissions.
    pub packets: u32,
    /// Packets sent by the client.
    pub sent: u32,
    /// Bytes of all packets with their IP headers.
    pub bytes: u64,
}

/// Whether a TCP transaction's frames are complete: both ends have closed, and the last FIN was acknowledged.
#[must_use]
pub fn is_closed(frames: &[Frame]) -> bool {
    let fin = |direction| {
        frames
            .iter()
            .position(|frame| frame.direction == direction && is_fin(frame))
    };
    let (Some(out), Some(back)) = (fin(Direction::Out), fin(Direction::In)) else {
        return frames.iter().any(is_reset);
    };
    // The later FIN is acknowledged by a subsequent frame in the other direction.
    let (last, answer) = match out < back {
        true => (back, Direction::Out),
        false => (out, Direction::In),
    };
    frames[last..].iter().any(|frame| frame.direction == answer) || frames.iter().any(is_reset)
}

fn is_fin(frame: &Frame) -> bool {
    matches!(frame.packet.transport, Transport::Tcp { flags, .. } if flags.contains(Flags::FIN))
}

fn is_reset(frame: &Frame) -> bool {
    matches!(frame.packet.transport, Transport::Tcp { flags, .. } if flags.contains(Flags::RST))
}

/// Evaluates the frames of one transaction, in order; `None` if frames that determine its time are missing.
#[must_use]
pub fn read(frames: &[Frame]) -> Option<Wire> {
    let first = frames.iter().find(|frame| frame.direction == Direction::Out)?;
    // On a path through several devices of this host, use the outermost one.
    let frames: Vec<&Frame> = frames
        .iter()
        .filter(|frame| frame.device == first.device)
        .collect();
    let is_tcp = matches!(first.packet.transport, Transport::Tcp { .. });
    let answers = frames.iter().filter(|frame| frame.direction == Direction::In);
    let last = match is_tcp {
        true => answers.into_iter().find(|frame| is_fin(frame)),
        false => answers.into_iter().next_back(),
    }?;
    Some(Wire {
        time: last.stamp.since(first.stamp),
        packets: frames.len() as u32,
        sent: frames
            .iter()
            .filter(|frame| frame.direction == Direction::Out)
            .count() as u32,
        bytes: frames.iter().map(|frame| u64::from(frame.packet.length)).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stamp;
    use crate::capture::Packet;

    const SYN: u8 = 2;
    const ACK: u8 = 16;
    const FIN: u8 = 1;

    fn frame(at: u64, direction: Direction, transport: Transport) -> Frame {
        Frame {
            stamp: Stamp::from_nanos(1_000_000 + at),
            direction,
            device: 1,
            packet: Packet {
                source: [10, 0, 0, 1].into(),
                destination: [10, 0, 0, 2].into(),
                protocol: 6,
                length: 40,
                is_fragment: false,
                transport,
            },
        }
    }

    fn segment(at: u64, direction: Direction, flags: u8) -> Frame {
        let transport = Transport::Tcp {
            source: 1,
            destination: 2,
            sequence: 0,
            acknowledgement: 0,
            flags: Flags::from_bits(flags.into()),
            payload: 0,
        };
        frame(at, direction, transport)
    }

    #[test]
    fn a_connection_counts_from_its_syn_to_the_servers_fin() {
        use Direction::{In, Out};
        let mut frames = vec![
            segment(0, Out, SYN),
            segment(10, In, SYN | ACK),
            segment(12, Out, ACK),
            segment(13, Out, ACK | FIN),
            segment(30, In, ACK),
            segment(35, In, ACK | FIN),
        ];
        assert!(!is_closed(&frames));
        frames.push(segment(36, Out, ACK));
        assert!(is_closed(&frames));
        let wire = read(&frames).unwrap();
        assert_eq!(wire.time, Duration::from_nanos(35));
        assert_eq!((wire.packets, wire.sent, wire.bytes), (7, 4, 280));
        // The device behind the first one saw the same frames.
        let mut other = segment(1, Out, SYN);
        other.device = 2;
        frames.insert(1, other);
        assert_eq!(read(&frames), Some(wire));
    }

    #[test]
    fn a_reset_connection_is_closed_and_has_no_time() {
        let frames = [
            segment(0, Direction::Out, SYN),
            segment(10, Direction::In, ACK | 4),
        ];
        assert!(is_closed(&frames));
        assert_eq!(read(&frames), None);
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn a_datagram_counts_to_the_last_fragment() {
        let udp = |at, direction, transport| {
            let mut made = frame(at, direction, transport);
            made.packet.protocol = 17;
            made
        };
        let whole = Transport::Udp {
            source: 1,
            destination: 2,
            payload: 1509,
        };
        let frames = [
            udp(0, Direction::Out, whole),
            udp(1, Direction::Out, Transport::Other),
            udp(20, Direction::In, whole),
            udp(22, Direction::In, Transport::Other),
        ];
        let wire = read(&frames).unwrap();
        assert_eq!(
            (wire.time, wire.packets, wire.sent),
            (Duration::from_nanos(22), 4, 2)
        );
    }
}
