//! Queue disciplines, compared with their RFCs and papers.

mod cake;
mod codel;
mod dualpi2;
mod fq_codel;
mod pi2;
mod pie;
mod prio;
mod red;
mod step;

use crate::common::{Arrival, EventKind, Log, LogEvent, Mark, drive, mark, path};
use foundation::{Duration, Ecn, Instant, Streams};
use network::{DropReason, FORWARD, LinkId, Network, NetworkBuilder, Occupancy, Packet};
use rand::Rng;

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

/// Returns packets 0, 1, 2, … of 1250 bytes, all at time 0.
fn burst(packets: u64) -> impl Iterator<Item = (u64, Packet<Mark>)> {
    (0..packets).map(|number| (0, Packet::new(FORWARD, 1250, mark(number))))
}

/// Makes packets ECN-capable.
fn capable(packets: impl Iterator<Item = (u64, Packet<Mark>)>) -> impl Iterator<Item = (u64, Packet<Mark>)> {
    with_ecn(packets, Ecn::Ect0)
}

/// Returns packets of 1250 bytes with exponential gaps at `load` times the link's rate.
fn poisson(seed: u64, until: u64, load: f64, ecn: Ecn) -> impl Iterator<Item = (u64, Packet<Mark>)> {
    let mut stream = Streams::new(seed, 0).stream("arrivals");
    let mut now = 0.0;
    let times = std::iter::from_fn(move || {
        let uniform = (stream.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        now -= (1.0 - uniform).ln() * PACKET_TIME as f64 / load;
        Some(now as u64)
    });
    let times = times.take_while(move |&at| at < until);
    with_ecn(times.map(|at| (at, Packet::new(FORWARD, 1250, mark(at)))), ecn)
}

/// Merges packets in order of time.
fn merge(
    one: impl Iterator<Item = (u64, Packet<Mark>)>,
    other: impl Iterator<Item = (u64, Packet<Mark>)>,
) -> impl Iterator<Item = (u64, Packet<Mark>)> {
    let mut all: Vec<_> = one.chain(other).collect();
    all.sort_by_key(|(at, _)| *at);
    all.into_iter()
}

/// Sets the code point of packets.
fn with_ecn(
    packets: impl Iterator<Item = (u64, Packet<Mark>)>,
    ecn: Ecn,
) -> impl Iterator<Item = (u64, Packet<Mark>)> {
    packets.map(move |(at, mut packet)| {
        packet.body.ecn = ecn;
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

/// Returns the mean number of packets in the queue between two times, and the share of dropped packets.
fn mean_queue(
    queue: &str,
    packets: impl Iterator<Item = (u64, Packet<Mark>)>,
    from: u64,
    until: u64,
) -> (f64, f64) {
    let mut network = network(queue);
    let mut start = None;
    for (at, packet) in packets {
        if at >= from && start.is_none() {
            network.handle_timeout(Instant::from_nanos(at));
            start = Some((
                network.occupancy(LINK, Instant::from_nanos(at)),
                network.counters(LINK),
            ));
        }
        network.send(Instant::from_nanos(at), packet);
        while network.poll_delivery().is_some() {}
    }
    let (before, counted) = start.unwrap();
    let until = Instant::from_nanos(until);
    network.handle_timeout(until);
    let counters = network.counters(LINK);
    let dropped = counters.queue_dropped.packets - counted.queue_dropped.packets;
    let entered = counters.entered.packets - counted.entered.packets;
    let span = Duration::from_nanos(until.as_nanos() - from);
    let mean = mean_packets(&network.occupancy(LINK, until).since(&before), span);
    (mean, dropped as f64 / entered as f64)
}

/// Packets of a code point: sent, delivered, and delivered with a mark.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    sent: f64,
    delivered: f64,
    marked: f64,
}

impl Outcome {
    fn dropped(&self) -> f64 {
        1.0 - self.delivered / self.sent
    }
}

/// Sends packets through this queue. Returns the outcomes of classic (Not-ECT or ECT(0)) and of scalable packets (ECT(1) or
/// CE) sent after the time `from`, and all arrivals.
fn outcomes(
    queue: &str,
    packets: impl Iterator<Item = (u64, Packet<Mark>)>,
    from: u64,
) -> ([Outcome; 2], Vec<Arrival<Mark>>) {
    let packets: Vec<_> = packets.collect();
    let mut found = [Outcome::default(); 2];
    let class = |packet: &Packet<Mark>| usize::from(packet.body.ecn.is_scalable());
    for (_, packet) in packets.iter().filter(|(at, _)| *at >= from) {
        found[class(packet)].sent += 1.0;
    }
    let arrivals = drive(&mut network(queue), packets);
    for arrival in arrivals
        .iter()
        .filter(|arrival| arrival.packet.body.number >= from)
    {
        let of = &mut found[class(&arrival.packet)];
        of.delivered += 1.0;
        of.marked += f64::from(arrival.packet.body.marks.min(1));
    }
    (found, arrivals)
}

/// Keys of a controller whose probability hardly follows the variation of random arrivals.
const CALM: &str = r#""target": "100ms", "alpha": 0.005, "beta": 0.8"#;

/// Asserts that p_C = (p_CL / k)^2 (RFC 9332, equation 1) for unresponsive flows: drops of the classic flow must remove the
/// overload, since marks change no rate.
fn follow_the_coupling_law(kind: &str, classic: f64, scalable: f64, coupling: f64) {
    let queue = format!(r#"{{{kind}, {CALM}, "coupling": {coupling}}}"#);
    let until = 400_000 * MILLI;
    let packets = merge(
        poisson(1, until, classic, Ecn::NotEct),
        poisson(2, until, scalable, Ecn::Ect1),
    );
    let from = 100_000 * MILLI;
    let ([c, l], _) = outcomes(&queue, packets, from);
    let sends = (until - from) as f64 / PACKET_TIME as f64;
    let due = (c.sent + l.sent - sends) / c.sent;
    let marked = l.marked / l.delivered;
    let law = (marked / coupling).powi(2);
    // Bursts cause short overloads.
    assert!(l.dropped() < 0.005, "{queue}: {}", l.dropped());
    assert!(
        (c.dropped() / due - 1.0).abs() < 0.05,
        "{queue}: {} is not {due}",
        c.dropped()
    );
    assert!(
        (c.dropped() / law - 1.0).abs() < 0.05,
        "{queue}: {} is not {law}",
        c.dropped()
    );
}
