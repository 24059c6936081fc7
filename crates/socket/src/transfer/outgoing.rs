//! The sending end of a connection: offers files, streams the missing part of each, and collects the results.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::mpsc::TryRecvError;
use std::time::UNIX_EPOCH;

use foundation::Instant;
use transport::arq::StreamRange;

use super::message::{GREETING, MAX_OFFERS, Message, Offer, Parsed, Parser, printable};
use super::reader::{Command, FileReader, PIECE, Reply, Source};
use super::stream_buffer::StreamBuffer;
use crate::session::{Application, Work};

/// Files that are checked, and so open, before their contents are sent.
const MAX_CHECKED: usize = 16;
/// Bytes that may wait in the connection for their first transmission.
const MAX_UNSENT: u64 = 4 << 20;

/// Result of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has it, under this name.
    Stored(String),
    /// The receiver had it already, under this name.
    Already(String),
    /// It was not transferred, for this reason.
    Failed(String),
}

/// The sending end.
#[derive(Debug)]
pub struct Outgoing {
    sources: Vec<Source>,
    names: Vec<String>,
    reader: FileReader,
    parser: Parser,
    out: StreamBuffer,
    reported: u64,
    acknowledged: u64,
    offered: usize,
    /// What the receiver has of files: they are checked in order.
    present: VecDeque<(u32, u64, [u8; 32])>,
    /// Number of files that are being checked, or wait for their contents to be sent, or are being sent.
    checked: usize,
    /// The file whose contents are being sent.
    streaming: Option<u32>,
    /// Messages that wait for the end of the contents.
    deferred: VecDeque<Message>,
    outcomes: Vec<Option<Outcome>>,
    /// Number of known outcomes.
    ended: usize,
    /// Bytes that the receiver already had, of each file that has started.
    resumed: Vec<Option<u64>>,
    /// Bytes of file contents passed to the stream.
    streamed: u64,
    awaited: usize,
    farewell_sent: bool,
    peer_finished: bool,
    failure: Option<String>,
}

/// Returns the bytes of all files, if they are known.
pub fn total(sources: &[Source]) -> Option<u64> {
    sources.iter().map(|source| source.size).sum()
}

impl Outgoing {
    /// Creates an end that sends `sources` under `names`.
    #[must_use]
    pub fn new(sources: Vec<Source>, names: Vec<String>, reader: FileReader) -> Self {
        let mut out = StreamBuffer::default();
        out.push(GREETING.to_vec());
        let count = sources.len();
        let announcement = Message::Announce {
            files: u32::try_from(count).unwrap_or(u32::MAX),
            bytes: total(&sources),
        };
        out.push(announcement.encode());
        Self {
            sources,
            names,
            reader,
            parser: Parser::default(),
            out,
            reported: 0,
            acknowledged: 0,
            offered: 0,
            present: VecDeque::new(),
            checked: 0,
            streaming: None,
            deferred: VecDeque::new(),
            outcomes: vec![None; count],
            ended: 0,
            resumed: vec![None; count],
            streamed: 0,
            awaited: 0,
            farewell_sent: false,
            peer_finished: false,
            failure: None,
        }
    }

    /// Returns the result of each file, once known.
    #[must_use]
    pub fn outcomes(&self) -> &[Option<Outcome>] {
        &self.outcomes
    }

    /// Returns how many bytes of each file the receiver already had, once known.
    #[must_use]
    pub fn resumed(&self) -> &[Option<u64>] {
        &self.resumed
    }

    /// Returns how many bytes of all files the receiver has: earlier ones and acknowledged ones.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.resumed.iter().flatten().sum::<u64>() + self.acknowledged_contents()
    }

    /// Whether the receiver has reported which part of a file it has.
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        self.resumed.iter().any(Option::is_some)
    }

    /// Returns how many bytes of file contents were passed to the connection and acknowledged.
    #[must_use]
    pub const fn acknowledged_contents(&self) -> u64 {
        let on_the_way = self.out.end() - self.acknowledged;
        self.streamed.saturating_sub(on_the_way)
    }

    /// Returns how many bytes of file contents were passed to the connection.
    #[must_use]
    pub const fn streamed(&self) -> u64 {
        self.streamed
    }

    /// Returns the file whose contents are being sent, or the next one.
    #[must_use]
    pub fn current(&self) -> usize {
        let pending = || self.outcomes.iter().position(Option::is_none);
        let last = self.outcomes.len().saturating_sub(1);
        self.streaming
            .map_or_else(|| pending().unwrap_or(last), |file| file as usize)
    }

    fn send_message(&mut self, message: Message) {
        self.deferred.push_back(message);
    }

    /// Sends deferred messages, unless file contents are being sent.
    fn send_deferred(&mut self) {
        while self.streaming.is_none() {
            let Some(message) = self.deferred.pop_front() else {
                return;
            };
            self.out.push(message.encode());
            if let Message::Begin { file, .. } = message {
                self.streaming = Some(file);
                self.command_reader(Command::Stream(file));
            }
        }
    }

    fn command_reader(&mut self, command: Command) {
        self.awaited += 1;
        if self.reader.commands.send(command).is_err() {
            self.failure = Some("the reading thread has failed".to_owned());
        }
    }

    fn check(&mut self) {
        while self.checked < MAX_CHECKED {
            let Some((file, offset, hash)) = self.present.pop_front() else {
                return;
            };
            self.checked += 1;
            self.command_reader(Command::Check(file, offset, hash));
        }
    }

    fn offer(&mut self) {
        for _ in self.offered.saturating_sub(self.ended)..MAX_OFFERS {
            let Some(source) = self.sources.get(self.offered) else {
                break;
            };
            let modified = source
                .modified
                .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let offer = Offer {
                file: self.offered as u32,
                size: source.size,
                modified: modified.map_or(0, |span| u64::try_from(span.as_nanos()).unwrap_or(0)),
                executable: source.executable,
                name: self.names[self.offered].clone(),
            };
            self.offered += 1;
            self.send_message(Message::Offer(offer));
        }
        if self.offered == self.sources.len() && !self.farewell_sent {
            self.farewell_sent = true;
            self.send_message(Message::Farewell);
        }
    }

    fn record_outcome(&mut self, file: u32, outcome: Outcome) {
        if let Some(slot @ None) = self.outcomes.get_mut(file as usize) {
            *slot = Some(outcome);
            self.ended += 1;
        }
    }

    /// Aborts the connection, because a receiver cannot skip the rest of a file's contents. The files after it are not
    /// sent either.
    fn abort_at(&mut self, file: u32, reason: &str) -> String {
        let reason = format!("{}: {reason}", self.sources[file as usize].path.display());
        for outcome in &mut self.outcomes {
            outcome.get_or_insert_with(|| Outcome::Failed(format!("not sent, after {reason}")));
        }
        self.ended = self.outcomes.len();
        reason
    }

    fn withdraw(&mut self, file: u32, reason: String) {
        self.record_outcome(file, Outcome::Failed(reason.clone()));
        self.send_message(Message::Withdraw { file, reason });
    }

    fn handle(&mut self, message: Message) -> Result<(), String> {
        let (Message::Have { file, .. } | Message::Stored { file, .. } | Message::Refused { file, .. }) =
            &message
        else {
            return Err("the receiver sent a sender's message".to_owned());
        };
        if *file as usize >= self.offered {
            return Err("the receiver named a file that was not offered".to_owned());
        }
        match message {
            Message::Have { file, offset, hash } if self.outcomes[file as usize].is_none() => {
                self.present.push_back((file, offset, hash));
            }
            Message::Stored { file, already, name } => {
                let name = printable(&name);
                self.record_outcome(
                    file,
                    if already {
                        Outcome::Already(name)
                    } else {
                        Outcome::Stored(name)
                    },
                );
            }
            Message::Refused { file, reason } => {
                let reason = format!("refused by the receiver: {}", printable(&reason));
                self.record_outcome(file, Outcome::Failed(reason.clone()));
                if self.streaming == Some(file) {
                    return Err(self.abort_at(file, &reason));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn handle_reply(&mut self, reply: Reply) -> Result<(), String> {
        match reply {
            Reply::Piece(bytes) => {
                self.streamed += bytes.len() as u64;
                if let Some(file) = self
                    .streaming
                    .filter(|&file| self.sources[file as usize].size.is_none())
                {
                    let length = bytes.len() as u32;
                    self.out.push(Message::Chunk { file, length }.encode());
                }
                self.out.push(bytes);
                return Ok(());
            }
            Reply::Checked(file, offset, true) => {
                self.resumed[file as usize] = Some(offset);
                self.send_message(Message::Begin { file, offset });
            }
            Reply::Checked(file, _, false) => {
                self.checked -= 1;
                self.send_message(Message::Differs { file });
            }
            Reply::Ended(file, checksum) => {
                self.checked -= 1;
                self.streaming = None;
                self.deferred.push_front(Message::End { file, checksum });
            }
            Reply::Changed(file, reason) => {
                self.checked -= 1;
                self.streaming = None;
                self.record_outcome(file, Outcome::Failed(reason.clone()));
                self.deferred.push_front(Message::Withdraw { file, reason });
            }
            Reply::Unreadable(file, reason) => {
                self.checked -= 1;
                self.withdraw(file, reason);
            }
            Reply::Broken(file, reason) => {
                self.record_outcome(file, Outcome::Failed(reason.clone()));
                return Err(self.abort_at(file, &reason));
            }
        }
        self.awaited -= 1;
        Ok(())
    }
}

impl Application for Outgoing {
    fn append(&mut self, range: StreamRange, out: &mut Vec<u8>) {
        self.out.append(range, out);
    }

    fn acknowledged(&mut self, offset: u64) {
        self.acknowledged = offset;
        while let Some(piece) = self.out.release(offset) {
            if piece.capacity() >= PIECE {
                let _ = self.reader.spare.send(piece);
            }
        }
    }

    fn receive(&mut self, mut bytes: &[u8]) {
        while self.failure.is_none() {
            let result = match self.parser.next(&mut bytes) {
                Ok(None) => return,
                Ok(Some(Parsed::Message(message))) => self.handle(message),
                Ok(Some(Parsed::Data(_))) => Err("the receiver sent bytes of a file".to_owned()),
                Err(wrong) => Err(wrong.to_owned()),
            };
            self.failure = result.err();
        }
    }

    fn peer_finished(&mut self) {
        self.peer_finished = true;
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn work(&mut self, _: Instant, unsent: u64) -> Result<Work, String> {
        self.offer();
        self.check();
        self.send_deferred();
        let mut starved = false;
        while self.failure.is_none() && unsent + (self.out.end() - self.reported) < MAX_UNSENT {
            match self.reader.replies.try_recv() {
                Ok(reply) => self.failure = self.handle_reply(reply).err(),
                Err(TryRecvError::Empty) => {
                    starved = self.awaited > 0;
                    break;
                }
                Err(TryRecvError::Disconnected) => {
                    self.failure = Some("the reading thread has failed".to_owned());
                }
            }
            self.check();
            self.send_deferred();
        }
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if self.peer_finished && !self.is_complete() {
            return Err("the receiver closed the connection early".to_owned());
        }
        Ok(Work {
            written: self.out.end() - std::mem::replace(&mut self.reported, self.out.end()),
            finish: self.peer_finished,
            again_soon: starved,
            again_at: None,
        })
    }

    fn is_complete(&self) -> bool {
        self.ended == self.outcomes.len()
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.reader.cancelled.store(true, Ordering::Relaxed);
    }
}
