//! An observer that records the events of a trial.

use experiment::schedule::FlowStart;
use experiment::trace::{Decision, EventTable, TraceDetail, TraceEventKind, TracedPacket};
use foundation::Instant;
use network::{DropReason, LinkId, Observer, PacketRef, RouteId, Transmission};
use serde::Serialize;

use crate::body::{Parcel, Side};
use crate::trace::{Crossings, Decisions, Waits};
use crate::watch::WorldObserver;

/// A packet as it left or reached one end, for a capture.
#[derive(Clone, Debug)]
pub struct CapturedPacket {
    /// Time.
    pub at: Instant,
    /// End of the flow.
    pub side: Side,
    /// Body.
    pub body: Parcel,
}

impl CapturedPacket {
    /// Returns whether the packet travels from sender to receiver.
    #[must_use]
    pub fn is_forward(&self) -> bool {
        self.body.to == Side::Receiver
    }
}

/// A flow that started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StartedFlow {
    /// Its number.
    pub flow: u32,
    /// Its group: 0 for the measured flows, then the traffic in the order of the specification.
    pub group: u32,
    /// Number of its pair of hosts in the group.
    pub pair: u32,
}

/// Records every event, in order of time.
#[derive(Debug, Default)]
pub struct Recorder {
    /// The table.
    pub table: EventTable,
    /// The packets at both ends.
    pub captured: Vec<CapturedPacket>,
    /// The way of each packet over the links, if recorded.
    pub crossings: Option<Crossings>,
    /// The decisions of senders, if recorded.
    pub decisions: Option<Decisions>,
    /// Queueing delays of each flow, if recorded.
    pub waits: Option<Waits>,
    /// The flows that started, if decisions are recorded.
    pub started: Vec<StartedFlow>,
    /// Links of each route.
    hops: Vec<u8>,
}

/// Converts a packet for the event table.
fn traced<'a>(packet: &PacketRef<'a, Parcel>) -> TracedPacket<'a> {
    TracedPacket {
        id: packet.id,
        size: packet.size,
        flow: packet.body.flow,
        to: packet.body.to,
        content: &packet.body.content,
    }
}

impl Recorder {
    fn capture(&mut self, at: Instant, side: Side, packet: &PacketRef<'_, Parcel>) {
        if self.table.detail != TraceDetail::All {
            return;
        }
        self.captured.push(CapturedPacket {
            at,
            side,
            body: packet.body.clone(),
        });
    }
}

impl Observer<Parcel> for Recorder {
    fn entered(&mut self, at: Instant, link: LinkId, packet: PacketRef<'_, Parcel>) {
        if let Some(crossings) = &mut self.crossings {
            crossings.add_entry(at, link, packet.id);
        }
        if packet.hop > 0 {
            return;
        }
        self.table.sent(at, &traced(&packet));
        self.capture(at, packet.body.to.other(), &packet);
    }

    fn scheduled(&mut self, _: Instant, link: LinkId, times: Transmission, packet: PacketRef<'_, Parcel>) {
        if let Some(crossings) = &mut self.crossings {
            crossings.add_transmission(link, times, packet.id);
        }
        if let Some(waits) = &mut self.waits
            && packet.body.content.payload() > 0
        {
            waits.add(packet.body.flow, link, times);
        }
    }

    fn requeued(&mut self, _: Instant, link: LinkId, packet: PacketRef<'_, Parcel>) {
        if let Some(crossings) = &mut self.crossings {
            crossings.requeued.push((packet.id, link.0));
        }
    }

    fn dropped(&mut self, at: Instant, _: LinkId, reason: DropReason, packet: PacketRef<'_, Parcel>) {
        self.table
            .note(at, TraceEventKind::Drop, &traced(&packet), Some(reason.name()));
    }

    fn duplicated(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, Parcel>) {
        self.table
            .note(at, TraceEventKind::Duplicate, &traced(&packet), None);
    }

    fn marked(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, Parcel>) {
        self.table.note(at, TraceEventKind::Mark, &traced(&packet), None);
    }

    fn corrupted(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, Parcel>) {
        self.table
            .note(at, TraceEventKind::Corrupt, &traced(&packet), None);
    }

    fn rerouted(&mut self, _: Instant, route: RouteId, links: u8) {
        if let Some(hops) = self.hops.get_mut(route.0 as usize) {
            *hops = links;
        }
    }

    fn left(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, Parcel>) {
        let hops = self.hops.get(packet.route.0 as usize).copied().unwrap_or(1);
        if packet.hop + 1 == hops {
            self.table
                .note(at, TraceEventKind::Receive, &traced(&packet), None);
            self.capture(at, packet.body.to, &packet);
        }
    }
}

impl WorldObserver for Recorder {
    fn started(&mut self, hops: &[u8]) {
        self.hops = hops.to_vec();
    }

    fn opened(&mut self, flow: u32, start: FlowStart) {
        if self.decisions.is_some() {
            let FlowStart { group, pair, .. } = start;
            self.started.push(StartedFlow { flow, group, pair });
        }
    }

    fn take_wait(&mut self, flow: u32) -> Option<f64> {
        self.waits.as_mut()?.take(flow)
    }

    fn timed_out(&mut self, at: Instant, flow: u32, side: Side) {
        self.table.timed_out(at, flow, side);
    }

    fn watches_decisions(&self) -> bool {
        self.decisions.is_some()
    }

    fn decided(&mut self, at: Instant, flow: u32, decision: Decision) {
        if let Some(decisions) = &mut self.decisions {
            decisions.add(at, flow, decision);
        }
    }

    fn delivered(&mut self, at: Instant, flow: u32, side: Side, total: u64) {
        self.table.delivered(at, flow, side, total);
    }
}
