//! FQ-CoDel: RFC 8290.

use super::*;

/// Returns packets of a flow from time 0 to `until`.
fn flow(number: u64, size: u32, gap: u64, until: u64) -> Vec<(u64, Packet<Mark>)> {
    (0..until)
        .step_by(gap as usize)
        .map(|at| {
            let body = Mark {
                flow: number,
                ..mark(at)
            };
            (at, Packet::new(FORWARD, size, body))
        })
        .collect()
}

fn together(flows: impl IntoIterator<Item = Vec<(u64, Packet<Mark>)>>) -> Vec<(u64, Packet<Mark>)> {
    let mut packets: Vec<_> = flows.into_iter().flatten().collect();
    packets.sort_by_key(|(at, _)| *at);
    packets
}

fn of_flow(arrivals: &[Arrival<Mark>], flow: u64) -> Vec<Arrival<Mark>> {
    let of = |arrival: &&Arrival<Mark>| arrival.packet.body.flow == flow;
    arrivals.iter().filter(of).cloned().collect()
}

/// A flow below its share has priority over flows with queues (RFC 8290, sections 1.3 and 4.2): it waits only for the
/// packet in transmission.
#[test]
fn a_sparse_flow_sees_no_queue() {
    let bulk = flow(1, 1250, PACKET_TIME / 2, 2000 * MILLI);
    let sparse = flow(2, 125, 19_700_000, 2000 * MILLI);
    let packets = together([bulk, sparse]);
    let delay = |queue: &str, flow: u64| {
        let arrivals = drive(&mut network(queue), packets.clone());
        // At the start, the bulk flow is a new flow, too.
        delays(&of_flow(&arrivals, flow))
            .into_iter()
            .skip(1)
            .max()
            .unwrap()
    };
    assert!(delay(r#"{"kind": "fq-codel"}"#, 2) <= PACKET_TIME + PACKET_TIME / 10);
    assert!(delay(r#"{"kind": "fq-codel"}"#, 1) > 100 * PACKET_TIME);
    assert!(delay(r#""1000pkt""#, 2) > 100 * PACKET_TIME);
}

/// Flows above their share get equal rates in bytes, regardless of their rates and packet sizes (RFC 8290, section 3:
/// deficit round robin).
#[test]
fn greedy_flows_get_equal_shares() {
    for quantum in ["300B", "1514B", "9kB"] {
        let flows = [
            flow(1, 500, PACKET_TIME / 4, 3000 * MILLI),
            flow(2, 1500, PACKET_TIME, 3000 * MILLI),
            flow(3, 1000, PACKET_TIME / 3, 3000 * MILLI),
        ];
        let mut network = network(&format!(r#"{{"kind": "fq-codel", "quantum": "{quantum}"}}"#));
        let arrivals = drive(&mut network, together(flows));
        let bytes = |flow| -> u64 {
            let of = of_flow(&arrivals, flow);
            let measured = of
                .iter()
                .filter(|arrival| (1000 * MILLI..3000 * MILLI).contains(&arrival.at));
            measured.map(|arrival| u64::from(arrival.packet.size)).sum()
        };
        // A third of 10 Mbit/s for two seconds, ± one quantum.
        let share = 2_500_000.0 / 3.0;
        for number in 1..=3 {
            let part = bytes(number) as f64 / share;
            assert!((part - 1.0).abs() < 0.013, "{quantum}, flow {number}: {part}");
        }
    }
}

/// A flow is new again after its queue was empty on an idle link (RFC 8290, section 4.2: an empty queue leaves the
/// lists at its turn, which is at once on an idle link).
#[test]
fn an_idle_link_resets_the_round() {
    let packet = |at: u64, flow: u64| {
        let body = Mark { flow, ..mark(at) };
        (at, Packet::new(FORWARD, 1250, body))
    };
    let second = 1000 * MILLI;
    // Flow 1 has no credit when the second burst arrives.
    let packets = [0, second].into_iter().flat_map(|at| {
        let burst = [1, 1, 1, 2, 1, 2];
        burst
            .into_iter()
            .zip(0..)
            .map(move |(flow, number)| packet(at + number, flow))
    });
    let arrivals = drive(&mut network(r#"{"kind": "fq-codel"}"#), packets);
    let order = |arrivals: &[Arrival<Mark>]| -> Vec<(u64, u64)> {
        let since = |arrival: &Arrival<Mark>| (arrival.packet.body.flow, arrival.at % second);
        arrivals.iter().map(since).collect()
    };
    assert_eq!(order(&arrivals[..6]), order(&arrivals[6..]));
}

/// Routes distinguish flows whose bodies do not.
#[test]
fn routes_separate_flows() {
    let path = path(r#"{"rate": "10Mbit/s", "queue": {"kind": "fq-codel"}}"#);
    let mut builder = NetworkBuilder::chain(&[path], Streams::new(1, 0));
    let other = builder.route(&[LINK], network::HostId(1));
    let mut network: Network<Mark> = builder.build();
    let bulk = flow(0, 1250, PACKET_TIME / 2, 500 * MILLI);
    let mut sparse = flow(0, 125, 19_700_000, 500 * MILLI);
    sparse.iter_mut().for_each(|(_, packet)| packet.route = other);
    let arrivals = drive(&mut network, together([bulk, sparse]));
    let waited = arrivals.iter().filter(|arrival| arrival.packet.route == other);
    let delays = waited.map(|arrival| arrival.at - arrival.packet.body.number);
    assert!(delays.skip(1).max() <= Some(PACKET_TIME + PACKET_TIME / 10));
}

/// At overflow, packets are dropped from the head of the longest queue (RFC 8290, section 4.1).
#[test]
fn overflow_drops_from_the_longest_queue() {
    let bulk = flow(1, 1250, PACKET_TIME / 4, 500 * MILLI);
    let small = flow(2, 1250, 3 * PACKET_TIME, 500 * MILLI);
    let count = small.len();
    let mut network = network(r#"{"kind": "fq-codel", "limit": "50pkt", "interval": "10s"}"#);
    let arrivals = drive(&mut network, together([bulk, small]));
    assert_eq!(of_flow(&arrivals, 2).len(), count);
    let counters = network.counters(LINK);
    assert!(counters.queue_dropped.packets > 1000);
    assert_eq!(counters.max_queue_packets, 50);
    // Half of the longest queue is dropped at once, so drops are fewer and in longer runs.
    let drops = times(network.observer(), DROPPED);
    let mut moments = drops.clone();
    moments.dedup();
    assert!(
        drops.len() > 15 * moments.len(),
        "{} {}",
        drops.len(),
        moments.len()
    );
}

/// CoDel manages each queue separately (RFC 8290, section 4.2).
#[test]
fn a_standing_queue_is_dropped_or_marked() {
    let bulk = || flow(1, 1250, PACKET_TIME * 2 / 3, 1000 * MILLI);
    let mut dropping = network(r#"{"kind": "fq-codel"}"#);
    let mut plain = network(r#"{"kind": "codel", "limit": "10240pkt"}"#);
    drive(&mut dropping, bulk());
    drive(&mut plain, bulk());
    let drops = times(dropping.observer(), DROPPED);
    assert!(drops.len() > 8);
    assert_eq!(drops, times(plain.observer(), DROPPED));
    let mut marking = network(r#"{"kind": "fq-codel", "ecn": true}"#);
    drive(&mut marking, capable(bulk().into_iter()));
    assert_eq!(marking.counters(LINK).queue_dropped.packets, 0);
    assert!(marking.counters(LINK).marked.packets > 8);
}

/// Returns packets 0, 1, 2, … of a flow, all at time 0.
fn burst_of(flow: u64, packets: u64, ecn: Ecn) -> Vec<(u64, Packet<Mark>)> {
    let packets = with_ecn(burst(packets), ecn);
    let packets = packets.map(|(at, mut packet)| {
        packet.body.flow = flow;
        (at, packet)
    });
    packets.collect()
}

/// Returns which packets of a flow were delivered with a mark, in order of arrival.
fn marked(arrivals: &[Arrival<Mark>], flow: u64) -> Vec<u64> {
    let of = of_flow(arrivals, flow);
    let marked = of.iter().filter(|arrival| arrival.packet.body.marks > 0);
    marked.map(|arrival| arrival.packet.body.number).collect()
}

/// Two flows take turns, and packet n of each waits 2n or 2n + 1 ms: a CE threshold of 20 ms marks packets 10 (the second
/// flow) or 11 and later. The restriction to ECT(1) exempts flows with ECT(0).
#[test]
fn the_ce_threshold_marks_the_delay_of_each_flow() {
    for (only, first) in [(false, (11..15).collect()), (true, Vec::new())] {
        let queue = format!(
            r#"{{"kind": "fq-codel", "quantum": "1250B", "ce_threshold": "20ms", "ce_ect1_only": {only}}}"#
        );
        let packets = together([burst_of(1, 15, Ecn::Ect0), burst_of(2, 15, Ecn::Ect1)]);
        let mut network = network(&queue);
        let arrivals = drive(&mut network, packets);
        assert_eq!(arrivals.len(), 30);
        assert_eq!(marked(&arrivals, 1), first, "{only}");
        assert_eq!(marked(&arrivals, 2), (10..15).collect::<Vec<_>>(), "{only}");
    }
}

/// The CE threshold neither marks nor drops packets without ECN.
#[test]
fn the_ce_threshold_ignores_packets_without_ecn() {
    let mut network = network(r#"{"kind": "fq-codel", "ce_threshold": "5ms"}"#);
    assert_eq!(drive(&mut network, burst_of(1, 30, Ecn::NotEct)).len(), 30);
    assert_eq!(network.counters(LINK).marked.packets, 0);
}

/// At overflow, "arriving" drops each arriving packet, of whatever flow, and nothing that waits. By default, half of the
/// longest queue (12 of 24 packets) is dropped from its head, and the later packets fit.
#[test]
fn overflow_can_drop_arriving_packets() {
    let packets = || together([burst_of(1, 30, Ecn::NotEct), burst_of(2, 1, Ecn::NotEct)]);
    let delivered = |keys: &str, flow: u64| -> Vec<u64> {
        let mut network = network(&format!(r#"{{"kind": "fq-codel", {keys}}}"#));
        let arrivals = drive(&mut network, packets());
        assert!(network.counters(LINK).max_queue_packets <= 25);
        crate::common::numbers(&of_flow(&arrivals, flow))
    };
    for limit in [r#""limit": "25pkt""#, r#""limit": "31250B""#] {
        let arriving = format!(r#"{limit}, "overflow": "arriving""#);
        assert_eq!(delivered(&arriving, 1), (0..25).collect::<Vec<_>>(), "{limit}");
        assert!(delivered(&arriving, 2).is_empty(), "{limit}");
        let fattest = delivered(limit, 1);
        assert_eq!(
            fattest,
            std::iter::once(0).chain(14..30).collect::<Vec<_>>(),
            "{limit}"
        );
        assert_eq!(delivered(limit, 2), [0], "{limit}");
    }
}
