//! Watches a trial and writes down what happens.

use experiment::trace::{EventTable, TraceEventKind, TracedPacket};
use foundation::Instant;
use network::{DropReason, LinkId, Observer, PacketRef};

use crate::body::{Parcel, Side};
use crate::watch::WorldObserver;

/// A packet as one end saw it leave or arrive, for a capture.
#[derive(Clone, Debug)]
pub struct CapturedPacket {
    /// When.
    pub at: Instant,
    /// At which end of its flow.
    pub side: Side,
    /// What.
    pub body: Parcel,
}

impl CapturedPacket {
    /// Whether the packet went from sender to receiver.
    #[must_use]
    pub fn is_forward(&self) -> bool {
        self.body.to == Side::Receiver
    }
}

/// Writes down every event, in order of time.
#[derive(Debug, Default)]
pub struct Recorder {
    /// The table.
    pub table: EventTable,
    /// The packets at either end.
    pub captured: Vec<CapturedPacket>,
    /// Links of each route.
    hops: Vec<u8>,
}

/// A packet as the table knows it.
fn seen<'a>(packet: &PacketRef<'a, Parcel>) -> TracedPacket<'a> {
    TracedPacket {
        id: packet.id,
        size: packet.size,
        flow: packet.body.flow,
        to: packet.body.to,
        content: &packet.body.content,
    }
}

impl Recorder {
    fn sight(&mut self, at: Instant, side: Side, packet: &PacketRef<'_, Parcel>) {
        self.captured.push(CapturedPacket {
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
        self.table.sent(at, &seen(&packet));
        self.sight(at, packet.body.to.other(), &packet);
    }

    fn dropped(&mut self, at: Instant, _: LinkId, reason: DropReason, packet: PacketRef<'_, Parcel>) {
        self.table
            .note(at, TraceEventKind::Drop, &seen(&packet), Some(reason.name()));
    }

    fn duplicated(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, Parcel>) {
        self.table
            .note(at, TraceEventKind::Duplicate, &seen(&packet), None);
    }

    fn marked(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, Parcel>) {
        self.table.note(at, TraceEventKind::Mark, &seen(&packet), None);
    }

    fn corrupted(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, Parcel>) {
        self.table.note(at, TraceEventKind::Corrupt, &seen(&packet), None);
    }

    fn left(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, Parcel>) {
        let hops = self.hops.get(packet.route.0 as usize).copied().unwrap_or(1);
        if packet.hop + 1 == hops {
            self.table.note(at, TraceEventKind::Receive, &seen(&packet), None);
            self.sight(at, packet.body.to, &packet);
        }
    }
}

impl WorldObserver for Recorder {
    fn began(&mut self, hops: &[u8]) {
        self.hops = hops.to_vec();
    }

    fn timed_out(&mut self, at: Instant, flow: u32, side: Side) {
        self.table.timed_out(at, flow, side);
    }

    fn delivered(&mut self, at: Instant, flow: u32, side: Side, total: u64) {
        self.table.delivered(at, flow, side, total);
    }
}
