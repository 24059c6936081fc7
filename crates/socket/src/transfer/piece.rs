//! File contents on their way from the network to the disk.

use std::io::{self, IoSlice, Write};

use crate::payload::SharedBytes;

/// Consecutive bytes of a file.
#[derive(Debug)]
pub enum Piece {
    /// Copied from short datagrams.
    Copied(Vec<u8>),
    /// The receive buffers of long datagrams.
    Shared(Vec<SharedBytes>),
}

impl Default for Piece {
    fn default() -> Self {
        Self::Copied(Vec::new())
    }
}

impl Piece {
    /// Returns the number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts().map(<[u8]>::len).sum()
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes in order.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let (copied, shared) = match self {
            Self::Copied(bytes) => (Some(&bytes[..]), &[][..]),
            Self::Shared(parts) => (None, &parts[..]),
        };
        copied.into_iter().chain(shared.iter().map(|part| &**part))
    }

    /// Writes all bytes to `file`.
    ///
    /// # Errors
    /// The writer's; `WriteZero` if it takes no more bytes.
    pub fn write_to(&self, file: &mut impl Write) -> io::Result<()> {
        let mut parts: Vec<IoSlice<'_>> = self.parts().map(IoSlice::new).collect();
        let mut left = &mut parts[..];
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            match file.write_vectored(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut left, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns the emptied buffer of copied bytes, for reuse.
    #[must_use]
    pub fn into_spare(self) -> Option<Vec<u8>> {
        match self {
            Self::Copied(mut bytes) => {
                bytes.clear();
                Some(bytes)
            }
            Self::Shared(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::datagrams::MIN_SHARED;

    /// Takes a few bytes at a time.
    struct Slow(Vec<u8>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(40_000);
            self.0.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn writes_all_parts_in_order() {
        let buffer = |byte| Arc::new(vec![byte; MIN_SHARED + 2]);
        let shared = |byte| SharedBytes::new(&buffer(byte), 1..MIN_SHARED + 1).unwrap();
        let pieces = [
            Piece::default(),
            Piece::Copied(b"abc".to_vec()),
            Piece::Shared(vec![shared(b'd'), shared(b'e')]),
        ];
        let mut out = Slow(Vec::new());
        for piece in &pieces {
            piece.write_to(&mut out).unwrap();
        }
        let expected = [&b"abc"[..], &[b'd'; MIN_SHARED], &[b'e'; MIN_SHARED]].concat();
        assert!(out.0 == expected);
        assert_eq!(pieces.map(|piece| piece.len()), [0, 3, 2 * MIN_SHARED]);
    }

    #[test]
    fn a_short_part_does_not_keep_its_buffer() {
        let buffer = Arc::new(vec![0; MIN_SHARED + 2]);
        assert!(SharedBytes::new(&buffer, 0..MIN_SHARED - 1).is_none());
        let shared = SharedBytes::new(&buffer, 0..MIN_SHARED + 1).unwrap();
        assert_eq!(shared.part(1..MIN_SHARED + 1).unwrap().len(), MIN_SHARED);
        assert!(shared.part(0..MIN_SHARED - 1).is_none());
    }
}
