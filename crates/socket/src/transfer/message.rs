//! Messages of a file transfer.
//!
//! Each stream starts with [`GREETING`], followed by messages: type (1 byte), length of the body (4 bytes,
//! big-endian), body. The contents of a file follow its [`Message::Begin`] without framing and precede its
//! [`Message::End`]. If the size was unknown at the offer, each part of the contents follows a [`Message::Chunk`] instead.
//!
//! ```text
//! sender                                   receiver
//! Announce {files, bytes}           →
//! Offer {file, size, name}          →
//!                                   ←      Have {file, offset, hash of the first offset bytes}
//! Differs {file}                    →      (the file starts differently: try again)
//!                                   ←      Have {file, 0, hash of nothing}
//! Begin {file, offset}, bytes, End  →
//!                                   ←      Stored {file, name}
//! Farewell                          →      (no more offers)
//! ```

/// First bytes of each stream: protocol and version. A change of the messages or of [`MAX_OFFERS`] needs a new version.
pub const GREETING: [u8; 16] = *b"longfat files 4\n";
/// The part of the greeting that all versions share.
const PROTOCOL: &[u8] = b"longfat files ";
/// The longest body of a message.
pub const MAX_BODY: usize = 4096;
/// Bytes before the body.
pub const HEAD: usize = 5;
/// Offers without a `Stored` or `Refused` at a time. Each lasts for two round trips and a flush of the receiver's disk:
/// 512 files of 10 kB fill a path of 200 Mbit/s for 0.2 s.
pub const MAX_OFFERS: usize = 512;
/// The longest text in a message, in bytes.
pub const MAX_TEXT: usize = 1024;

/// One message. `file` numbers the offers of a connection from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The sender's first message: upper bounds of its offers.
    Announce {
        /// Number of files.
        files: u32,
        /// Bytes of all files, if they are known.
        bytes: Option<u64>,
    },
    /// The sender offers this file.
    Offer(Offer),
    /// The receiver has the first `offset` bytes, whose BLAKE3 hash is `hash`.
    Have {
        /// The file.
        file: u32,
        /// Number of bytes.
        offset: u64,
        /// Their hash.
        hash: [u8; 32],
    },
    /// The file starts differently.
    Differs {
        /// The file.
        file: u32,
    },
    /// The file starts like that; the bytes from `offset` to the end follow.
    Begin {
        /// The file.
        file: u32,
        /// Position of the first byte.
        offset: u64,
    },
    /// The next `length` bytes of contents of unknown size follow.
    Chunk {
        /// The file.
        file: u32,
        /// Number of bytes.
        length: u32,
    },
    /// The contents are complete.
    End {
        /// The file.
        file: u32,
        /// The checksum of the bytes from the offset on; 0 in a protected connection, whose packets are authenticated.
        checksum: u128,
    },
    /// The sender cannot send the file, or has sent invalid contents.
    Withdraw {
        /// The file.
        file: u32,
        /// Why, in one line.
        reason: String,
    },
    /// The file is complete and has its final name.
    Stored {
        /// The file.
        file: u32,
        /// Whether an identical file existed already.
        already: bool,
        /// Its final name.
        name: String,
    },
    /// The receiver rejects the file.
    Refused {
        /// The file.
        file: u32,
        /// Why, in one line.
        reason: String,
    },
    /// No more offers follow.
    Farewell,
}

/// Description of an offered file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The file.
    pub file: u32,
    /// Its size in bytes; `None` if it is not known yet.
    pub size: Option<u64>,
    /// Modification time in nanoseconds since 1970; 0 if not known.
    pub modified: u64,
    /// Whether it is executable.
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
const ANNOUNCE: u8 = 10;
const CHUNK: u8 = 11;
/// Encodes an unknown number of bytes.
const UNKNOWN: u64 = u64::MAX;

/// Makes text from the peer safe for a terminal: one line without control characters.
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
    /// Returns the message as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; HEAD];
        let kind = match self {
            Self::Offer(offer) => {
                out.extend(offer.file.to_be_bytes());
                out.extend(offer.size.unwrap_or(UNKNOWN).to_be_bytes());
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
            Self::Chunk { file, length } => {
                out.extend(file.to_be_bytes());
                out.extend(length.to_be_bytes());
                CHUNK
            }
            Self::End { file, checksum } => {
                out.extend(file.to_be_bytes());
                out.extend(checksum.to_be_bytes());
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
            Self::Announce { files, bytes } => {
                out.extend(files.to_be_bytes());
                out.extend(bytes.unwrap_or(UNKNOWN).to_be_bytes());
                ANNOUNCE
            }
        };
        let length = (out.len() - HEAD) as u32;
        out[0] = kind;
        out[1..HEAD].copy_from_slice(&length.to_be_bytes());
        out
    }

    /// Returns the message of this type and body; `None` if they are invalid.
    #[must_use]
    pub fn decode(kind: u8, body: &[u8]) -> Option<Self> {
        let mut rest = Reader { body };
        let message = match kind {
            OFFER => Self::Offer(Offer {
                file: rest.number()?,
                size: rest.size()?,
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
            CHUNK => Self::Chunk {
                file: rest.number()?,
                length: rest.number()?,
            },
            END => Self::End {
                file: rest.number()?,
                checksum: u128::from_be_bytes(rest.take()?),
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
            ANNOUNCE => Self::Announce {
                files: rest.number()?,
                bytes: rest.size()?,
            },
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

    /// A number of bytes, if it is known.
    fn size(&mut self) -> Option<Option<u64>> {
        self.long()
            .map(|bytes| Some(bytes).filter(|&bytes| bytes != UNKNOWN))
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

/// One item of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// A complete message.
    Message(Message),
    /// Bytes of a file.
    Data(&'a [u8]),
}

/// Splits a stream that arrives in pieces into messages and file contents.
#[derive(Debug, Default)]
pub struct Parser {
    greeted: bool,
    /// The beginning of an incomplete message.
    partial: Vec<u8>,
    /// Bytes of file contents still to come.
    data: u64,
}

impl Parser {
    /// Treats the next `bytes` bytes as file contents.
    pub const fn expect_data(&mut self, bytes: u64) {
        self.data = bytes;
    }

    /// Whether bytes of file contents are expected.
    #[must_use]
    pub const fn expects_data(&self) -> bool {
        self.data > 0
    }

    /// Takes the next item off the front of `bytes`; `None` if it is incomplete.
    ///
    /// # Errors
    /// The violation, if the stream is not valid.
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
                return Err(match self.partial.starts_with(PROTOCOL) {
                    true => {
                        "the peer uses another version of the transfer protocol: install the same longfat at both ends"
                    }
                    false => "the peer does not transfer files with longfat",
                });
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
            .ok_or("the peer sent an invalid message")?;
        self.partial.clear();
        Ok(Some(Parsed::Message(message)))
    }

    /// Moves bytes until `partial` has `length`; returns whether it has.
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
        let known = prop_oneof![Just(None), (0..UNKNOWN).prop_map(Some)];
        prop_oneof![
            (file, known.clone(), long, any::<bool>(), text).prop_map(
                |(file, size, modified, executable, name)| {
                    Message::Offer(Offer {
                        file,
                        size,
                        modified,
                        executable,
                        name,
                    })
                }
            ),
            (file, long, hash).prop_map(|(file, offset, hash)| Message::Have { file, offset, hash }),
            file.prop_map(|file| Message::Differs { file }),
            (file, any::<u128>()).prop_map(|(file, checksum)| Message::End { file, checksum }),
            (file, text).prop_map(|(file, reason)| Message::Withdraw { file, reason }),
            (file, any::<bool>(), text).prop_map(|(file, already, name)| Message::Stored {
                file,
                already,
                name
            }),
            (file, text).prop_map(|(file, reason)| Message::Refused { file, reason }),
            Just(Message::Farewell),
            (file, known).prop_map(|(files, bytes)| Message::Announce { files, bytes }),
            (file, file).prop_map(|(file, length)| Message::Chunk { file, length }),
        ]
    }

    proptest! {
        #[test]
        fn parses_a_stream_in_pieces(
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
        fn refuses_invalid_bytes_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut parser = Parser { greeted: true, ..Parser::default() };
            let mut rest = &bytes[..];
            while let Ok(Some(_)) = parser.next(&mut rest) {}
            prop_assert!(parser.partial.len() <= HEAD + MAX_BODY);
        }
    }

    #[test]
    fn detects_other_protocols_and_versions() {
        for (greeting, error) in [
            (&b"GET / HTTP/1.1\r\nHost: x"[..], "does not transfer files"),
            (b"longfat files 2\n", "another version"),
        ] {
            let failure = Parser::default().next(&mut &*greeting).unwrap_err();
            assert!(failure.contains(error), "{failure}");
        }
    }
}
