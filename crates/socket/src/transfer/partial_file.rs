//! A file in reception, before it has its name.

use std::fs::File;
use std::io;

use super::budget::Reservation;
use super::checksum::Checksum;

/// An incomplete file, open and locked.
#[derive(Debug)]
pub struct PartialFile {
    /// Its name.
    pub name: String,
    /// The file.
    pub file: File,
    /// The checksum of the bytes of this transfer.
    pub checksum: Checksum,
    /// Bytes present.
    pub length: u64,
    /// Offset of the first byte of this transfer; `None` before that byte.
    pub started_at: Option<u64>,
    /// Room for the bytes that are missing.
    pub reserved: Reservation,
}

impl PartialFile {
    /// On a full disk, truncates the file to the bytes of earlier transfers, because the rest would keep the disk
    /// full. An empty file is removed with its transfer.
    pub fn give_back_room(&mut self, error: &io::Error) {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        if matches!(error.kind(), StorageFull | QuotaExceeded) {
            self.length = self.started_at.unwrap_or(0);
            // On failure the file simply stays larger for a later transfer.
            let _ = self.file.set_len(self.length);
        }
    }
}
