//! Queue disciplines in front of a link, against what their RFCs and papers say that they do.

mod codel;
mod fq_codel;
mod pie;
mod red;

use crate::common::{Arrival, EventKind, Log, LogEvent, Mark, drive, mark, path};
use foundation::{Duration, Streams};
use network::{DropReason, FORWARD, LinkId, Network, NetworkBuilder, Occupancy, Packet};

const LINK: LinkId = LinkId(0);
/// How long the link takes for a packet of 1250 bytes.
const PACKET_TIME: u64 = MILLI;
const MILLI: u64 = 1_000_000;

/// A link of 10 Mbit/s behind this queue.
fn network(queue: &str) -> Network<Mark, Log> {
    let path = path(&format!(r#"{{"rate": "10Mbit/s", "queue": {queue}}}"#));
    NetworkBuilder::chain(&[path], Streams::new(1, 0)).build_observed(Log::default())
}

/// Packets of 1250 bytes for so long, `load` times as fast as the link.
fn steady(from: u64, until: u64, load: f64) -> impl Iterator<Item = (u64, Packet<Mark>)> {
    let gap = PACKET_TIME as f64 / load;
    let times = (0..).map(move |number| from + (f64::from(number) * gap) as u64);
    times
        .take_while(move |&at| at < until)
        .map(|at| (at, Packet::new(FORWARD, 1250, mark(at))))
}

/// The same packets from a transport that understands marks.
fn capable(packets: impl Iterator<Item = (u64, Packet<Mark>)>) -> impl Iterator<Item = (u64, Packet<Mark>)> {
    packets.map(|(at, mut packet)| {
        packet.body.ecn_capable = true;
        (at, packet)
    })
}

/// The times at which this happened.
fn times(log: &Log, kind: EventKind) -> Vec<u64> {
    let of = |event: &&LogEvent| event.kind == kind;
    log.events.iter().filter(of).map(|event| event.at).collect()
}

const DROPPED: EventKind = EventKind::Dropped(DropReason::Queue);

/// How long each packet took from being sent (its number) to its arrival, in order of arrival.
fn delays(arrivals: &[Arrival<Mark>]) -> Vec<u64> {
    arrivals
        .iter()
        .map(|arrival| arrival.at - arrival.packet.body.number)
        .collect()
}

/// The mean number of packets in the queue over `span`, over which `sums` were taken.
fn mean_packets(sums: &Occupancy, span: Duration) -> f64 {
    sums.packet_nanos as f64 / span.as_nanos() as f64
}
