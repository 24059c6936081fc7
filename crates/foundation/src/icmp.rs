//! ICMP messages (RFC 792) and echo messages of ICMPv6 (RFC 4443, section 4).

use crate::checksum;

/// IP's number of ICMP.
pub const PROTOCOL: u8 = 1;
/// Bytes of the header of echo and error messages.
pub const HEADER: usize = 8;
/// Type of an ICMPv4 error: destination unreachable.
pub const UNREACHABLE: u8 = 3;
/// Type of an ICMPv4 error: time exceeded.
pub const TIME_EXCEEDED: u8 = 11;
/// Code of [`UNREACHABLE`]: fragmentation needed and DF set.
pub const TOO_BIG: u8 = 4;

/// The header of an echo request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// ICMP rather than ICMPv6.
    pub is_v4: bool,
    /// A reply rather than a request.
    pub is_reply: bool,
    /// Identifies the process that sent the request.
    pub identifier: u16,
    /// Sequence number of the request.
    pub sequence: u16,
}

impl Echo {
    /// Returns the header of a request.
    #[must_use]
    pub const fn request(is_v4: bool, identifier: u16, sequence: u16) -> Self {
        Self {
            is_v4,
            is_reply: false,
            identifier,
            sequence,
        }
    }

    /// Reads the header of an echo message; `None` for any other message.
    #[must_use]
    pub fn read(is_v4: bool, message: &[u8]) -> Option<Self> {
        let &[kind, 0, _, _, id_high, id_low, high, low] = message.first_chunk()? else {
            return None;
        };
        let request = Self::kind(is_v4, false);
        let reply = Self::kind(is_v4, true);
        (kind == request || kind == reply).then(|| Self {
            is_v4,
            is_reply: kind == reply,
            identifier: u16::from_be_bytes([id_high, id_low]),
            sequence: u16::from_be_bytes([high, low]),
        })
    }

    /// Writes the header into the first [`HEADER`] bytes of a message. The checksum stays zero: see [`seal`].
    ///
    /// # Panics
    /// If the message is shorter than a header.
    pub fn write(self, message: &mut [u8]) {
        message[..4].copy_from_slice(&[Self::kind(self.is_v4, self.is_reply), 0, 0, 0]);
        message[4..6].copy_from_slice(&self.identifier.to_be_bytes());
        message[6..HEADER].copy_from_slice(&self.sequence.to_be_bytes());
    }

    const fn kind(is_v4: bool, is_reply: bool) -> u8 {
        match (is_v4, is_reply) {
            (true, false) => 8,
            (true, true) => 0,
            (false, false) => 128,
            (false, true) => 129,
        }
    }
}

/// Sets the checksum of a whole ICMPv4 message. That of ICMPv6 covers addresses; the kernel sets it.
pub fn seal(message: &mut [u8]) {
    message[2..4].fill(0);
    let sum = checksum::of(message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_header_is_read_as_written() {
        for (is_v4, is_reply) in [(true, false), (true, true), (false, false), (false, true)] {
            let echo = Echo {
                is_v4,
                is_reply,
                identifier: 0x1234,
                sequence: 0x89ab,
            };
            let mut message = [0xff; 12];
            echo.write(&mut message);
            assert_eq!(Echo::read(is_v4, &message), Some(echo));
            assert_eq!(Echo::read(!is_v4, &message), None);
            assert_eq!(Echo::read(is_v4, &message[..HEADER - 1]), None);
        }
    }

    #[test]
    fn seal_sets_the_checksum_of_rfc_1071() {
        // An echo request without data: type 8 and identifier 0x1234, so ~(0x0800 + 0x1234).
        let mut message = [0; HEADER];
        let echo = Echo {
            is_v4: true,
            is_reply: false,
            identifier: 0x1234,
            sequence: 0,
        };
        echo.write(&mut message);
        seal(&mut message);
        assert_eq!(message, [8, 0, 0xe5, 0xcb, 0x12, 0x34, 0, 0]);
    }
}
