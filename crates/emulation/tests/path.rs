//! A path between two kernels.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use experiment::trace::TraceEventKind;
use network::{LinkId, Network, Packet, RouteId};

use crate::common::{FAR, NEAR, data, options, path, start, transfer};

#[test]
fn host_drops_are_counted() {
    const SENT: u64 = 5000;
    let Some(emulation) = start(options(path("{}"))) else {
        return;
    };
    let server = emulation.in_host(FAR, || UdpSocket::bind("0.0.0.0:9")).unwrap();
    let client = emulation.in_host(NEAR, || UdpSocket::bind("0.0.0.0:0")).unwrap();
    // The server's buffer holds a few hundred datagrams; the server reads none.
    for _ in 0..SENT {
        client
            .send_to(&[0; 1000], (emulation.host_address(FAR), 9))
            .unwrap();
    }
    let left = emulation.host_drops().unwrap()[NEAR.0 as usize].sent;
    while emulation.report().written < SENT - left {
        std::thread::sleep(Duration::from_millis(5));
    }
    let drops = emulation.host_drops().unwrap();
    let far = drops[FAR.0 as usize];
    assert!(far.socket > 0, "{drops:?}");
    server.set_nonblocking(true).unwrap();
    let mut buffer = [0; 2000];
    let mut received = 0;
    while server.recv(&mut buffer).is_ok() {
        received += 1;
    }
    assert_eq!(received + far.socket + left, SENT, "{drops:?}");
    assert_eq!((far.sent, far.received), (0, 0));
}

#[test]
fn datagram_delay_is_propagation_plus_transmission() {
    let Some(emulation) = start(options(path(r#"{"rate": "8Mbit/s", "delay": "20ms"}"#))) else {
        return;
    };
    let server = emulation.in_host(FAR, || UdpSocket::bind("0.0.0.0:7")).unwrap();
    let client = emulation.in_host(NEAR, || UdpSocket::bind("0.0.0.0:0")).unwrap();
    client.connect((emulation.host_address(FAR), 7)).unwrap();
    for socket in [&server, &client] {
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    }
    // 972 + 28 bytes at 8 Mbit/s take 1 ms in each direction.
    let expected = Duration::from_millis(42);
    emulation.record_packets();
    for _ in 0..10 {
        let start = Instant::now();
        client.send(&[7; 972]).unwrap();
        let mut buffer = [0; 2000];
        let (length, from) = server.recv_from(&mut buffer).unwrap();
        assert_eq!((length, from.ip()), (972, emulation.host_address(NEAR).into()));
        server.send_to(&buffer[..length], from).unwrap();
        assert_eq!(client.recv(&mut buffer).unwrap(), 972);
        let elapsed = start.elapsed();
        assert!(elapsed >= expected, "{elapsed:?}");
    }
    // The delay is exact on the emulation's clock, even on a busy machine.
    let events = emulation.take_packets();
    let at = |what: TraceEventKind| {
        let of = events.iter().filter(move |events| events.what == what);
        of.map(|events| (events.id, events.at))
            .collect::<BTreeMap<_, _>>()
    };
    let (sent, received) = (at(TraceEventKind::Send), at(TraceEventKind::Receive));
    assert_eq!((sent.len(), received.len()), (20, 20));
    for (id, sent) in sent {
        assert_eq!(received[&id] - sent, foundation::Duration::from_millis(21));
    }
    let delivered = emulation.with_network(|network, _| {
        network
            .links()
            .map(|link| network.counters(link).delivered.packets)
            .collect::<Vec<_>>()
    });
    assert_eq!(delivered, [10, 10]);
}

#[test]
fn the_kernels_tcp_crosses_a_lossy_path() {
    let keys = r#"{"rate": "100Mbit/s", "delay": "2ms", "loss": "1%", "duplicate": "0.5%", "queue": "50pkt",
                   "reorder": {"probability": "1%", "delay": "1ms"}, "corrupt": "0.2%"}"#;
    let Some(emulation) = start(options(path(keys))) else {
        return;
    };
    let data = data(3_000_000);
    assert!(transfer(&emulation, &data) == data);
    let counters = emulation.with_network(|network, _| network.counters(LinkId(0)));
    for count in [
        counters.lost,
        counters.duplicated,
        counters.corrupted,
        counters.reordered,
    ] {
        assert!(count.packets > 0, "{counters:?}");
    }
}

#[test]
fn losses_are_those_of_the_simulation() {
    const COUNT: u32 = 2000;
    let topology = path(r#"{"delay": "1ms", "loss": "20%"}"#);
    let mut network: Network<Vec<u8>> = {
        let mut builder = topology.builder(options(topology.clone()).streams);
        builder.route(&[LinkId(0)], FAR);
        builder.build()
    };
    for number in 0..COUNT {
        let body = number.to_be_bytes().to_vec();
        network.send(foundation::Instant::ZERO, Packet::new(RouteId(0), 32, body));
    }
    network.handle_timeout(foundation::Instant::from_nanos(1_000_000));
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let simulated: Vec<u32> = std::iter::from_fn(|| network.poll_delivery())
        .map(|(_, packet)| number(&packet.body))
        .collect();

    let Some(emulation) = start(options(topology)) else {
        return;
    };
    let server = emulation.in_host(FAR, || UdpSocket::bind("0.0.0.0:7")).unwrap();
    server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let client = emulation.in_host(NEAR, || UdpSocket::bind("0.0.0.0:0")).unwrap();
    client.connect((emulation.host_address(FAR), 7)).unwrap();
    let mut buffer = [0; 100];
    // Each burst fits the server's socket buffer.
    for batch in (0..COUNT).step_by(50).map(|first| first..first + 50) {
        for number in batch.clone() {
            client.send(&number.to_be_bytes()).unwrap();
        }
        for expected in simulated.iter().filter(|number| batch.contains(number)) {
            let length = server.recv(&mut buffer).unwrap();
            assert_eq!(number(&buffer[..length]), *expected);
        }
    }
    let lost = emulation.with_network(|network, _| network.counters(LinkId(0)).lost.packets);
    assert_eq!(lost, u64::from(COUNT) - simulated.len() as u64);
}

#[test]
fn tcp_follows_the_path_mtu() {
    let Some(emulation) = start(options(path(r#"{"delay": "2ms", "mtu": "1300B"}"#))) else {
        return;
    };
    let data = data(200_000);
    assert!(transfer(&emulation, &data) == data);
    let counters = emulation.with_network(|network, _| network.counters(LinkId(0)));
    assert!(counters.mtu_dropped.packets >= 1, "{counters:?}");
    assert!(emulation.report().router_packets >= 1);
}

#[test]
fn queues_mark_the_kernels_ecn_packets_instead_of_dropping_them() {
    let keys = r#"{"rate": "10Mbit/s", "delay": "5ms", "queue": {"kind": "codel", "ecn": true, "limit": "1000pkt"}}"#;
    let Some(emulation) = start(options(path(keys))) else {
        return;
    };
    for host in [NEAR, FAR] {
        emulation
            .in_host(host, || std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1"))
            .unwrap();
    }
    let data = data(2_000_000);
    assert!(transfer(&emulation, &data) == data);
    let counters = emulation.with_network(|network, _| network.counters(LinkId(0)));
    assert!(
        counters.marked.packets > 0 && counters.queue_dropped.packets == 0,
        "{counters:?}"
    );
}
