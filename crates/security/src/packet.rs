//! Datagrams of the handshake.
//!
//! ```text
//!  0               1               2               3
//! +-------+-------+---------------+-------------------------------+
//! |   2   | type  | method/reason |   length of the Noise message |
//! +-------+-------+---------------+-------------------------------+
//! |                          connection                           |
//! +---------------------------------------------------------------+
//! | Hello and Retry: token (24)                                   |
//! | Hello, Reply and Finish: Noise message                        |
//! | Hello: zeros up to 192 bytes                                  |
//! ```
//!
//! A `Hello` is longer than any reply, so a forged source address gains nothing.

/// Length of every `Hello`.
pub const HELLO_LENGTH: usize = 192;
/// Length of a proof of address.
const TOKEN: usize = 24;
const HEAD: usize = 8;
const VERSION: u8 = 2;
/// The lowest type of a handshake datagram. Types outside of 10 to 14 are protected frames.
const HELLO: u8 = 10;
const RETRY: u8 = 11;
const REPLY: u8 = 12;
const FINISH: u8 = 13;
const REFUSAL: u8 = 14;

/// How the peers authenticate each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By a code that both know.
    Code,
    /// By keys that the other end trusts.
    Keys,
}

/// Why a listener refuses a connection. Refusals are not authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It accepts no more connections now.
    Busy,
    /// The code is wrong, or a newer one has replaced it.
    WrongCode,
    /// The key is not in its list.
    UntrustedKey,
    /// It requires a code.
    NeedsCode,
    /// It requires a key.
    NeedsKey,
    /// It accepts unprotected connections only.
    Unprotected,
    /// It has no such connection: it was restarted, or has closed it.
    Unknown,
    /// A relay on the path reports that the port is closed.
    Closed,
}

const REASONS: [Reason; 8] = [
    Reason::Busy,
    Reason::WrongCode,
    Reason::UntrustedKey,
    Reason::NeedsCode,
    Reason::NeedsKey,
    Reason::Unprotected,
    Reason::Unknown,
    Reason::Closed,
];

/// One handshake datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// The first message, from the opener.
    Hello {
        /// The method.
        method: Method,
        /// Proof of address; all zero if there is none.
        token: [u8; TOKEN],
        /// The Noise message.
        message: &'a [u8],
    },
    /// The listener requests a `Hello` with this token.
    Retry {
        /// The token.
        token: [u8; TOKEN],
    },
    /// The second Noise message, from the listener.
    Reply(&'a [u8]),
    /// The third Noise message, from the opener.
    Finish(&'a [u8]),
    /// The listener refuses.
    Refusal(Reason),
}

impl<'a> Packet<'a> {
    /// Returns the datagram.
    pub fn encode(&self, connection: u32) -> Vec<u8> {
        let (kind, detail, token, message): (_, _, &[u8], &[u8]) = match self {
            Self::Hello {
                method,
                token,
                message,
            } => (HELLO, *method as u8, token, message),
            Self::Retry { token } => (RETRY, 0, token, &[]),
            Self::Reply(message) => (REPLY, 0, &[], message),
            Self::Finish(message) => (FINISH, 0, &[], message),
            Self::Refusal(reason) => (REFUSAL, *reason as u8, &[], &[]),
        };
        let mut out = vec![VERSION << 4 | kind, detail];
        out.extend((message.len() as u16).to_be_bytes());
        out.extend(connection.to_be_bytes());
        out.extend(token);
        out.extend(message);
        if kind == HELLO {
            out.resize(HELLO_LENGTH, 0);
        }
        out
    }

    /// Returns the connection and the content of a datagram; `None` if it is not exactly one of these.
    pub fn decode(bytes: &'a [u8]) -> Option<(u32, Self)> {
        let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
        let connection = connection(bytes)?;
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let kind = head[0] & 0x0f;
        let expected = match kind {
            HELLO => HELLO_LENGTH - HEAD,
            RETRY => TOKEN,
            _ => length,
        };
        if head[0] >> 4 != VERSION || rest.len() != expected {
            return None;
        }
        let detail = match kind {
            HELLO | REFUSAL => 0,
            _ => head[1],
        };
        if detail != 0 || (length > 0) == matches!(kind, RETRY | REFUSAL) {
            return None;
        }
        let packet = match kind {
            HELLO => {
                let (token, rest) = rest.split_first_chunk()?;
                let (message, padding) = rest.split_at_checked(length)?;
                let method = [Method::Code, Method::Keys]
                    .into_iter()
                    .find(|method| *method as u8 == head[1])?;
                if padding.iter().any(|&byte| byte != 0) {
                    return None;
                }
                Self::Hello {
                    method,
                    token: *token,
                    message,
                }
            }
            RETRY => Self::Retry {
                token: *rest.first_chunk()?,
            },
            REPLY => Self::Reply(rest),
            FINISH => Self::Finish(rest),
            REFUSAL => Self::Refusal(*REASONS.get(usize::from(head[1]))?),
            _ => return None,
        };
        Some((connection, packet))
    }
}

/// Returns the connection of a protected frame or a handshake datagram; `None` for other datagrams.
pub fn connection(bytes: &[u8]) -> Option<u32> {
    let head = bytes.first_chunk::<HEAD>()?;
    (head[0] >> 4 == VERSION).then(|| u32::from_be_bytes([head[4], head[5], head[6], head[7]]))
}

/// A listener's short answer to a datagram that it does not admit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The connection.
    pub connection: u32,
    /// The reason.
    pub reason: Reason,
}

impl Refusal {
    /// Reads a refusal.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        match Packet::decode(bytes)? {
            (connection, Packet::Refusal(reason)) => Some(Self { connection, reason }),
            _ => None,
        }
    }

    /// Whether `bytes` have the type of a handshake datagram, in contrast to a protected frame.
    #[must_use]
    pub fn is_handshake(bytes: &[u8]) -> bool {
        bytes
            .first()
            .is_some_and(|first| first >> 4 == VERSION && (HELLO..=REFUSAL).contains(&(first & 0x0f)))
    }

    /// Returns the refusal of a protected frame or a handshake datagram. Other datagrams have none, and a refusal is
    /// never refused.
    #[must_use]
    pub fn of(datagram: &[u8], reason: Reason) -> Option<Vec<u8>> {
        let connection = connection(datagram)?;
        (datagram[0] & 0x0f != REFUSAL).then(|| Packet::Refusal(reason).encode(connection))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refuses_protected_datagrams_only() {
        let refusal = Refusal::of(&[0x24, 0, 0, 0, 0, 0, 0, 9], Reason::Unknown).unwrap();
        assert_eq!(
            Refusal::decode(&refusal),
            Some(Refusal {
                connection: 9,
                reason: Reason::Unknown
            })
        );
        assert_eq!(Refusal::of(&refusal, Reason::Unknown), None);
        assert_eq!(Refusal::of(&[0x14, 0, 0, 0, 0, 0, 0, 9], Reason::Unknown), None);
        assert_eq!(Refusal::of(&[0x24, 0, 0], Reason::Unknown), None);
    }

    proptest! {
        #[test]
        fn packets_survive_encoding(
            connection: u32, choice in 0..5, number in 0_usize..8,
            token: [u8; 24], message in prop::collection::vec(any::<u8>(), 1..150),
        ) {
            let method = if number % 2 == 0 { Method::Code } else { Method::Keys };
            let packet = match choice {
                0 => Packet::Hello { method, token, message: &message },
                1 => Packet::Retry { token },
                2 => Packet::Reply(&message),
                3 => Packet::Finish(&message),
                _ => Packet::Refusal(REASONS[number]),
            };
            let bytes = packet.encode(connection);
            prop_assert!(bytes.len() <= HELLO_LENGTH);
            prop_assert_eq!(Packet::decode(&bytes), Some((connection, packet)));
            for cut in 0..bytes.len() {
                prop_assert_eq!(Packet::decode(&bytes[..cut]), None);
            }
            let padded = [&bytes[..], &[0]].concat();
            prop_assert_eq!(Packet::decode(&padded), None);
        }

        #[test]
        fn decoded_packets_encode_to_the_same_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..250), kind: u8) {
            if bytes.len() >= HEAD {
                bytes[0] = 0x20 | (kind & 0x0f);
                let length = bytes.len() - HEAD;
                bytes[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            }
            if let Some((connection, packet)) = Packet::decode(&bytes) {
                prop_assert_eq!(packet.encode(connection), bytes);
            }
        }
    }
}
