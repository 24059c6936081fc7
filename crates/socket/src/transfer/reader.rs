//! The thread that reads the files of a sending connection. The connection never waits for a disk, and
//! retransmissions carry the same bytes.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::SystemTime;

use super::checksum::Checksum;
use super::directory::is_executable;
use super::{input, prefix};
use crate::system_error::plain;

/// Bytes read at a time.
pub const PIECE: usize = 512 << 10;
/// Pieces read ahead of the connection.
const AHEAD: usize = 6;

/// A file to send, with its metadata at the time of the offer.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its path; "-" is standard input.
    pub path: PathBuf,
    /// Its size in bytes; `None` for standard input, whose end is not known.
    pub size: Option<u64>,
    /// When it was last modified.
    pub modified: Option<SystemTime>,
    /// Whether it is executable.
    pub executable: bool,
}

impl Source {
    /// Reads the metadata of the file at `path`.
    ///
    /// # Errors
    /// Why it cannot be sent, in one line.
    pub fn new(path: &Path) -> Result<Self, String> {
        let metadata = std::fs::metadata(path).map_err(|error| plain(&error))?;
        if metadata.is_dir() {
            return Err("is a directory: add -r to send its files".to_owned());
        }
        if !metadata.is_file() {
            return Err("is not a regular file".to_owned());
        }
        // An unreadable file should be reported before anything is sent.
        File::open(path).map_err(|error| plain(&error))?;
        Ok(Self {
            path: path.to_owned(),
            size: Some(metadata.len()),
            modified: metadata.modified().ok(),
            executable: is_executable(&metadata),
        })
    }

    /// Standard input.
    #[must_use]
    pub fn standard_input() -> Self {
        Self {
            path: "-".into(),
            size: None,
            modified: None,
            executable: false,
        }
    }

    /// Whether the open `file` still has the same size and modification time.
    fn is_unchanged(&self, file: &File) -> io::Result<bool> {
        let metadata = file.metadata()?;
        Ok(Some(metadata.len()) == self.size && metadata.modified().ok() == self.modified)
    }
}

/// Commands to the thread. `u32`s are numbers of files.
#[derive(Debug)]
pub enum Command {
    /// Compare the hash of the first bytes (their number is the second field).
    Check(u32, u64, [u8; 32]),
    /// Read the rest, from the end of the last check.
    Stream(u32),
}

/// Replies of the thread.
#[derive(Debug)]
pub enum Reply {
    /// Whether the hashes are equal.
    Checked(u32, u64, bool),
    /// The next bytes of the streamed file.
    Piece(Vec<u8>),
    /// End of the file; the checksum of its pieces.
    Ended(u32, u128),
    /// The file was sent completely but changed meanwhile.
    Changed(u32, String),
    /// The file cannot be opened.
    Unreadable(u32, String),
    /// Reading failed.
    Broken(u32, String),
}

/// Channels of the thread.
#[derive(Debug)]
pub struct FileReader {
    /// Commands to the thread.
    pub commands: Sender<Command>,
    /// Replies from the thread.
    pub replies: Receiver<Reply>,
    /// Used buffers, returned to the thread.
    pub spare: Sender<Vec<u8>>,
    /// Set to stop it early.
    pub cancelled: Arc<AtomicBool>,
}

impl FileReader {
    /// Starts a thread that reads `sources`. `checks` is whether it computes checksums of
    /// what it sends.
    ///
    /// # Errors
    /// The system's, if no thread can be started.
    pub fn start(sources: Vec<Source>, checks: bool) -> io::Result<Self> {
        let (commands, inbox) = channel();
        let (outbox, replies) = sync_channel(AHEAD);
        let (spare, returned) = channel();
        let cancelled = Arc::new(AtomicBool::new(false));
        let mut work = Disk {
            sources,
            checks,
            open: HashMap::new(),
            outbox,
            returned,
            cancelled: Arc::clone(&cancelled),
        };
        std::thread::Builder::new()
            .name("longfat-reader".into())
            .spawn(move || {
                while let Ok(command) = inbox.recv() {
                    if work.handle(command).is_none() {
                        break;
                    }
                }
            })?;
        Ok(Self {
            commands,
            replies,
            spare,
            cancelled,
        })
    }
}

struct Disk {
    sources: Vec<Source>,
    checks: bool,
    open: HashMap<u32, (File, u64)>,
    outbox: SyncSender<Reply>,
    returned: Receiver<Vec<u8>>,
    cancelled: Arc<AtomicBool>,
}

const CHANGED: &str = "it changed while it was sent: send it again";
const CHANGED_BEFORE: &str = "it changed after it was offered: send it again";

impl Disk {
    /// Executes a command; `None` if nobody receives replies any more.
    fn handle(&mut self, command: Command) -> Option<()> {
        let reply = match command {
            Command::Check(number, length, hash) => match self.check(number, length, hash) {
                Ok(same) => Reply::Checked(number, length, same),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    Reply::Unreadable(number, CHANGED_BEFORE.to_owned())
                }
                Err(error) => Reply::Unreadable(number, plain(&error)),
            },
            Command::Stream(number) => match self.stream(number)? {
                Ok(Some(checksum)) => Reply::Ended(number, checksum),
                Ok(None) => Reply::Changed(number, CHANGED.to_owned()),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Reply::Broken(
                    number,
                    "it became shorter while it was sent: send it again".to_owned(),
                ),
                Err(error) => Reply::Broken(number, plain(&error)),
            },
        };
        self.outbox.send(reply).ok()
    }

    fn check(&mut self, number: u32, length: u64, hash: [u8; 32]) -> io::Result<bool> {
        let source = &self.sources[number as usize];
        let Some(size) = source.size else {
            return Ok(length == 0);
        };
        let mut file = match self.open.remove(&number) {
            Some((file, _)) => file,
            None => File::open(&source.path)?,
        };
        if !source.is_unchanged(&file)? {
            return Err(io::Error::other(CHANGED_BEFORE));
        }
        if length > size {
            return Ok(false);
        }
        let same = prefix::hash(&mut file, length, &self.cancelled)? == hash;
        self.open.insert(number, (file, length));
        Ok(same)
    }

    /// Sends the rest of a file; returns its checksum, or `None` if the file changed meanwhile.
    fn stream(&mut self, number: u32) -> Option<io::Result<Option<u128>>> {
        let Some(size) = self.sources[number as usize].size else {
            return self.stream_input();
        };
        let Some((mut file, mut at)) = self.open.remove(&number) else {
            return Some(Err(io::Error::other("it was not checked")));
        };
        let mut checksum = Checksum::new(self.checks);
        while at < size {
            let length = PIECE.min(usize::try_from(size - at).unwrap_or(PIECE));
            let mut piece = self.returned.try_recv().unwrap_or_default();
            piece.resize(length, 0);
            if let Err(error) = file.read_exact(&mut piece) {
                return Some(Err(error));
            }
            checksum.update(&piece);
            at += length as u64;
            self.outbox.send(Reply::Piece(piece)).ok()?;
        }
        Some(match self.sources[number as usize].is_unchanged(&file) {
            Ok(true) => Ok(Some(checksum.value())),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        })
    }
    /// Sends standard input until its end; returns its checksum.
    fn stream_input(&mut self) -> Option<io::Result<Option<u128>>> {
        let mut checksum = Checksum::new(self.checks);
        let mut buffer = vec![0; PIECE];
        loop {
            let length = match input::read(&mut buffer) {
                Ok(0) => return Some(Ok(Some(checksum.value()))),
                Ok(length) => length,
                Err(error) => return Some(Err(error)),
            };
            // A copy, so that short pieces occupy little memory.
            let mut piece = self
                .returned
                .try_recv()
                .ok()
                .filter(|_| length == PIECE)
                .unwrap_or_default();
            piece.clear();
            piece.extend_from_slice(&buffer[..length]);
            checksum.update(&piece);
            self.outbox.send(Reply::Piece(piece)).ok()?;
        }
    }
}
