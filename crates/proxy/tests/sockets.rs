//! Real sockets on loopback.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use foundation::Streams;
use network::PathConfig;
use proxy::{Handle, Listener, Mode, ProxyOptions, Relay, RelayOptions, Report, Target};
use transport::tcp::TcpConfig;

pub struct Running {
    pub address: std::net::SocketAddr,
    handle: Handle,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Report>>,
}

impl Running {
    pub fn start(path: &str, target: std::net::SocketAddr) -> Self {
        let path: PathConfig = serde_json::from_str(path).unwrap();
        let path = path.resolve(&mut |_| Err("no files".into())).unwrap();
        let relay = Relay::bind(RelayOptions {
            listeners: vec![Listener {
                listen: ([127, 0, 0, 1], 0).into(),
                mode: Mode::Fixed(Target::Address(target)),
            }],
            proxy: ProxyOptions::new(path, TcpConfig::default(), Streams::new(1, 0)),
        })
        .unwrap();
        let address = relay.addresses()[0];
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
