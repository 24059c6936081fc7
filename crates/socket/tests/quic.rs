//! QUIC with TLS over real sockets: transfers, and peers that misbehave.

use std::net::{SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use foundation::Streams;
use network::PathConfig;
use quic::QuicConfig;
use socket::Error;
use socket::quic::{receive, send};
use socket::relay::{Relay, RelayOptions};
use transport::Statistics;

/// Any free loopback port.
fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

fn config(json: &str) -> QuicConfig {
    serde_json::from_str(json).unwrap()
}

/// A connection that fails a second after the last packet.
fn impatient() -> QuicConfig {
    config(r#"{"kind": "quic", "idle_timeout": "1s"}"#)
}

/// Starts a receiver; returns its address and its result.
fn receiver(config: QuicConfig, stop: Arc<AtomicBool>) -> (SocketAddr, JoinHandle<Result<u64, Error>>) {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        receive(
            loopback(),
            &config,
            |address| sender.send(address).unwrap(),
            &mut || !stop.load(Ordering::Relaxed),
        )
    });
    (receiver.recv().unwrap(), thread)
}

fn transfer(config: &QuicConfig, path: Option<&str>, bytes: u64) -> Statistics {
    transfer_with(config, path, bytes, 1)
}

/// Transfers a file through a relay whose losses are those of a seed.
fn transfer_with(config: &QuicConfig, path: Option<&str>, bytes: u64, seed: u64) -> Statistics {
    let (to, received) = receiver(config.clone(), Arc::default());
    let stop = Arc::new(AtomicBool::new(false));
    let relay = path.map(|path| {
        let path: PathConfig = serde_json::from_str(path).unwrap();
        let path = path.resolve(&mut |_| Err("no files".into())).unwrap();
        let relay = Relay::bind(RelayOptions::new(loopback(), to, path, Streams::new(seed, 0))).unwrap();
        let (address, stop) = (relay.address(), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            relay.run(&mut |_| match stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        });
        (address, thread)
    });
    let near = relay.as_ref().map_or(to, |(address, _)| *address);
    let statistics = send(near, config, bytes, &mut || true).unwrap();
    assert_eq!(received.join().unwrap().unwrap(), bytes);
    stop.store(true, Ordering::Relaxed);
    if let Some((_, thread)) = relay {
        let report = thread.join().unwrap().unwrap();
        assert_eq!(
            report.clients as usize,
            1 + config.migrate.as_ref().map_or(0, Vec::len)
        );
    }
    statistics
}

#[test]
fn carries_a_file_with_tls() {
    let statistics = transfer(&config(r#"{"kind": "quic"}"#), None, 1_000_000);
    // The counters see the packets in clear text.
    assert_eq!(statistics.bytes_acknowledged, 1_000_000);
    assert!(statistics.packets_sent >= 1_000_000 / 1440);
    assert!(statistics.rtt_quantile(0.5).is_some());
}

#[test]
fn carries_a_file_over_loss_and_counts_retransmissions() {
    let path = r#"{"rate": "50Mbit/s", "delay": "2ms", "loss": "3%"}"#;
    let statistics = transfer(&config(r#"{"kind": "quic"}"#), Some(path), 300_000);
    assert_eq!(statistics.bytes_acknowledged, 300_000);
    assert!(statistics.retransmissions > 0);
    assert!(statistics.bytes_sent > 300_000);
    assert!(statistics.rtt_quantile(0.0).unwrap() >= foundation::Duration::from_millis(4));
}

#[test]
fn a_client_repeats_a_lost_close() {
    let path = r#"{"rate": "50Mbit/s", "delay": "2ms", "loss": "5%"}"#;
    for seed in 1..=20 {
        let statistics = transfer_with(&config(r#"{"kind": "quic"}"#), Some(path), 5000, seed);
        assert_eq!(statistics.bytes_acknowledged, 5000, "{seed}");
    }
}

#[test]
fn every_chain_and_controller_completes() {
    for json in [
        r#"{"kind": "quic", "certificate_chain": "320B"}"#,
        r#"{"kind": "quic", "certificate_chain": "12kB", "mtu_discovery": true}"#,
        r#"{"kind": "quic", "congestion": "quic-cubic", "ecn": false}"#,
        r#"{"kind": "quic", "congestion": "bbr", "max_datagram_size": "9000B"}"#,
    ] {
        assert_eq!(
            transfer(&config(json), None, 50_000).bytes_acknowledged,
            50_000,
            "{json}"
        );
    }
}

/// The relay opens a socket to the server for each address of a client, so that the server sees moves, too.
#[test]
fn a_client_moves_to_other_ports() {
    let path = r#"{"rate": "5Mbit/s", "delay": "2ms", "queue": "30pkt"}"#;
    let moves = r#""migrate": ["200ms", "600ms", "1s"], "migrate_to": "port""#;
    let config = config(&format!(r#"{{"kind": "quic", {moves}}}"#));
    let statistics = transfer(&config, Some(path), 600_000);
    assert_eq!(statistics.bytes_acknowledged, 600_000);
}

fn failure(to: SocketAddr) -> String {
    send(to, &impatient(), 1000, &mut || true)
        .unwrap_err()
        .to_string()
}

#[test]
fn closed_port_is_reported() {
    let to = UdpSocket::bind(loopback()).unwrap().local_addr().unwrap();
    let reported = failure(to);
    if cfg!(target_os = "linux") {
        assert_eq!(
            reported,
            format!("{to}: nothing listens there: the port is closed")
        );
    }
}

/// A peer on a raw socket, which answers each datagram with those that a function returns.
struct Peer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Peer {
    fn start(answer: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> Self {
        let socket = UdpSocket::bind(loopback()).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let address = socket.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while !stopped.load(Ordering::Relaxed) {
                if let Ok((length, from)) = socket.recv_from(&mut buffer) {
                    for datagram in answer(&buffer[..length]) {
                        let _ = socket.send_to(&datagram, from);
                    }
                }
            }
        });
        Self {
            address,
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

const SILENT: &str = "no packet from the peer for 1s (idle_timeout)";

#[test]
fn silent_peer_is_reported_after_the_idle_timeout() {
    let peer = Peer::start(|_| Vec::new());
    assert_eq!(failure(peer.address), format!("{}: {SILENT}", peer.address));
}

#[test]
fn garbage_counts_as_silence() {
    let peer = Peer::start(|received| {
        let mut echoed = received.to_vec();
        echoed.reverse();
        // Long and short headers without content, the client's own packet, and a packet of no connection.
        vec![
            vec![0xc3; 1200],
            vec![0x40; 40],
            vec![],
            received.to_vec(),
            echoed,
        ]
    });
    assert_eq!(failure(peer.address), format!("{}: {SILENT}", peer.address));
}

/// A Version Negotiation packet (RFC 9000, section 17.2.1) for a client's packet, with this version.
fn version_negotiation(received: &[u8], version: u32) -> Vec<u8> {
    let destination = &received[6..6 + usize::from(received[5])];
    let rest = &received[6 + destination.len()..];
    let source = &rest[1..1 + usize::from(rest[0])];
    let mut out = vec![0x80, 0, 0, 0, 0, source.len() as u8];
    out.extend_from_slice(source);
    out.push(destination.len() as u8);
    out.extend_from_slice(destination);
    out.extend_from_slice(&version.to_be_bytes());
    out
}

#[test]
fn unknown_version_is_reported() {
    let peer = Peer::start(|received| vec![version_negotiation(received, 0x1a2a_3a4a)]);
    let reported = failure(peer.address);
    assert!(reported.contains("version"), "{reported}");
}

#[test]
fn peer_that_stops_is_reported() {
    let stop = Arc::new(AtomicBool::new(false));
    let (to, received) = receiver(impatient(), Arc::clone(&stop));
    // More than loopback carries before the receiver stops.
    let mut go_on = || {
        stop.store(true, Ordering::Relaxed);
        true
    };
    let reported = send(to, &impatient(), 1 << 40, &mut go_on)
        .unwrap_err()
        .to_string();
    assert!(matches!(received.join().unwrap(), Err(Error::Cancelled)));
    assert_eq!(reported, format!("{to}: {SILENT}"));
}

#[test]
fn server_answers_unknown_versions_and_survives_garbage() {
    let (to, received) = receiver(impatient(), Arc::default());
    let stranger = UdpSocket::bind(loopback()).unwrap();
    stranger.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    for garbage in [vec![0xc3; 1200], vec![0x40; 40], vec![], vec![0xff; 1472]] {
        stranger.send_to(&garbage, to).unwrap();
    }
    // An Initial packet of an unknown version, with connection IDs of four bytes.
    let mut initial = vec![0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 4, 1, 2, 3, 4, 4, 5, 6, 7, 8];
    initial.resize(1200, 0);
    stranger.send_to(&initial, to).unwrap();
    let mut answer = [0; 2048];
    let length = loop {
        let (length, _) = stranger.recv_from(&mut answer).unwrap();
        // The garbage has an unknown version, too; its answers have other connection IDs.
        if answer[..length].starts_with(&[answer[0], 0, 0, 0, 0, 4, 5, 6, 7, 8, 4, 1, 2, 3, 4]) {
            break length;
        }
    };
    let versions: Vec<&[u8]> = answer[15..length].chunks(4).collect();
    assert!(versions.contains(&[0, 0, 0, 1].as_slice()), "{versions:?}");
    send(to, &impatient(), 10_000, &mut || true).unwrap();
    assert_eq!(received.join().unwrap().unwrap(), 10_000);
}
