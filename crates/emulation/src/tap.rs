//! Records packets of an emulated network where they enter, change and leave.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use experiment::trace::TraceEventKind;
use foundation::Instant;
use network::{DropReason, LinkId, Observer, PacketRef, RouteId};

use crate::packet::IpPacket;

/// An event of a packet.
#[derive(Clone, Debug)]
pub struct PacketEvent {
    /// Time by the emulation's clock.
    pub at: Instant,
    /// Sent, received, dropped, duplicated, marked or corrupted.
    pub what: TraceEventKind,
    /// Reason of a drop.
    pub reason: Option<DropReason>,
    /// The packet's number, the same in all its events.
    pub id: u64,
    /// The packet at that time, if it is new or may have changed.
    pub packet: Option<IpPacket>,
}

/// TCP segments from or to each socket.
pub(crate) type SegmentCounts = HashMap<SocketAddrV4, u64>;

/// Records packet events or counts TCP segments, once enabled. Until then it costs one check for each packet and link.
#[derive(Debug, Default)]
pub struct Tap {
    events: Option<Vec<PacketEvent>>,
    counts: Option<SegmentCounts>,
    /// Number of links by route.
    hops: Vec<u8>,
}

impl Tap {
    /// A tap on a network whose routes have these numbers of links.
    pub(crate) const fn new(hops: Vec<u8>) -> Self {
        Self {
            events: None,
            counts: None,
            hops,
        }
    }

    /// Adds a route with this number of links.
    pub(crate) fn add_route(&mut self, hops: u8) {
        self.hops.push(hops);
    }

    /// Starts recording.
    pub(crate) fn record_packets(&mut self) {
        self.events.get_or_insert_default();
    }

    /// Takes the recorded events.
    pub(crate) fn take(&mut self) -> Vec<PacketEvent> {
        self.events.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Starts counting TCP segments as they are sent.
    pub(crate) fn count_segments(&mut self) {
        self.counts.get_or_insert_default();
    }

    /// Takes the counts.
    pub(crate) fn take_counts(&mut self) -> SegmentCounts {
        self.counts.as_mut().map(std::mem::take).unwrap_or_default()
    }

    #[inline]
    fn record(
        &mut self,
        at: Instant,
        what: TraceEventKind,
        packet: &PacketRef<'_, IpPacket>,
        is_new: bool,
        reason: Option<DropReason>,
    ) {
        if let Some(events) = &mut self.events {
            events.push(PacketEvent {
                at,
                what,
                reason,
                id: packet.id,
                packet: is_new.then(|| packet.body.clone()),
            });
        }
    }
}

fn add_segment(counts: &mut SegmentCounts, packet: &IpPacket) {
    let Some((source, destination)) = packet.tcp_ports() else {
        return;
    };
    let mut add = |address: Ipv4Addr, port| {
        *counts.entry(SocketAddrV4::new(address, port)).or_default() += 1;
    };
    add(packet.source(), source);
    add(packet.destination(), destination);
}

impl Observer<IpPacket> for Tap {
    #[inline]
    fn entered(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, IpPacket>) {
        if packet.hop > 0 {
            return;
        }
        if let Some(counts) = &mut self.counts {
            add_segment(counts, packet.body);
        }
        self.record(at, TraceEventKind::Send, &packet, true, None);
    }

    fn rerouted(&mut self, _: Instant, route: RouteId, links: u8) {
        if let Some(hops) = self.hops.get_mut(route.0 as usize) {
            *hops = links;
        }
    }

    fn dropped(&mut self, at: Instant, _: LinkId, reason: DropReason, packet: PacketRef<'_, IpPacket>) {
        self.record(at, TraceEventKind::Drop, &packet, false, Some(reason));
    }

    fn duplicated(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, IpPacket>) {
        self.record(at, TraceEventKind::Duplicate, &packet, false, None);
    }

    fn corrupted(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, IpPacket>) {
        self.record(at, TraceEventKind::Corrupt, &packet, true, None);
    }

    fn marked(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, IpPacket>) {
        self.record(at, TraceEventKind::Mark, &packet, true, None);
    }

    #[inline]
    fn left(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, IpPacket>) {
        let hops = self.hops.get(packet.route.0 as usize);
        if hops.is_some_and(|&hops| packet.hop.checked_add(1) == Some(hops)) {
            self.record(at, TraceEventKind::Receive, &packet, false, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use network::RouteId;

    use super::*;

    #[test]
    fn counting_stores_no_packets() {
        // An IPv4 header without options (RFC 791), and the ports of a TCP segment from 10.0.0.1:80 to 10.0.0.2:81.
        let mut bytes = vec![0; 40];
        bytes[0] = 0x45;
        bytes[3] = 40;
        bytes[9] = 6;
        bytes[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        bytes[20..24].copy_from_slice(&[0, 80, 0, 81]);
        let body = IpPacket::new(bytes).unwrap();
        let mut tap = Tap::new(vec![2]);
        tap.count_segments();
        for hop in [0, 1, 0] {
            let packet = PacketRef {
                id: 1,
                size: 40,
                route: RouteId(0),
                hop,
                body: &body,
            };
            tap.entered(Instant::ZERO, LinkId(0), packet);
        }
        assert!(tap.events.is_none());
        let socket = |host, port| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host), port);
        let counts = tap.take_counts();
        assert_eq!(counts, HashMap::from([(socket(1, 80), 2), (socket(2, 81), 2)]));
        assert!(tap.take_counts().is_empty());
    }
}
