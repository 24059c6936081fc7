//! All connections of a capture.

use std::collections::HashMap;
use std::net::SocketAddr;

use crate::connection::Connection;
use crate::file::{CaptureError, CaptureFile};
use crate::packet::{Parsed, TcpPacket, parse};

/// Frames that are no TCP packet.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct Others {
    /// UDP packets.
    pub udp: u64,
    /// Other protocols, and later fragments of packets.
    pub other: u64,
    /// Frames that cannot be read.
    pub unreadable: u64,
}

/// The connections of a capture, in the order of their first packets.
#[derive(Debug, Default)]
pub struct Connections {
    /// All connections.
    pub all: Vec<Connection>,
    /// Other frames.
    pub others: Others,
    current: HashMap<(SocketAddr, SocketAddr), usize>,
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
        for connection in &mut found.all {
            connection.end();
        }
        Ok(found)
    }

    fn take(&mut self, parsed: Parsed) {
        match parsed {
            Parsed::Tcp(packet) => self.packet(&packet),
            Parsed::Udp(..) => self.others.udp += 1,
            Parsed::Other => self.others.other += 1,
            Parsed::Unreadable => self.others.unreadable += 1,
        }
    }

    fn packet(&mut self, packet: &TcpPacket) {
        let (a, b) = (packet.source, packet.destination);
        let key = if a <= b { (a, b) } else { (b, a) };
        let known = self.current.get(&key).copied();
        let place = match known {
            Some(place) if !self.all[place].is_followed_by(packet) => place,
            _ => {
                self.all.push(Connection::starting_with(packet));
                self.current.insert(key, self.all.len() - 1);
                self.all.len() - 1
            }
        };
        self.all[place].packet(packet);
    }
}
