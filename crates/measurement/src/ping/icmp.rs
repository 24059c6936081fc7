//! Echo messages (RFC 792, RFC 4443).

use foundation::icmp::{self, Echo, HEADER};

/// Length of the part of the payload that identifies the sender.
pub const TOKEN: usize = 8;

/// Writes a request with `size` bytes of payload into a buffer; returns its length. The kernel fills in the identifier
/// and the checksum, except on raw IPv4 sockets, which use `identifier`.
pub fn write(
    buffer: &mut [u8],
    is_v4: bool,
    identifier: u16,
    number: u32,
    token: [u8; TOKEN],
    size: usize,
) -> usize {
    let length = HEADER + size;
    let bytes = &mut buffer[..length];
    Echo::request(is_v4, identifier, number as u16).write(bytes);
    let marked = size.min(TOKEN);
    bytes[HEADER..HEADER + marked].copy_from_slice(&token[..marked]);
    if size >= TOKEN + 4 {
        bytes[HEADER + TOKEN..HEADER + TOKEN + 4].copy_from_slice(&number.to_be_bytes());
    }
    if is_v4 {
        icmp::seal(bytes);
    }
    length
}

/// The request that a reply belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// This request.
    Whole(u32),
    /// A request whose number has these low bits: the payload was too short for the rest.
    Low(u16),
}

/// Parses a reply to a request of this process; `None` for any other packet. `identifier` is checked if the kernel
/// does not filter replies.
pub fn read(bytes: &[u8], is_v4: bool, identifier: Option<u16>, token: [u8; TOKEN]) -> Option<Number> {
    let echo = Echo::read(is_v4, bytes)?;
    if !echo.is_reply || identifier.is_some_and(|wanted| wanted != echo.identifier) {
        return None;
    }
    let payload = &bytes[HEADER..];
    let marked = payload.len().min(TOKEN);
    if payload[..marked] != token[..marked] {
        return None;
    }
    match payload.get(TOKEN..TOKEN + 4) {
        Some(&[a, b, c, d]) => {
            let number = u32::from_be_bytes([a, b, c, d]);
            (number as u16 == echo.sequence).then_some(Number::Whole(number))
        }
        _ => Some(Number::Low(echo.sequence)),
    }
}

/// Returns the ICMP message of a packet from a raw IPv4 socket, which includes the IP header.
pub fn without_ip(packet: &[u8]) -> Option<&[u8]> {
    let header = usize::from(*packet.first()? & 0xf) * 4;
    packet.get(header..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OURS: [u8; TOKEN] = *b"longfat!";

    proptest! {
        #[test]
        fn a_reply_identifies_its_request(number: u32, identifier: u16, size in 0..100_usize, is_v4: bool) {
            let mut buffer = [0; 200];
            let length = write(&mut buffer, is_v4, identifier, number, OURS, size);
            prop_assert_eq!(length, size + HEADER);
            prop_assert!(!is_v4 || foundation::checksum::of(&buffer[..length]) == 0);
            // A request is not a reply.
            prop_assert_eq!(read(&buffer[..length], is_v4, None, OURS), None);
            buffer[0] = if is_v4 { 0 } else { 129 };
            let expected = match size >= TOKEN + 4 {
                true => Number::Whole(number),
                false => Number::Low(number as u16),
            };
            let reply = &buffer[..length];
            prop_assert_eq!(read(reply, is_v4, Some(identifier), OURS), Some(expected));
            prop_assert_eq!(read(reply, is_v4, Some(!identifier), OURS), None);
            prop_assert!(size == 0 || read(reply, is_v4, None, *b"another!").is_none());
        }

        #[test]
        fn parses_any_bytes_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..60), is_v4: bool) {
            let _ = read(&bytes, is_v4, None, OURS);
            let _ = without_ip(&bytes).map(|inner| read(inner, is_v4, None, OURS));
        }
    }
}
