//! One end of a connection: a socket of the operating system and a stream of a user-space host.

use std::io::ErrorKind;

use foundation::Instant;
use stack::{Stack, StreamId};
use transport::tcp::Connection;

use crate::socket::Socket;

/// How an end ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Both streams have ended in order.
    Completed,
    /// The socket failed: the stream is aborted.
    SocketReset,
    /// The stream failed: the socket is reset.
    StreamReset,
}

/// One end of a connection whose stream exists.
#[derive(Debug)]
pub(crate) struct End<S> {
    socket: S,
    stream: StreamId,
    /// Whether the socket may have bytes to read, or room to write.
    readable: bool,
    writable: bool,
    /// Whether the socket's stream has ended.
    has_ended: bool,
    /// Whether the peer has finished the stream, and whether the socket has been finished after its last byte.
    peer_has_finished: bool,
    has_finished: bool,
    /// Bytes of the stream for which the socket had no room.
    pending: Vec<u8>,
    /// Bytes read from the socket, and written to it.
    pub(crate) read: u64,
    pub(crate) written: u64,
}

impl<S: Socket> End<S> {
    pub(crate) const fn new(socket: S, stream: StreamId) -> Self {
        Self {
            socket,
            stream,
            readable: true,
            writable: true,
            has_ended: false,
            peer_has_finished: false,
            has_finished: false,
            pending: Vec::new(),
            read: 0,
            written: 0,
        }
    }

    pub(crate) const fn stream(&self) -> StreamId {
        self.stream
    }

    pub(crate) const fn socket(&self) -> &S {
        &self.socket
    }

    /// Records what the socket is ready for.
    pub(crate) const fn set_ready(&mut self, readable: bool, writable: bool) {
        self.readable |= readable;
        self.writable |= writable;
    }

    /// Records that all bytes of the peer, and its FIN, have arrived.
    pub(crate) const fn set_peer_finished(&mut self) {
        self.peer_has_finished = true;
    }

    /// Writes bytes to the socket before those of the stream.
    pub(crate) fn write_first(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Moves bytes both ways, as far as there is room.
    pub(crate) fn pump(&mut self, now: Instant, stack: &mut Stack, buffer: &mut [u8]) -> Option<Ending> {
        self.pump_in(now, stack, buffer)
            .or_else(|| self.pump_out(now, stack, buffer))
            .or_else(|| (self.has_ended && self.has_finished).then_some(Ending::Completed))
    }

    /// Moves bytes from the socket into the stream.
    fn pump_in(&mut self, now: Instant, stack: &mut Stack, buffer: &mut [u8]) -> Option<Ending> {
        while self.readable && !self.has_ended {
            let room = stack.connection(self.stream).map_or(0, Connection::writable);
            if room == 0 {
                // A write without room makes the stack report when there is room.
                stack.write(now, self.stream, &[0]);
                return None;
            }
            let most = room.min(buffer.len() as u64) as usize;
            let part = &mut buffer[..most];
            match self.socket.read(part) {
                Ok(0) => {
                    self.has_ended = true;
                    stack.finish(now, self.stream);
                }
                Ok(count) => {
                    self.read += count as u64;
                    if stack.write(now, self.stream, &part[..count]) < count {
                        // The connection has failed.
                        return Some(Ending::StreamReset);
                    }
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => self.readable = false,
                    ErrorKind::Interrupted => {}
                    _ => return Some(Ending::SocketReset),
                },
            }
        }
        None
    }

    /// Moves bytes from the stream to the socket.
    fn pump_out(&mut self, now: Instant, stack: &mut Stack, buffer: &mut [u8]) -> Option<Ending> {
        while self.writable && !self.has_finished {
            if !self.pending.is_empty() {
                let pending = std::mem::take(&mut self.pending);
                let ending = self.write_out(&pending);
                if ending.is_some() {
                    return ending;
                }
                continue;
            }
            let count = stack.read(now, self.stream, buffer);
            if count > 0 {
                let ending = self.write_out(&buffer[..count]);
                if ending.is_some() {
                    return ending;
                }
                continue;
            }
            if self.peer_has_finished {
                self.socket.finish();
                self.has_finished = true;
            }
            return None;
        }
        None
    }

    /// Writes bytes to the socket, and keeps those for which it has no room.
    fn write_out(&mut self, mut bytes: &[u8]) -> Option<Ending> {
        while !bytes.is_empty() {
            match self.socket.write(bytes) {
                Ok(count) => {
                    self.written += count as u64;
                    bytes = &bytes[count..];
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => {
                        self.writable = false;
                        self.pending.extend_from_slice(bytes);
                        return None;
                    }
                    ErrorKind::Interrupted => {}
                    _ => return Some(Ending::SocketReset),
                },
            }
        }
        None
    }

    /// Writes a last answer, as far as the socket has room, and returns the socket, whose unread bytes would reset the connection.
    pub(crate) fn refuse(mut self, answer: &[u8]) -> Option<S> {
        // The socket is new, so its buffer is empty; a client that has left needs no answer.
        let _ = self.socket.write(answer);
        self.socket.finish();
        (!self.has_ended).then_some(self.socket)
    }

    /// Closes the socket.
    pub(crate) fn close(self, ending: Ending) {
        match ending {
            Ending::Completed => drop(self.socket),
            Ending::SocketReset | Ending::StreamReset => self.socket.reset(),
        }
    }
}
