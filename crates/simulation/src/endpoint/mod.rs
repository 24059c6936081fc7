//! One end of a flow: a protocol machine, and the application on top of it.

mod arq;
mod datagram;
mod ends;
mod host;
mod message;
mod mptcp;
mod stream;
mod tcp;

use experiment::application::{Application, Notice, Progress, Stream};
use experiment::outcome::{PathBytes, RttHistogram};
use experiment::trace::Probe;
use std::sync::Arc;

use foundation::Instant;
use network::{Network, RouteId};
use transport::Statistics;

use crate::body::{Content, Parcel, Side, packet};
use crate::watch::WorldObserver;
use arq::Arq;
use datagram::DatagramEnd;
pub(crate) use ends::{baseline, ends, outcome};
pub(crate) use host::Host;
use message::MessageEnd;
use mptcp::Mptcp;
use stream::StreamEnd;
use tcp::Tcp;

/// The protocol machine of one end.
#[derive(Debug)]
pub(crate) enum Machine {
    Arq(Box<StreamEnd<Arq>>),
    Tcp(Box<StreamEnd<Tcp>>),
    Mptcp(Box<StreamEnd<Mptcp>>),
    Datagram(DatagramEnd),
    Message(Box<MessageEnd>),
}

/// One end of a flow.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub flow: u32,
    pub side: Side,
    /// The routes it may use, and the number of the first one's path among all between the hosts.
    pub routes: Arc<[RouteId]>,
    pub first: u8,
    /// The path of a single-path machine: that of the connection's opening.
    pub way: u8,
    pub machine: Machine,
    pub application: Application,
    /// Next expiry of [`handle_timeout`](Self::handle_timeout).
    pub timeout: Instant,
    /// Payload bytes read by the application.
    pub delivered: u64,
    /// Packets sent, including those without payload.
    pub packets: u64,
    pub progress: Progress,
}

/// Dispatches a method call to the machine.
macro_rules! each_machine {
    ($machine:expr, $end:ident => $call:expr) => {
        match $machine {
            Machine::Arq($end) => $call,
            Machine::Tcp($end) => $call,
            Machine::Mptcp($end) => $call,
            Machine::Datagram($end) => $call,
            Machine::Message($end) => $call,
        }
    };
}

/// A protocol machine at one end of a flow.
pub(crate) trait End {
    /// Opens the flow.
    fn open(&mut self, now: Instant, host: &mut Host<'_>);
    /// The application adds bytes to its stream.
    fn write(&mut self, now: Instant, bytes: u64);
    /// The application ends its stream.
    fn finish(&mut self, now: Instant);
    /// Returns the counters of its sending direction.
    fn statistics(&self) -> Option<&Statistics>;
    /// Takes the RTT histogram.
    fn take_round_trips(&mut self) -> RttHistogram {
        None
    }
    /// Returns the payload bytes that arrived, but wait for earlier ones.
    fn early_bytes(&self) -> u64 {
        0
    }
    fn probe(&self, now: Instant) -> Probe;
    /// Handles a packet that arrived on a path.
    fn receive(
        &mut self,
        now: Instant,
        way: u8,
        content: Content,
        host: &mut Host<'_>,
        reply: &mut dyn FnMut(Content),
    );
    /// Handles expired timers. Returns whether a retransmission timer expired.
    fn expire(&mut self, now: Instant) -> bool;
    /// Returns the next event for the application.
    fn poll(&mut self, now: Instant) -> Option<Notice>;
    /// Returns the next packet to send; sets `way` if its path changes.
    fn transmit(&mut self, now: Instant, way: &mut u8) -> Option<Content>;
    /// Returns the next expiry of [`expire`](Self::expire).
    fn timeout(&self) -> Option<Instant>;
    /// Updates the host's path estimates; `way` is the path of a single-path machine. Returns whether this may allow
    /// further packets.
    fn update_host(&mut self, _now: Instant, _way: u8, _host: &mut Host<'_>) -> bool {
        false
    }
}

impl Endpoint {
    /// Opens the flow from this end.
    pub(crate) fn open<W: WorldObserver>(
        &mut self,
        now: Instant,
        network: &mut Network<Parcel, W>,
        host: &mut Host<'_>,
    ) {
        each_machine!(&mut self.machine, end => end.open(now, host));
        self.application.start(now, &mut self.machine);
        self.drain(now, network, host);
    }

    /// Handles a packet. A corrupt one fails its checksum and is ignored.
    #[inline]
    pub(crate) fn handle_packet<W: WorldObserver>(
        &mut self,
        now: Instant,
        network: &mut Network<Parcel, W>,
        host: &mut Host<'_>,
        parcel: Parcel,
    ) {
        if parcel.corrupt {
            return;
        }
        let (way, flow, to) = (parcel.way, self.flow, self.side.other());
        self.way = way;
        let route = self.route(way);
        let packets = &mut self.packets;
        let mut reply = |content| {
            *packets += 1;
            network.send(now, packet(route, flow, to, way, content));
        };
        each_machine!(&mut self.machine, end => end.receive(now, way, parcel.content, host, &mut reply));
        self.drain(now, network, host);
    }

    /// Returns the route of a path from this end.
    #[inline]
    pub(crate) fn route(&self, way: u8) -> RouteId {
        self.routes[usize::from(way)]
    }

    /// Handles the expiry of `timeout`.
    pub(crate) fn handle_timeout<W: WorldObserver>(
        &mut self,
        now: Instant,
        network: &mut Network<Parcel, W>,
        host: &mut Host<'_>,
    ) {
        let timed_out = each_machine!(&mut self.machine, end => end.expire(now));
        if timed_out {
            network.observer_mut().timed_out(now, self.flow, self.side);
        }
        self.application.handle_timeout(now, &mut self.machine);
        self.drain(now, network, host);
    }

    #[inline]
    fn drain<W: WorldObserver>(
        &mut self,
        now: Instant,
        network: &mut Network<Parcel, W>,
        host: &mut Host<'_>,
    ) {
        let (flow, to) = (self.flow, self.side.other());
        let mut way = self.way;
        loop {
            while let Some(notice) = each_machine!(&mut self.machine, end => end.poll(now)) {
                if let Notice::Read(bytes) = notice {
                    self.delivered += bytes;
                    network
                        .observer_mut()
                        .delivered(now, flow, self.side, self.delivered);
                }
                self.application
                    .on_notice(now, notice, &mut self.machine, &mut self.progress);
            }
            if let Some(content) = each_machine!(&mut self.machine, end => end.transmit(now, &mut way)) {
                self.packets += 1;
                network.send(now, packet(self.route(way), flow, to, way, content));
            } else if !each_machine!(&mut self.machine, end => end.update_host(now, self.first + way, host)) {
                break;
            }
        }
        let machine = each_machine!(&mut self.machine, end => end.timeout()).unwrap_or(Instant::MAX);
        self.timeout = machine.min(self.application.timeout());
    }

    /// Returns the paths that carried data of the flow, one bit each.
    pub(crate) fn ways(&self) -> u64 {
        match &self.machine {
            Machine::Mptcp(end) => end.ways() << self.first,
            _ => 1 << (self.first + self.way),
        }
    }

    /// Adds the payload it sent to the bytes of each path.
    pub(crate) fn add_carried(&self, carried: &mut PathBytes) {
        match &self.machine {
            Machine::Mptcp(end) => end.add_carried(self.first, carried),
            _ => {
                let sent = self.statistics().map_or(0, |statistics| statistics.bytes_sent);
                carried.add(self.first + self.way, sent);
            }
        }
    }

    pub(crate) fn statistics(&self) -> Option<&Statistics> {
        each_machine!(&self.machine, end => end.statistics())
    }

    /// Returns the payload bytes that arrived, each counted once. The application reads them when no earlier one is missing.
    pub(crate) fn received(&self) -> u64 {
        self.delivered + each_machine!(&self.machine, end => end.early_bytes())
    }

    pub(crate) fn take_round_trips(&mut self) -> RttHistogram {
        each_machine!(&mut self.machine, end => end.take_round_trips())
    }

    pub(crate) fn probe(&self, now: Instant) -> Probe {
        each_machine!(&self.machine, end => end.probe(now))
    }
}

impl Stream for Machine {
    fn write(&mut self, now: Instant, bytes: u64) {
        each_machine!(self, end => end.write(now, bytes));
    }

    fn finish(&mut self, now: Instant) {
        each_machine!(self, end => end.finish(now));
    }
}
