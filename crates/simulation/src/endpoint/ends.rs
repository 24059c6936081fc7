//! The two ends of a flow: how they are made, and what they came to.

use std::sync::Arc;

use experiment::outcome::{Baseline, FlowOutcome, Sent};
use experiment::plan::{Group, Pair, Protocol};
use experiment::workload::Kind;
use foundation::{Duration, Instant};
use rand::Rng;

use super::application::{Client, Paced, Pauses, Server};
use super::{Application, ArqEnd, DatagramEnd, Endpoint, Machine, Progress, TcpEnd};
use crate::body::Side;
use crate::world::Flow;

/// Both ends of flow `number` between hosts of `pair`, of `size` bytes where that is known.
pub(crate) fn ends(group: &mut Group, number: u32, pair: &Pair, size: Option<u64>) -> [Endpoint; 2] {
    let (sender, receiver) = applications(group, number, size);
    let (opener, listener) = machines(group);
    let end = |side, route, machine, application| Endpoint {
        flow: number,
        side,
        route,
        machine,
        application,
        timeout: Instant::MAX,
        delivered: 0,
        progress: Progress::default(),
    };
    [
        end(Side::Sender, pair.forward, opener, sender),
        end(Side::Receiver, pair.reverse, listener, receiver),
    ]
}

fn machines(group: &mut Group) -> (Machine, Machine) {
    let records_rtt = group.records_rtt;
    match &group.protocol {
        Protocol::Tcp(config) => {
            let mut initial = || group.numbers.next_u32();
            let opener = TcpEnd::opener(Arc::clone(config), initial(), records_rtt);
            let listener = TcpEnd::listener(Arc::clone(config), initial());
            (Machine::Tcp(Box::new(opener)), Machine::Tcp(Box::new(listener)))
        }
        Protocol::Arq(config) => {
            let mut secret = [0; 32];
            group.numbers.fill_bytes(&mut secret);
            let opener = ArqEnd::opener(Arc::clone(config), group.numbers.next_u32(), records_rtt);
            let listener = ArqEnd::listener(Arc::clone(config), secret);
            (Machine::Arq(Box::new(opener)), Machine::Arq(Box::new(listener)))
        }
        &Protocol::Udp(size) => (
            Machine::Datagram(DatagramEnd::new(size)),
            Machine::Datagram(DatagramEnd::new(size)),
        ),
    }
}

fn applications(group: &Group, number: u32, size: Option<u64>) -> (Application, Application) {
    let workload = &group.workload;
    let bytes = |size: Option<foundation::Size>, default: u64| size.map_or(default, |size| size.bytes());
    match (workload.kind, workload.rate) {
        (Kind::File | Kind::Arrivals, _) => (Application::File(size.unwrap_or(0)), Application::Sink),
        (Kind::Bulk, None) => (Application::Endless, Application::Sink),
        (Kind::Bulk | Kind::OnOff, rate) => {
            let second = Duration::from_secs(1);
            let pauses = (workload.kind == Kind::OnOff).then(|| Pauses {
                on: workload.on.unwrap_or(second),
                off: workload.off.unwrap_or(second),
                random: group.streams.stream(&format!("pauses/{number}")),
                on_until: Instant::MAX,
            });
            let rate = rate.expect("validation asks for a rate");
            let paced = Paced::new(group.payload(), rate, pauses, group.stop_at());
            (Application::Paced(Box::new(paced)), Application::Sink)
        }
        (Kind::RequestResponse, _) => {
            let request = bytes(workload.request_size, 100);
            let response = bytes(workload.response_size, 10_000);
            let each = if workload.reconnect == Some(true) {
                1
            } else {
                workload.requests.unwrap_or(1)
            };
            let think = workload.think.unwrap_or_default();
            let client = Client::new(each, request, response, think);
            let server = Server::new(request, response);
            (Application::Client(Box::new(client)), Application::Server(server))
        }
    }
}

/// The figures of both ends as they stand now.
pub(crate) fn baseline(ends: &[Endpoint; 2]) -> Baseline {
    let sent = |end: &Endpoint| end.statistics().map(Sent::of).unwrap_or_default();
    Baseline {
        sent: [sent(&ends[0]), sent(&ends[1])],
        delivered: [ends[0].delivered, ends[1].delivered],
        rtt: ends[0].statistics().and_then(|statistics| statistics.rtt.clone()),
    }
}

/// What became of a flow by now.
pub(crate) fn outcome(flow: &Flow) -> FlowOutcome {
    let [sender, receiver] = &flow.ends;
    let statistics = sender.statistics();
    let since = baseline(&flow.ends).since(&flow.baseline);
    FlowOutcome {
        number: flow.number,
        group: flow.group,
        pair: flow.pair,
        size: flow.size,
        opened_at: flow.opened_at,
        first_data_at: statistics.and_then(|s| s.first_data_at),
        last_acknowledged_at: statistics.and_then(|s| s.last_acknowledged_at),
        received_at: flow.received_at,
        sent: since.sent[0].and(since.sent[1]),
        delivered: [since.delivered[1], since.delivered[0]],
        delivered_in_all: sender.delivered + receiver.delivered,
        rtt: since.rtt,
        transactions: sender.progress.transactions.clone(),
        finished: sender.progress.finished,
        failure: sender.progress.failure.clone(),
    }
}
