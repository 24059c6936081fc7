//! Events of the files that a receiver reports.

use foundation::Duration;

/// Progress of a file. `file` is the number of the sender's offer: names change, and several files of one connection
/// may have the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileEvent {
    /// The contents of a file start to arrive.
    Started {
        /// Its number.
        file: u32,
        /// Its name.
        name: String,
        /// Its size, if the sender knows it.
        size: Option<u64>,
        /// Bytes already present from an earlier transfer.
        resumed: u64,
    },
    /// A file is complete and has its final name.
    Stored {
        /// Its number.
        file: u32,
        /// The name under which it was offered.
        offered: String,
        /// Its final name.
        name: String,
        /// Its size.
        size: u64,
        /// Whether an identical file existed already.
        already: bool,
        /// Time since its offer.
        took: Duration,
    },
    /// A file was not received.
    Failed {
        /// Its number.
        file: u32,
        /// Its name, made printable.
        name: String,
        /// Why, in one line.
        reason: String,
    },
}
