//! What the two ends of a file transfer say to each other.
//!
//! Either stream begins with [`GREETING`]. Then come messages: kind (1 byte), length of the body
//! (4 bytes, big-endian), body. The bytes of a file follow its [`Message::Begin`] without any
//! framing, and its [`Message::End`] follows them.
//!
//! ```text
//! sender                                   receiver
//! Offer {file, size, name}          →
//!                                   ←      Have {file, offset, hash of what is held}
//! Differs {file}                    →      (what is held is not how the file begins: try again)
//!                                   ←      Have {file, 0, hash of nothing}
//! Begin {file, offset}, bytes, End  →
//!                                   ←      Stored {file, name}
//! Farewell                          →      (no more offers)
//! ```

/// What either stream begins with: what this is, and its version.
pub const GREETING: [u8; 16] = *b"longfat files 1\n";
/// The longest body of a message.
pub const MAX_BODY: usize = 4096;
/// Bytes before the body.
pub const HEAD: usize = 5;
/// Offers that may wait for their `Stored` or `Refused` at a time.
pub const MAX_OFFERS: usize = 8;
/// The longest text in a message, in bytes.
const MAX_TEXT: usize = 1024;

/// One message. `file` numbers the offers of a connection from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The sender has this file.
    Offer(Offer),
    /// The receiver holds the first `offset` bytes of it, whose BLAKE3 is `hash`.
    Have {
        /// The file.
        file: u32,
        /// Bytes held.
        offset: u64,
        /// Their hash.
        hash: [u8; 32],
    },
    /// The file does not begin like that.
    Differs {
        /// The file.
        file: u32,
    },
    /// It does; the bytes from `offset` to the end follow.
    Begin {
        /// The file.
        file: u32,
        /// Where they begin.
        offset: u64,
    },
    /// The bytes have ended; this is the BLAKE3 of the whole file.
    End {
        /// The file.
        file: u32,
        /// The hash.
        hash: [u8; 32],
    },
    /// The sender cannot send the file, or what it has sent is not valid.
    Withdraw {
        /// The file.
        file: u32,
        /// Why, in one line.
        reason: String,
    },
    /// The file is whole and in its place.
    Stored {
        /// The file.
        file: u32,
        /// Whether it was there already.
        already: bool,
        /// The name that it has.
        name: String,
    },
    /// The receiver does not take the file.
    Refused {
        /// The file.
        file: u32,
        /// Why, in one line.
        reason: String,
    },
    /// There will be no more offers.
    Farewell,
}

/// What the sender says of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The file.
    pub file: u32,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last modified, in nanoseconds since 1970; 0 if not known.
    pub modified: u64,
    /// Whether it is a program.
    pub executable: bool,
    /// Its name, without directories.
    pub name: String,
}

const OFFER: u8 = 1;
const HAVE: u8 = 2;
const DIFFERS: u8 = 3;
const BEGIN: u8 = 4;
const END: u8 = 5;
const WITHDRAW: u8 = 6;
const STORED: u8 = 7;
const REFUSED: u8 = 8;
const FAREWELL: u8 = 9;

/// Text from the peer made fit for a terminal: one line, nothing that moves the cursor.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() || super::name::is_invisible(c) {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

fn shorten(text: &str) -> &[u8] {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text.as_bytes()[..end]
}

impl Message {
    /// The message as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; HEAD];
        let kind = match self {
            Self::Offer(offer) => {
                out.extend(offer.file.to_be_bytes());
                out.extend(offer.size.to_be_bytes());
                out.extend(offer.modified.to_be_bytes());
                out.push(offer.executable.into());
                out.extend(shorten(&offer.name));
                OFFER
            }
            Self::Have { file, offset, hash } => {
                out.extend(file.to_be_bytes());
                out.extend(offset.to_be_bytes());
                out.extend(hash);
                HAVE
            }
            Self::Differs { file } => {
                out.extend(file.to_be_bytes());
                DIFFERS
            }
            Self::Begin { file, offset } => {
                out.extend(file.to_be_bytes());
                out.extend(offset.to_be_bytes());
                BEGIN
            }
            Self::End { file, hash } => {
                out.extend(file.to_be_bytes());
                out.extend(hash);
                END
            }
            Self::Withdraw { file, reason } => {
                out.extend(file.to_be_bytes());
                out.extend(shorten(reason));
                WITHDRAW
            }
            Self::Stored { file, already, name } => {
                out.extend(file.to_be_bytes());
                out.push((*already).into());
                out.extend(shorten(name));
                STORED
            }
            Self::Refused { file, reason } => {
                out.extend(file.to_be_bytes());
                out.extend(shorten(reason));
                REFUSED
            }
            Self::Farewell => FAREWELL,
        };
        let length = (out.len() - HEAD) as u32;
        out[0] = kind;
        out[1..HEAD].copy_from_slice(&length.to_be_bytes());
        out
    }

    /// The message of this kind and body; `None` for what is none.
    #[must_use]
    pub fn decode(kind: u8, body: &[u8]) -> Option<Self> {
        let mut rest = Reader { body };
        let message = match kind {
            OFFER => Self::Offer(Offer {
                file: rest.number()?,
                size: rest.long()?,
                modified: rest.long()?,
                executable: rest.flag()?,
                name: rest.text()?,
            }),
            HAVE => Self::Have {
                file: rest.number()?,
                offset: rest.long()?,
                hash: rest.take()?,
            },
            DIFFERS => Self::Differs { file: rest.number()? },
            BEGIN => Self::Begin {
                file: rest.number()?,
                offset: rest.long()?,
            },
            END => Self::End {
                file: rest.number()?,
                hash: rest.take()?,
            },
            WITHDRAW => Self::Withdraw {
                file: rest.number()?,
                reason: rest.text()?,
            },
            STORED => Self::Stored {
                file: rest.number()?,
                already: rest.flag()?,
                name: rest.text()?,
            },
            REFUSED => Self::Refused {
                file: rest.number()?,
                reason: rest.text()?,
            },
            FAREWELL => Self::Farewell,
            _ => return None,
        };
        rest.body.is_empty().then_some(message)
    }
}

struct Reader<'a> {
    body: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.body.split_first_chunk()?;
        self.body = rest;
        Some(*head)
    }

    fn number(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.take()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fn text(&mut self) -> Option<String> {
        let text = std::str::from_utf8(self.body).ok()?.to_owned();
        self.body = &[];
        Some(text)
    }
}

/// What a [`Parser`] finds next.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// A whole message.
    Message(Message),
    /// Bytes of a file.
    Data(&'a [u8]),
}

/// Cuts a stream that arrives in pieces into messages and the bytes of files.
#[derive(Debug, Default)]
pub struct Parser {
    greeted: bool,
    /// The beginning of something that has not arrived whole.
    partial: Vec<u8>,
    /// Bytes of a file still to come.
    data: u64,
}

impl Parser {
    /// The next `bytes` bytes belong to a file.
    pub const fn expect_data(&mut self, bytes: u64) {
        self.data = bytes;
    }

    /// Takes the next thing off the front of `bytes`; `None` if there is nothing whole.
    ///
    /// # Errors
    /// What is wrong, if the peer does not speak this language.
    pub fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<Parsed<'a>>, &'static str> {
        if self.data > 0 {
            if bytes.is_empty() {
                return Ok(None);
            }
            let length = usize::try_from(self.data).unwrap_or(usize::MAX).min(bytes.len());
            let (data, rest) = bytes.split_at(length);
            *bytes = rest;
            self.data -= length as u64;
            return Ok(Some(Parsed::Data(data)));
        }
        if !self.greeted {
            if !self.gather(bytes, GREETING.len()) {
                return Ok(None);
            }
            if self.partial != GREETING {
                return Err("the peer does not transfer files, or is of another version");
            }
            self.greeted = true;
            self.partial.clear();
        }
        if !self.gather(bytes, HEAD) {
            return Ok(None);
        }
        let length = u32::from_be_bytes([self.partial[1], self.partial[2], self.partial[3], self.partial[4]]);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > MAX_BODY {
            return Err("the peer sent a message that is too long");
        }
        if !self.gather(bytes, HEAD + length) {
            return Ok(None);
        }
        let message = Message::decode(self.partial[0], &self.partial[HEAD..])
            .ok_or("the peer sent a message that makes no sense")?;
        self.partial.clear();
        Ok(Some(Parsed::Message(message)))
    }

    /// Moves bytes until `partial` has `length`; says whether it has.
    fn gather(&mut self, bytes: &mut &[u8], length: usize) -> bool {
        let missing = length.saturating_sub(self.partial.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(missing);
        self.partial.extend_from_slice(head);
        *bytes = rest;
        self.partial.len() >= length
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_message() -> impl Strategy<Value = Message> {
        let (file, long, hash, text) = (any::<u32>(), any::<u64>(), any::<[u8; 32]>(), ".{0,40}");
        prop_oneof![
            (file, long, long, any::<bool>(), text).prop_map(|(file, size, modified, executable, name)| {
                Message::Offer(Offer {
                    file,
                    size,
                    modified,
                    executable,
                    name,
                })
            }),
            (file, long, hash).prop_map(|(file, offset, hash)| Message::Have { file, offset, hash }),
            file.prop_map(|file| Message::Differs { file }),
            (file, hash).prop_map(|(file, hash)| Message::End { file, hash }),
            (file, text).prop_map(|(file, reason)| Message::Withdraw { file, reason }),
            (file, any::<bool>(), text).prop_map(|(file, already, name)| Message::Stored {
                file,
                already,
                name
            }),
            (file, text).prop_map(|(file, reason)| Message::Refused { file, reason }),
            Just(Message::Farewell),
        ]
    }

    proptest! {
        #[test]
        fn a_stream_in_pieces_is_read_back(
            messages in prop::collection::vec((any_message(), prop::collection::vec(any::<u8>(), 0..50)), 0..8),
            cuts in prop::collection::vec(1_usize..30, 1..50),
        ) {
            let mut stream = GREETING.to_vec();
            for (message, data) in &messages {
                stream.extend(message.encode());
                stream.extend(data);
            }
            let (mut parser, mut read, mut data) = (Parser::default(), 0, Vec::new());
            let mut cuts = cuts.into_iter().cycle();
            let mut rest = &stream[..];
            while !rest.is_empty() {
                let (mut piece, after) = rest.split_at(cuts.next().unwrap().min(rest.len()));
                rest = after;
                while let Some(parsed) = parser.next(&mut piece).unwrap() {
                    match parsed {
                        Parsed::Message(message) => {
                            prop_assert_eq!(&message, &messages[read].0);
                            parser.expect_data(messages[read].1.len() as u64);
                            read += 1;
                            data.clear();
                        }
                        Parsed::Data(bytes) => data.extend_from_slice(bytes),
                    }
                    if data.len() == messages[read - 1].1.len() {
                        prop_assert_eq!(&data, &messages[read - 1].1);
                    }
                }
            }
            prop_assert_eq!(read, messages.len());
        }

        #[test]
        fn nonsense_is_refused_and_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut parser = Parser { greeted: true, ..Parser::default() };
            let mut rest = &bytes[..];
            while let Ok(Some(_)) = parser.next(&mut rest) {}
            prop_assert!(parser.partial.len() <= HEAD + MAX_BODY);
        }
    }

    #[test]
    fn another_language_is_noticed() {
        let mut bytes = &b"GET / HTTP/1.1\r\nHost: x"[..];
        assert!(Parser::default().next(&mut bytes).is_err());
    }
}
