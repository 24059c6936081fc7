//! Ends that run TCP.

use std::sync::Arc;

use experiment::application::Notice;
use experiment::plan::Protocol;
use experiment::trace::{Decision, Probe};
use foundation::Instant;
use transport::mptcp::PathIndex;
use transport::tcp::{Connection, Event, Flags, Segment, TcpConfig, reset_for};
use transport::{Machine as _, Statistics};

use super::stream::{EndEvent, Family, StreamConnection};
use super::{Host, RttHistogram};
use crate::body::Content;

/// TCP at one end, which opens a connection or waits for one (state LISTEN).
#[derive(Debug)]
pub(crate) struct Tcp {
    config: Arc<TcpConfig>,
    /// Initial sequence number of this end.
    initial: u32,
    listens: bool,
    /// `None` before the first report, and for ever if the host has one path.
    reported: Option<Box<Reported>>,
}

/// What was last reported to the host's path estimates.
#[derive(Debug, Default)]
struct Reported {
    /// Time of the RTT sample.
    sampled_at: Option<Instant>,
    /// Bytes acknowledged and segments lost.
    delivery: (u64, u64),
}

impl Tcp {
    /// Returns the end that opens a connection.
    pub(crate) const fn opener(config: Arc<TcpConfig>, initial: u32) -> Self {
        Self {
            config,
            initial,
            listens: false,
            reported: None,
        }
    }

    /// Returns the end that waits for a connection.
    pub(crate) fn listener(config: Arc<TcpConfig>, initial: u32) -> Self {
        Self {
            listens: true,
            ..Self::opener(config, initial)
        }
    }
}

impl EndEvent {
    /// Converts an event of TCP or MPTCP.
    #[inline]
    pub(crate) fn of_tcp(event: Event) -> Self {
        Self::Notice(match event {
            Event::Readable => return Self::Readable,
            Event::Writable => return Self::Writable,
            Event::PeerFinished => Notice::PeerFinished,
            Event::Finished => Notice::Finished,
            Event::Failed(error) => Notice::Failed(error.to_string()),
            Event::Closed => Notice::Closed,
            Event::Connected => Notice::Connected,
        })
    }
}

impl StreamConnection for Connection {
    fn record_round_trips(&mut self) {
        self.record_round_trips();
    }

    fn statistics(&self) -> &Statistics {
        self.statistics()
    }

    fn take_round_trips(&mut self) -> RttHistogram {
        self.take_round_trips()
    }

    fn write(&mut self, now: Instant, bytes: u64) -> u64 {
        self.write(now, bytes)
    }

    fn finish(&mut self, now: Instant) {
        self.finish(now);
    }

    #[inline]
    fn read_all(&mut self, now: Instant, _: u64) -> u64 {
        let bytes = self.readable();
        self.read(now, bytes)
    }

    fn early_bytes(&self) -> u64 {
        self.early_bytes()
    }

    #[inline]
    fn end_event(event: Event) -> EndEvent {
        EndEvent::of_tcp(event)
    }
}

impl Family for Tcp {
    type Connection = Connection;
    type Packet = Segment;

    fn reconfigure(&mut self, key: &str, protocol: &Protocol, connection: Option<&mut Connection>) {
        let Protocol::Tcp(config) = protocol else { return };
        self.config = Arc::clone(config);
        if let Some(connection) = connection {
            connection.reconfigure(key, config);
        }
    }

    fn connect(&mut self, now: Instant, host: &mut Host<'_>) -> Connection {
        let opening = host.memory.opening(now, &self.config, host.peer_address());
        Connection::open_with(now, &self.config, self.initial, opening)
    }

    #[inline]
    fn receive(
        &mut self,
        now: Instant,
        _: u8,
        content: &mut Content,
        connection: &mut Option<Connection>,
        host: &mut Host<'_>,
    ) -> Option<Content> {
        let segment = match content {
            Content::Tcp(segment) => segment,
            &mut Content::TooBig { mtu } => {
                if let Some(connection) = connection {
                    connection.handle_path_mtu(now, mtu);
                }
                return None;
            }
            _ => return None,
        };
        if let Some(connection) = connection {
            connection.handle_segment(now, segment);
        } else if self.listens && segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK) {
            let opening = host
                .memory
                .admission(now, &self.config, host.peer_address(), segment);
            *connection = Some(Connection::accept_with(
                now,
                &self.config,
                self.initial,
                segment,
                opening,
            ));
        } else {
            return reset_for(segment).map(Content::Tcp);
        }
        None
    }

    #[inline]
    fn transmit(connection: &mut Connection, now: Instant, _: &mut u8) -> Option<Segment> {
        Some(connection.poll_transmit(now)?.segment)
    }

    fn probe(connection: &Connection) -> Probe {
        Probe::of_tcp(connection).with_controller(Some(connection.controller()))
    }

    fn decisions(connection: &Connection, add: &mut dyn FnMut(Decision)) {
        add(Decision::of_tcp(&connection.sender_snapshot()));
    }

    /// Updates the path estimates, which other connections use, if the host has several paths.
    #[inline]
    fn update_host(
        &mut self,
        now: Instant,
        way: u8,
        host: &mut Host<'_>,
        connection: &mut Connection,
    ) -> bool {
        while let Some(update) = connection.take_peer_update() {
            host.memory.apply(now, host.peer_address(), update);
        }
        let host = &mut *host.paths;
        if host.len() > 1 && !self.listens {
            let reported = self.reported.get_or_insert_default();
            let rtt = connection.round_trips();
            if rtt.sampled_at() != reported.sampled_at {
                reported.sampled_at = rtt.sampled_at();
                host.on_round_trip(PathIndex(way), rtt.latest());
            }
            let (acknowledged, lost) = (connection.bytes_acknowledged(), connection.segments_lost());
            let (known, lost_before) = std::mem::replace(&mut reported.delivery, (acknowledged, lost));
            host.on_delivery(PathIndex(way), now, acknowledged - known, lost - lost_before);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::StreamEnd;
    use super::*;

    /// The allocator adds 7 bytes and rounds up to 1280, and then to 1536. A million flows have two million ends.
    #[test]
    fn an_end_is_small() {
        let size = size_of::<StreamEnd<Tcp>>();
        assert!(size <= 1273, "{size}");
    }
}
