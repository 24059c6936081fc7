//! The header of datagrams between `longfat ping`, `longfat transact` and `longfat echo`.
//!
//! | byte | what it is |
//! | --- | --- |
//! | 0, 1 | 0x6c 0xfa, which no text begins with |
//! | 2 | version (high four bits), kind (low four bits) |
//! | 3 | the complement of the sum of the other seven bytes |
//! | 4 to 7 | the sender's number of the datagram, most significant byte first |
//!
//! On a connection the number is the request's length, header included, so that it is answered as soon as it is whole.
//!
//! An echo server answers requests alone and with replies alone, so that no datagram with a forged sender can make two
//! servers answer each other for ever. Any payload may follow; a reply is as long as its request.

/// Bytes of it.
pub const HEADER: usize = 8;
const MAGIC: [u8; 2] = [0x6c, 0xfa];
const VERSION: u8 = 1;

/// What a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// To be sent back as a reply.
    Request,
    /// A request that came back.
    Reply,
    /// A packet of a TCP in user space, or room for one: from the client.
    Up,
    /// The same from the server.
    Down,
}

impl Kind {
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
    /// What follows it.
    pub kind: Kind,
    /// Which datagram of the sender's it is, or belongs to.
    pub number: u32,
}

fn check(bytes: &[u8]) -> u8 {
    let others = bytes[..3].iter().chain(&bytes[4..HEADER]);
    !others.fold(0_u8, |sum, &byte| sum.wrapping_add(byte))
}

impl Header {
    /// Writes it over the first bytes of a datagram.
    ///
    /// # Panics
    /// If there are fewer than [`HEADER`].
    pub fn write(self, bytes: &mut [u8]) {
        bytes[..2].copy_from_slice(&MAGIC);
        bytes[2] = VERSION << 4 | self.kind.number();
        bytes[4..HEADER].copy_from_slice(&self.number.to_be_bytes());
        bytes[3] = check(bytes);
    }

    /// The header of a datagram; `None` for what is none of this version.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..HEADER)?;
        if header[..2] != MAGIC || header[2] >> 4 != VERSION || header[3] != check(header) {
            return None;
        }
        let kind = match header[2] & 0xf {
            1 => Kind::Request,
            2 => Kind::Reply,
            3 => Kind::Up,
            4 => Kind::Down,
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

    const KINDS: [Kind; 4] = [Kind::Request, Kind::Reply, Kind::Up, Kind::Down];

    proptest! {
        #[test]
        fn what_is_written_is_read(number: u32, kind in prop::sample::select(&KINDS[..]), rest in 0..40_usize) {
            let mut bytes = vec![0xaa; HEADER + rest];
            let header = Header { kind, number };
            header.write(&mut bytes);
            prop_assert_eq!(Header::read(&bytes), Some(header));
            prop_assert!(bytes[HEADER..].iter().all(|&byte| byte == 0xaa));
        }

        #[test]
        fn one_changed_byte_makes_it_nobodys(number: u32, at in 0..HEADER, change in 1..=255_u8) {
            let mut bytes = [0; HEADER];
            Header { kind: Kind::Request, number }.write(&mut bytes);
            bytes[at] ^= change;
            prop_assert_eq!(Header::read(&bytes), None);
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            let read = Header::read(&bytes);
            prop_assert!(read.is_none() || bytes.len() >= HEADER);
        }
    }
}
