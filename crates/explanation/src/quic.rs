//! QUIC connections: their volume, handshake, and the RTT that the spin bit shows. The rest is encrypted.
//!
//! Long headers start a connection (RFC 8999, section 5.1; RFC 9000, section 17.2), and short ones have the spin bit
//! (RFC 9000, section 17.4). Only the first packet of a datagram is read.

use std::collections::HashMap;
use std::net::SocketAddr;

use foundation::Instant;
use serde::Serialize;

use crate::rates::Distribution;

/// Connections that are followed; later ones are only counted as UDP.
const MOST: usize = 4096;
/// Versions 1 (RFC 9000) and 2 (RFC 9369); drafts of version 1 start with the third one.
const VERSION_1: u32 = 1;
const VERSION_2: u32 = 0x6b33_43cf;
const DRAFT: u32 = 0xff00_0000;
const LONG: u8 = 0x80;
const FIXED: u8 = 0x40;
const SPIN: u8 = 0x20;
/// Changes of the spin bit that an RTT needs.
const ENOUGH: u64 = 4;
/// Share of the packets with a change above which the bit is random (RFC 9000, section 17.4).
const RANDOM: f64 = 0.25;

/// A UDP packet: its addresses, the length of its payload, and the start of it as far as it was captured.
#[derive(Clone, Copy, Debug)]
pub struct UdpPacket {
    /// Time of its capture.
    pub time: Instant,
    /// Address and port of its sender.
    pub source: SocketAddr,
    /// Address and port of its receiver.
    pub destination: SocketAddr,
    /// Bytes of payload on the wire.
    pub length: u32,
    /// The first byte, and the four after it.
    pub start: Option<(u8, u32)>,
}

/// A QUIC connection.
#[derive(Clone, Debug, Serialize)]
pub struct QuicReport {
    /// Address of the client.
    pub client: SocketAddr,
    /// Address of the server.
    pub server: SocketAddr,
    /// Bytes of UDP payload from the client, and from the server.
    pub bytes: [u64; 2],
    /// Packets from the client, and from the server.
    pub packets: [u64; 2],
    /// Time from the first to the last packet.
    pub duration_s: f64,
    /// Time from the client's first packet to its first one with a short header.
    pub handshake_s: Option<f64>,
    /// Median of the RTT between changes of the spin bit.
    pub spin_rtt_s: Option<f64>,
    /// Smallest of these RTTs.
    pub least_spin_rtt_s: Option<f64>,
}

#[derive(Debug)]
struct Connection {
    client: SocketAddr,
    server: SocketAddr,
    first: Instant,
    last: Instant,
    bytes: [u64; 2],
    packets: [u64; 2],
    established: Option<Instant>,
    /// The spin bit of each end, and when it changed.
    spins: [Option<(bool, Option<Instant>)>; 2],
    changes: [u64; 2],
    short: [u64; 2],
    rtts: [Distribution; 2],
}

/// The QUIC connections of a capture.
#[derive(Debug, Default)]
pub struct QuicConnections {
    all: HashMap<(SocketAddr, SocketAddr), Connection>,
}

impl QuicConnections {
    /// Takes a UDP packet.
    pub fn packet(&mut self, packet: &UdpPacket) {
        let (a, b) = (packet.source, packet.destination);
        let key = if a <= b { (a, b) } else { (b, a) };
        if let Some(connection) = self.all.get_mut(&key) {
            connection.packet(packet);
        } else if is_initial(packet) && self.all.len() < MOST {
            let mut connection = Connection::starting_with(packet);
            connection.packet(packet);
            self.all.insert(key, connection);
        }
    }

    /// Returns the connections with packets of both ends, those with most data first.
    #[must_use]
    pub fn reports(&self) -> Vec<QuicReport> {
        let both = self
            .all
            .values()
            .filter(|one| one.packets.iter().all(|&count| count > 0));
        let mut found: Vec<QuicReport> = both.map(Connection::report).collect();
        found.sort_by_key(|one| (std::cmp::Reverse(one.bytes[0] + one.bytes[1]), one.client));
        found
    }
}

/// Whether a packet starts a connection: an Initial packet of a known version.
fn is_initial(packet: &UdpPacket) -> bool {
    let Some((first, version)) = packet.start else {
        return false;
    };
    let kind = (first >> 4) & 3;
    let is_known = match version {
        VERSION_2 => kind == 1,
        VERSION_1 => kind == 0,
        other => other & 0xffff_ff00 == DRAFT && kind == 0,
    };
    first & (LONG | FIXED) == LONG | FIXED && is_known
}

impl Connection {
    fn starting_with(packet: &UdpPacket) -> Self {
        Self {
            client: packet.source,
            server: packet.destination,
            first: packet.time,
            last: packet.time,
            bytes: [0; 2],
            packets: [0; 2],
            established: None,
            spins: [None; 2],
            changes: [0; 2],
            short: [0; 2],
            rtts: [Distribution::default(), Distribution::default()],
        }
    }

    fn packet(&mut self, packet: &UdpPacket) {
        let from = usize::from(packet.source != self.client);
        self.last = self.last.max(packet.time);
        self.bytes[from] += u64::from(packet.length);
        self.packets[from] += 1;
        let Some((first, _)) = packet.start else { return };
        if first & (LONG | FIXED) != FIXED {
            return;
        }
        if from == 0 {
            self.established.get_or_insert(packet.time);
        }
        self.short[from] += 1;
        let spin = first & SPIN != 0;
        match self.spins[from] {
            Some((known, changed)) if known != spin => {
                self.changes[from] += 1;
                if let Some(changed) = changed {
                    let rtt = packet.time.saturating_since(changed);
                    self.rtts[from].add(rtt.as_secs_f64(), 1);
                }
                self.spins[from] = Some((spin, Some(packet.time)));
            }
            Some(_) => {}
            None => self.spins[from] = Some((spin, None)),
        }
    }

    fn report(&self) -> QuicReport {
        // The end with more packets shows the changes with less delay.
        let from = usize::from(self.short[1] > self.short[0]);
        let is_random = self.changes[from] as f64 > RANDOM * self.short[from] as f64;
        let spins = (self.changes[from] >= ENOUGH && !is_random).then_some(&self.rtts[from]);
        QuicReport {
            client: self.client,
            server: self.server,
            bytes: self.bytes,
            packets: self.packets,
            duration_s: self.last.saturating_since(self.first).as_secs_f64(),
            handshake_s: self
                .established
                .map(|time| time.saturating_since(self.first).as_secs_f64()),
            spin_rtt_s: spins.and_then(|rtts| rtts.quantile(0.5)),
            least_spin_rtt_s: spins.and_then(|rtts| rtts.quantile(0.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(millis: u64, from: u16, first: u8, version: u32) -> UdpPacket {
        let end = |port| SocketAddr::from(([10, 0, 0, 1], port));
        UdpPacket {
            time: Instant::from_nanos(millis * 1_000_000),
            source: end(from),
            destination: end(if from == 1 { 443 } else { 1 }),
            length: 1200,
            start: Some((first, version)),
        }
    }

    /// A handshake of 30 ms, and packets each millisecond whose spin bit changes each 20 ms, or at random.
    fn connection(is_random: bool) -> Vec<QuicReport> {
        let mut found = QuicConnections::default();
        found.packet(&packet(0, 1, 0xc0, 1));
        found.packet(&packet(20, 443, 0xc0, 1));
        for time in 30..430 {
            let spin = if is_random {
                time * 7 % 3 == 0
            } else {
                (time - 30) / 20 % 2 == 1
            };
            let first = FIXED | if spin { SPIN } else { 0 };
            found.packet(&packet(time, 1, first, 0xabcd_0123));
        }
        found.reports()
    }

    #[test]
    fn the_spin_bit_shows_the_rtt() {
        let found = connection(false);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].packets, found[0].bytes[1]), ([401, 1], 1200));
        assert!((found[0].handshake_s.unwrap_or_default() - 0.03).abs() < 1e-9);
        assert!((found[0].spin_rtt_s.unwrap_or_default() / 0.02 - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_random_spin_bit_shows_no_rtt() {
        assert!(connection(true)[0].spin_rtt_s.is_none());
    }

    #[test]
    fn other_datagrams_start_no_connection() {
        for (first, version) in [(0x45, 1), (0xc0, 0x1234_5678), (0xf0, 1), (0xc0, VERSION_2)] {
            let mut found = QuicConnections::default();
            found.packet(&packet(0, 1, first, version));
            found.packet(&packet(1, 443, first, version));
            assert!(found.reports().is_empty(), "{first:x} {version:x}");
        }
    }
}
