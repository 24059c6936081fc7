//! An end that sends or receives datagrams without feedback.

use experiment::application::Stream;
use foundation::Instant;
use transport::Statistics;

use super::{End, Host, Notice, Probe};
use crate::body::Content;

/// A source or a sink of datagrams.
#[derive(Debug)]
pub(crate) struct DatagramEnd {
    /// Payload of a datagram.
    size: u32,
    unsent: u64,
    unread: u64,
    statistics: Statistics,
}

impl DatagramEnd {
    pub(crate) fn new(size: u32) -> Self {
        Self {
            size,
            unsent: 0,
            unread: 0,
            statistics: Statistics::default(),
        }
    }
}

impl Stream for DatagramEnd {
    fn write(&mut self, _: Instant, bytes: u64) {
        self.unsent += bytes;
    }

    /// No message to the peer.
    fn finish(&mut self, _: Instant) {}
}

impl End for DatagramEnd {
    fn open(&mut self, now: Instant, _: &mut Host<'_>) {
        self.statistics.opened_at = Some(now);
    }

    fn statistics(&self) -> Option<&Statistics> {
        Some(&self.statistics)
    }

    fn probe(&self, _: Instant) -> Probe {
        Probe::default()
    }

    fn receive(&mut self, _: Instant, _: u8, content: &Content, _: &mut Host<'_>) -> Option<Content> {
        if let &Content::Datagram(bytes) = content {
            self.unread += u64::from(bytes);
            self.statistics.packets_received += 1;
        }
        None
    }

    fn expire(&mut self, _: Instant) -> bool {
        false
    }

    fn poll(&mut self, _: Instant) -> Option<Notice> {
        match std::mem::take(&mut self.unread) {
            0 => None,
            bytes => Some(Notice::Read(bytes)),
        }
    }

    fn transmit(&mut self, now: Instant, _: &mut u8) -> Option<Content> {
        if self.unsent == 0 {
            return None;
        }
        let bytes = self.unsent.min(u64::from(self.size));
        self.unsent -= bytes;
        self.statistics.first_data_at.get_or_insert(now);
        self.statistics.packets_sent += 1;
        self.statistics.bytes_sent += bytes;
        Some(Content::Datagram(bytes as u32))
    }

    fn timeout(&self) -> Option<Instant> {
        None
    }
}
