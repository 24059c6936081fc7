//! Watches a trial and writes down what happens.

use std::collections::HashSet;

use foundation::Instant;
use network::{DropReason, FORWARD, LinkId, Observer, PacketRef};
use transport::arq::StreamRange;
use transport::arq::frame::Kind;

use super::events::{TraceEvent, What, frame_name};
use crate::body::SimulatedFrame;
use crate::host::Role;
use crate::world::Watch;

/// A packet as one host saw it leave or arrive, for a capture.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// When.
    pub at: Instant,
    /// Where.
    pub host: Role,
    /// Whether it went from sender to receiver.
    pub forward: bool,
    /// What.
    pub body: SimulatedFrame,
}

/// Writes down every event, in order of time.
#[derive(Debug, Default)]
pub struct Recorder {
    /// The table.
    pub events: Vec<TraceEvent>,
    /// The packets at either host.
    pub sightings: Vec<Sighting>,
    /// Links of the path in one direction.
    hops: u8,
    sent_before: HashSet<(bool, u32)>,
    retransmissions: HashSet<u64>,
}

const fn name(host: Role) -> &'static str {
    match host {
        Role::Sender => "sender",
        Role::Receiver => "receiver",
    }
}

impl Recorder {
    /// A recorder for a path of `hops` links in each direction.
    #[must_use]
    pub fn new(hops: u8) -> Self {
        Self {
            hops,
            ..Self::default()
        }
    }

    fn note(
        &mut self,
        at: Instant,
        what: What,
        packet: &PacketRef<'_, SimulatedFrame>,
        reason: Option<&'static str>,
    ) {
        let frame = &packet.body.frame;
        let forward = packet.route == FORWARD;
        let near = if forward { Role::Sender } else { Role::Receiver };
        let far = if forward { Role::Receiver } else { Role::Sender };
        self.events.push(TraceEvent {
            time: at.as_secs_f64(),
            host: name(if what == What::Receive { far } else { near }),
            what,
            direction: Some(if forward { "forward" } else { "reverse" }),
            frame: Some(frame_name(frame.kind)),
            id: Some(packet.id),
            size: Some(packet.size),
            sequence: Some(frame.sequence),
            acknowledgement: Some(frame.acknowledgement),
            sack: frame.sack.as_slice().to_vec(),
            retransmission: self.retransmissions.contains(&packet.id),
            reason,
            delivered: None,
        });
    }

    fn note_host(&mut self, at: Instant, host: Role, what: What, delivered: Option<u64>) {
        self.events.push(TraceEvent {
            time: at.as_secs_f64(),
            host: name(host),
            what,
            direction: None,
            frame: None,
            id: None,
            size: None,
            sequence: None,
            acknowledgement: None,
            sack: Vec::new(),
            retransmission: false,
            reason: None,
            delivered,
        });
    }

    fn sight(&mut self, at: Instant, host: Role, packet: &PacketRef<'_, SimulatedFrame>) {
        let forward = packet.route == FORWARD;
        self.sightings.push(Sighting {
            at,
            host,
            forward,
            body: packet.body.clone(),
        });
    }
}

impl Observer<SimulatedFrame> for Recorder {
    fn entered(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, SimulatedFrame>) {
        if packet.hop > 0 {
            return;
        }
        let forward = packet.route == FORWARD;
        let frame = &packet.body.frame;
        if matches!(frame.kind, Kind::Data | Kind::Fin) && !self.sent_before.insert((forward, frame.sequence))
        {
            self.retransmissions.insert(packet.id);
        }
        self.note(at, What::Send, &packet, None);
        self.sight(at, if forward { Role::Sender } else { Role::Receiver }, &packet);
    }

    fn dropped(&mut self, at: Instant, _: LinkId, reason: DropReason, packet: PacketRef<'_, SimulatedFrame>) {
        self.note(at, What::Drop, &packet, Some(reason.name()));
    }

    fn duplicated(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, SimulatedFrame>) {
        self.note(at, What::Duplicate, &packet, None);
    }

    fn corrupted(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, SimulatedFrame>) {
        self.note(at, What::Corrupt, &packet, None);
    }

    fn left(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, SimulatedFrame>) {
        if packet.hop + 1 == self.hops {
            self.note(at, What::Receive, &packet, None);
            let far = if packet.route == FORWARD {
                Role::Receiver
            } else {
                Role::Sender
            };
            self.sight(at, far, &packet);
        }
    }
}

impl Watch for Recorder {
    fn timed_out(&mut self, at: Instant, host: Role) {
        self.note_host(at, host, What::Timeout, None);
    }

    fn delivered(&mut self, at: Instant, host: Role, range: StreamRange) {
        self.note_host(
            at,
            host,
            What::Deliver,
            Some(range.offset + u64::from(range.length)),
        );
    }
}
