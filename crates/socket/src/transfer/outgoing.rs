//! The sending end of a connection: offers files, streams what the receiver lacks of them, and
//! gathers what became of each.

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

/// Bytes that may wait in the connection for their first departure.
const MAX_UNSENT: u64 = 4 << 20;

/// What became of a file.
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
    told: u64,
    acknowledged: u64,
    offered: usize,
    /// The file whose bytes go out now.
    streaming: Option<u32>,
    /// Messages that wait for the end of those.
    deferred: VecDeque<Message>,
    outcomes: Vec<Option<Outcome>>,
    /// Bytes that the receiver held before, of each file that has begun.
    resumed: Vec<u64>,
    /// Bytes of files handed to the stream.
    streamed: u64,
    awaited: usize,
    said_farewell: bool,
    peer_finished: bool,
    failure: Option<String>,
}

impl Outgoing {
    /// An end that sends `sources` under `names`.
    #[must_use]
    pub fn new(sources: Vec<Source>, names: Vec<String>, reader: FileReader) -> Self {
        let mut out = StreamBuffer::default();
        out.push(GREETING.to_vec());
        let count = sources.len();
        Self {
            sources,
            names,
            reader,
            parser: Parser::default(),
            out,
            told: 0,
            acknowledged: 0,
            offered: 0,
            streaming: None,
            deferred: VecDeque::new(),
            outcomes: vec![None; count],
            resumed: vec![0; count],
            streamed: 0,
            awaited: 0,
            said_farewell: false,
            peer_finished: false,
            failure: None,
        }
    }

    /// What became of each file, as far as it is known.
    #[must_use]
    pub fn outcomes(&self) -> &[Option<Outcome>] {
        &self.outcomes
    }

    /// Bytes of each file that the receiver held before.
    #[must_use]
    pub fn resumed(&self) -> &[u64] {
        &self.resumed
    }

    /// Bytes of all files that the receiver holds: what it held before, and what it acknowledged.
    #[must_use]
    pub fn done(&self) -> u64 {
        let on_the_way = self.out.end() - self.acknowledged;
        self.resumed.iter().sum::<u64>() + self.streamed.saturating_sub(on_the_way)
    }

    /// Bytes of files that were handed to the connection.
    #[must_use]
    pub const fn streamed(&self) -> u64 {
        self.streamed
    }

    /// The file whose bytes go out now, or the next one.
    #[must_use]
    pub fn current(&self) -> usize {
        let unsettled = || self.outcomes.iter().position(Option::is_none);
        let last = self.outcomes.len().saturating_sub(1);
        self.streaming
            .map_or_else(|| unsettled().unwrap_or(last), |file| file as usize)
    }

    fn say(&mut self, message: Message) {
        self.deferred.push_back(message);
    }

    /// Says what was put off, unless a file's bytes are going out.
    fn speak(&mut self) {
        while self.streaming.is_none() {
            let Some(message) = self.deferred.pop_front() else {
                return;
            };
            self.out.push(message.encode());
            if let Message::Begin { file, .. } = message {
                self.streaming = Some(file);
                self.tell_reader(Command::Stream(file));
            }
        }
    }

    fn tell_reader(&mut self, command: Command) {
        self.awaited += 1;
        if self.reader.commands.send(command).is_err() {
            self.failure = Some("the reading thread has failed".to_owned());
        }
    }

    fn offer(&mut self) {
        let unsettled = self.outcomes[..self.offered]
            .iter()
            .filter(|o| o.is_none())
            .count();
        for _ in unsettled..MAX_OFFERS {
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
            self.say(Message::Offer(offer));
        }
        if self.offered == self.sources.len() && !self.said_farewell {
            self.said_farewell = true;
            self.say(Message::Farewell);
        }
    }

    fn settle(&mut self, file: u32, outcome: Outcome) {
        if let Some(slot) = self.outcomes.get_mut(file as usize) {
            slot.get_or_insert(outcome);
        }
    }

    /// There is no way to leave out the rest of a file's bytes but to end the connection: the files
    /// after it are not sent either.
    fn hang_up(&mut self, file: u32, reason: &str) -> String {
        let reason = format!("{}: {reason}", self.sources[file as usize].path.display());
        for outcome in &mut self.outcomes {
            outcome.get_or_insert_with(|| Outcome::Failed(format!("not sent, after {reason}")));
        }
        reason
    }

    fn withdraw(&mut self, file: u32, reason: String) {
        self.settle(file, Outcome::Failed(reason.clone()));
        self.say(Message::Withdraw { file, reason });
    }

    fn handle(&mut self, message: Message) -> Result<(), String> {
        let (Message::Have { file, .. } | Message::Stored { file, .. } | Message::Refused { file, .. }) =
            &message
        else {
            return Err("the receiver speaks as a sender".to_owned());
        };
        if *file as usize >= self.offered {
            return Err("the receiver speaks of a file that was not offered".to_owned());
        }
        match message {
            Message::Have { file, offset, hash } if self.outcomes[file as usize].is_none() => {
                self.tell_reader(Command::Check(file, offset, hash));
            }
            Message::Stored { file, already, name } => {
                let name = printable(&name);
                self.settle(
                    file,
                    if already {
                        Outcome::Already(name)
                    } else {
                        Outcome::Stored(name)
                    },
                );
            }
            Message::Refused { file, reason } => {
                let reason = format!("the receiver says: {}", printable(&reason));
                self.settle(file, Outcome::Failed(reason.clone()));
                if self.streaming == Some(file) {
                    return Err(self.hang_up(file, &reason));
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
                self.out.push(bytes);
                return Ok(());
            }
            Reply::Checked(file, offset, true) => {
                self.resumed[file as usize] = offset;
                self.say(Message::Begin { file, offset });
            }
            Reply::Checked(file, _, false) => self.say(Message::Differs { file }),
            Reply::Ended(file, hash) => {
                self.streaming = None;
                self.deferred.push_front(Message::End { file, hash });
            }
            Reply::Changed(file, reason) => {
                self.streaming = None;
                self.settle(file, Outcome::Failed(reason.clone()));
                self.deferred.push_front(Message::Withdraw { file, reason });
            }
            Reply::Unreadable(file, reason) => self.withdraw(file, reason),
            Reply::Broken(file, reason) => {
                self.settle(file, Outcome::Failed(reason.clone()));
                return Err(self.hang_up(file, &reason));
            }
        }
        self.awaited -= 1;
        Ok(())
    }
}

impl Application for Outgoing {
    fn fill(&mut self, range: StreamRange, out: &mut [u8]) {
        self.out.fill(range, out);
    }

    fn acknowledged(&mut self, offset: u64) {
        self.acknowledged = offset;
        while let Some(piece) = self.out.release(offset) {
            if piece.capacity() >= PIECE {
                let _ = self.reader.spare.send(piece);
            }
        }
    }

    fn has_room(&self) -> bool {
        true
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

    fn work(&mut self, _: Instant, unsent: u64) -> Result<Work, String> {
        self.offer();
        self.speak();
        let mut starved = false;
        while self.failure.is_none() && unsent + (self.out.end() - self.told) < MAX_UNSENT {
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
            self.speak();
        }
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if self.peer_finished && !self.is_complete() {
            return Err("the receiver left before it had everything".to_owned());
        }
        Ok(Work {
            written: self.out.end() - std::mem::replace(&mut self.told, self.out.end()),
            finish: self.peer_finished,
            again_soon: starved,
            again_at: None,
        })
    }

    fn is_complete(&self) -> bool {
        self.outcomes.iter().all(Option::is_some)
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.reader.cancelled.store(true, Ordering::Relaxed);
    }
}
