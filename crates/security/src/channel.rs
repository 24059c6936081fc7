//! Protected frames: the record layer between a connection and its datagrams.

use std::convert::Infallible;
use std::ops::Range;

use transport::arq::Frame;
use transport::arq::codec::{self, Layout};
use transport::arq::frame::Payload;
use transport::arq::sequence::{expand, truncate};
use zeroize::Zeroizing;

use crate::replay::ReplayWindow;
use crate::traffic::{Cipher, RECORDS_PER_KEY, TrafficKey};

/// Forged records after which a channel opens no more (RFC 8446's and RFC 9001's limits are 2^36 and higher).
const MAX_FORGERIES: u64 = 1 << 35;

/// Why a record was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Not a protected frame.
    #[error("not a protected frame")]
    Malformed,
    /// It has arrived before, or its number is below the replay window.
    #[error("replayed")]
    Replayed,
    /// The tag is wrong: a different key, or changed bytes.
    #[error("not authentic")]
    Forged,
}

/// Both directions of a connection.
#[derive(Debug)]
pub struct Channel {
    sending: Sealer,
    receiving: Opener,
    cipher: Cipher,
}

#[derive(Debug)]
struct Sealer {
    key: TrafficKey,
    next: u64,
}

#[derive(Debug)]
struct Opener {
    /// The key of the highest record, and its neighbours: records of the previous key may arrive late.
    keys: [Option<TrafficKey>; 3],
    /// Which key the middle one is.
    epoch: u64,
    replay: ReplayWindow,
    opened_newest: bool,
    forged: u64,
}

impl Channel {
    /// Creates a channel from the secrets of both directions.
    #[must_use]
    pub(crate) fn new(cipher: Cipher, sending: Zeroizing<[u8; 32]>, receiving: Zeroizing<[u8; 32]>) -> Self {
        let first = TrafficKey::new(cipher, receiving);
        let second = first.next();
        Self {
            sending: Sealer {
                key: TrafficKey::new(cipher, sending),
                next: 0,
            },
            receiving: Opener {
                keys: [None, Some(first), Some(second)],
                epoch: 0,
                replay: ReplayWindow::default(),
                opened_newest: false,
                forged: 0,
            },
            cipher,
        }
    }

    /// Returns the cipher.
    #[must_use]
    pub const fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// Appends `frame` as a record to `out`; `append` appends the payload. Bytes that it leaves out are 0.
    pub fn seal<P: Payload>(
        &mut self,
        frame: &Frame<P>,
        out: &mut Vec<u8>,
        append: impl FnOnce(&P, &mut Vec<u8>),
    ) {
        let number = self.sending.take_number();
        let start = out.len();
        let written: Result<usize, Infallible> =
            codec::write(Layout::PROTECTED, truncate(number), frame, out, |payload, out| {
                append(payload, out);
                Ok(())
            });
        let Ok(payload_at) = written;
        let (header, payload) = out[start..].split_at_mut(payload_at - start);
        let tag = self.sending.key.seal(number, header, payload);
        out.extend_from_slice(&tag);
    }

    /// Whether the record that was opened last is the newest one, which shows the peer's current address.
    #[must_use]
    pub const fn opened_newest(&self) -> bool {
        self.receiving.opened_newest
    }

    /// Verifies and decrypts the record in `bytes` in place; the payload is returned as a range of `bytes`.
    ///
    /// # Errors
    /// [`OpenError`]; the channel is unchanged then, except for a counter.
    pub fn open(&mut self, bytes: &mut [u8]) -> Result<Frame<Range<usize>>, OpenError> {
        self.receiving.open(bytes)
    }
}

impl Sealer {
    fn take_number(&mut self) -> u64 {
        let number = self.next;
        if number > 0 && number.is_multiple_of(RECORDS_PER_KEY) {
            self.key = self.key.next();
        }
        self.next += 1;
        number
    }
}

impl Opener {
    fn open(&mut self, bytes: &mut [u8]) -> Result<Frame<Range<usize>>, OpenError> {
        let record = codec::read(Layout::PROTECTED, bytes).map_err(|_| OpenError::Malformed)?;
        // The handshake replaces the set-up frames.
        if record.frame.handshake.is_some() || self.forged >= MAX_FORGERIES {
            return Err(OpenError::Malformed);
        }
        let number = expand(self.replay.next(), record.check);
        if !self.replay.is_new(number) {
            return Err(OpenError::Replayed);
        }
        let epoch = number / RECORDS_PER_KEY;
        let key = (epoch + 1)
            .checked_sub(self.epoch)
            .and_then(|slot| self.keys.get(usize::try_from(slot).ok()?)?.as_ref());
        let (header, payload) = bytes.split_at_mut(record.payload_at);
        if !key.is_some_and(|key| key.open(number, header, payload)) {
            self.forged += 1;
            return Err(OpenError::Forged);
        }
        self.opened_newest = number >= self.replay.next();
        self.replay.record(number);
        if epoch > self.epoch {
            self.keys.rotate_left(1);
            self.keys[2] = self.keys[1].as_ref().map(TrafficKey::next);
            self.epoch = epoch;
        }
        Ok(record.frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use transport::arq::StreamRange;
    use transport::arq::frame::FrameType;

    fn pair(cipher: Cipher) -> (Channel, Channel) {
        let (a, b) = (Zeroizing::new([1; 32]), Zeroizing::new([2; 32]));
        (
            Channel::new(cipher, a.clone(), b.clone()),
            Channel::new(cipher, b, a),
        )
    }

    fn data(sequence: u32, length: u32) -> Frame<StreamRange> {
        let mut frame = Frame::new(FrameType::Data, 7);
        frame.sequence = sequence;
        frame.acknowledgement = 11;
        frame.sack.push(3, 5);
        frame.payload = Some(StreamRange { offset: 0, length });
        frame
    }

    fn seal(channel: &mut Channel, frame: &Frame<StreamRange>) -> Vec<u8> {
        let mut bytes = vec![9, 9];
        channel.seal(frame, &mut bytes, |range, out| {
            out.extend(std::iter::repeat_n(0xab, range.length as usize));
        });
        bytes.split_off(2)
    }

    const CIPHERS: [Cipher; 2] = [Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305];

    #[test]
    fn the_header_is_readable_and_the_payload_is_not() {
        for cipher in CIPHERS {
            let (mut a, mut b) = pair(cipher);
            let mut bytes = seal(&mut a, &data(77, 100));
            assert_eq!(Layout::of(&bytes), Some(Layout::PROTECTED));
            let seen = codec::read(Layout::PROTECTED, &bytes).unwrap().frame;
            assert_eq!((seen.sequence, seen.acknowledgement), (77, 11));
            assert!(!bytes.windows(4).any(|part| part == [0xab; 4]));
            let frame = b.open(&mut bytes).unwrap();
            assert_eq!(frame.sequence, 77);
            assert_eq!(bytes[frame.payload.unwrap()], [0xab; 100]);
        }
    }

    #[test]
    fn a_repeated_transmission_is_a_different_record() {
        let (mut a, mut b) = pair(Cipher::Aes128Gcm);
        let (mut first, mut again) = (seal(&mut a, &data(1, 50)), seal(&mut a, &data(1, 50)));
        assert_ne!(first[40..90], again[40..90], "the same nonce twice");
        assert!(b.open(&mut again).is_ok() && b.opened_newest());
        assert!(b.open(&mut first).is_ok() && !b.opened_newest());
    }

    #[test]
    fn rejects_replays_and_reflections() {
        for cipher in CIPHERS {
            let (mut a, mut b) = pair(cipher);
            let bytes = seal(&mut a, &data(1, 50));
            assert!(b.open(&mut bytes.clone()).is_ok());
            assert_eq!(b.open(&mut bytes.clone()), Err(OpenError::Replayed));
            assert_eq!(a.open(&mut bytes.clone()), Err(OpenError::Forged));
        }
    }

    #[test]
    fn rejects_the_set_up_frames_that_the_handshake_replaces() {
        use transport::arq::frame::{Handshake, Parameters};
        let (mut a, mut b) = pair(Cipher::Aes128Gcm);
        let mut frame: Frame<StreamRange> = Frame::new(FrameType::Open, 7);
        let parameters = Parameters {
            protocol: 1,
            segment_size: 1,
            acknowledge_every: 1,
            acknowledge_delay: 1,
        };
        frame.handshake = Some(Box::new(Handshake {
            token: [0; 24],
            parameters,
        }));
        assert_eq!(b.open(&mut seal(&mut a, &frame)), Err(OpenError::Malformed));
    }

    #[test]
    fn keys_change_with_the_record_number() {
        let (mut a, mut b) = pair(Cipher::Aes128Gcm);
        for epoch in 0..4 {
            let number = (epoch + 1) * RECORDS_PER_KEY - 1;
            a.sending.next = number;
            let last = seal(&mut a, &data(1, 9));
            let mut first = seal(&mut a, &data(2, 9));
            assert_eq!(a.sending.next, number + 2);
            // The first record of the new key overtakes the last one of the old key.
            assert!(b.open(&mut first).is_ok(), "{epoch}");
            assert!(b.open(&mut last.clone()).is_ok(), "{epoch}");
            assert_eq!(b.open(&mut last.clone()), Err(OpenError::Replayed));
        }
        let secrets: std::collections::BTreeSet<_> = b
            .receiving
            .keys
            .iter()
            .flatten()
            .map(|key| format!("{:?}", key.seal(0, &[], &mut [])))
            .collect();
        assert_eq!(secrets.len(), 3);
    }

    proptest! {
        #[test]
        fn detects_every_changed_bit(
            length in 1_u32..80, flips in prop::collection::vec(any::<prop::sample::Index>(), 1..3), chacha: bool,
        ) {
            let (mut a, mut b) = pair(CIPHERS[usize::from(chacha)]);
            let bytes = seal(&mut a, &data(1, length));
            let flips: std::collections::BTreeSet<_> = flips.iter().map(|f| f.index(bytes.len() * 8)).collect();
            let mut changed = bytes.clone();
            for bit in flips {
                changed[bit / 8] ^= 1 << (bit % 8);
            }
            prop_assert!(b.open(&mut changed).is_err());
            prop_assert!(b.open(&mut bytes.clone()).is_ok());
        }

        #[test]
        fn rejects_truncated_and_padded_records(length in 1_u32..80, cut in any::<prop::sample::Index>()) {
            let (mut a, mut b) = pair(Cipher::Aes128Gcm);
            let bytes = seal(&mut a, &data(1, length));
            prop_assert!(b.open(&mut bytes[..cut.index(bytes.len())].to_vec()).is_err());
            prop_assert!(b.open(&mut [&bytes[..], &[0]].concat()).is_err());
        }

        #[test]
        fn rejects_any_bytes_without_a_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0_u8..16) {
            let (_, mut b) = pair(Cipher::ChaCha20Poly1305);
            prop_assert!(b.open(&mut bytes.clone()).is_err());
            if let Some(first) = bytes.first_mut() {
                *first = 0x20 | kind;
            }
            prop_assert!(b.open(&mut bytes).is_err());
        }
    }
}
