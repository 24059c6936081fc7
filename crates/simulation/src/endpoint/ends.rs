//! The two ends of a flow: construction and outcome.

use std::sync::Arc;

use experiment::application::{Application, Progress};
use experiment::outcome::{FlowCounters, FlowOutcome, FrameTimes, PathBytes, SendCounters};
use experiment::plan::{Group, Pair, Protocol};
use experiment::trace::content::MessageProtocol;
use experiment::workload::WorkloadKind;
use foundation::{Generator, Instant};
use network::RouteId;
use rand::{Rng, SeedableRng};
use transport::mptcp::HostPaths;

#[cfg(feature = "quic")]
use super::Quic;
use super::{Arq, DatagramEnd, Endpoint, Machine, MessageEnd, Mptcp, Port, StreamEnd, Tcp};
use crate::body::Side;
use crate::flow::Flow;

/// Returns both ends of flow `number` between the hosts of `pair`; `size` is its size in bytes if known, `host` the path
/// estimates of the opener.
pub(crate) fn ends(
    group: &mut Group,
    number: u32,
    pair: &Pair,
    size: Option<u64>,
    host: &mut HostPaths,
) -> [Endpoint; 2] {
    let [sender, receiver] = Application::of(group, number, size);
    let first = pair.ways[0].number;
    let way = group.choose_way(pair, host);
    let priority = group.workload.priority();
    let (opener, listener) = machines(group, pair, size);
    let end = |side, routes: &Arc<[RouteId]>, machine, application| Endpoint {
        port: Port {
            flow: number,
            side,
            priority,
            routes: Arc::clone(routes),
            first,
            way,
            application,
            timeout: Instant::MAX,
            delivered: 0,
            packets: 0,
            progress: Progress::default(),
        },
        machine,
    };
    [
        end(Side::Sender, &pair.routes[0], opener, sender),
        end(Side::Receiver, &pair.routes[1], listener, receiver),
    ]
}

#[cfg_attr(
    not(feature = "quic"),
    expect(unused_variables, reason = "only QUIC chooses among the ways of a pair")
)]
fn machines(group: &mut Group, pair: &Pair, size: Option<u64>) -> (Machine, Machine) {
    let records_rtt = group.records_rtt;
    match &group.protocol {
        Protocol::Tcp(config) => {
            let mut initial = || group.numbers.next_u32();
            let opener = Tcp::opener(Arc::clone(config), initial());
            let listener = Tcp::listener(Arc::clone(config), initial());
            let end = |tcp, records_rtt| Machine::Tcp(Box::new(StreamEnd::new(tcp, records_rtt)));
            (end(opener, records_rtt), end(listener, false))
        }
        Protocol::Mptcp(setup) => {
            let numbers = &mut group.numbers;
            let mut random = || Generator::seed_from_u64(numbers.next_u64());
            let paths = Generator::seed_from_u64(group.paths.next_u64());
            let opener = Mptcp::opener(Arc::clone(setup), random(), paths, size);
            let listener = Mptcp::listener(Arc::clone(setup), random());
            let end = |mptcp, records_rtt| Machine::Mptcp(Box::new(StreamEnd::new(mptcp, records_rtt)));
            (end(opener, records_rtt), end(listener, false))
        }
        Protocol::Arq(config) => {
            let mut secret = [0; 32];
            group.numbers.fill_bytes(&mut secret);
            let opener = Arq::opener(Arc::clone(config), group.numbers.next_u32());
            let listener = Arq::listener(Arc::clone(config), secret);
            let end = |arq, records_rtt| Machine::Arq(Box::new(StreamEnd::new(arq, records_rtt)));
            (end(opener, records_rtt), end(listener, false))
        }
        #[cfg(feature = "quic")]
        Protocol::Quic(config) => {
            let mut random = || Generator::seed_from_u64(group.numbers.next_u64());
            let carriage = experiment::carriage(config, &group.workload);
            let config = match config.is_multipath() {
                true => Arc::new(config.between(pair.ways.len())),
                false => Arc::clone(config),
            };
            let ways = u8::try_from(pair.ways.len()).unwrap_or(u8::MAX);
            let mut opener = Quic::opener(Arc::clone(&config), random(), carriage).over(ways);
            if config.is_multipath() {
                let paths = Generator::seed_from_u64(group.paths.next_u64());
                opener = opener.choosing_paths(paths, size);
            }
            let listener = Quic::listener(Arc::clone(&config), random(), carriage);
            let end = |quic, records_rtt| Machine::Quic(Box::new(StreamEnd::new(quic, records_rtt)));
            (end(opener, records_rtt), end(listener, false))
        }
        #[cfg(not(feature = "quic"))]
        Protocol::Quic(_) => unreachable!("the world refuses QUIC without the feature"),
        Protocol::Udp(_) if group.workload.kind == WorkloadKind::RequestResponse => {
            messages(MessageProtocol::Udp, group)
        }
        Protocol::Icmp => messages(MessageProtocol::Icmp, group),
        &Protocol::Udp(size) => (
            Machine::Datagram(Box::new(DatagramEnd::new(size, false))),
            Machine::Datagram(Box::new(DatagramEnd::new(size, records_rtt))),
        ),
    }
}

/// Returns both ends of requests and responses of one datagram each.
fn messages(protocol: MessageProtocol, group: &Group) -> (Machine, Machine) {
    let end = |is_client| Machine::Message(Box::new(MessageEnd::new(protocol, is_client, group)));
    (end(true), end(false))
}

/// Returns the current counters of both ends.
pub(crate) fn baseline(ends: &[Endpoint; 2]) -> FlowCounters {
    let recorded = |end: &Endpoint| end.statistics()?.round_trips();
    FlowCounters {
        rtt: recorded(&ends[0]),
        one_way: recorded(&ends[1]),
        ..counters(ends)
    }
}

/// Returns the current counters of both ends without RTT histograms.
fn counters(ends: &[Endpoint; 2]) -> FlowCounters {
    let sent = |end: &Endpoint| end.statistics().map(SendCounters::of).unwrap_or_default();
    let mut carried = PathBytes::default();
    for end in ends {
        end.add_carried(&mut carried);
    }
    FlowCounters {
        sent: [sent(&ends[0]), sent(&ends[1])],
        carried,
        delivered: [ends[0].received(), ends[1].received()],
        rtt: None,
        one_way: None,
    }
}

/// Returns the retransmission timeouts of both ends so far.
pub(crate) fn timeouts(ends: &[Endpoint; 2]) -> u64 {
    let of = |end: &Endpoint| end.statistics().map_or(0, |statistics| statistics.timeouts);
    of(&ends[0]) + of(&ends[1])
}

/// Returns the outcome of a flow.
pub(crate) fn outcome(mut flow: Flow) -> FlowOutcome {
    let figures = FlowCounters {
        rtt: flow.ends[0].take_round_trips(),
        one_way: flow.ends[1].take_round_trips(),
        ..counters(&flow.ends)
    };
    let since = match &flow.baseline {
        Some(baseline) => figures.since(baseline),
        None => figures,
    };
    let [mut sender, mut receiver] = flow.ends;
    let records = sender.port.progress.take_records();
    let statistics = sender.statistics();
    FlowOutcome {
        number: flow.number,
        group: flow.start.group,
        pair: flow.start.pair,
        size: flow.start.size,
        opened_at: flow.opened_at,
        first_data_at: statistics.and_then(|s| s.first_data_at),
        last_acknowledged_at: statistics.and_then(|s| s.last_acknowledged_at),
        received_at: flow.received_at,
        sent: since.sent[0].and(since.sent[1]),
        carried: since.carried,
        delivered: [since.delivered[1], since.delivered[0]],
        delivered_in_all: sender.port.delivered + receiver.port.delivered,
        rtt: since.rtt,
        one_way: since.one_way,
        packets: Some(sender.port.packets + receiver.port.packets),
        ways: sender.ways(),
        finished: sender.port.progress.is_finished(),
        failure: records.failure,
        transactions: records.transactions,
        unanswered: records.unanswered,
        frames: FrameTimes::of(&records.frames, &receiver.port.progress.take_records().frames),
        round_timeouts: Some(flow.round_timeouts),
        ideal: None,
    }
}
