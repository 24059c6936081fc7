//! The hash of a file's first bytes, which both ends compare before they resume a transfer.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes read at a time; cancellation is checked between pieces.
const PIECE: usize = 1 << 20;

/// Returns the BLAKE3 hash of the first `length` bytes of `file`, and leaves the file positioned behind them.
///
/// # Errors
/// Errors of reading, `UnexpectedEof` for a shorter file, `Interrupted` once `cancelled` is set.
pub fn hash(file: &mut File, length: u64, cancelled: &AtomicBool) -> io::Result<[u8; 32]> {
    file.seek(SeekFrom::Start(0))?;
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; PIECE.min(usize::try_from(length).unwrap_or(PIECE))];
    let mut left = length;
    while left > 0 {
        if cancelled.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let part = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        file.read_exact(&mut piece[..part])?;
        hasher.update(&piece[..part]);
        left -= part as u64;
    }
    Ok(hasher.finalize().into())
}
