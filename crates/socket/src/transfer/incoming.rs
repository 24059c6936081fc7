//! The receiving end of one connection: reads the sender's messages, hands the bytes of files to the
//! thread that writes them, and answers.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{TryRecvError, TrySendError};

use foundation::{Duration, Instant};
use transport::arq::StreamRange;

use super::message::{GREETING, MAX_OFFERS, Message, Offer, Parsed, Parser, printable};
use super::name;
use super::stream_buffer::StreamBuffer;
use super::writer::{Command, Reply, Writer};
use crate::session::{Application, Work};

/// Bytes handed to the writing thread at a time.
const PIECE: usize = 512 << 10;
/// Pieces that may wait for the thread beside those in its queue.
const MAX_WAITING: usize = 4;

/// Something that the user of the receiver may want to know. `file` is the number of the sender's offer: names change, and
/// several files of one connection may have the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// The bytes of a file begin to arrive; `resumed` were there before.
    Started {
        /// Its number.
        file: u32,
        /// Its name.
        name: String,
        /// Its size.
        size: u64,
        /// Bytes that were there before.
        resumed: u64,
    },
    /// A file is whole and in its place.
    Stored {
        /// Its number.
        file: u32,
        /// The name under which it was offered.
        offered: String,
        /// The name that it has now.
        name: String,
        /// Its size.
        size: u64,
        /// Whether it was there already.
        already: bool,
        /// From its offer to now.
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

/// A file offered and not yet stored or refused.
#[derive(Debug)]
struct Outstanding {
    offer: Offer,
    offered_at: Instant,
    done: u64,
    /// Whether the sender owes an answer to what it was told of what is here.
    proposed: bool,
    refused: bool,
}

/// An offer of a name that another connection is receiving.
#[derive(Debug)]
pub struct Contended {
    /// The offer.
    pub offer: Offer,
    /// When it came.
    pub since: Instant,
    /// How often the other connection was asked for a sign of life.
    pub asked: u64,
}

/// The receiving end of one connection.
#[derive(Debug)]
pub struct Incoming {
    writer: Writer,
    parser: Parser,
    out: StreamBuffer,
    told: u64,
    commands: VecDeque<Command>,
    /// Commands whose answer is still to come.
    awaited: usize,
    offered: u32,
    outstanding: Vec<Outstanding>,
    /// Offers to look at: their name may be claimed by another connection.
    pub(super) new_offers: Vec<Offer>,
    /// Offers that wait for another connection to end or to show life.
    pub(super) contended: Vec<Contended>,
    /// The file whose bytes are arriving, and those not yet handed on.
    current: Option<(u32, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    farewell: bool,
    failure: Option<String>,
    now: Instant,
    /// When the sender last said something, or something was done for it.
    moved_at: Instant,
    /// What happened, in order.
    pub(super) happened: VecDeque<Happened>,
}

impl Incoming {
    /// An end whose disk work `writer` does, for a connection that begins `now`: what it brings may be
    /// looked at before its first turn to work.
    #[must_use]
    pub fn new(writer: Writer, now: Instant) -> Self {
        let mut out = StreamBuffer::default();
        out.push(GREETING.to_vec());
        Self {
            writer,
            parser: Parser::default(),
            out,
            told: 0,
            commands: VecDeque::new(),
            awaited: 0,
            offered: 0,
            outstanding: Vec::new(),
            new_offers: Vec::new(),
            contended: Vec::new(),
            current: None,
            spare: Vec::new(),
            farewell: false,
            failure: None,
            now,
            moved_at: now,
            happened: VecDeque::new(),
        }
    }

    /// The file whose bytes are arriving: number, name, bytes there, size.
    #[must_use]
    pub fn progress(&self) -> Option<(u32, &str, u64, u64)> {
        let (number, _) = self.current.as_ref()?;
        let file = self.outstanding.iter().find(|file| file.offer.file == *number)?;
        Some((*number, &file.offer.name, file.done, file.offer.size))
    }

    /// When the sender last said something, or something was done for it.
    #[must_use]
    pub const fn moved_at(&self) -> Instant {
        self.moved_at
    }

    /// Lets the thread prepare for an offer that nobody else receives.
    pub(super) fn prepare(&mut self, offer: Offer) {
        self.awaited += 1;
        self.commands.push_back(Command::Prepare(offer));
    }

    /// The connection has ended for this reason: files that were on their way are so no more.
    pub(super) fn give_up(&mut self, reason: &str) {
        for outstanding in self.outstanding.drain(..).filter(|file| !file.refused) {
            let Offer { file, name, .. } = outstanding.offer;
            let reason = reason.to_owned();
            self.happened.push_back(Happened::Failed { file, name, reason });
        }
    }

    fn find(&mut self, number: u32) -> Result<&mut Outstanding, String> {
        let mut files = self.outstanding.iter_mut();
        files
            .find(|file| file.offer.file == number)
            .ok_or_else(|| "the sender speaks of a file that it did not offer".to_owned())
    }

    fn answer_proposal(&mut self, number: u32) -> Result<&mut Outstanding, String> {
        let file = self.find(number)?;
        if std::mem::take(&mut file.proposed) {
            return Ok(file);
        }
        Err("the sender answers what it was not told".to_owned())
    }

    fn handle(&mut self, message: Message) -> Result<(), String> {
        match message {
            Message::Offer(offer) => return self.handle_offer(offer),
            Message::Differs { file } => {
                self.answer_proposal(file)?;
                self.awaited += 1;
                self.commands.push_back(Command::Differs(file));
            }
            Message::Begin { file, offset } => {
                let outstanding = self.answer_proposal(file)?;
                let size = outstanding.offer.size;
                outstanding.done = offset;
                let started = Happened::Started {
                    file,
                    name: outstanding.offer.name.clone(),
                    size,
                    resumed: offset,
                };
                let Some(length) = size.checked_sub(offset).filter(|_| self.current.is_none()) else {
                    return Err("the sender begins where no file is".to_owned());
                };
                if length > 0 {
                    self.happened.push_back(started);
                }
                self.commands.push_back(Command::Begin(file, offset));
                self.parser.expect_data(length);
                let buffer = self.spare.pop().unwrap_or_default();
                self.current = Some((file, buffer));
            }
            Message::End { file, hash } => {
                match self.current.take() {
                    // It was refused while its bytes arrived, and now they are through.
                    Some((current, _)) if current == file && self.find(file)?.refused => {
                        self.settle(file);
                        return Ok(());
                    }
                    Some((current, buffer)) if current == file => self.hand_on(file, buffer),
                    _ => return Err("the sender ends what it did not begin".to_owned()),
                }
                self.awaited += 1;
                self.commands.push_back(Command::End(file, hash));
            }
            Message::Withdraw { file, reason } => {
                let name = self.find(file)?.offer.name.clone();
                self.outstanding
                    .retain(|outstanding| outstanding.offer.file != file);
                self.new_offers.retain(|offer| offer.file != file);
                self.contended.retain(|contended| contended.offer.file != file);
                self.current.take_if(|(current, _)| *current == file);
                self.commands.push_back(Command::Withdraw(file));
                let reason = format!("the sender withdrew it: {}", printable(&reason));
                self.happened.push_back(Happened::Failed { file, name, reason });
            }
            Message::Farewell => self.farewell = true,
            Message::Have { .. } | Message::Stored { .. } | Message::Refused { .. } => {
                return Err("the sender speaks as a receiver".to_owned());
            }
        }
        Ok(())
    }

    fn handle_offer(&mut self, offer: Offer) -> Result<(), String> {
        if offer.file != self.offered || self.outstanding.len() >= MAX_OFFERS || self.farewell {
            return Err("the sender offers more than it may".to_owned());
        }
        self.offered += 1;
        if let Err(wrong) = name::check(&offer.name, cfg!(windows)) {
            let (file, reason) = (offer.file, wrong.to_owned());
            self.say(&Message::Refused {
                file,
                reason: reason.clone(),
            });
            let name = printable(&offer.name);
            self.happened.push_back(Happened::Failed { file, name, reason });
            return Ok(());
        }
        self.outstanding.push(Outstanding {
            offer: offer.clone(),
            offered_at: self.now,
            done: 0,
            proposed: false,
            refused: false,
        });
        self.new_offers.push(offer);
        Ok(())
    }

    fn say(&mut self, message: &Message) {
        self.out.push(message.encode());
    }

    fn hand_on(&mut self, file: u32, buffer: Vec<u8>) {
        if buffer.is_empty() {
            self.spare.push(buffer);
        } else {
            self.commands.push_back(Command::Write(file, buffer));
        }
    }

    fn take_data(&mut self, mut bytes: &[u8]) {
        let Some((number, mut buffer)) = self.current.take() else {
            return;
        };
        if let Ok(file) = self.find(number) {
            file.done += bytes.len() as u64;
        }
        while !bytes.is_empty() {
            if buffer.capacity() == 0 {
                buffer.reserve_exact(PIECE);
            }
            let (head, rest) = bytes.split_at(bytes.len().min(PIECE - buffer.len()));
            buffer.extend_from_slice(head);
            bytes = rest;
            if buffer.len() == PIECE {
                let next = self.spare.pop().unwrap_or_default();
                self.hand_on(number, std::mem::replace(&mut buffer, next));
            }
        }
        self.current = Some((number, buffer));
    }

    fn handle_replies(&mut self) -> Result<(), String> {
        loop {
            let reply = match self.writer.replies.try_recv() {
                Ok(reply) => reply,
                Err(TryRecvError::Empty) => return Ok(()),
                Err(TryRecvError::Disconnected) => return Err("the writing thread has failed".to_owned()),
            };
            match reply {
                Reply::Spare(buffer) => {
                    if self.spare.len() < MAX_WAITING {
                        self.spare.push(buffer);
                    }
                    continue;
                }
                Reply::Have(file, offset, hash) => {
                    if let Ok(outstanding) = self.find(file) {
                        outstanding.proposed = true;
                    }
                    self.say(&Message::Have { file, offset, hash });
                }
                Reply::Stored(file, already, name) => {
                    self.say(&Message::Stored {
                        file,
                        already,
                        name: name.clone(),
                    });
                    if let Some(settled) = self.settle(file) {
                        self.happened.push_back(Happened::Stored {
                            file,
                            offered: settled.offer.name,
                            name,
                            size: settled.offer.size,
                            already,
                            took: self.now - settled.offered_at,
                        });
                    }
                }
                Reply::Refused(file, reason) => {
                    self.say(&Message::Refused {
                        file,
                        reason: reason.clone(),
                    });
                    // Its bytes may still be arriving.
                    let current = self.current.as_ref().is_some_and(|(current, _)| *current == file);
                    let name = match self.find(file) {
                        Ok(outstanding) => {
                            outstanding.refused = true;
                            outstanding.offer.name.clone()
                        }
                        Err(_) => continue,
                    };
                    if !current {
                        self.settle(file);
                    }
                    self.happened.push_back(Happened::Failed { file, name, reason });
                }
            }
            self.awaited = self.awaited.saturating_sub(1);
        }
    }

    fn settle(&mut self, number: u32) -> Option<Outstanding> {
        let at = self
            .outstanding
            .iter()
            .position(|file| file.offer.file == number)?;
        Some(self.outstanding.remove(at))
    }

    fn send_commands(&mut self) -> Result<(), String> {
        while let Some(command) = self.commands.pop_front() {
            match self.writer.commands.try_send(command) {
                Ok(()) => {}
                Err(TrySendError::Full(command)) => {
                    self.commands.push_front(command);
                    break;
                }
                Err(TrySendError::Disconnected(_)) => return Err("the writing thread has failed".to_owned()),
            }
        }
        Ok(())
    }
}

impl Application for Incoming {
    fn fill(&mut self, range: StreamRange, out: &mut [u8]) {
        self.out.fill(range, out);
    }

    fn acknowledged(&mut self, offset: u64) {
        while self.out.release(offset).is_some() {}
    }

    fn has_room(&self) -> bool {
        self.commands.len() < MAX_WAITING || self.failure.is_some()
    }

    fn receive(&mut self, mut bytes: &[u8]) {
        self.moved_at = self.now;
        while self.failure.is_none() {
            let result = match self.parser.next(&mut bytes) {
                Ok(None) => return,
                Ok(Some(Parsed::Data(data))) => {
                    self.take_data(data);
                    Ok(())
                }
                Ok(Some(Parsed::Message(message))) => self.handle(message),
                Err(wrong) => Err(wrong.to_owned()),
            };
            self.failure = result.err();
        }
    }

    fn peer_finished(&mut self) {
        if !self.farewell {
            self.failure
                .get_or_insert_with(|| "the sender left without a farewell".to_owned());
        }
    }

    fn work(&mut self, now: Instant, _: u64) -> Result<Work, String> {
        self.now = now;
        if self.awaited > 0 {
            self.moved_at = now;
        }
        self.handle_replies()?;
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        self.send_commands()?;
        let written = self.out.end() - std::mem::replace(&mut self.told, self.out.end());
        Ok(Work {
            written,
            finish: self.is_complete(),
            again_soon: self.awaited > 0 || !self.commands.is_empty(),
            again_at: None,
        })
    }

    fn is_complete(&self) -> bool {
        self.farewell && self.outstanding.is_empty()
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.writer.cancelled.store(true, Ordering::Relaxed);
    }
}
