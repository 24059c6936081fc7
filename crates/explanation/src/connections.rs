//! The connections of a capture: all that are active, and the largest of the others, in bounded memory.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::SocketAddr;

use crate::connection::Connection;
use crate::file::{CaptureError, CaptureFile};
use crate::packet::{Parsed, TcpPacket, parse};
use crate::quic::QuicConnections;

/// Connections that are followed at the same time. With more, those that were silent for longest end, and packets that
/// follow start connections of their own.
const MOST_ACTIVE: usize = 1 << 14;
/// Connections that are kept in full; of more, those with most data.
const MOST_KEPT: usize = 1000;

/// Connections that are only counted: those with least data of a capture with very many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Omitted {
    /// Connections.
    pub connections: u64,
    /// Their bytes of data, without repetitions.
    pub bytes: u64,
    /// Their packets.
    pub packets: u64,
}

/// Frames that are no TCP packet.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct Others {
    /// UDP packets.
    pub udp: u64,
    /// Other protocols, and later fragments of packets.
    pub other: u64,
    /// Frames that cannot be read.
    pub unreadable: u64,
    /// TCP packets of a connection that another interface shows better, as in a file with both hosts.
    pub other_interfaces: u64,
}

type Ends = (SocketAddr, SocketAddr);

/// The connections of a capture.
#[derive(Debug, Default)]
pub struct Connections {
    /// Those with most data, in the order of their first packets.
    pub all: Vec<Box<Connection>>,
    /// The others.
    pub omitted: Omitted,
    /// QUIC connections.
    pub quic: QuicConnections,
    /// Other frames.
    pub others: Others,
    active: HashMap<Ends, Box<Connection>>,
    /// Connections so far.
    count: usize,
}

impl Connections {
    /// Reads a whole capture. `on_frame` is called after every frame with the number of frames, and may stop it.
    ///
    /// # Errors
    /// If reading fails.
    pub fn read(file: &mut CaptureFile, mut on_frame: impl FnMut(u64) -> bool) -> Result<Self, CaptureError> {
        let mut found = Self::default();
        while let Some(frame) = file.next_frame()? {
            let number = frame.number;
            found.take(parse(&frame));
            if !on_frame(number) {
                break;
            }
        }
        for connection in found.take_active(0) {
            found.finish(connection);
        }
        found.omit();
        found.all.sort_by_key(|one| one.stream);
        Ok(found)
    }

    fn take(&mut self, parsed: Parsed) {
        match parsed {
            Parsed::Tcp(packet) => self.packet(&packet),
            Parsed::Udp(packet) => {
                self.others.udp += 1;
                self.quic.packet(&packet);
            }
            Parsed::Other => self.others.other += 1,
            Parsed::Unreadable => self.others.unreadable += 1,
        }
    }

    fn packet(&mut self, packet: &TcpPacket) {
        let (a, b) = (packet.source, packet.destination);
        let key = if a <= b { (a, b) } else { (b, a) };
        if let Some(connection) = self.active.get_mut(&key) {
            // Another interface may see the start of a connection late.
            let is_elsewhere = connection.interface != packet.interface && !connection.is_closed;
            if is_elsewhere || !connection.is_followed_by(packet) {
                connection.packet(packet);
                return;
            }
        }
        if self.active.len() >= MOST_ACTIVE {
            for connection in self.take_active(MOST_ACTIVE / 2) {
                self.finish(connection);
            }
        }
        let mut connection = Box::new(Connection::starting_with(packet, self.count));
        self.count += 1;
        connection.packet(packet);
        if let Some(before) = self.active.insert(key, connection) {
            self.finish(before);
        }
    }

    /// Removes all active connections but those with the latest packets and those with most data.
    fn take_active(&mut self, keep: usize) -> impl Iterator<Item = Box<Connection>> + use<> {
        let mut found: Vec<(Ends, Box<Connection>)> = self.active.drain().collect();
        if keep > 0 {
            found.sort_unstable_by_key(|(_, one)| Reverse((one.bytes(), one.stream)));
            let rest = found.split_off(MOST_KEPT.min(found.len()));
            self.active.extend(found);
            found = rest;
        }
        found.sort_unstable_by_key(|(_, one)| Reverse((one.last.1, one.stream)));
        let rest = found.split_off(keep.min(found.len()));
        self.active.extend(found);
        rest.into_iter().map(|(_, one)| one)
    }

    fn finish(&mut self, connection: Box<Connection>) {
        let mut connection = Box::new(connection.at_sender());
        self.others.other_interfaces += connection.left_out;
        connection.end();
        self.all.push(connection);
        if self.all.len() >= 2 * MOST_KEPT {
            self.omit();
        }
    }

    /// Counts all finished connections but those with most data.
    fn omit(&mut self) {
        self.all
            .sort_unstable_by_key(|one| (Reverse(one.bytes()), one.stream));
        for one in self.all.drain(MOST_KEPT.min(self.all.len())..) {
            self.omitted.connections += 1;
            self.omitted.bytes += one.bytes();
            self.omitted.packets += one.packets();
        }
    }
}
