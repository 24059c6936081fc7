//! Real-time frames in DATAGRAM frames (RFC 9221). Each of these starts with the number of the real-time frame.

use std::collections::VecDeque;

use bytes::{BufMut, BytesMut};
use noq_proto::Connection;

/// The frames of one end that the library has not accepted.
#[derive(Debug, Default)]
pub(super) struct Unreliable {
    is_connected: bool,
    /// Numbers and sizes of frames.
    waiting: VecDeque<(u32, u64)>,
    /// Free bytes of the library's buffer when it is empty.
    room: usize,
    /// Whether the application adds no frames.
    ends: bool,
}

impl Unreliable {
    /// Bytes of the number of the real-time frame.
    pub(super) const HEADER: usize = 4;

    /// Starts when the handshake is complete.
    pub(super) fn connect(&mut self, inner: &mut Connection) {
        self.is_connected = true;
        self.room = inner.datagrams().send_buffer_space();
        self.flush(inner);
    }

    /// Sends a frame, at the latest when the connection is complete.
    pub(super) fn send(&mut self, inner: Option<&mut Connection>, number: u32, bytes: u64) {
        self.waiting.push_back((number, bytes));
        if let Some(inner) = inner {
            self.flush(inner);
        }
    }

    pub(super) const fn end(&mut self) {
        self.ends = true;
    }

    pub(super) const fn has_ended(&self) -> bool {
        self.ends
    }

    /// Passes the frames to the library in parts of at most the size that the path and the peer allow. Older parts leave its buffer
    /// if it is full.
    fn flush(&mut self, inner: &mut Connection) {
        if !self.is_connected {
            return;
        }
        while let Some(&(number, bytes)) = self.waiting.front()
            && let Some(size) = inner.datagrams().max_size()
        {
            let most = size.min(self.room).saturating_sub(Self::HEADER).max(1) as u64;
            let mut left = bytes;
            while left > 0 {
                let part = left.min(most);
                let mut datagram = BytesMut::with_capacity(Self::HEADER + part as usize);
                datagram.put_u32(number);
                datagram.put_bytes(0, part as usize);
                // A failure counts like a loss.
                let _ = inner.datagrams().send(datagram.freeze(), true);
                left -= part;
            }
            self.waiting.pop_front();
        }
    }

    /// Returns the number and the payload bytes of the next part that arrived.
    pub(super) fn receive(inner: &mut Connection) -> Option<(u32, u64)> {
        loop {
            let datagram = inner.datagrams().recv()?;
            if let Some((number, rest)) = datagram.split_first_chunk() {
                return Some((u32::from_be_bytes(*number), rest.len() as u64));
            }
        }
    }

    /// Returns whether the application adds no frames, and the library has sent those before.
    pub(super) fn is_finished(&self, inner: &mut Connection) -> bool {
        let is_idle = self.is_connected && self.waiting.is_empty();
        self.ends && is_idle && inner.datagrams().send_buffer_space() == self.room
    }
}
