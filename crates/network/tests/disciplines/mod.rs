//! Queue disciplines, compared with their RFCs and papers.

mod codel;
mod fq_codel;
mod pie;
mod red;
mod step;

use crate::common::{Arrival, EventKind, Log, LogEvent, Mark, drive, mark, path};
use foundation::{Duration, Streams};
use network::{DropReason, FORWARD, LinkId, Network, NetworkBuilder, Occupancy, Packet};

const LINK: LinkId = LinkId(0);
/// Transmission time of a packet of 1250 bytes.
const PACKET_TIME: u64 = MILLI;
const MILLI: u64 = 1_000_000;

/// Returns a network with a link of 10 Mbit/s and this queue.
fn network(queue: &str) -> Network<Mark, Log> {
    let path = path(&format!(r#"{{"rate": "10Mbit/s", "queue": {queue}}}"#));
    NetworkBuilder::chain(&[path], Streams::new(1, 0)).build_observed(Log::default())
}

/// Returns packets of 1250 bytes at `load` times the link's rate.
fn steady(from: u64, until: u64, load: f64) -> impl Iterator<Item = (u64, Packet<Mark>)> {
    let gap = PACKET_TIME as f64 / load;
    let times = (0..).map(move |number| from + (f64::from(number) * gap) as u64);
    times
        .take_while(move |&at| at < until)
        .map(|at| (at, Packet::new(FORWARD, 1250, mark(at))))
}

/// Makes packets ECN-capable.
fn capable(packets: impl Iterator<Item = (u64, Packet<Mark>)>) -> impl Iterator<Item = (u64, Packet<Mark>)> {
    packets.map(|(at, mut packet)| {
        packet.body.ecn_capable = true;
        (at, packet)
    })
}

/// Returns the times of events of this kind.
fn times(log: &Log, kind: EventKind) -> Vec<u64> {
    let of = |event: &&LogEvent| event.kind == kind;
    log.events.iter().filter(of).map(|event| event.at).collect()
}

const DROPPED: EventKind = EventKind::Dropped(DropReason::Queue);

/// Returns the delay of each packet (whose number is its send time), in order of arrival.
fn delays(arrivals: &[Arrival<Mark>]) -> Vec<u64> {
    arrivals
        .iter()
        .map(|arrival| arrival.at - arrival.packet.body.number)
        .collect()
}

/// Returns the mean number of packets in the queue; `sums` cover the time `span`.
fn mean_packets(sums: &Occupancy, span: Duration) -> f64 {
    sums.packet_nanos as f64 / span.as_nanos() as f64
}
