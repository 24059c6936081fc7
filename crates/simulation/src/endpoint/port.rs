//! What an end has besides its protocol machine: its place in the flow, its routes, its application and its counters.

use std::sync::Arc;

use experiment::application::{Application, Notice, Progress};
use foundation::Instant;
use network::{Arrival, Network, RouteId};

use super::{End, Host};
use crate::body::{Outbound, Parcel, Side, parcel};
use crate::watch::WorldObserver;

/// The place of an end between its application and the network. Its methods drive the protocol machine; they are generic
/// so that the kind of machine is examined once per event.
#[derive(Debug)]
pub(crate) struct Port {
    pub flow: u32,
    pub side: Side,
    /// Priority of its packets.
    pub priority: u8,
    /// The routes it may use, and the number of the first one's path among all between the hosts.
    pub routes: Arc<[RouteId]>,
    pub first: u8,
    /// The path of a single-path machine: that of the connection's opening.
    pub way: u8,
    pub application: Application,
    /// Next expiry of [`handle_timeout`](Self::handle_timeout).
    pub timeout: Instant,
    /// Payload bytes read by the application.
    pub delivered: u64,
    /// Packets sent, including those without payload.
    pub packets: u64,
    pub progress: Progress,
}

impl Port {
    /// Returns the route of a path from this end.
    #[inline]
    pub(crate) fn route(&self, way: u8) -> RouteId {
        self.routes[usize::from(way)]
    }

    /// Opens the flow from this end.
    pub(super) fn open<W: WorldObserver>(
        &mut self,
        now: Instant,
        machine: &mut impl End,
        network: &mut Network<Parcel, W>,
        host: &mut Host<'_>,
    ) {
        machine.open(now, host);
        self.application.start(now, machine);
        self.drain(now, machine, network, host);
    }

    /// Handles a packet that arrived.
    #[inline]
    pub(super) fn handle_packet<W: WorldObserver>(
        &mut self,
        now: Instant,
        machine: &mut impl End,
        network: &mut Network<Parcel, W>,
        host: &mut Host<'_>,
        arrival: &Arrival,
    ) {
        let parcel = network.arrived_mut(arrival);
        let way = parcel.way;
        self.way = way;
        if let Some(answer) = machine.receive(now, way, &mut parcel.content, host) {
            self.send(now, way, self.side.other(), answer, network);
        }
        self.drain(now, machine, network, host);
    }

    /// Handles the expiry of `timeout`.
    pub(super) fn handle_timeout<W: WorldObserver>(
        &mut self,
        now: Instant,
        machine: &mut impl End,
        network: &mut Network<Parcel, W>,
        host: &mut Host<'_>,
    ) {
        if machine.expire(now) {
            network.observer_mut().timed_out(now, self.flow, self.side);
        }
        self.application.handle_timeout(now, machine, &mut self.progress);
        self.drain(now, machine, network, host);
    }

    /// Replaces the application by one without further data, and ends the stream.
    pub(super) fn stop<W: WorldObserver>(
        &mut self,
        now: Instant,
        machine: &mut impl End,
        network: &mut Network<Parcel, W>,
        host: &mut Host<'_>,
    ) {
        self.application = Application::File(0);
        machine.stop(now);
        self.drain(now, machine, network, host);
    }

    /// Sends the request that waits for other flows. Those of an all-reduce wait for [`send_part`](Self::send_part).
    pub(super) fn release<W: WorldObserver>(
        &mut self,
        now: Instant,
        machine: &mut impl End,
        network: &mut Network<Parcel, W>,
        host: &mut Host<'_>,
    ) {
        self.application.release(now, machine, &mut self.progress);
        self.drain(now, machine, network, host);
    }

    /// Sends a part of an all-reduce.
    pub(super) fn send_part<W: WorldObserver>(
        &mut self,
        now: Instant,
        machine: &mut impl End,
        network: &mut Network<Parcel, W>,
        host: &mut Host<'_>,
        bytes: u64,
    ) {
        self.application.send_part(now, bytes, machine);
        self.drain(now, machine, network, host);
    }

    /// Passes the machine's events to the application and its packets to the network until it has no more.
    #[inline]
    fn drain<W: WorldObserver>(
        &mut self,
        now: Instant,
        machine: &mut impl End,
        network: &mut Network<Parcel, W>,
        host: &mut Host<'_>,
    ) {
        let (flow, to) = (self.flow, self.side.other());
        let mut way = self.way;
        loop {
            while let Some(notice) = machine.poll(now) {
                if let Notice::Read(bytes) | Notice::ReadMessage(_, bytes) = notice {
                    self.delivered += bytes;
                    network
                        .observer_mut()
                        .delivered(now, flow, self.side, self.delivered);
                }
                self.application
                    .on_notice(now, notice, machine, &mut self.progress);
            }
            if let Some(packet) = machine.transmit(now, &mut way) {
                self.send(now, way, to, packet, network);
            } else if !machine.update_host(now, self.first + way, host) {
                break;
            }
        }
        let machine = machine.timeout().unwrap_or(Instant::MAX);
        self.timeout = machine.min(self.application.timeout());
    }

    #[inline]
    fn send<W: WorldObserver>(
        &mut self,
        now: Instant,
        way: u8,
        to: Side,
        packet: impl Outbound,
        network: &mut Network<Parcel, W>,
    ) {
        self.packets += 1;
        let (flow, priority) = (self.flow, self.priority);
        network.send_with(now, self.route(way), packet.wire_size(), || {
            parcel(flow, to, way, priority, packet.content())
        });
    }
}
