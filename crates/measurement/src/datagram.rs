//! The header of datagrams between `longfat ping`, `longfat transact` and `longfat echo`.
//!
//! | byte | contents |
//! | --- | --- |
//! | 0, 1 | 0x6c 0xfa, which no text starts with |
//! | 2 | version (high four bits), type (low four bits) |
//! | 3 | the complement of the sum of the other seven bytes |
//! | 4 to 7 | the sender's number of the datagram, most significant byte first |
//!
//! On a connection the number is the request's length, header included, so that the server replies when the request is
//! complete.
//!
//! An echo server answers only requests, and only with replies, so that a datagram with a forged sender cannot start a
//! loop between two servers. Any payload may follow; a reply is as long as its request.

/// Length of the header in bytes.
pub const HEADER: usize = 8;
const MAGIC: [u8; 2] = [0x6c, 0xfa];
const VERSION: u8 = 1;

/// Type of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// To be returned as a reply.
    Request,
    /// A returned request.
    Reply,
    /// From the client: a packet of a user-space TCP, or credit for one.
    Up,
    /// From the server: likewise.
    Down,
}

impl MessageKind {
    const fn number(self) -> u8 {
        match self {
            Self::Request => 1,
            Self::Reply => 2,
            Self::Up => 3,
            Self::Down => 4,
        }
    }
}

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The type.
    pub kind: MessageKind,
    /// The sender's number of the datagram that it is, or belongs to.
    pub number: u32,
}

fn check(bytes: &[u8]) -> u8 {
    let others = bytes[..3].iter().chain(&bytes[4..HEADER]);
    !others.fold(0_u8, |sum, &byte| sum.wrapping_add(byte))
}

impl Header {
    /// Writes the header over the first bytes of a datagram.
    ///
    /// # Panics
    /// If the buffer is shorter than [`HEADER`].
    pub fn write(self, bytes: &mut [u8]) {
        bytes[..2].copy_from_slice(&MAGIC);
        bytes[2] = VERSION << 4 | self.kind.number();
        bytes[4..HEADER].copy_from_slice(&self.number.to_be_bytes());
        bytes[3] = check(bytes);
    }

    /// Parses a header; `None` if it is invalid or has a different version.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..HEADER)?;
        if header[..2] != MAGIC || header[2] >> 4 != VERSION || header[3] != check(header) {
            return None;
        }
        let kind = match header[2] & 0xf {
            1 => MessageKind::Request,
            2 => MessageKind::Reply,
            3 => MessageKind::Up,
            4 => MessageKind::Down,
            _ => return None,
        };
        let number = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        Some(Self { kind, number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KINDS: [MessageKind; 4] = [
        MessageKind::Request,
        MessageKind::Reply,
        MessageKind::Up,
        MessageKind::Down,
    ];

    proptest! {
        #[test]
        fn parses_what_it_writes(number: u32, kind in prop::sample::select(&KINDS[..]), rest in 0..40_usize) {
            let mut bytes = vec![0xaa; HEADER + rest];
            let header = Header { kind, number };
            header.write(&mut bytes);
            prop_assert_eq!(Header::read(&bytes), Some(header));
            prop_assert!(bytes[HEADER..].iter().all(|&byte| byte == 0xaa));
        }

        #[test]
        fn rejects_one_changed_byte(number: u32, at in 0..HEADER, change in 1..=255_u8) {
            let mut bytes = [0; HEADER];
            Header { kind: MessageKind::Request, number }.write(&mut bytes);
            bytes[at] ^= change;
            prop_assert_eq!(Header::read(&bytes), None);
        }

        #[test]
        fn parses_any_bytes_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            let read = Header::read(&bytes);
            prop_assert!(read.is_none() || bytes.len() >= HEADER);
        }
    }
}
