//! The bytes of a probe, by which a quoted or echoed one is known again.

/// What a UDP probe's payload and an echo request begin with, after ICMP's own eight bytes.
const MAGIC: [u8; 4] = *b"lfhp";

/// The least payload of a UDP probe, which has room for its number; an echo request has it beside its header.
pub const LEAST_PAYLOAD: usize = 8;

const ECHO_HEADER: usize = 8;
const ECHO_REQUEST_V4: u8 = 8;
const ECHO_REPLY_V4: u8 = 0;
const ECHO_REQUEST_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;

/// What a probe's bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Its number.
    pub number: u32,
}

impl Probe {
    /// Writes the payload of a UDP probe into a buffer of the right length.
    pub fn write_udp(self, payload: &mut [u8]) {
        payload[..4].copy_from_slice(&MAGIC);
        payload[4..LEAST_PAYLOAD].copy_from_slice(&self.number.to_be_bytes());
        fill(&mut payload[LEAST_PAYLOAD..]);
    }

    /// What a quoted payload says; `None` where it is too short or not ours.
    #[must_use]
    pub fn read_udp(payload: &[u8]) -> Option<Self> {
        let number = payload.strip_prefix(&MAGIC)?.get(..4)?;
        Some(Self {
            number: u32::from_be_bytes(number.try_into().ok()?),
        })
    }

    /// Writes an echo request with its ICMP header into a buffer of the right length. The kernel sets identifier and
    /// checksum of datagram sockets, and the checksum of ICMPv6; on a raw socket of IPv4 `finish` sets both.
    pub fn write_echo(self, is_v4: bool, message: &mut [u8]) {
        message[..ECHO_HEADER].fill(0);
        message[0] = if is_v4 { ECHO_REQUEST_V4 } else { ECHO_REQUEST_V6 };
        message[6..8].copy_from_slice(&(self.number as u16).to_be_bytes());
        if let Some(rest) = message
            .get_mut(ECHO_HEADER..)
            .filter(|rest| rest.len() >= LEAST_PAYLOAD)
        {
            self.write_udp(rest);
        }
    }

    /// What a quoted request or a reply says, which begins with ICMP's header; `None` where it is neither.
    #[must_use]
    pub fn read_echo(is_v4: bool, message: &[u8], reply: bool) -> Option<Self> {
        let kind = match (is_v4, reply) {
            (true, false) => ECHO_REQUEST_V4,
            (true, true) => ECHO_REPLY_V4,
            (false, false) => ECHO_REQUEST_V6,
            (false, true) => ECHO_REPLY_V6,
        };
        if *message.first()? != kind || *message.get(1)? != 0 {
            return None;
        }
        let short = u16::from_be_bytes(message.get(6..8)?.try_into().ok()?);
        match message.get(ECHO_HEADER..ECHO_HEADER + LEAST_PAYLOAD) {
            // Another program's ping has the same numbers, but not our mark.
            Some(rest) => Self::read_udp(rest).filter(|probe| probe.number as u16 == short),
            None => Some(Self {
                number: u32::from(short),
            }),
        }
    }
}

/// Bytes without a pattern that a link could compress.
fn fill(bytes: &mut [u8]) {
    let mut state = 0x9e37_79b9_u32;
    for byte in bytes {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        *byte = state as u8;
    }
}

/// Sets identifier and checksum of an echo request of IPv4 (RFC 792, RFC 1071).
pub fn finish(message: &mut [u8], identifier: u16) {
    message[4..6].copy_from_slice(&identifier.to_be_bytes());
    message[2..4].fill(0);
    let mut sum: u32 = 0;
    for pair in message.chunks(2) {
        sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low));
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    message[2..4].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

/// The identifier of an echo message.
#[must_use]
pub fn identifier(message: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(message.get(4..6)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_checksum_is_that_of_the_rfc() {
        // An echo request without data: type 8 and identifier 0x1234, so ~(0x0800 + 0x1234).
        let mut message = [0; 8];
        Probe { number: 0 }.write_echo(true, &mut message);
        finish(&mut message, 0x1234);
        assert_eq!(message, [8, 0, 0xe5, 0xcb, 0x12, 0x34, 0, 0]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(number: u32, extra in 0_usize..100, cut in 0_usize..100, v4: bool) {
            let mut payload = vec![0; LEAST_PAYLOAD + extra];
            Probe { number }.write_udp(&mut payload);
            let quoted = &payload[..cut.min(payload.len())];
            let expected = (quoted.len() >= LEAST_PAYLOAD).then_some(Probe { number });
            prop_assert_eq!(Probe::read_udp(quoted), expected);

            let mut message = vec![0; ECHO_HEADER + extra];
            Probe { number }.write_echo(v4, &mut message);
            finish(&mut message, 77);
            let read = Probe::read_echo(v4, &message, false).unwrap();
            prop_assert_eq!(read.number as u16, number as u16);
            prop_assert_eq!(identifier(&message), Some(77));
            prop_assert_eq!(Probe::read_echo(v4, &message, true), None);
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..64), v4: bool, reply: bool) {
            let _ = Probe::read_udp(&bytes);
            let _ = Probe::read_echo(v4, &bytes, reply);
            let _ = identifier(&bytes);
        }
    }
}
