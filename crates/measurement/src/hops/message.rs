//! Contents of probes, by which quoted and echoed probes are recognized.

use foundation::icmp::{self, Echo, HEADER};

/// First bytes of a UDP probe's payload; in an echo request they follow the ICMP header.
const MAGIC: [u8; 4] = *b"lfhp";

/// Smallest payload of a UDP probe, with room for its number; an echo request has it after its header.
pub const LEAST_PAYLOAD: usize = 8;

/// The identity of a probe.
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

    /// Parses a quoted payload; `None` if it is too short or foreign.
    #[must_use]
    pub fn read_udp(payload: &[u8]) -> Option<Self> {
        let number = payload.strip_prefix(&MAGIC)?.get(..4)?;
        Some(Self {
            number: u32::from_be_bytes(number.try_into().ok()?),
        })
    }

    /// Writes an echo request with its ICMP header into a buffer of the right length. On datagram sockets the kernel
    /// replaces identifier and checksum; for ICMPv6 it sets the checksum.
    pub fn write_echo(self, is_v4: bool, identifier: u16, message: &mut [u8]) {
        Echo::request(is_v4, identifier, self.number as u16).write(message);
        if let Some(rest) = message
            .get_mut(HEADER..)
            .filter(|rest| rest.len() >= LEAST_PAYLOAD)
        {
            self.write_udp(rest);
        }
        if is_v4 {
            icmp::seal(message);
        }
    }

    /// Parses a quoted request or a reply that starts with the ICMP header; `None` if it is neither.
    #[must_use]
    pub fn read_echo(is_v4: bool, message: &[u8], reply: bool) -> Option<Self> {
        let echo = Echo::read(is_v4, message).filter(|echo| echo.is_reply == reply)?;
        match message.get(HEADER..HEADER + LEAST_PAYLOAD) {
            // Another program's ping may use the same numbers, but not this mark.
            Some(rest) => Self::read_udp(rest).filter(|probe| probe.number as u16 == echo.sequence),
            None => Some(Self {
                number: u32::from(echo.sequence),
            }),
        }
    }
}

/// Fills with bytes without a pattern, so that no link can compress them.
fn fill(bytes: &mut [u8]) {
    let mut state = 0x9e37_79b9_u32;
    for byte in bytes {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        *byte = state as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parses_what_it_writes(number: u32, extra in 0_usize..100, cut in 0_usize..100, v4: bool) {
            let mut payload = vec![0; LEAST_PAYLOAD + extra];
            Probe { number }.write_udp(&mut payload);
            let quoted = &payload[..cut.min(payload.len())];
            let expected = (quoted.len() >= LEAST_PAYLOAD).then_some(Probe { number });
            prop_assert_eq!(Probe::read_udp(quoted), expected);

            let mut message = vec![0; HEADER + extra];
            Probe { number }.write_echo(v4, 77, &mut message);
            let read = Probe::read_echo(v4, &message, false).unwrap();
            prop_assert_eq!(read.number as u16, number as u16);
            prop_assert_eq!(Echo::read(v4, &message).map(|echo| echo.identifier), Some(77));
            prop_assert_eq!(Probe::read_echo(v4, &message, true), None);
        }

        #[test]
        fn parses_any_bytes_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..64), v4: bool, reply: bool) {
            let _ = Probe::read_udp(&bytes);
            let _ = Probe::read_echo(v4, &bytes, reply);
        }
    }
}
