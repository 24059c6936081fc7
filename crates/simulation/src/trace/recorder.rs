//! Watches a trial and writes down what happens.

use std::collections::{HashMap, HashSet};

use foundation::Instant;
use network::{DropReason, LinkId, Observer, PacketRef};
use transport::arq::frame::Kind;
use transport::tcp::{Ecn, Flags, Segment};

use super::events::{TraceEvent, What, frame_name, segment_name};
use crate::body::{Content, Parcel, Side};
use crate::watch::Watch;

/// A packet as one end saw it leave or arrive, for a capture.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// When.
    pub at: Instant,
    /// At which end of its flow.
    pub side: Side,
    /// What.
    pub body: Parcel,
}

impl Sighting {
    /// Whether the packet went from sender to receiver.
    #[must_use]
    pub fn is_forward(&self) -> bool {
        self.body.to == Side::Receiver
    }
}

/// What is known of one direction of a TCP connection.
#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    /// The sequence number of its SYN.
    initial: u32,
    /// The highest number sent, counted from the SYN.
    highest: u32,
    /// What windows are to be multiplied by, as a power of two.
    scale: u8,
}

/// Writes down every event, in order of time.
#[derive(Debug, Default)]
pub struct Recorder {
    /// The table.
    pub events: Vec<TraceEvent>,
    /// The packets at either end.
    pub sightings: Vec<Sighting>,
    directions: HashMap<(u32, Side), Direction>,
    sent_before: HashSet<(u32, Side, u32)>,
    retransmissions: HashSet<u64>,
    /// Links of each route.
    hops: Vec<u8>,
}

impl Recorder {
    fn direction(&self, flow: u32, from: Side) -> Direction {
        self.directions.get(&(flow, from)).copied().unwrap_or_default()
    }

    /// Learns from a packet that leaves its sender. Gives whether its data had been sent before.
    fn learn(&mut self, body: &Parcel) -> bool {
        let from = body.to.other();
        match &body.content {
            Content::Arq(frame) => {
                matches!(frame.kind, Kind::Data | Kind::Fin)
                    && !self.sent_before.insert((body.flow, from, frame.sequence))
            }
            Content::Tcp(segment) => self.learn_segment(body.flow, from, segment),
            Content::Datagram(_) | Content::TooBig { .. } => false,
        }
    }

    fn learn_segment(&mut self, flow: u32, from: Side, segment: &Segment) -> bool {
        let direction = self.directions.entry((flow, from)).or_default();
        let is_syn = segment.flags.contains(Flags::SYN);
        let is_repeated_syn = is_syn && direction.initial == segment.sequence.0 && direction.highest > 0;
        if is_syn && !is_repeated_syn {
            *direction = Direction {
                initial: segment.sequence.0,
                highest: 0,
                scale: segment.options.window_scale.unwrap_or(0),
            };
        }
        let takes = segment.length + u32::from(is_syn) + u32::from(segment.flags.contains(Flags::FIN));
        let end = segment
            .sequence
            .0
            .wrapping_sub(direction.initial)
            .wrapping_add(takes);
        let is_again = takes > 0 && end <= direction.highest;
        direction.highest = direction.highest.max(end);
        is_again
    }

    fn event(at: Instant, flow: u32, side: Side, what: What) -> TraceEvent {
        TraceEvent {
            time: at.as_secs_f64(),
            flow,
            host: side.name(),
            what,
            direction: None,
            frame: None,
            id: None,
            size: None,
            length: None,
            sequence: None,
            acknowledgement: None,
            sack: Vec::new(),
            window: None,
            marked: false,
            retransmission: false,
            reason: None,
            delivered: None,
        }
    }

    fn note(
        &mut self,
        at: Instant,
        what: What,
        packet: &PacketRef<'_, Parcel>,
        reason: Option<&'static str>,
    ) {
        let body = packet.body;
        let (near, far) = (body.to.other(), body.to);
        let mut event = Self::event(
            at,
            body.flow,
            if what == What::Receive { far } else { near },
            what,
        );
        event.direction = Some(if far == Side::Receiver {
            "forward"
        } else {
            "reverse"
        });
        event.id = Some(packet.id);
        event.size = Some(packet.size);
        event.retransmission = self.retransmissions.contains(&packet.id);
        event.reason = reason;
        match &body.content {
            Content::Arq(frame) => {
                event.frame = Some(frame_name(frame.kind));
                event.length = frame.payload.map(|range| range.length);
                event.sequence = Some(frame.sequence);
                event.acknowledgement = Some(frame.acknowledgement);
                event.window = Some(u64::from(frame.window));
                event.sack = frame.sack.as_slice().to_vec();
            }
            Content::Tcp(segment) => self.describe(&mut event, body.flow, near, segment),
            Content::Datagram(length) => {
                event.frame = Some("datagram");
                event.length = Some(*length);
            }
            Content::TooBig { .. } => event.frame = Some("too-big"),
        }
        self.events.push(event);
    }

    fn describe(&self, event: &mut TraceEvent, flow: u32, from: Side, segment: &Segment) {
        let (own, peer) = (self.direction(flow, from), self.direction(flow, from.other()));
        let is_syn = segment.flags.contains(Flags::SYN);
        event.frame = Some(segment_name(segment));
        event.length = Some(segment.length);
        event.sequence = Some(segment.sequence.0.wrapping_sub(own.initial));
        event.marked = segment.ecn == Ecn::Ce;
        // A window is not scaled in a SYN (RFC 7323, section 2.2).
        event.window = Some(u64::from(segment.window) << if is_syn { 0 } else { own.scale });
        if segment.flags.contains(Flags::ACK) {
            let from_peer = |number: u32| number.wrapping_sub(peer.initial);
            event.acknowledgement = Some(from_peer(segment.acknowledgement.0));
            event.sack = segment
                .options
                .sack
                .as_slice()
                .iter()
                .map(|&(start, end)| (from_peer(start.0), from_peer(end.0)))
                .collect();
        }
    }

    fn sight(&mut self, at: Instant, side: Side, packet: &PacketRef<'_, Parcel>) {
        self.sightings.push(Sighting {
            at,
            side,
            body: packet.body.clone(),
        });
    }
}

impl Observer<Parcel> for Recorder {
    fn entered(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, Parcel>) {
        if packet.hop > 0 {
            return;
        }
        if self.learn(packet.body) {
            self.retransmissions.insert(packet.id);
        }
        self.note(at, What::Send, &packet, None);
        self.sight(at, packet.body.to.other(), &packet);
    }

    fn dropped(&mut self, at: Instant, _: LinkId, reason: DropReason, packet: PacketRef<'_, Parcel>) {
        self.note(at, What::Drop, &packet, Some(reason.name()));
    }

    fn duplicated(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, Parcel>) {
        self.note(at, What::Duplicate, &packet, None);
    }

    fn marked(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, Parcel>) {
        self.note(at, What::Mark, &packet, None);
    }

    fn corrupted(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, Parcel>) {
        self.note(at, What::Corrupt, &packet, None);
    }

    fn left(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, Parcel>) {
        let hops = self.hops.get(packet.route.0 as usize).copied().unwrap_or(1);
        if packet.hop + 1 == hops {
            self.note(at, What::Receive, &packet, None);
            self.sight(at, packet.body.to, &packet);
        }
    }
}

impl Watch for Recorder {
    fn began(&mut self, hops: &[u8]) {
        self.hops = hops.to_vec();
    }

    fn timed_out(&mut self, at: Instant, flow: u32, side: Side) {
        self.events.push(Self::event(at, flow, side, What::Timeout));
    }

    fn delivered(&mut self, at: Instant, flow: u32, side: Side, total: u64) {
        let mut event = Self::event(at, flow, side, What::Deliver);
        event.delivered = Some(total);
        self.events.push(event);
    }
}
