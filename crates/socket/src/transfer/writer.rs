//! The thread that does a receiving connection's disk work: it finds, checks and writes files, and passes complete ones
//! to the publisher. The connection never waits for a disk.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use super::budget::{Budget, Reservation};
use super::checksum::Checksum;
use super::claims::Claim;
use super::directory::{Directory, Partial};
use super::message::Offer;
use super::partial_file::PartialFile;
use super::piece::Piece;
use super::publisher::{Complete, Publisher};
use super::{name, prefix};
use crate::system_error::plain;

/// Commands that may wait for the thread.
pub const QUEUE: usize = 8;
/// Simultaneous transfers of one name.
const MAX_SLOTS: u32 = 64;
/// Files whose names differ by number only.
pub const MAX_NUMBER: u32 = 999;

/// Commands to the thread. `u32`s are numbers of files.
#[derive(Debug)]
pub enum Command {
    /// A file is offered, and its name is claimed: report which part of it is present.
    Prepare(Offer, Claim),
    /// The present part differs from the offered file.
    Differs(u32),
    /// Bytes from this offset on follow.
    Begin(u32, u64),
    /// The next bytes.
    Write(u32, Piece),
    /// The file is complete. This is the checksum of its bytes from the offset on.
    End(u32, u128),
    /// The file will not be completed.
    Withdraw(u32),
}

/// Replies of the thread.
#[derive(Debug)]
pub enum Reply {
    /// This many bytes are present, with this hash.
    Have(u32, u64, [u8; 32]),
    /// The final name; `true` if an identical file existed already.
    Stored(u32, bool, String),
    /// The file is refused, for this reason.
    Refused(u32, String),
    /// A buffer for reuse.
    Spare(Vec<u8>),
}

/// Channels of the thread.
#[derive(Debug)]
pub struct Writer {
    /// Commands to the thread.
    pub commands: SyncSender<Command>,
    /// Replies from the thread.
    pub replies: Receiver<Reply>,
    /// Set to stop it early.
    pub cancelled: Arc<AtomicBool>,
}

impl Writer {
    /// Starts the thread of a connection.
    ///
    /// # Errors
    /// The system's, if no thread can be started.
    pub fn start(store: Store) -> io::Result<(Self, JoinHandle<()>)> {
        let (commands, inbox) = sync_channel(QUEUE);
        let (outbox, replies) = channel();
        let cancelled = Arc::new(AtomicBool::new(false));
        let mut work = Disk {
            publisher: Publisher::start(store.clone(), outbox.clone())?,
            store,
            cancelled: Arc::clone(&cancelled),
            files: HashMap::new(),
            outbox,
        };
        let thread = std::thread::Builder::new()
            .name("longfat-writer".into())
            .spawn(move || {
                while let Ok(command) = inbox.recv() {
                    work.handle(command);
                }
                let left: Vec<u32> = work.files.keys().copied().collect();
                for number in left {
                    work.forget(number, false);
                }
            })?;
        let writer = Self {
            commands,
            replies,
            cancelled,
        };
        Ok((writer, thread))
    }
}

/// What the threads of all connections share.
#[derive(Clone, Debug)]
pub struct Store {
    /// Where files go.
    pub directory: Arc<Directory>,
    /// The room for them.
    pub budget: Budget,
    /// Whether files may become executable.
    pub executables: bool,
    /// Whether senders send checksums of contents: where their packets are not authenticated.
    pub checks: bool,
}

impl Store {
    /// Reserves room for `bytes`.
    fn reserve(&self, bytes: u64) -> Result<Reservation, Refusal> {
        // A disk that does not report its free space is not limited by it.
        let free = self.directory.free().unwrap_or(u64::MAX);
        self.budget.reserve(bytes, free)
    }
}

struct Disk {
    store: Store,
    publisher: Publisher,
    cancelled: Arc<AtomicBool>,
    files: HashMap<u32, Incoming>,
    outbox: Sender<Reply>,
}

/// A file in transfer.
struct Incoming {
    offer: Offer,
    /// Existing files that may be identical.
    candidates: VecDeque<String>,
    local: LocalCopy,
    claim: Claim,
}

enum LocalCopy {
    Nothing,
    /// A complete file with this name.
    Existing(String),
    /// An empty file with this name, closed and not locked until its contents arrive.
    Empty {
        name: String,
        reserved: Reservation,
    },
    Partial(Box<PartialFile>),
}

/// Why a file is refused, in one line.
type Refusal = String;

impl Disk {
    fn handle(&mut self, command: Command) {
        let (number, result) = match command {
            Command::Prepare(offer, claim) => {
                let number = offer.file;
                let candidates = self.candidates(&offer);
                let local = LocalCopy::Nothing;
                self.files.insert(
                    number,
                    Incoming {
                        offer,
                        candidates,
                        local,
                        claim,
                    },
                );
                (number, self.propose(number))
            }
            Command::Differs(number) => (number, self.try_next(number)),
            Command::Begin(number, offset) => (number, self.begin(number, offset)),
            Command::Write(number, piece) => {
                let result = self.write(number, &piece);
                if let Some(spare) = piece.into_spare() {
                    let _ = self.outbox.send(Reply::Spare(spare));
                }
                (number, result)
            }
            Command::End(number, hash) => (number, self.end(number, hash)),
            Command::Withdraw(number) => {
                // If it was started, its contents are not those of one file.
                let started_at =
                    |file: &Incoming| matches!(&file.local, LocalCopy::Partial(p) if p.started_at.is_some());
                let spoiled = self.files.get(&number).is_some_and(started_at);
                self.forget(number, spoiled);
                return;
            }
        };
        match result {
            Ok(None) => {}
            // If the other end was dropped, the reply is no longer needed.
            Ok(Some(reply)) => drop(self.outbox.send(reply)),
            // A file is refused only once.
            Err(reason) => {
                if self.forget(number, false) {
                    drop(self.outbox.send(Reply::Refused(number, reason)));
                }
            }
        }
    }

    /// Releases a file that will not be completed now. Its partial contents stay, unless they are `spoiled` or empty.
    /// Returns whether there was such a file.
    fn forget(&mut self, number: u32, spoiled: bool) -> bool {
        let Some(incoming) = self.files.remove(&number) else {
            return false;
        };
        match &incoming.local {
            LocalCopy::Partial(partial)
                if spoiled || partial.length == 0 || incoming.offer.size.is_none() =>
            {
                let _ = self.store.directory.remove(&partial.name);
            }
            LocalCopy::Empty { name, .. } => {
                if let Some(_locked) = self.lock_empty(name) {
                    let _ = self.store.directory.remove(name);
                }
            }
            _ => {}
        }
        true
    }

    fn incoming(&mut self, number: u32) -> Result<&mut Incoming, Refusal> {
        self.files
            .get_mut(&number)
            .ok_or_else(|| "no such file was offered".to_owned())
    }

    fn cannot(&self, what: &str, name: &str, error: &io::Error) -> Refusal {
        let place = self.store.directory.path().join(name);
        format!("cannot {what} {}: {}", place.display(), plain(error))
    }

    /// Returns files of the same size under the name, or under the name with a number.
    fn candidates(&self, offer: &Offer) -> VecDeque<String> {
        let mut candidates = VecDeque::new();
        for number in 0..=MAX_NUMBER {
            let name = name::numbered(&offer.name, number);
            match self.store.directory.open_existing(&name) {
                Ok(Some(file)) => {
                    if file.metadata().is_ok_and(|m| Some(m.len()) == offer.size) {
                        candidates.push_back(name);
                    }
                }
                _ => break,
            }
        }
        candidates
    }

    fn propose(&mut self, number: u32) -> Result<Option<Reply>, Refusal> {
        while let Some(name) = self.incoming(number)?.candidates.pop_front() {
            let Ok(Some(mut file)) = self.store.directory.open_existing(&name) else {
                continue;
            };
            let Some(size) = self.incoming(number)?.offer.size else {
                continue;
            };
            if let Ok(hash) = prefix::hash(&mut file, size, &self.cancelled) {
                self.incoming(number)?.local = LocalCopy::Existing(name);
                return Ok(Some(Reply::Have(number, size, hash)));
            }
        }
        let (partial, hash) = self.open_partial(number)?;
        let reply = Reply::Have(number, partial.length, hash);
        self.incoming(number)?.local = match partial {
            // Of many small files, few are open at a time.
            PartialFile {
                length: 0,
                name,
                reserved,
                ..
            } => LocalCopy::Empty { name, reserved },
            partial => LocalCopy::Partial(Box::new(partial)),
        };
        Ok(Some(reply))
    }

    /// Opens the file of an interrupted transfer, or a new one. Returns it with the hash of what is present.
    fn open_partial(&mut self, number: u32) -> Result<(PartialFile, [u8; 32]), Refusal> {
        let offer = self.incoming(number)?.offer.clone();
        for slot in 0..MAX_SLOTS {
            let name = name::partial(&offer.name, slot);
            let mut file = match self.store.directory.open_partial(&name) {
                Ok(Partial::Mine(file)) => file,
                Ok(Partial::Taken) => continue,
                Err(error) => return Err(self.cannot("write", &name, &error)),
            };
            let failed = |error: io::Error| self.cannot("read", &name, &error);
            let mut length = file.metadata().map_err(failed)?.len();
            // Contents of unknown size cannot be resumed.
            if offer.size.is_none_or(|size| length > size) {
                length = 0;
            }
            file.set_len(length).map_err(failed)?;
            let hash = prefix::hash(&mut file, length, &self.cancelled).map_err(failed)?;
            let reserved = match self.store.reserve(offer.size.map_or(0, |size| size - length)) {
                Ok(reserved) => reserved,
                Err(reason) => {
                    if length == 0 {
                        let _ = self.store.directory.remove(&name);
                    }
                    return Err(reason);
                }
            };
            let partial = PartialFile {
                name,
                file,
                checksum: Checksum::new(self.store.checks),
                length,
                started_at: None,
                reserved,
            };
            return Ok((partial, hash));
        }
        Err(format!("{MAX_SLOTS} transfers of this name are unfinished"))
    }

    /// Opens and locks an empty file; `None` if another transfer uses it.
    fn lock_empty(&self, name: &str) -> Option<File> {
        match self.store.directory.open_partial(name) {
            Ok(Partial::Mine(file)) if file.metadata().is_ok_and(|m| m.len() == 0) => Some(file),
            _ => None,
        }
    }

    /// Opens the empty file of a transfer whose contents start: the proposed one, or another if that is in use meanwhile.
    fn open_empty(&self, offer: &Offer, proposed: &str) -> Result<(String, File), Refusal> {
        let others = (0..MAX_SLOTS).map(|slot| name::partial(&offer.name, slot));
        std::iter::once(proposed.to_owned())
            .chain(others)
            .find_map(|name| self.lock_empty(&name).map(|file| (name, file)))
            .ok_or_else(|| format!("cannot open a file for {}", offer.name))
    }

    fn try_next(&mut self, number: u32) -> Result<Option<Reply>, Refusal> {
        let incoming = self.incoming(number)?;
        match &mut incoming.local {
            LocalCopy::Existing(..) => {
                incoming.local = LocalCopy::Nothing;
                self.propose(number)
            }
            LocalCopy::Partial(partial) if partial.length > 0 && partial.started_at.is_none() => {
                partial.length = 0;
                let size = incoming.offer.size.unwrap_or(0);
                if let Err(error) = partial.file.set_len(0) {
                    let name = partial.name.clone();
                    return Err(self.cannot("write", &name, &error));
                }
                partial.reserved.release();
                let reserved = self.store.reserve(size)?;
                if let LocalCopy::Partial(partial) = &mut self.incoming(number)?.local {
                    partial.reserved = reserved;
                }
                Ok(Some(Reply::Have(number, 0, blake3::hash(b"").into())))
            }
            _ => Err("the sender rejected an empty prefix".to_owned()),
        }
    }

    fn begin(&mut self, number: u32, offset: u64) -> Result<Option<Reply>, Refusal> {
        let checks = self.store.checks;
        let incoming = self.incoming(number)?;
        match std::mem::replace(&mut incoming.local, LocalCopy::Nothing) {
            LocalCopy::Empty { name, reserved } if offset == 0 => {
                let offer = incoming.offer.clone();
                let (name, file) = self.open_empty(&offer, &name)?;
                self.incoming(number)?.local = LocalCopy::Partial(Box::new(PartialFile {
                    name,
                    file,
                    checksum: Checksum::new(checks),
                    length: 0,
                    started_at: Some(0),
                    reserved,
                }));
                return Ok(None);
            }
            local => incoming.local = local,
        }
        match &mut incoming.local {
            LocalCopy::Existing(..) if Some(offset) == incoming.offer.size => Ok(None),
            LocalCopy::Partial(partial) if offset == partial.length && partial.started_at.is_none() => {
                partial.started_at = Some(offset);
                if let Err(error) = partial.file.seek(SeekFrom::Start(offset)) {
                    let name = partial.name.clone();
                    return Err(self.cannot("write", &name, &error));
                }
                Ok(None)
            }
            _ => Err("the sender started at an offset that was not agreed".to_owned()),
        }
    }

    fn write(&mut self, number: u32, piece: &Piece) -> Result<Option<Reply>, Refusal> {
        let Some(Incoming {
            local: LocalCopy::Partial(partial),
            offer,
            ..
        }) = self.files.get_mut(&number)
        else {
            return Ok(None);
        };
        for bytes in piece.parts() {
            partial.checksum.update(bytes);
        }
        let length = piece.len() as u64;
        if offer.size.is_none() {
            partial.reserved = self.store.reserve(length)?;
        }
        partial.length += length;
        match piece.write_to(&mut partial.file) {
            Ok(()) => {
                partial.reserved.used(length);
                Ok(None)
            }
            Err(error) => {
                partial.give_back_room(&error);
                let name = partial.name.clone();
                Err(self.cannot("write", &name, &error))
            }
        }
    }

    fn end(&mut self, number: u32, checksum: u128) -> Result<Option<Reply>, Refusal> {
        let Some(incoming) = self.files.remove(&number) else {
            return Ok(None);
        };
        match incoming.local {
            LocalCopy::Nothing | LocalCopy::Empty { .. } => {
                self.files.insert(number, incoming);
                Err("the sender ended a file that it did not start".to_owned())
            }
            LocalCopy::Existing(name) => Ok(Some(Reply::Stored(number, true, name))),
            LocalCopy::Partial(partial)
                if incoming.offer.size.is_none_or(|size| size == partial.length)
                    && partial.checksum.value() == checksum =>
            {
                self.publisher.publish(Complete {
                    offer: incoming.offer,
                    partial,
                    claim: incoming.claim,
                });
                Ok(None)
            }
            LocalCopy::Partial(partial) => {
                let _ = self.store.directory.remove(&partial.name);
                drop(self.outbox.send(Reply::Refused(
                    number,
                    "the received contents do not match the file's checksum; they were discarded".to_owned(),
                )));
                Ok(None)
            }
        }
    }
}
