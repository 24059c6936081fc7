//! An echo server for tests.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use measurement::datagram::{HEADER, Header, MessageKind};
use measurement::echo::{Counts, Limits, Server};

/// A server in a thread.
pub struct Running {
    pub address: SocketAddr,
    stop: std::sync::Arc<AtomicBool>,
    thread: JoinHandle<Counts>,
}

/// Starts a server at an address.
pub fn serve(address: &str, limits: Limits) -> Running {
    let server = Server::bind(address.parse().unwrap(), limits).unwrap();
    let (address, stop) = (server.address(), std::sync::Arc::new(AtomicBool::new(false)));
    let stopped = stop.clone();
    let thread = std::thread::spawn(move || server.run(&mut |_| !stopped.load(Ordering::Relaxed)).unwrap());
    Running {
        address,
        stop,
        thread,
    }
}

impl Running {
    /// Stops the server; returns its counters.
    pub fn counts(self) -> Counts {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Returns a socket connected to an address.
pub fn client(to: SocketAddr) -> UdpSocket {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).unwrap();
    socket.connect(to).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    socket
}

/// Returns a request of `size` bytes.
pub fn request(number: u32, size: usize) -> Vec<u8> {
    let mut bytes = vec![number as u8; size];
    let kind = MessageKind::Request;
    Header { kind, number }.write(&mut bytes);
    bytes
}

/// Repeats a request until the server replies, which it does after all earlier datagrams.
pub fn wait_for_reply(socket: &UdpSocket, number: u32) {
    let mut buffer = [0; 2000];
    loop {
        socket.send(&request(number, HEADER)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        while let Ok(length) = socket.recv(&mut buffer) {
            let header = Header::read(&buffer[..length]).unwrap();
            if header.number == number {
                return;
            }
        }
    }
}
