//! A TCP connection: its handshake and both directions.

use std::net::SocketAddr;

use foundation::Instant;

use crate::direction::Direction;
use crate::handshake::Handshake;
use crate::multipath::Subflow;
use crate::packet::TcpPacket;
use crate::round_trips::Position;
use crate::tallies::{Analysis, InitialRtt};
use crate::turns::{Said, Turns};

/// Further interfaces of a connection that are followed.
const MOST_OTHERS: usize = 3;
/// Data of the first interface in relation to that of another one that has captured the whole connection.
const WHOLE: f64 = 1.1;

/// One end of a connection, with the data that it sends.
#[derive(Debug, Default)]
pub struct Side {
    /// Data that this end sends.
    pub direction: Direction,
    /// Counts of Wireshark.
    pub analysis: Analysis,
    /// Its initial sequence number, if it is known.
    pub initial: Option<u32>,
    /// MSS that this end announced.
    pub mss: Option<u16>,
    /// Shift of the windows that this end announces.
    pub scale: Option<u8>,
    /// Whether this end permitted SACK.
    pub permits_sack: bool,
}

/// A TCP connection. Its first end sent the first SYN, or the first captured packet.
#[derive(Debug)]
pub struct Connection {
    /// Number in the order of first packets, from 0.
    pub stream: usize,
    /// Interface whose packets it has: that of the first one.
    pub interface: u32,
    /// The same connection as other interfaces captured it, as in a file with both hosts.
    others: Vec<Connection>,
    /// Packets of more interfaces than are followed; with [`at_sender`](Self::at_sender), of all others.
    pub left_out: u64,
    /// Addresses of both ends.
    pub addresses: [SocketAddr; 2],
    /// Both ends.
    pub sides: [Side; 2],
    /// The handshake.
    pub handshake: Handshake,
    /// The dialogue of the applications.
    pub turns: Turns,
    /// Keys and token of Multipath TCP.
    pub subflow: Subflow,
    /// First and last packet.
    pub first: (Instant, u64),
    /// See [`first`](Self::first).
    pub last: (Instant, u64),
    /// Whether both ends sent FIN, or one of them RST.
    pub is_closed: bool,
    fins: [bool; 2],
    initial_rtt: InitialRtt,
}

impl Connection {
    /// Starts with the first packet.
    pub fn starting_with(packet: &TcpPacket, stream: usize) -> Self {
        // The answer alone shows who the client is.
        let is_answer = packet.is_syn && packet.acknowledgement.is_some();
        let addresses = if is_answer {
            [packet.destination, packet.source]
        } else {
            [packet.source, packet.destination]
        };
        Self {
            stream,
            interface: packet.interface,
            others: Vec::new(),
            left_out: 0,
            addresses,
            sides: [Side::default(), Side::default()],
            handshake: Handshake::default(),
            turns: Turns::default(),
            subflow: Subflow::default(),
            first: (packet.time, packet.number),
            last: (packet.time, packet.number),
            is_closed: false,
            fins: [false; 2],
            initial_rtt: InitialRtt::default(),
        }
    }

    /// Returns the bytes of data of both ends, without repetitions.
    pub fn bytes(&self) -> u64 {
        self.sides.iter().map(|side| side.direction.totals.bytes).sum()
    }

    /// Returns the packets of both ends.
    pub fn packets(&self) -> u64 {
        self.sides.iter().map(|side| side.direction.totals.packets).sum()
    }

    /// Whether a packet starts another connection between the same ports, by Wireshark's rule: a SYN with another number.
    pub fn is_followed_by(&self, packet: &TcpPacket) -> bool {
        packet.is_syn
            && packet.acknowledgement.is_none()
            && self.sides[self.sender(packet)]
                .initial
                .is_some_and(|initial| initial != packet.sequence)
    }

    /// Returns the place of the end that sent a packet.
    fn sender(&self, packet: &TcpPacket) -> usize {
        usize::from(packet.source != self.addresses[0])
    }

    /// Counts events by Wireshark's definitions.
    fn analyse(&mut self, packet: &TcpPacket, from: usize) {
        let [first, second] = &mut self.sides;
        let (own, peer) = if from == 0 {
            (first, second)
        } else {
            (second, first)
        };
        let first = packet.sequence.wrapping_sub(u32::from(!packet.is_syn));
        if !packet.is_syn {
            own.initial.get_or_insert(first);
        } else if packet.acknowledgement.is_some() {
            own.initial = Some(first);
        } else if own.initial.is_some() {
            own.analysis.repeated_syn();
        } else {
            own.initial = Some(first);
        }
        if let Some(ack) = packet.acknowledgement {
            peer.initial.get_or_insert(ack.wrapping_sub(1));
        }
        own.analysis.packet(packet, &mut peer.analysis, self.initial_rtt);
        self.initial_rtt.packet(packet);
    }

    /// Takes a packet. Two places of the path would look like one with every packet twice, so each interface counts apart.
    pub fn packet(&mut self, packet: &TcpPacket) {
        if packet.interface != self.interface {
            self.elsewhere(packet);
            return;
        }
        let from = self.sender(packet);
        self.last = (packet.time, packet.number);
        self.opening(packet, from);
        if let Some(option) = packet.multipath {
            self.subflow.option(option, from);
        }
        self.analyse(packet, from);
        let [first, second] = &mut self.sides;
        let (own, peer) = if from == 0 {
            (first, second)
        } else {
            (second, first)
        };
        let scale = match (own.scale, peer.scale) {
            (Some(scale), Some(_)) => scale,
            _ => 0,
        };
        peer.direction.acknowledged(packet, scale);
        if packet.length > 0 {
            peer.direction.requested(packet.time);
        }
        let before = own.direction.totals.bytes;
        let covers = peer.direction.is_covered_by(packet);
        own.direction.sent(packet);
        self.turns.packet(Said {
            time: packet.time,
            from,
            fresh: own.direction.totals.bytes - before,
            has_data: packet.length > 0,
            covers,
            round_trip: peer
                .direction
                .round_trips
                .far_now
                .max(own.direction.round_trips.near_now),
            whole: [&*own, &*peer]
                .iter()
                .find_map(|side| side.direction.round_trips.now)
                .unwrap_or_default(),
        });
        self.fins[from] |= packet.is_fin;
        self.is_closed |= packet.is_rst || self.fins == [true, true];
    }

    fn opening(&mut self, packet: &TcpPacket, from: usize) {
        let time = packet.time;
        let handshake = &mut self.handshake;
        if packet.is_syn {
            let side = &mut self.sides[from];
            side.mss = packet.mss;
            side.scale = packet.scale;
            side.permits_sack = packet.permits_sack;
            if packet.acknowledgement.is_some() {
                handshake.answer = Some(time);
            } else if handshake.answer.is_none() {
                handshake.repeated += u32::from(handshake.syns.is_some());
                let first = handshake.syns.map_or(time, |(first, _)| first);
                handshake.syns = Some((first, time));
            }
            let announced = self.sides.iter().filter_map(|side| side.mss).min();
            if let Some(mss) = announced {
                // Timestamps take 12 bytes of each segment; the largest segment shows it soon.
                for side in &mut self.sides {
                    side.direction.mss = u32::from(mss).max(1);
                }
            }
            if packet.timestamps.is_some() && packet.acknowledgement.is_some() {
                for side in &mut self.sides {
                    side.direction.mss = side.direction.mss.saturating_sub(12).max(1);
                }
            }
        } else if handshake.established.is_none() && handshake.answer.is_some() && from == 0 {
            handshake.established = Some(time);
            if let Some((to_server, to_client)) = handshake.round_trips() {
                let [client, server] = &mut self.sides;
                let round_trips = &mut client.direction.round_trips;
                round_trips.handshake(to_server, to_client, packet.length);
                let round_trips = &mut server.direction.round_trips;
                round_trips.handshake(to_client, to_server, 0);
            }
        }
    }

    fn elsewhere(&mut self, packet: &TcpPacket) {
        let known = self
            .others
            .iter_mut()
            .find(|one| one.interface == packet.interface);
        if let Some(other) = known {
            other.packet(packet);
        } else if self.others.len() < MOST_OTHERS {
            let mut other = Self::starting_with(packet, self.stream);
            other.packet(packet);
            self.others.push(other);
        } else {
            self.left_out += 1;
        }
    }

    /// Ends the capture.
    pub fn end(&mut self) {
        for side in &mut self.sides {
            side.direction.end();
        }
    }

    /// Returns the connection as the interface at the sender of most data captured it; by default, the first interface.
    /// What limits a sender shows best there.
    pub fn at_sender(mut self) -> Self {
        let mut others = std::mem::take(&mut self.others);
        let captured = self.left_out + self.packets() + others.iter().map(Self::packets).sum::<u64>();
        let bytes = self.bytes() as f64;
        let best = others
            .iter()
            .position(|other| other.is_at_sender() && WHOLE * other.bytes() as f64 >= bytes);
        let mut chosen = match best {
            Some(place) if !self.is_at_sender() => others.swap_remove(place),
            _ => self,
        };
        chosen.left_out = captured - chosen.packets();
        chosen
    }

    fn is_at_sender(&self) -> bool {
        let larger = self.sides.iter().max_by_key(|side| side.direction.totals.bytes);
        larger.is_some_and(|side| side.direction.round_trips.position() == Position::Sender)
    }
}
