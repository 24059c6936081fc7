//! The streams of a connection, by their number: one for both directions of a flow, one for each message and its answer, or one for
//! each real-time frame.

use std::collections::VecDeque;

use bytes::Bytes;
use noq_proto::{Connection, Dir, StreamId};

/// Zeros, the payload of all streams.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
/// Bytes of a message that precede those of the next one when the streams take turns.
const TURN: u64 = 4096;

/// A stream.
#[derive(Debug)]
struct Stream {
    id: StreamId,
    /// Bytes of a message that the library has not accepted.
    unsent: u64,
    /// Whether this end of the stream ends after them, and whether the library knows.
    ends: bool,
    has_ended: bool,
    is_acknowledged: bool,
    peer_has_ended: bool,
}

impl Stream {
    /// Returns a stream; a direction that it does not have has ended.
    const fn new(id: StreamId, sends: bool, receives: bool) -> Self {
        Self {
            id,
            unsent: 0,
            ends: !sends,
            has_ended: !sends,
            is_acknowledged: !sends,
            peer_has_ended: !receives,
        }
    }

    /// Writes up to `bytes`. Returns the number of bytes accepted.
    fn write(&self, inner: &mut Connection, bytes: u64) -> u64 {
        let mut written = 0;
        while written < bytes {
            let length = usize::try_from(bytes - written).map_or(ZEROS.len(), |left| left.min(ZEROS.len()));
            let chunk = Bytes::from_static(&ZEROS[..length]);
            match inner.send_stream(self.id).write_chunks(&mut &mut [chunk][..]) {
                Ok(accepted) => written += accepted as u64,
                Err(_) => break,
            }
        }
        written
    }

    /// Writes what it can of a message, at most `most` bytes, and ends the stream after the last one. Returns whether it wrote or
    /// ended anything.
    fn flush(&mut self, inner: &mut Connection, most: u64) -> bool {
        let written = self.write(inner, self.unsent.min(most));
        self.unsent -= written;
        if self.ends && self.unsent == 0 && !self.has_ended {
            // An error means that the peer has reset the stream or the connection is lost; an event reports that.
            let _ = inner.send_stream(self.id).finish();
            self.has_ended = true;
            return true;
        }
        written > 0
    }

    const fn is_finished(&self) -> bool {
        self.is_acknowledged && self.peer_has_ended
    }
}

/// All streams.
#[derive(Debug, Default)]
pub(super) struct Streams {
    all: Vec<Stream>,
    /// Whether each message has its stream.
    has_messages: bool,
    /// Whether its stream has one direction, since no answer follows.
    is_one_way: bool,
    /// Whether earlier streams precede later ones, retransmissions included.
    is_ordered: bool,
    /// Messages of a client that the connection does not allow yet.
    waiting: VecDeque<u64>,
    /// Streams with unsent bytes of messages: the earliest first, or the next turn first.
    unsent: VecDeque<u32>,
    /// Whether the application adds no data and no messages.
    ends: bool,
    /// Streams that are not finished.
    open: usize,
    is_connected_client: bool,
    reports_end: bool,
}

impl Streams {
    pub(super) fn of_messages(is_ordered: bool) -> Self {
        Self {
            has_messages: true,
            is_ordered,
            ..Self::default()
        }
    }

    /// Returns streams of messages of the client without answers.
    pub(super) fn of_frames(is_ordered: bool) -> Self {
        Self {
            is_one_way: true,
            ..Self::of_messages(is_ordered)
        }
    }

    /// Returns the direction of the streams.
    pub(super) const fn dir(&self) -> Dir {
        if self.is_one_way { Dir::Uni } else { Dir::Bi }
    }

    pub(super) const fn has_messages(&self) -> bool {
        self.has_messages
    }

    /// Starts when the handshake is complete.
    pub(super) fn connect(&mut self, inner: &mut Connection, is_client: bool) {
        self.is_connected_client = is_client;
        if is_client
            && !self.has_messages
            && let Some(id) = inner.streams().open(Dir::Bi)
        {
            self.add(inner, id, true);
        }
        self.flush(inner);
    }

    fn add(&mut self, inner: &mut Connection, id: StreamId, is_own: bool) {
        let (sends, receives) = (is_own || !self.is_one_way, !is_own || !self.is_one_way);
        if self.is_ordered && sends {
            // The library would put a stream with a lost packet behind all others of its priority.
            let _ = inner.send_stream(id).set_priority(-(self.all.len() as i32));
        }
        self.all.push(Stream::new(id, sends, receives));
        self.open += 1;
    }

    /// Accepts the streams that the peer has opened. Returns their numbers.
    pub(super) fn accept(&mut self, inner: &mut Connection) -> std::ops::Range<u64> {
        let before = self.all.len() as u64;
        while let Some(id) = inner.streams().accept(self.dir()) {
            self.add(inner, id, false);
        }
        self.flush(inner);
        before..self.all.len() as u64
    }

    /// Writes to the only stream. Returns the number of bytes accepted.
    pub(super) fn write(&self, inner: &mut Connection, bytes: u64) -> u64 {
        self.all.first().map_or(0, |stream| stream.write(inner, bytes))
    }

    /// Adds a message: to the stream of the peer's message, or to the next new one.
    pub(super) fn queue_message(&mut self, number: u32, bytes: u64) {
        match self.all.get_mut(number as usize) {
            Some(stream) => {
                (stream.unsent, stream.ends) = (bytes, true);
                self.unsent.push_back(number);
            }
            None => self.waiting.push_back(bytes),
        }
    }

    /// Ends the only stream, or the sequence of messages.
    pub(super) const fn end(&mut self) {
        self.ends = true;
    }

    /// Passes to the library what it accepts.
    pub(super) fn flush(&mut self, inner: &mut Connection) {
        if !self.has_messages {
            if let Some(stream) = self.all.first_mut() {
                stream.ends = self.ends;
                stream.flush(inner, u64::MAX);
            }
            return;
        }
        while self.is_connected_client
            && let Some(&bytes) = self.waiting.front()
            && let Some(id) = inner.streams().open(self.dir())
        {
            self.waiting.pop_front();
            self.add(inner, id, true);
            self.queue_message(self.all.len() as u32 - 1, bytes);
        }
        if self.is_ordered {
            self.flush_in_order(inner);
        } else {
            self.flush_in_turns(inner);
        }
    }

    fn flush_in_order(&mut self, inner: &mut Connection) {
        while let Some(&number) = self.unsent.front() {
            let stream = &mut self.all[number as usize];
            stream.flush(inner, u64::MAX);
            if !stream.has_ended {
                return;
            }
            self.unsent.pop_front();
        }
    }

    /// Gives each stream its turn until none accepts more, so that the streams share what flow control allows.
    fn flush_in_turns(&mut self, inner: &mut Connection) {
        let mut without_progress = 0;
        while without_progress < self.unsent.len()
            && let Some(number) = self.unsent.pop_front()
        {
            let stream = &mut self.all[number as usize];
            without_progress = match stream.flush(inner, TURN) {
                true => 0,
                false => without_progress + 1,
            };
            if !stream.has_ended {
                self.unsent.push_back(number);
            }
        }
    }

    /// Reads all bytes of a stream available in order. Returns their number.
    pub(super) fn read(&mut self, inner: &mut Connection, number: u64) -> u64 {
        let Some(stream) = self.all.get_mut(number as usize) else {
            return 0;
        };
        let mut bytes = 0;
        let mut receiver = inner.recv_stream(stream.id);
        let Ok(mut chunks) = receiver.read(true) else {
            return 0;
        };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => bytes += chunk.bytes.len() as u64,
                Ok(None) => {
                    self.reports_end = !stream.peer_has_ended;
                    stream.peer_has_ended = true;
                    self.open -= usize::from(self.reports_end && stream.is_finished());
                    break;
                }
                Err(_) => break,
            }
        }
        // Flow-control updates leave with the next packets.
        let _ = chunks.finalize();
        bytes
    }

    /// Returns whether the last read was the first one that reached the end of the peer's stream.
    pub(super) const fn peer_ended_now(&mut self) -> bool {
        std::mem::replace(&mut self.reports_end, false)
    }

    /// Notes that the peer has this end of a stream.
    pub(super) fn acknowledge(&mut self, number: u64) {
        if let Some(stream) = self.all.get_mut(number as usize)
            && !std::mem::replace(&mut stream.is_acknowledged, true)
        {
            self.open -= usize::from(stream.is_finished());
        }
    }

    /// Returns whether both directions of all streams have ended; acknowledgements may be missing.
    pub(super) fn have_ended(&self) -> bool {
        let ended = |stream: &Stream| stream.has_ended && stream.peer_has_ended;
        !self.all.is_empty() && self.waiting.is_empty() && self.all.iter().all(ended)
    }

    /// Notes that the peer has all data and adds none.
    pub(super) fn acknowledge_all(&mut self) {
        for number in 0..self.all.len() as u64 {
            self.acknowledge(number);
        }
        self.ends = true;
    }

    /// Returns whether both directions of all streams have ended and this end's are acknowledged.
    pub(super) fn are_finished(&self) -> bool {
        let all_sent = self.ends && self.waiting.is_empty() && !self.all.is_empty();
        all_sent && self.open == 0
    }
}
