//! The receiving end of one connection: parses the sender's messages, passes file contents to the writing thread, and
//! replies.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{TryRecvError, TrySendError};

use foundation::{Duration, Instant};
use transport::arq::StreamRange;

use super::claims::Claim;
use super::file_event::FileEvent;
use super::message::{GREETING, MAX_OFFERS, Message, Offer, Parsed, Parser, printable};
use super::name;
use super::pace::Observation;
use super::piece::Piece;
use super::stream_buffer::StreamBuffer;
use super::writer::{Command, Reply, Writer};
use crate::datagrams::MIN_SHARED;
use crate::payload::SharedBytes;
use crate::session::{Application, Work};

/// Most bytes passed to the writing thread at a time.
const PIECE: usize = 512 << 10;
/// How long bytes may wait until a piece is full. A receiver that is killed loses what waits.
const MAX_HOLD: Duration = Duration::from_millis(200);
/// How long a person may take for a decision.
const ANSWER: Duration = Duration::from_secs(600);
/// Pieces that may wait for the thread in addition to those in its queue.
const MAX_WAITING: usize = 4;

/// Rules of a receiver about offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfferRules {
    /// Names may start with a dot.
    pub dotfiles: bool,
    /// A person decides about each sender.
    pub ask: bool,
}

/// Whether a sender's offers are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Consent {
    /// The user's decision is required.
    Missing,
    /// The user's decision was requested at this time.
    Requested(Instant),
    Given,
    Declined,
}

/// A file that was offered and is not yet stored or refused.
#[derive(Debug)]
struct Outstanding {
    offer: Offer,
    offered_at: Instant,
    done: u64,
    /// Whether the sender has yet to answer the proposed offset.
    proposed: bool,
    refused: bool,
}

/// An offer of a name that another connection is receiving.
#[derive(Debug)]
pub struct ContendedOffer {
    /// The offer.
    pub offer: Offer,
    /// When it arrived.
    pub since: Instant,
    /// How many keep-alive probes were sent on both connections.
    pub probes: u64,
}

/// The receiving end of one connection.
#[derive(Debug)]
pub struct Incoming {
    writer: Writer,
    parser: Parser,
    out: StreamBuffer,
    reported: u64,
    commands: VecDeque<Command>,
    /// Commands without a reply.
    awaited: usize,
    received: u64,
    rules: OfferRules,
    consent: Consent,
    /// Upper bounds of what the sender still offers: files and bytes.
    announced: Option<(u32, Option<u64>)>,
    /// Files and bytes of the announcement.
    total: (u32, Option<u64>),
    offered: u32,
    outstanding: Vec<Outstanding>,
    /// Offers to be checked against the claims of other connections.
    pub(super) new_offers: Vec<Offer>,
    /// Offers that wait for another connection to end or to respond.
    pub(super) contended: Vec<ContendedOffer>,
    /// The file whose contents are arriving, and the bytes not yet passed on.
    current: Option<(u32, Piece)>,
    spare: Vec<Vec<u8>>,
    /// When bytes were last passed on.
    passed_on_at: Instant,
    farewell: bool,
    failure: Option<String>,
    now: Instant,
    /// When the sender's last message, or the last result for it, arrived.
    progress_at: Instant,
    /// Progress events in order.
    pub(super) events: VecDeque<FileEvent>,
}

impl Incoming {
    /// Creates an end that writes through `writer`, for a connection that starts at `now`.
    #[must_use]
    pub fn new(writer: Writer, rules: OfferRules, now: Instant) -> Self {
        let mut out = StreamBuffer::default();
        out.push(GREETING.to_vec());
        Self {
            writer,
            parser: Parser::default(),
            out,
            reported: 0,
            commands: VecDeque::new(),
            awaited: 0,
            received: 0,
            rules,
            consent: if rules.ask {
                Consent::Missing
            } else {
                Consent::Given
            },
            announced: None,
            total: (0, Some(0)),
            offered: 0,
            outstanding: Vec::new(),
            new_offers: Vec::new(),
            contended: Vec::new(),
            current: None,
            spare: Vec::new(),
            passed_on_at: now,
            farewell: false,
            failure: None,
            now,
            progress_at: now,
            events: VecDeque::new(),
        }
    }

    /// Returns the file whose contents are arriving: number, name, bytes present, size.
    #[must_use]
    pub fn progress(&self) -> Option<(u32, &str, u64, Option<u64>)> {
        let (number, _) = self.current.as_ref()?;
        let file = self.outstanding.iter().find(|file| file.offer.file == *number)?;
        Some((*number, &file.offer.name, file.done, file.offer.size))
    }

    /// Returns the request for the user's decision once: the number of files, their bytes and the name of the first.
    pub(super) fn take_request(&mut self) -> Option<(u32, Option<u64>, String)> {
        let first = self.new_offers.first()?;
        if self.consent != Consent::Missing {
            return None;
        }
        self.consent = Consent::Requested(self.now);
        Some((self.total.0, self.total.1, first.name.clone()))
    }

    /// Records a person's decision.
    pub(super) fn decide(&mut self, accept: bool) {
        self.consent = if accept { Consent::Given } else { Consent::Declined };
    }

    /// Returns the new offers that may be prepared. Refuses them if a person declined.
    pub(super) fn take_offers(&mut self) -> Vec<Offer> {
        match self.consent {
            Consent::Missing | Consent::Requested(_) => Vec::new(),
            Consent::Given => std::mem::take(&mut self.new_offers),
            Consent::Declined => {
                for offer in std::mem::take(&mut self.new_offers) {
                    self.take_offer(offer.file);
                    self.refuse(&offer, "declined");
                }
                Vec::new()
            }
        }
    }

    /// Returns what shows whether the sender makes progress.
    #[must_use]
    pub const fn observation(&self) -> Observation {
        Observation {
            progress_at: self.progress_at,
            offered: self.offered,
            // Standard input of the sender may pause.
            sends_contents: self.parser.expects_data(),
            received: self.received,
        }
    }

    /// Starts the transfer of an offer, whose name is claimed.
    pub(super) fn prepare(&mut self, offer: Offer, claim: Claim) {
        self.awaited += 1;
        self.commands.push_back(Command::Prepare(offer, claim));
    }

    /// Fails all unfinished files; the connection has ended for `reason`.
    pub(super) fn give_up(&mut self, reason: &str) {
        for outstanding in self.outstanding.drain(..).filter(|file| !file.refused) {
            let Offer { file, name, .. } = outstanding.offer;
            let reason = reason.to_owned();
            self.events.push_back(FileEvent::Failed { file, name, reason });
        }
    }

    fn find(&mut self, number: u32) -> Result<&mut Outstanding, String> {
        let mut files = self.outstanding.iter_mut();
        files
            .find(|file| file.offer.file == number)
            .ok_or_else(|| "the sender named a file that it did not offer".to_owned())
    }

    fn take_proposal(&mut self, number: u32) -> Result<&mut Outstanding, String> {
        let file = self.find(number)?;
        if std::mem::take(&mut file.proposed) {
            return Ok(file);
        }
        Err("the sender confirmed an offset that was not proposed".to_owned())
    }

    fn handle(&mut self, message: Message) -> Result<(), String> {
        match message {
            Message::Announce { files, bytes } if self.announced.is_none() => {
                self.announced = Some((files, bytes));
                self.total = (files, bytes);
            }
            Message::Announce { .. } => return Err("the sender announced its files twice".to_owned()),
            Message::Offer(offer) => return self.handle_offer(offer),
            Message::Differs { file } => {
                self.take_proposal(file)?;
                self.awaited += 1;
                self.commands.push_back(Command::Differs(file));
            }
            Message::Begin { file, offset } => {
                let outstanding = self.take_proposal(file)?;
                let size = outstanding.offer.size;
                outstanding.done = offset;
                let started = FileEvent::Started {
                    file,
                    name: outstanding.offer.name.clone(),
                    size,
                    resumed: offset,
                };
                // Of a file of unknown size, no byte is present.
                let length = size.unwrap_or(0).checked_sub(offset);
                let Some(length) = length.filter(|_| self.current.is_none()) else {
                    return Err("the sender started a file at an invalid place".to_owned());
                };
                if length > 0 || size.is_none() {
                    self.events.push_back(started);
                }
                self.commands.push_back(Command::Begin(file, offset));
                self.parser.expect_data(length);
                self.current = Some((file, Piece::default()));
            }
            Message::Chunk { file, length } => {
                let is_current = self.current.as_ref().is_some_and(|(current, _)| *current == file);
                if !is_current || self.find(file)?.offer.size.is_some() {
                    return Err("the sender sent a part of a file that it did not start".to_owned());
                }
                self.parser.expect_data(length.into());
            }
            Message::End { file, checksum } => {
                match self.current.take() {
                    // The file was refused while its contents arrived, and now they are complete.
                    Some((current, _)) if current == file && self.find(file)?.refused => {
                        self.take_offer(file);
                        return Ok(());
                    }
                    Some((current, piece)) if current == file => self.pass_on(file, piece),
                    _ => return Err("the sender ended a file that it did not start".to_owned()),
                }
                self.awaited += 1;
                self.commands.push_back(Command::End(file, checksum));
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
                self.events.push_back(FileEvent::Failed { file, name, reason });
            }
            Message::Farewell => self.farewell = true,
            Message::Have { .. } | Message::Stored { .. } | Message::Refused { .. } => {
                return Err("the sender sent a receiver's message".to_owned());
            }
        }
        Ok(())
    }

    fn handle_offer(&mut self, offer: Offer) -> Result<(), String> {
        if offer.file != self.offered || self.outstanding.len() >= MAX_OFFERS || self.farewell {
            return Err("the sender has too many open offers".to_owned());
        }
        let left = self.announced.and_then(|(files, bytes)| {
            let bytes = match (bytes, offer.size) {
                (None, _) => None,
                (Some(bytes), size) => Some(bytes.checked_sub(size?)?),
            };
            Some((files.checked_sub(1)?, bytes))
        });
        if left.is_none() {
            return Err("the sender offered more than it announced".to_owned());
        }
        self.announced = left;
        self.offered += 1;
        if let Err(wrong) = name::check_path(&offer.name, self.rules.dotfiles) {
            self.refuse(&offer, wrong);
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

    fn refuse(&mut self, offer: &Offer, reason: &str) {
        let (file, reason) = (offer.file, reason.to_owned());
        self.send_message(&Message::Refused {
            file,
            reason: reason.clone(),
        });
        let name = printable(&offer.name);
        self.events.push_back(FileEvent::Failed { file, name, reason });
    }

    fn send_message(&mut self, message: &Message) {
        self.out.push(message.encode());
    }

    fn pass_on(&mut self, file: u32, piece: Piece) {
        self.passed_on_at = self.now;
        if !piece.is_empty() {
            self.commands.push_back(Command::Write(file, piece));
        }
    }

    /// Passes on the bytes that wait for a full piece.
    fn pass_on_part(&mut self) {
        if let Some((file, piece)) = self.current.take() {
            self.pass_on(file, piece);
            self.current = Some((file, Piece::default()));
        }
    }

    /// Takes the next bytes of the current file; `shared` are the same bytes, if they may be kept.
    fn take_data(&mut self, bytes: &[u8], shared: Option<SharedBytes>) {
        let Some((number, piece)) = self.current.take() else {
            return;
        };
        if let Ok(file) = self.find(number) {
            file.done += bytes.len() as u64;
        }
        let piece = match shared {
            Some(shared) => self.append_shared(number, piece, shared),
            None => self.append_copied(number, piece, bytes),
        };
        self.current = Some((number, piece));
    }

    fn append_shared(&mut self, number: u32, piece: Piece, bytes: SharedBytes) -> Piece {
        let mut parts = match piece {
            Piece::Shared(parts) => parts,
            piece @ Piece::Copied(_) => {
                self.pass_on(number, piece);
                Vec::new()
            }
        };
        parts.push(bytes);
        if parts.len() < PIECE / MIN_SHARED {
            return Piece::Shared(parts);
        }
        self.pass_on(number, Piece::Shared(parts));
        Piece::Shared(Vec::new())
    }

    fn append_copied(&mut self, number: u32, piece: Piece, mut bytes: &[u8]) -> Piece {
        let mut buffer = match piece {
            Piece::Copied(buffer) => buffer,
            piece @ Piece::Shared(_) => {
                self.pass_on(number, piece);
                Vec::new()
            }
        };
        while !bytes.is_empty() {
            if buffer.capacity() == 0 {
                buffer = self.spare.pop().unwrap_or_default();
                buffer.reserve_exact(PIECE);
            }
            let (head, rest) = bytes.split_at(bytes.len().min(PIECE - buffer.len()));
            buffer.extend_from_slice(head);
            bytes = rest;
            if buffer.len() == PIECE {
                self.pass_on(number, Piece::Copied(std::mem::take(&mut buffer)));
            }
        }
        Piece::Copied(buffer)
    }

    /// Parses the next bytes of the stream; `shared` are the same bytes, if they may be kept.
    fn parse(&mut self, bytes: &[u8], shared: Option<&SharedBytes>) {
        self.received += bytes.len() as u64;
        self.progress_at = self.now;
        let mut rest = bytes;
        while self.failure.is_none() {
            let result = match self.parser.next(&mut rest) {
                Ok(None) => return,
                Ok(Some(Parsed::Data(data))) => {
                    let end = bytes.len() - rest.len();
                    let shared = shared.and_then(|shared| shared.part(end - data.len()..end));
                    self.take_data(data, shared);
                    Ok(())
                }
                Ok(Some(Parsed::Message(message))) => self.handle(message),
                Err(wrong) => Err(wrong.to_owned()),
            };
            self.failure = result.err();
        }
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
                    self.send_message(&Message::Have { file, offset, hash });
                }
                Reply::Stored(file, already, name) => {
                    self.send_message(&Message::Stored {
                        file,
                        already,
                        name: name.clone(),
                    });
                    if let Some(settled) = self.take_offer(file) {
                        self.events.push_back(FileEvent::Stored {
                            file,
                            offered: settled.offer.name,
                            name,
                            size: settled.offer.size.unwrap_or(settled.done),
                            already,
                            took: self.now - settled.offered_at,
                        });
                    }
                }
                Reply::Refused(file, reason) => {
                    self.send_message(&Message::Refused {
                        file,
                        reason: reason.clone(),
                    });
                    // Its contents may still be arriving.
                    let current = self.current.as_ref().is_some_and(|(current, _)| *current == file);
                    let name = match self.find(file) {
                        Ok(outstanding) => {
                            outstanding.refused = true;
                            outstanding.offer.name.clone()
                        }
                        Err(_) => continue,
                    };
                    if !current {
                        self.take_offer(file);
                    }
                    self.events.push_back(FileEvent::Failed { file, name, reason });
                }
            }
            self.awaited = self.awaited.saturating_sub(1);
        }
    }

    fn take_offer(&mut self, number: u32) -> Option<Outstanding> {
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
    fn append(&mut self, range: StreamRange, out: &mut Vec<u8>) {
        self.out.append(range, out);
    }

    fn acknowledged(&mut self, offset: u64) {
        while self.out.release(offset).is_some() {}
    }

    fn has_room(&self) -> bool {
        self.commands.len() < MAX_WAITING || self.failure.is_some()
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.parse(bytes, None);
    }

    fn receive_shared(&mut self, bytes: &SharedBytes) {
        self.parse(bytes, Some(bytes));
    }

    fn peer_finished(&mut self) {
        if !self.farewell {
            self.failure
                .get_or_insert_with(|| "the sender closed the connection early".to_owned());
        }
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn work(&mut self, now: Instant, _: u64) -> Result<Work, String> {
        self.now = now;
        let asks = matches!(self.consent, Consent::Requested(since) if now - since < ANSWER);
        if self.awaited > 0 || asks || !self.commands.is_empty() {
            self.progress_at = now;
        }
        self.handle_replies()?;
        // The greeting leaves first: it explains the failure to a sender of another version.
        if let Some(failure) = self.failure.as_ref().filter(|_| self.reported > 0) {
            return Err(failure.clone());
        }
        if now.saturating_since(self.passed_on_at) >= MAX_HOLD && self.commands.is_empty() {
            self.pass_on_part();
        }
        self.send_commands()?;
        let written = self.out.end() - std::mem::replace(&mut self.reported, self.out.end());
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
        // What has arrived stays, unless the disk is busy.
        self.pass_on_part();
        let _ = self.send_commands();
        self.writer.cancelled.store(true, Ordering::Relaxed);
    }
}
