//! One end of a flow: a protocol machine, and the application on top of it.

mod arq;
mod datagram;
mod ends;
mod host;
mod message;
mod mptcp;
mod port;
#[cfg(feature = "quic")]
mod quic;
mod stream;
mod tcp;

use experiment::application::{Notice, Stream};
use experiment::outcome::{PathBytes, RttHistogram};
use experiment::plan::Protocol;
use experiment::trace::{Decision, Probe};
use foundation::{Instant, prefetch};
use network::{Arrival, Network};
use transport::Statistics;
use transport::mptcp::SubflowInfo;
use transport::tcp::{Connection, State};

use crate::body::{Content, Outbound, Parcel};
use crate::watch::WorldObserver;
use arq::Arq;
use datagram::DatagramEnd;
pub(crate) use ends::{baseline, ends, outcome, timeouts};
pub(crate) use host::Host;
#[cfg(feature = "quic")]
pub(crate) use host::Tickets;
use message::MessageEnd;
use mptcp::Mptcp;
pub(crate) use port::Port;
#[cfg(feature = "quic")]
use quic::Quic;
use stream::StreamEnd;
use tcp::Tcp;

/// The protocol machine of one end.
#[derive(Debug)]
pub(crate) enum Machine {
    Arq(Box<StreamEnd<Arq>>),
    Tcp(Box<StreamEnd<Tcp>>),
    Mptcp(Box<StreamEnd<Mptcp>>),
    #[cfg(feature = "quic")]
    Quic(Box<StreamEnd<Quic>>),
    Datagram(Box<DatagramEnd>),
    Message(Box<MessageEnd>),
}

/// One end of a flow.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub port: Port,
    pub machine: Machine,
}

/// Dispatches a method call to the machine.
macro_rules! each_machine {
    ($machine:expr, $end:ident => $call:expr) => {
        match $machine {
            Machine::Arq($end) => $call,
            Machine::Tcp($end) => $call,
            Machine::Mptcp($end) => $call,
            #[cfg(feature = "quic")]
            Machine::Quic($end) => $call,
            Machine::Datagram($end) => $call,
            Machine::Message($end) => $call,
        }
    };
}

/// A protocol machine at one end of a flow; the application writes to its stream.
pub(crate) trait End: Stream {
    /// The packets it sends.
    type Packet: Outbound;

    /// Opens the flow.
    fn open(&mut self, now: Instant, host: &mut Host<'_>);
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
    /// Passes the states of its senders to `add`, of each subflow if there are several.
    fn decisions(&self, _add: &mut dyn FnMut(Decision)) {}
    /// Returns the subflows of a multipath connection.
    fn subflows(&self) -> Vec<SubflowInfo> {
        Vec::new()
    }
    /// Handles a packet that arrived on a path, and may take its bytes. Returns the answer to a packet of no connection.
    fn receive(
        &mut self,
        now: Instant,
        way: u8,
        content: &mut Content,
        host: &mut Host<'_>,
    ) -> Option<Content>;
    /// Handles expired timers. Returns whether a retransmission timer expired.
    fn expire(&mut self, now: Instant) -> bool;
    /// Returns the next event for the application.
    fn poll(&mut self, now: Instant) -> Option<Notice>;
    /// Returns the next packet to send; sets `way` if its path changes.
    fn transmit(&mut self, now: Instant, way: &mut u8) -> Option<Self::Packet>;
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
        each_machine!(&mut self.machine, end => self.port.open(now, &mut **end, network, host));
    }

    /// Handles a packet that arrived.
    #[inline]
    pub(crate) fn handle_packet<W: WorldObserver>(
        &mut self,
        now: Instant,
        network: &mut Network<Parcel, W>,
        host: &mut Host<'_>,
        arrival: &Arrival,
    ) {
        each_machine!(&mut self.machine, end => self.port.handle_packet(now, &mut **end, network, host, arrival));
    }

    /// Loads the end into the processor's cache.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(&self.port);
        each_machine!(&self.machine, end => prefetch(&**end));
    }

    /// Handles the expiry of `timeout`.
    pub(crate) fn handle_timeout<W: WorldObserver>(
        &mut self,
        now: Instant,
        network: &mut Network<Parcel, W>,
        host: &mut Host<'_>,
    ) {
        each_machine!(&mut self.machine, end => self.port.handle_timeout(now, &mut **end, network, host));
    }

    /// Stops the application: its stream ends after the data in the send buffer.
    pub(crate) fn stop<W: WorldObserver>(
        &mut self,
        now: Instant,
        network: &mut Network<Parcel, W>,
        host: &mut Host<'_>,
    ) {
        each_machine!(&mut self.machine, end => self.port.stop(now, &mut **end, network, host));
    }

    /// Sends the request that waits for other flows.
    pub(crate) fn release<W: WorldObserver>(
        &mut self,
        now: Instant,
        network: &mut Network<Parcel, W>,
        host: &mut Host<'_>,
    ) {
        each_machine!(&mut self.machine, end => self.port.release(now, &mut **end, network, host));
    }

    /// Sends a part of an all-reduce.
    pub(crate) fn send_part<W: WorldObserver>(
        &mut self,
        now: Instant,
        network: &mut Network<Parcel, W>,
        host: &mut Host<'_>,
        bytes: u64,
    ) {
        each_machine!(&mut self.machine, end => self.port.send_part(now, &mut **end, network, host, bytes));
    }

    /// Takes a key of its protocol over, and sends what it may then.
    pub(crate) fn reconfigure<W: WorldObserver>(
        &mut self,
        now: Instant,
        network: &mut Network<Parcel, W>,
        host: &mut Host<'_>,
        (key, protocol): (&str, &Protocol),
    ) {
        match &mut self.machine {
            Machine::Arq(end) => end.reconfigure(key, protocol),
            Machine::Tcp(end) => end.reconfigure(key, protocol),
            Machine::Mptcp(end) => end.reconfigure(key, protocol),
            #[cfg(feature = "quic")]
            Machine::Quic(end) => end.reconfigure(key, protocol),
            Machine::Datagram(_) | Machine::Message(_) => {}
        }
        self.handle_timeout(now, network, host);
    }

    /// Returns the paths that carried data of the flow, one bit each.
    pub(crate) fn ways(&self) -> u64 {
        match &self.machine {
            Machine::Mptcp(end) => end.ways() << self.port.first,
            #[cfg(feature = "quic")]
            Machine::Quic(end) if end.ways().is_some() => end.ways().unwrap_or(0) << self.port.first,
            _ => 1 << (self.port.first + self.port.way),
        }
    }

    /// Adds the payload it sent to the bytes of each path.
    pub(crate) fn add_carried(&self, carried: &mut PathBytes) {
        match &self.machine {
            Machine::Mptcp(end) => end.add_carried(self.port.first, carried),
            #[cfg(feature = "quic")]
            Machine::Quic(end) if end.add_carried(self.port.first, carried) => {}
            _ => {
                let sent = self.statistics().map_or(0, |statistics| statistics.bytes_sent);
                carried.add(self.port.first + self.port.way, sent);
            }
        }
    }

    /// Returns the connection of TCP, once it is established.
    pub(crate) fn established(&mut self) -> Option<&mut Connection> {
        match &mut self.machine {
            Machine::Tcp(end) => end
                .connection_mut()
                .filter(|connection| connection.state() == State::Established),
            _ => None,
        }
    }

    /// Passes the states of its senders to `add`.
    pub(crate) fn decisions(&self, add: &mut dyn FnMut(Decision)) {
        each_machine!(&self.machine, end => end.decisions(add));
    }

    /// Returns the subflows of a multipath connection.
    pub(crate) fn subflows(&self) -> Vec<SubflowInfo> {
        each_machine!(&self.machine, end => end.subflows())
    }

    /// Returns the payload bytes that wait for earlier ones.
    pub(crate) fn early_bytes(&self) -> u64 {
        each_machine!(&self.machine, end => end.early_bytes())
    }

    pub(crate) fn statistics(&self) -> Option<&Statistics> {
        each_machine!(&self.machine, end => end.statistics())
    }

    /// Returns the payload bytes that arrived, each counted once. The application reads them when no earlier one is missing.
    pub(crate) fn received(&self) -> u64 {
        self.port.delivered + self.early_bytes()
    }

    pub(crate) fn take_round_trips(&mut self) -> RttHistogram {
        each_machine!(&mut self.machine, end => end.take_round_trips())
    }

    pub(crate) fn probe(&self, now: Instant) -> Probe {
        each_machine!(&self.machine, end => end.probe(now))
    }
}
