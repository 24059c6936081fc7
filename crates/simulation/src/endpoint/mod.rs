//! One end of a flow: a protocol machine, and the application on top of it.

mod application;
mod arq;
mod datagram;
mod ends;
mod tcp;

use foundation::Instant;
use network::{Network, RouteId};
use transport::Statistics;

use crate::body::{Content, Parcel, Side, packet};
use crate::watch::Watch;
pub(crate) use application::{Application, Progress};
use arq::ArqEnd;
use datagram::DatagramEnd;
pub(crate) use ends::{baseline, ends, outcome};
use tcp::TcpEnd;

/// What a machine is doing, for time series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Probe {
    /// Congestion window in bytes.
    pub window: Option<u64>,
    /// Slow-start threshold in bytes, once there is one.
    pub threshold: Option<u64>,
    /// Smoothed round-trip time in seconds, after a first sample.
    pub smoothed_rtt: Option<f64>,
    /// The latest round-trip sample in seconds.
    pub rtt: Option<f64>,
    /// Payload bytes in flight.
    pub in_flight: u64,
    /// What the sender is doing about losses: "open", "recovery", "loss", …
    pub state: &'static str,
}

/// The protocol machine of one end.
#[derive(Debug)]
pub(crate) enum Machine {
    Arq(Box<ArqEnd>),
    Tcp(Box<TcpEnd>),
    Datagram(DatagramEnd),
}

/// One end of a flow.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub flow: u32,
    pub side: Side,
    pub route: RouteId,
    pub machine: Machine,
    pub application: Application,
    /// When it wants [`handle_timeout`](Self::handle_timeout).
    pub timeout: Instant,
    /// Payload bytes that the application has read.
    pub delivered: u64,
    pub progress: Progress,
}

/// Calls the same method of whichever machine there is.
macro_rules! each_machine {
    ($machine:expr, $end:ident => $call:expr) => {
        match $machine {
            Machine::Arq($end) => $call,
            Machine::Tcp($end) => $call,
            Machine::Datagram($end) => $call,
        }
    };
}

/// What every kind of machine can do here.
pub(crate) trait End {
    /// Opens the flow.
    fn open(&mut self, now: Instant);
    /// The application adds bytes to its stream.
    fn write(&mut self, now: Instant, bytes: u64);
    /// The application's stream ends.
    fn finish(&mut self, now: Instant);
    /// What its sending direction counted, where it counts.
    fn statistics(&self) -> Option<&Statistics>;
    fn probe(&self, now: Instant) -> Probe;
    /// Takes in what arrived.
    fn receive(&mut self, now: Instant, content: Content, reply: &mut dyn FnMut(Content));
    /// Time has passed. Gives whether a retransmission timer ran out.
    fn expire(&mut self, now: Instant) -> bool;
    /// The next thing that the application should know.
    fn poll(&mut self, now: Instant) -> Option<Notice>;
    /// The next packet that leaves.
    fn transmit(&mut self, now: Instant) -> Option<Content>;
    /// When it wants [`expire`](Self::expire).
    fn timeout(&self) -> Option<Instant>;
}

/// What a machine tells its application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// Data may flow.
    Connected,
    /// The application read so many bytes, in order.
    Read(u64),
    /// The peer's stream has ended and all of it has been read.
    PeerFinished,
    /// Both streams have ended and were acknowledged.
    Finished,
    /// The machine needs no more calls.
    Closed,
    /// The flow failed.
    Failed(String),
}

impl Endpoint {
    /// Opens the flow from this end.
    pub(crate) fn open<W: Watch>(&mut self, now: Instant, network: &mut Network<Parcel, W>) {
        each_machine!(&mut self.machine, end => end.open(now));
        self.application.start(now, &mut self.machine);
        self.drain(now, network);
    }

    /// A packet arrived. A corrupt one fails its checksum, and nobody hears of it.
    #[inline]
    pub(crate) fn handle_packet<W: Watch>(
        &mut self,
        now: Instant,
        network: &mut Network<Parcel, W>,
        parcel: Parcel,
    ) {
        if parcel.corrupt {
            return;
        }
        let (route, flow, to) = (self.route, self.flow, self.side.other());
        let mut reply = |content| {
            network.send(now, packet(route, flow, to, content));
        };
        each_machine!(&mut self.machine, end => end.receive(now, parcel.content, &mut reply));
        self.drain(now, network);
    }

    /// The time of `timeout` has come.
    pub(crate) fn handle_timeout<W: Watch>(&mut self, now: Instant, network: &mut Network<Parcel, W>) {
        let ran_out = each_machine!(&mut self.machine, end => end.expire(now));
        if ran_out {
            network.observer_mut().timed_out(now, self.flow, self.side);
        }
        self.application.handle_timeout(now, &mut self.machine);
        self.drain(now, network);
    }

    #[inline]
    fn drain<W: Watch>(&mut self, now: Instant, network: &mut Network<Parcel, W>) {
        let (route, flow, to) = (self.route, self.flow, self.side.other());
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
            let Some(content) = each_machine!(&mut self.machine, end => end.transmit(now)) else {
                break;
            };
            network.send(now, packet(route, flow, to, content));
        }
        let machine = each_machine!(&mut self.machine, end => end.timeout()).unwrap_or(Instant::MAX);
        self.timeout = machine.min(self.application.timeout());
    }

    pub(crate) fn statistics(&self) -> Option<&Statistics> {
        each_machine!(&self.machine, end => end.statistics())
    }

    pub(crate) fn probe(&self, now: Instant) -> Probe {
        each_machine!(&self.machine, end => end.probe(now))
    }
}

impl Machine {
    pub(crate) fn write(&mut self, now: Instant, bytes: u64) {
        each_machine!(self, end => end.write(now, bytes));
    }

    pub(crate) fn finish(&mut self, now: Instant) {
        each_machine!(self, end => end.finish(now));
    }
}
