//! The relay between real sockets, with datagrams and with protocols.

use std::net::{SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::common;
use foundation::Streams;
use network::PathConfig;
use socket::relay::{Relay, RelayOptions, RelayReport};
use transport::arq::frame::{FrameType, StreamRange};
use transport::arq::{ArqConfig, Frame, codec};

struct Running {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    /// Datagrams that the target's port has refused so far.
    refused: Arc<AtomicU64>,
    thread: JoinHandle<RelayReport>,
}

impl Running {
    fn start(to: SocketAddr, path: &str, change: impl FnOnce(&mut RelayOptions)) -> Self {
        let path: PathConfig = serde_json::from_str(path).unwrap();
        let path = path.resolve(&mut |_| Err("no files".into())).unwrap();
        let mut options = RelayOptions::new(([127, 0, 0, 1], 0).into(), to, path, Streams::new(1, 0));
        change(&mut options);
        let relay = Relay::bind(options).unwrap();
        let address = relay.address();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let refused = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&refused);
        let thread = std::thread::spawn(move || {
            let tick = &mut |report: &RelayReport| {
                counted.store(report.refused, Ordering::Relaxed);
                if stopped.load(Ordering::Relaxed) {
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            };
            relay.run(tick).unwrap()
        });
        Self {
            address,
            stop,
            refused,
            thread,
        }
    }

    /// Waits until the target's port has refused a datagram.
    fn wait_for_refusal(&self) {
        let end = std::time::Instant::now() + Duration::from_secs(60);
        while self.refused.load(Ordering::Relaxed) == 0 {
            assert!(std::time::Instant::now() < end, "nothing was refused");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn stop(self) -> RelayReport {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn udp() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    socket
}

#[test]
fn delays_datagrams_and_returns_replies_to_their_client() {
    let server = udp();
    let relay = Running::start(server.local_addr().unwrap(), r#"{"delay": "20ms"}"#, |_| {});
    let clients: Vec<UdpSocket> = (0..5).map(|_| udp()).collect();
    for round in 0..10_u8 {
        let start = Instant::now();
        for (number, client) in clients.iter().enumerate() {
            client.send_to(&[number as u8, round], relay.address).unwrap();
        }
        let mut buffer = [0; 100];
        for _ in &clients {
            let (length, from) = server.recv_from(&mut buffer).unwrap();
            server.send_to(&buffer[..length], from).unwrap();
        }
        for (number, client) in clients.iter().enumerate() {
            let (length, from) = client.recv_from(&mut buffer).unwrap();
            assert_eq!(
                (&buffer[..length], from),
                (&[number as u8, round][..], relay.address)
            );
        }
        let took = start.elapsed();
        assert!(took >= Duration::from_millis(40), "{took:?}");
    }
    let report = relay.stop();
    assert_eq!((report.clients, report.dropped), (5, 0));
    assert_eq!(report.forward.delivered.packets, 50);
    // Headers count: 2 bytes in a packet of 30.
    assert_eq!(report.reverse.delivered.bytes, 50 * 30);
}

#[test]
fn applies_the_configured_loss() {
    let server = udp();
    let relay = Running::start(
        server.local_addr().unwrap(),
        r#"{"loss": "10%", "reverse": {"loss": "0%"}}"#,
        |_| {},
    );
    let client = udp();
    let mut received = 0;
    for _ in 0..100 {
        for _ in 0..50 {
            client.send_to(b"x", relay.address).unwrap();
        }
        server.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
        while server.recv_from(&mut [0; 10]).is_ok() {
            received += 1;
        }
    }
    server.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    while server.recv_from(&mut [0; 10]).is_ok() {
        received += 1;
    }
    let report = relay.stop();
    assert_eq!(report.forward.entered.packets, 5000);
    assert_eq!(report.forward.delivered.packets, received);
    // 4500 of 5000 ± five standard deviations of 21.
    assert!((4395..=4605).contains(&received), "{received}");
}

#[test]
fn applies_the_configured_rate() {
    let server = udp();
    let path = r#"{"rate": "8Mbit/s", "queue": "1000pkt"}"#;
    let relay = Running::start(server.local_addr().unwrap(), path, |_| {});
    let client = udp();
    // 200 packets of 1000 bytes with headers take 1 ms each.
    let start = Instant::now();
    for _ in 0..200 {
        client.send_to(&[0; 972], relay.address).unwrap();
    }
    for _ in 0..200 {
        server.recv_from(&mut [0; 2000]).unwrap();
    }
    let took = start.elapsed();
    assert!(took.as_millis() >= 200, "{took:?}");
    assert!(relay.stop().forward.max_queue_packets > 1);
}

#[test]
fn a_sender_to_a_closed_port_behind_a_relay_fails_at_once() {
    // The port is closed now.
    let closed = udp().local_addr().unwrap();
    let relay = Running::start(closed, r#"{"delay": "5ms"}"#, |_| {});
    let config: ArqConfig = serde_json::from_str(r#"{"kind": "selective-repeat"}"#).unwrap();
    let mut turns = 0;
    // Called about 20 times per second. Without the relay's reset, the sender retries for 30 s.
    let go_on = &mut || {
        turns += 1;
        turns < 200
    };
    let error = socket::endpoint::send_pattern(relay.address, &config, 1000, go_on).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{}: a relay reports that nothing listens at its target: start the receiver there",
            relay.address
        )
    );
    let report = relay.stop();
    assert_eq!(report.clients, 1);
    assert!(report.refused >= 1);
}

#[test]
fn a_server_may_return_within_seconds_behind_a_relay() {
    let (server, client) = (udp(), udp());
    let address = server.local_addr().unwrap();
    let relay = Running::start(address, "{}", |_| {});
    let mut frame = Vec::new();
    let ping: Frame<StreamRange> = Frame::new(FrameType::Ping, 7);
    let written: Result<(), std::convert::Infallible> = codec::encode(&ping, &mut frame, |_, _| Ok(()));
    assert!(written.is_ok());
    let send = || client.send_to(&frame, relay.address).unwrap();
    let mut buffer = [0; 100];
    send();
    let (_, upstream) = server.recv_from(&mut buffer).unwrap();
    server.send_to(b"answer", upstream).unwrap();
    assert_eq!(client.recv(&mut buffer).unwrap(), 6);
    drop(server);
    send();
    relay.wait_for_refusal();
    client.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(client.recv(&mut buffer).is_err(), "a notice: {buffer:?}");
    // The client reaches the restarted server.
    let server = UdpSocket::bind(address).unwrap();
    server.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    send();
    assert!(server.recv_from(&mut buffer).is_ok());
    assert_eq!(relay.stop().refused, 1);
}

#[test]
fn clients_are_bounded() {
    let server = udp();
    let relay = Running::start(server.local_addr().unwrap(), "{}", |options| {
        options.max_clients = 3
    });
    for _ in 0..10 {
        udp().send_to(b"x", relay.address).unwrap();
    }
    let mut received = 0;
    while server.recv_from(&mut [0; 10]).is_ok() {
        received += 1;
    }
    let report = relay.stop();
    assert_eq!((received, report.clients, report.dropped), (3, 3, 7));
}

#[test]
fn files_arrive_complete_over_a_lossy_path_with_every_protocol() {
    let receiver = common::Receiver::start();
    let path = r#"{"rate": "50Mbit/s", "delay": "2ms", "loss": "3%", "duplicate": "1%", "corrupt": "1%",
        "reorder": {"probability": "2%", "delay": "1ms"}}"#;
    let relay = Running::start(receiver.address, path, |_| {});
    let source = tempfile::tempdir().unwrap();
    let protocols = [
        r#"{"kind": "stop-and-wait", "mss": "1400B"}"#,
        r#"{"kind": "go-back-n", "window": 8}"#,
        r#"{"kind": "go-back-n", "window": 32, "fast_retransmit": true}"#,
        r#"{"kind": "selective-repeat", "window": 16}"#,
        r#"{"kind": "selective-repeat", "congestion": "cubic"}"#,
        r#"{"kind": "selective-repeat"}"#,
    ];
    for (number, protocol) in protocols.iter().enumerate() {
        let content = common::bytes(150_000, number as u64);
        let file = source.path().join(format!("{number}.bin"));
        std::fs::write(&file, &content).unwrap();
        let mut options =
            socket::transfer::SendOptions::new(vec![file], relay.address, crate::common::protection());
        options.protocol = serde_json::from_str::<ArqConfig>(protocol).unwrap();
        let report = socket::transfer::send_files(&options, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(report.failures().count(), 0, "{protocol}: {report:?}");
        let arrived = std::fs::read(receiver.path().join(format!("{number}.bin"))).unwrap();
        assert!(arrived == content, "{protocol}");
    }
    let report = relay.stop();
    assert!(report.forward.lost.packets > 0 && report.forward.corrupted.packets > 0);
    assert_eq!(receiver.stop().files, protocols.len() as u64);
}

/// Sends a file of 100 MB through a relay whose links have the MTU `before`, and `after` once 60 MB have arrived.
/// Returns the report and those of both relays.
fn send_over_changing_mtu(before: &str, after: &str) -> (socket::transfer::SendReport, [RelayReport; 2]) {
    let path =
        |mtu: &str| format!(r#"{{"rate": "400Mbit/s", "delay": "1ms", "queue": "1MB", "mtu": "{mtu}"}}"#);
    let receiver = common::Receiver::start();
    let mut relay = Some(Running::start(receiver.address, &path(before), |_| {}));
    let listen = relay.as_ref().unwrap().address;
    let source = tempfile::tempdir().unwrap();
    let file = source.path().join("file");
    let content = common::bytes(100_000_000, 1);
    std::fs::write(&file, &content).unwrap();
    let options = socket::transfer::SendOptions::new(vec![file], listen, crate::common::protection());
    let mut reports = Vec::new();
    let report = socket::transfer::send_files(&options, &mut |progress| {
        if progress.done > 60_000_000 && reports.is_empty() {
            reports.push(relay.take().unwrap().stop());
            relay = Some(Running::start(receiver.address, &path(after), |options| {
                options.listen = listen
            }));
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(report.failures().count(), 0, "{report:?}");
    assert!(std::fs::read(receiver.path().join("file")).unwrap() == content);
    reports.push(relay.take().unwrap().stop());
    receiver.stop();
    (report, reports.try_into().unwrap())
}

#[test]
fn datagrams_grow_to_the_mtu_and_shrink_when_it_drops() {
    let (report, [before, after]) = send_over_changing_mtu("9000B", "1500B");
    let mean = |report: &RelayReport| report.forward.delivered.bytes / report.forward.delivered.packets;
    assert!(mean(&before) > 2000, "{before:?}");
    assert!(
        mean(&after) <= 1500 && after.forward.mtu_dropped.packets >= 6,
        "{after:?}"
    );
    assert_eq!(report.reconnections, 0);
}

#[test]
fn a_path_with_a_small_mtu_costs_only_probes() {
    let (report, [before, after]) = send_over_changing_mtu("1500B", "1500B");
    let dropped = before.forward.mtu_dropped.packets + after.forward.mtu_dropped.packets;
    assert!((1..=18).contains(&dropped), "{before:?} {after:?}");
    assert_eq!(report.reconnections, 0);
}

#[test]
fn a_trial_returns_the_senders_record() {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let (tell, address) = std::sync::mpsc::channel();
    let server = std::thread::spawn(move || {
        socket::endpoint::receive_pattern(
            ([127, 0, 0, 1], 0).into(),
            |address| tell.send(address).unwrap(),
            &mut || !stopped.load(Ordering::Relaxed),
        )
        .unwrap()
    });
    let path = r#"{"rate": "20Mbit/s", "delay": "5ms", "loss": "2%"}"#;
    let relay = Running::start(address.recv().unwrap(), path, |_| {});
    let config: ArqConfig = serde_json::from_str(r#"{"kind": "selective-repeat", "window": 16}"#).unwrap();
    let statistics = socket::endpoint::send_pattern(relay.address, &config, 200_000, &mut || true).unwrap();
    assert_eq!(statistics.bytes_acknowledged, 200_000);
    assert_eq!(statistics.packets_sent, 196 + statistics.retransmissions);
    assert!(statistics.rtt_quantile(0.5).unwrap() >= foundation::Duration::from_millis(10));
    relay.stop();
    stop.store(true, Ordering::Relaxed);
    let received = server.join().unwrap();
    assert_eq!((received.bytes, received.error), (200_000, None));
}

#[test]
fn the_time_of_a_transfer_ends_with_the_last_confirmation() {
    let receiver = common::Receiver::start();
    let relay = Running::start(receiver.address, r#"{"delay": "50ms"}"#, |_| {});
    let source = tempfile::tempdir().unwrap();
    let file = source.path().join("file");
    std::fs::write(&file, [7; 100]).unwrap();
    let started = std::time::Instant::now();
    let report = common::send_to(relay.address, vec![file]).unwrap();
    let elapsed = started.elapsed().as_secs_f64();
    assert_eq!(report.failures().count(), 0);
    // Three round trips: handshake, offer, contents. The closing handshake takes a fourth one.
    assert!(report.seconds >= 0.3, "{} s", report.seconds);
    assert!(
        elapsed - report.seconds > 0.09,
        "{} s of {elapsed} s",
        report.seconds
    );
    relay.stop();
    receiver.stop();
}
