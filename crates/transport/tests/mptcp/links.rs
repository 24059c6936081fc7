//! Transfers over paths with a rate, a queue, losses and jitter.

use std::cell::RefCell;
use std::rc::Rc;

use foundation::{Instant, Rate, Streams};
use rand::RngExt;
use transport::mptcp::{Connection, MptcpConfig, MptcpOption, PathIndex, Segment};
use transport::ranges::RangeSet;

use crate::mptcp::pair::{Pair, Paths, Side, at, ms};

/// A path with a rate and a drop-tail queue towards the server.
#[derive(Clone, Copy)]
pub struct Link {
    pub mbit: f64,
    pub rtt: u64,
    /// Packets.
    pub queue: u64,
    pub loss: f64,
    /// Maximum additional delay of each segment in ms, without reordering.
    pub jitter: u64,
    /// Time in ms from which it drops everything.
    pub dies: u64,
}

impl Link {
    pub const fn new(mbit: f64, rtt: u64, queue: u64) -> Self {
        Self {
            mbit,
            rtt,
            queue,
            loss: 0.0,
            jitter: 0,
            dies: u64::MAX,
        }
    }
}

/// Received ranges of the data: time, start, end.
type Arrivals = Rc<RefCell<Vec<(Instant, u64, u64)>>>;

fn paths(links: &[Link], seed: u64, arrivals: Arrivals) -> Paths {
    let links = links.to_vec();
    let mut free = vec![Instant::ZERO; links.len()];
    let mut last = vec![Instant::ZERO; 2 * links.len()];
    let mut losses = Streams::new(seed, 0).stream("losses");
    Box::new(move |now, from, path: PathIndex, segment: &mut Segment| {
        let link = links[path.index()];
        let lost = losses.random::<f64>() < link.loss;
        if lost || now >= Instant::ZERO + ms(link.dies.min(1 << 40)) {
            return Vec::new();
        }
        let mut delay = ms(link.rtt) / 2;
        if from == Side::Client {
            let rate = Rate::from_bits_per_second((link.mbit * 1e6) as u64).unwrap();
            let waits = free[path.index()].saturating_since(now);
            if waits > rate.time_for(link.queue * 1500) {
                return Vec::new();
            }
            let passes = rate.time_for(u64::from(segment.tcp.length + segment.header_length() + 20));
            free[path.index()] = now + waits + passes;
            delay += waits + passes;
        }
        delay += ms(link.jitter).mul_f64(losses.random());
        let last = &mut last[2 * path.index() + from as usize];
        *last = (*last).max(now + delay);
        delay = *last - now;
        if from == Side::Client {
            let data = match segment.option {
                MptcpOption::Dss {
                    mapping: Some(mapping),
                    ..
                } => mapping.data,
                _ => 1,
            };
            if segment.tcp.length > 0 {
                let end = data + u64::from(segment.tcp.length);
                arrivals.borrow_mut().push((now + delay, data, end));
            }
        }
        vec![delay]
    })
}

/// Result of a transfer.
pub struct Outcome {
    pub seconds: f64,
    /// Bytes of data sent by each subflow.
    pub bytes: Vec<u64>,
    /// Out-of-order bytes at the receiver, averaged over arriving segments.
    pub reordered: f64,
    pub finished: bool,
    /// Retransmitted segments.
    pub retransmissions: u64,
    pub received: u64,
    /// Segments with payload sent by the client.
    pub packets: u64,
    /// Runs that the client examined to look up data positions; 0 without debug assertions.
    pub examined: u64,
}

#[cfg(debug_assertions)]
fn examined(connection: &Connection) -> u64 {
    connection.runs_examined()
}

#[cfg(not(debug_assertions))]
fn examined(_: &Connection) -> u64 {
    0
}

pub fn transfer(config: &MptcpConfig, links: &[Link], size: u64, seed: u64) -> Outcome {
    let rtts: Vec<u64> = links.iter().map(|link| link.rtt).collect();
    let arrivals = Arrivals::default();
    let mut pair = Pair::new(
        config,
        &rtts,
        size,
        seed,
        paths(links, seed, Rc::clone(&arrivals)),
    );
    pair.open();
    pair.run(at(600_000));
    let mut arrivals = arrivals.take();
    arrivals.sort_unstable();
    let (mut whole, mut sum) = (RangeSet::default(), 0);
    for &(_, start, end) in &arrivals {
        whole.insert(start, end, |_, _| ());
        let later = (1..whole.len()).filter_map(|position| whole.get(position));
        sum += later.map(|(start, end)| end - start).sum::<u64>();
    }
    Outcome {
        seconds: (pair.now - Instant::ZERO).as_secs_f64(),
        bytes: pair
            .connection(Side::Client)
            .subflows()
            .map(|s| s.bytes)
            .collect(),
        reordered: sum as f64 / arrivals.len() as f64,
        finished: pair.is_finished(),
        retransmissions: pair.connection(Side::Client).statistics().retransmissions,
        received: pair.ends[1].received,
        packets: pair.connection(Side::Client).statistics().packets_sent,
        examined: examined(pair.connection(Side::Client)),
    }
}
