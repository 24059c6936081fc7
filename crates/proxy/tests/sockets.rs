//! Real sockets on loopback.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use foundation::Streams;
use network::PathConfig;
use proxy::{Handle, Listener, Mode, ProxyOptions, Relay, RelayOptions, Report, Target, UdpListener};
use transport::tcp::TcpConfig;

pub struct Running {
    pub address: std::net::SocketAddr,
    /// The last address, which is the one for UDP if there is one.
    udp_address: std::net::SocketAddr,
    handle: Handle,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Report>>,
}

impl Running {
    pub fn start(path: &str, target: std::net::SocketAddr) -> Self {
        Self::with(path, Mode::Fixed(Target::Address(target)))
    }

    pub fn with(path: &str, mode: Mode) -> Self {
        Self::serving(path, mode, Vec::new())
    }

    fn serving(path: &str, mode: Mode, udp: Vec<UdpListener>) -> Self {
        let path: PathConfig = serde_json::from_str(path).unwrap();
        let path = path.resolve(&mut |_| Err("no files".into())).unwrap();
        let relay = Relay::bind(RelayOptions {
            listeners: vec![Listener {
                listen: ([127, 0, 0, 1], 0).into(),
                mode,
            }],
            udp,
            proxy: ProxyOptions::new(path, TcpConfig::default(), Streams::new(1, 0)),
        })
        .unwrap();
        let address = relay.addresses()[0];
        let udp_address = relay.addresses().last().copied().unwrap();
        let handle = relay.handle();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            relay
                .run(&mut |_| match stopped.load(Ordering::Relaxed) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                })
                .unwrap()
        });
        Self {
            address,
            udp_address,
            handle,
            stop,
            thread: Some(thread),
        }
    }

    /// Number of sockets, and of targets being connected.
    pub fn sockets(&self) -> usize {
        self.handle.call(|proxy, _| proxy.in_use()[0]).unwrap()
    }

    pub fn stop(mut self) -> Report {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at % 251) as u8).collect()
}

#[test]
fn carries_both_streams_with_half_close() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        // The end of the request arrives although the client still reads.
        socket.read_to_end(&mut request).unwrap();
        socket.write_all(&request).unwrap();
        request.len()
    });
    let relay = Running::start(
        r#"{"rate": "200Mbit/s", "delay": "2ms", "loss": "1%", "queue": "200pkt"}"#,
        target,
    );
    let mut client = TcpStream::connect(relay.address).unwrap();
    let sent = bytes(3_000_000);
    let mut copy = client.try_clone().unwrap();
    let data = sent.clone();
    let writer = std::thread::spawn(move || {
        copy.write_all(&data).unwrap();
        copy.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    client.read_to_end(&mut received).unwrap();
    writer.join().unwrap();
    assert_eq!(server.join().unwrap(), sent.len());
    assert!(received == sent);
    let report = relay.stop();
    assert_eq!(
        (report.accepted, report.completed, report.reset, report.open),
        (1, 1, 0, 0)
    );
    assert!(report.forward.lost.packets > 0);
    assert_eq!((report.sent, report.received), (3_000_000, 3_000_000));
}

#[test]
fn resets_clients_of_a_closed_port_and_continues() {
    let target = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let relay = Running::start(r#"{"delay": "1ms"}"#, target);
    let mut client = TcpStream::connect(relay.address).unwrap();
    let error = client.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    // The target starts now.
    let listener = TcpListener::bind(target).unwrap();
    let mut client = TcpStream::connect(relay.address).unwrap();
    let (mut socket, _) = listener.accept().unwrap();
    socket.write_all(b"hello").unwrap();
    drop(socket);
    let mut received = Vec::new();
    client.read_to_end(&mut received).unwrap();
    assert_eq!(received, b"hello");
    drop(client);
    let report = relay.stop();
    assert_eq!((report.accepted, report.failed), (2, 1));
}

#[test]
fn refused_clients_receive_the_answer_although_their_bytes_are_unread() {
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let relay = Running::with(r#"{"delay": "20ms"}"#, Mode::HttpConnect);
    for (request, answer) in [
        (format!("CONNECT {closed} HTTP/1.1\r\n\r\n"), "HTTP/1.1 502 "),
        ("GET / HTTP/1.1\r\n\r\n".into(), "HTTP/1.1 405 "),
    ] {
        let mut client = TcpStream::connect(relay.address).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        // The relay has more to read at each moment until it has answered.
        for _ in 0..30 {
            client.write_all(&bytes(3000)).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        client.shutdown(Shutdown::Write).unwrap();
        let mut received = Vec::new();
        client.read_to_end(&mut received).unwrap();
        let text = String::from_utf8(received).unwrap();
        assert!(text.starts_with(answer), "{text}");
    }
    relay.stop();
}

#[test]
fn datagrams_share_the_path_with_connections() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpListener {
        listen: ([127, 0, 0, 1], 0).into(),
        to: server.local_addr().unwrap(),
    };
    let target = Target::Address(listener.local_addr().unwrap());
    let relay = Running::serving(
        r#"{"rate": "2Mbit/s", "delay": "5ms", "queue": "1000pkt"}"#,
        Mode::Fixed(target),
        vec![udp],
    );
    let clients: Vec<UdpSocket> = (0..2)
        .map(|_| {
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.connect(relay.udp_address).unwrap();
            client
        })
        .collect();
    let mut buffer = [0; 2000];
    let mut round_trip = |number: usize| {
        let start = std::time::Instant::now();
        clients[number].send(&[number as u8; 100]).unwrap();
        let (count, from) = server.recv_from(&mut buffer).unwrap();
        server.send_to(&buffer[..count], from).unwrap();
        let count = clients[number].recv(&mut buffer).unwrap();
        assert_eq!(buffer[..count], [number as u8; 100]);
        start.elapsed()
    };
    assert!(round_trip(0) >= std::time::Duration::from_millis(10));
    round_trip(1);
    // The window of the connection fills the queue, in which the datagram waits.
    let mut sender = TcpStream::connect(relay.address).unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    sender.write_all(&bytes(1_000_000)).unwrap();
    receiver.read_exact(&mut [0; 200_000]).unwrap();
    let waited = round_trip(0);
    assert!(waited > std::time::Duration::from_millis(30), "{waited:?}");
    let report = relay.stop();
    assert_eq!((report.udp_clients, report.udp_dropped), (2, 0));
}

/// A datagram over IPv6 may have 65,527 bytes, but packets of the path, which are IPv4, carry 65,507.
#[test]
fn datagrams_that_no_packet_carries_are_dropped_whole() {
    let server = UdpSocket::bind("[::1]:0").unwrap();
    let udp = UdpListener {
        listen: (std::net::Ipv6Addr::LOCALHOST, 0).into(),
        to: server.local_addr().unwrap(),
    };
    for (path, most) in [("{}", 65_507), (r#"{"mtu": "1500B"}"#, 1472)] {
        let relay = Running::serving(path, Mode::Socks5, vec![udp]);
        let client = UdpSocket::bind("[::1]:0").unwrap();
        client.connect(relay.udp_address).unwrap();
        let mut buffer = vec![0; 70_000];
        client.send(&vec![1; most]).unwrap();
        assert_eq!(server.recv(&mut buffer).unwrap(), most, "{path}");
        client.send(&vec![2; most + 1]).unwrap();
        client.send(&[3]).unwrap();
        assert_eq!((server.recv(&mut buffer).unwrap(), buffer[0]), (1, 3), "{path}");
        let report = relay.stop();
        assert_eq!((report.udp_clients, report.udp_dropped), (1, 1), "{path}");
    }
}
