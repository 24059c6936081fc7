//! An end that sends or receives datagrams without feedback.

use experiment::application::Stream;
use experiment::outcome::RttHistogram;
use experiment::trace::content::Datagram;
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
    /// Returns an end whose statistics contain the one-way delays of the datagrams that it receives, if recorded.
    pub(crate) fn new(size: u32, records_delays: bool) -> Self {
        Self {
            size,
            unsent: 0,
            unread: 0,
            statistics: if records_delays {
                Statistics::with_rtt_histogram()
            } else {
                Statistics::default()
            },
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
    type Packet = Datagram;

    fn open(&mut self, now: Instant, _: &mut Host<'_>) {
        self.statistics.opened_at = Some(now);
    }

    fn statistics(&self) -> Option<&Statistics> {
        Some(&self.statistics)
    }

    fn probe(&self, _: Instant) -> Probe {
        Probe::default()
    }

    fn take_round_trips(&mut self) -> RttHistogram {
        self.statistics.take_round_trips()
    }

    fn receive(&mut self, now: Instant, _: u8, content: &mut Content, _: &mut Host<'_>) -> Option<Content> {
        if let &mut Content::Datagram(Datagram { length, sent_at }) = content {
            self.unread += u64::from(length);
            self.statistics.packets_received += 1;
            if let Some(sent_at) = sent_at {
                self.statistics.record_rtt(now - sent_at);
            }
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

    fn transmit(&mut self, now: Instant, _: &mut u8) -> Option<Datagram> {
        if self.unsent == 0 {
            return None;
        }
        let bytes = self.unsent.min(u64::from(self.size));
        self.unsent -= bytes;
        self.statistics.first_data_at.get_or_insert(now);
        self.statistics.packets_sent += 1;
        self.statistics.bytes_sent += bytes;
        Some(Datagram {
            length: bytes as u32,
            sent_at: Some(now),
        })
    }

    fn timeout(&self) -> Option<Instant> {
        None
    }
}
