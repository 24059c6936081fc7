//! How a packet of a TCP in user space travels in a UDP datagram: the [header](crate::echo::message) of all datagrams, two
//! bytes that tell the packet's length, the packet, and what the sender likes behind it.
//!
//! A server sends no more bytes than it got. So a client adds a few bytes to each packet for what a reply has more than
//! its request, such as an option of T/TCP, and sends room alone, without a packet, where it waits for too long.

use crate::echo::message::{HEADER, Header, Kind};

/// Bytes before the packet.
pub const BEFORE: usize = HEADER + 2;
/// Bytes that a client adds behind each packet: CC.ECHO with its padding is 8 (RFC 1644, section 4.1), and some to spare.
pub const SPARE: usize = 12;

/// Writes the datagram that carries a packet, with so many bytes of room behind it.
///
/// # Panics
/// If the packet is longer than an IP packet can be.
pub fn write(kind: Kind, number: u32, packet: &[u8], room: usize, out: &mut Vec<u8>) {
    out.clear();
    out.resize(BEFORE, 0);
    Header { kind, number }.write(out);
    let length = u16::try_from(packet.len()).expect("an IP packet");
    out[HEADER..BEFORE].copy_from_slice(&length.to_be_bytes());
    out.extend_from_slice(packet);
    out.resize(BEFORE + packet.len() + room, 0);
}

/// The packet in a datagram, which is empty where there is room alone; `None` where the datagram ends before the packet.
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
        fn what_is_written_is_read(packet in prop::collection::vec(any::<u8>(), 0..300), room in 0..50_usize, number: u32) {
            let mut out = vec![7; 3];
            write(Kind::Up, number, &packet, room, &mut out);
            prop_assert_eq!(Header::read(&out), Some(Header { kind: Kind::Up, number }));
            prop_assert_eq!(read(&out), Some(&packet[..]));
            prop_assert_eq!(out.len(), BEFORE + packet.len() + room);
            // Cut anywhere within the packet it is none.
            out.truncate(BEFORE + packet.len().saturating_sub(1));
            prop_assert_eq!(read(&out).is_some(), packet.is_empty());
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = read(&bytes);
        }
    }
}
