//! Encapsulation of user-space TCP packets in UDP datagrams: the [header](crate::datagram) of all datagrams, two
//! bytes with the packet's length, the packet, and padding.
//!
//! A server sends no more bytes than it received. Therefore a client pads each packet by the length that a reply may
//! have in addition to its request, such as a T/TCP option, and sends padding without a packet after a long wait.

use crate::datagram::{HEADER, Header, MessageKind};

/// Bytes before the packet.
pub const BEFORE: usize = HEADER + 2;
/// Padding behind each of a client's packets: CC.ECHO with its padding is 8 bytes (RFC 1644, section 4.1), plus a
/// reserve.
pub const SPARE: usize = 12;

/// Writes a datagram with a packet and `room` bytes of padding.
///
/// # Panics
/// If the packet is longer than an IP packet can be.
pub fn write(kind: MessageKind, number: u32, packet: &[u8], room: usize, out: &mut Vec<u8>) {
    out.clear();
    out.resize(BEFORE, 0);
    Header { kind, number }.write(out);
    let length = u16::try_from(packet.len()).expect("an IP packet");
    out[HEADER..BEFORE].copy_from_slice(&length.to_be_bytes());
    out.extend_from_slice(packet);
    out.resize(BEFORE + packet.len() + room, 0);
}

/// Returns the packet in a datagram, empty if there is only padding; `None` if the datagram ends before the packet.
#[must_use]
pub fn read(datagram: &[u8]) -> Option<&[u8]> {
    let length = datagram.get(HEADER..BEFORE)?;
    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
    datagram.get(BEFORE..BEFORE + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parses_what_it_writes(packet in prop::collection::vec(any::<u8>(), 0..300), room in 0..50_usize, number: u32) {
            let mut out = vec![7; 3];
            write(MessageKind::Up, number, &packet, room, &mut out);
            prop_assert_eq!(Header::read(&out), Some(Header { kind: MessageKind::Up, number }));
            prop_assert_eq!(read(&out), Some(&packet[..]));
            prop_assert_eq!(out.len(), BEFORE + packet.len() + room);
            // Truncated within the packet it is invalid.
            out.truncate(BEFORE + packet.len().saturating_sub(1));
            prop_assert_eq!(read(&out).is_some(), packet.is_empty());
        }

        #[test]
        fn parses_any_bytes_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = read(&bytes);
        }
    }
}
