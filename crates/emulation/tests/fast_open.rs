//! Fast Open between the project's TCP and Linux's, T/TCP between two stacks of the project, and both in trials.

#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;

use crate::common::streams::HostStack;
use crate::common::trials::{PATH, figure, record, refusal, spec};
use crate::common::{FAR, NEAR, options, path, skip_without, start};
use emulation::trial::{ControllerNames, Tracing, TrialError, run_traced};
use emulation::{Emulation, EmulationOptions, Error};
use foundation::Streams;
use network::HostId;
use rustix::net::{SendFlags, sendto};
use transport::tcp::{Connection, TcpConfig};

const LOSSLESS: &str = r#"{"rate": "50Mbit/s", "delay": "5ms"}"#;
const LOSSY: &str = r#"{"rate": "50Mbit/s", "delay": "2ms", "loss": "8%"}"#;
/// Transactions over a lossy path.
const MANY: u8 = 25;
/// Attempts with other losses. Losses at the start of an attempt disable Fast Open for the rest of it (RFC 7413,
/// section 4.1.3).
const TRIALS: u64 = 6;

fn config(keys: &str) -> Arc<TcpConfig> {
    Arc::new(serde_json::from_str(&format!(r#"{{"kind": "tcp", {keys}}}"#)).unwrap())
}

/// Starts the emulation of a path with the losses of a trial.
fn start_trial(keys: &str, trial: u64) -> Option<Emulation> {
    start(EmulationOptions::new(path(keys), Streams::new(1, trial)))
}

/// Enables Fast Open at a host for clients and servers (1 and 2), without a socket option (1024).
fn allow(emulation: &Emulation, host: HostId) {
    let file = "/proc/sys/net/ipv4/tcp_fastopen";
    emulation.in_host(host, || std::fs::write(file, "1027").unwrap());
}

/// A counter of a host's kernel.
fn counter(emulation: &Emulation, host: HostId, name: &str) -> u64 {
    let text = emulation.in_host(host, || {
        std::fs::read_to_string("/proc/thread-self/net/netstat").unwrap()
    });
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let mut both = names.split_whitespace().zip(values.split_whitespace());
    both.find(|(it, _)| *it == name).unwrap().1.parse().unwrap()
}

fn request(number: u8) -> Vec<u8> {
    (0..500).map(|at| (at as u8) ^ number).collect()
}

fn reply(request: &[u8]) -> Vec<u8> {
    request.iter().cycle().take(5000).map(|byte| !byte).collect()
}

/// Runs Linux's server, which replies to `count` connections, each after the end of its request.
fn serve_by_kernel(listener: &TcpListener, count: u8) {
    for _ in 0..count {
        let (mut stream, _) = listener.accept().unwrap();
        let mut read = Vec::new();
        stream.read_to_end(&mut read).unwrap();
        stream.write_all(&reply(&read)).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
    }
}

/// Runs transactions of the project's TCP with Linux's server; returns the numbers of accepted early requests by the
/// counts of the project's TCP and of Linux.
fn transact_with_kernel_server(keys: &str, count: u8, trial: u64) -> Option<(usize, u64)> {
    let emulation = start_trial(keys, trial)?;
    allow(&emulation, FAR);
    let stack = HostStack::attach(&emulation, NEAR, None);
    let address = emulation.host_address(FAR);
    let listener = emulation
        .in_host(FAR, || TcpListener::bind((address, 0)))
        .unwrap();
    let to = listener.local_addr().unwrap();
    let config = config(r#""fast_open": true"#);
    let mut early = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| serve_by_kernel(&listener, count));
        for number in 0..count {
            let sent = request(number);
            let mut stream = stack.connect_sending(to, &config, &sent);
            let mut read = Vec::new();
            stream.read_to_end(&mut read).unwrap();
            assert!(read == reply(&sent), "transaction {number}");
            early += usize::from(stream.look(Connection::used_early_data));
        }
    });
    Some((early, counter(&emulation, FAR, "TCPFastOpenPassive")))
}

#[test]
fn linux_accepts_data_on_our_syns() {
    let Some((early, passive)) = transact_with_kernel_server(LOSSLESS, 5, 0) else {
        return;
    };
    assert_eq!(
        (early, passive),
        (4, 4),
        "all but the first, which requests the cookie"
    );
}

#[test]
fn linux_delivers_syn_data_once_despite_losses() {
    let mut early = 0;
    for trial in 0..TRIALS {
        let Some((used, passive)) = transact_with_kernel_server(LOSSY, MANY, trial) else {
            return;
        };
        assert!(passive >= used as u64, "{used} of {passive}");
        early += used;
        if early > 0 {
            return;
        }
    }
    panic!("no SYN carried data");
}

/// Linux's client: opens a connection whose SYN carries the request.
fn request_by_kernel(emulation: &Emulation, to: SocketAddr, sent: &[u8]) -> Vec<u8> {
    use socket2::{Domain, Socket, Type};
    let socket = emulation
        .in_host(FAR, || Socket::new(Domain::IPV4, Type::STREAM, None))
        .unwrap();
    // `MSG_FASTOPEN` of `linux/socket.h`.
    let flags = SendFlags::from_bits_retain(0x2000_0000);
    assert_eq!(sendto(socket.as_fd(), sent, flags, &to).unwrap(), sent.len());
    let mut stream = TcpStream::from(socket);
    stream.shutdown(Shutdown::Write).unwrap();
    let mut read = Vec::new();
    stream.read_to_end(&mut read).unwrap();
    read
}

/// Runs transactions of Linux's client with the project's TCP; returns the numbers of accepted early requests by the
/// counts of the project's TCP and of Linux.
fn transact_with_kernel_client(keys: &str, count: u8, trial: u64) -> Option<(usize, u64)> {
    let emulation = start_trial(keys, trial)?;
    allow(&emulation, FAR);
    let stack = HostStack::attach(&emulation, NEAR, None);
    let listener = stack.listen(80, config(r#""fast_open": true"#)).unwrap();
    let to = listener.local_addr();
    let early = std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let mut early = 0;
            for _ in 0..count {
                let mut stream = listener.accept().unwrap();
                early += usize::from(stream.look(Connection::used_early_data));
                let mut read = Vec::new();
                stream.read_to_end(&mut read).unwrap();
                let reply = reply(&read);
                stream.write_last(&reply);
                // Linux may have to request its last segments again.
                stream.read_to_end(&mut read).unwrap();
            }
            early
        });
        for number in 0..count {
            let sent = request(number);
            assert!(
                request_by_kernel(&emulation, to, &sent) == reply(&sent),
                "transaction {number}"
            );
        }
        server.join().unwrap()
    });
    Some((early, counter(&emulation, FAR, "TCPFastOpenActive")))
}

#[test]
fn accepts_data_on_linuxs_syns() {
    let Some((early, active)) = transact_with_kernel_client(LOSSLESS, 5, 0) else {
        return;
    };
    assert_eq!(
        (early, active),
        (4, 4),
        "all but the first, which requests the cookie"
    );
}

#[test]
fn delivers_syn_data_once_despite_losses() {
    for trial in 0..TRIALS {
        let Some((early, active)) = transact_with_kernel_client(LOSSY, MANY, trial) else {
            return;
        };
        if early > 0 && active > 0 {
            return;
        }
    }
    panic!("no SYN carried data");
}

#[test]
fn a_transaction_is_three_packets_on_wall_time() {
    let Some(emulation) = start(options(path(LOSSLESS))) else {
        return;
    };
    let (near, far) = (
        HostStack::attach(&emulation, NEAR, None),
        HostStack::attach(&emulation, FAR, None),
    );
    let config = config(r#""ttcp": true, "profile": "rfc""#);
    let listener = far.listen(80, Arc::clone(&config)).unwrap();
    let to = listener.local_addr();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..5 {
                let mut stream = listener.accept().unwrap();
                let mut read = Vec::new();
                stream.read_to_end(&mut read).unwrap();
                stream.write_last(&read);
            }
        });
        let mut packets = Vec::new();
        for number in 0..5 {
            let sent = request(number);
            let before = near.counters();
            let mut stream = near.connect_sending(to, &config, &sent);
            let mut read = Vec::new();
            stream.read_to_end(&mut read).unwrap();
            assert_eq!(read, sent);
            let after = near.counters();
            packets.push(after.sent + after.received - before.sent - before.received);
        }
        // A server slower than the delayed-ACK timer acknowledges the SYN first, which is rare.
        assert!(packets[1..].contains(&3), "{packets:?}");
        assert!(
            packets[0] >= 5,
            "{packets:?}: the first transaction has a handshake"
        );
    });
}

/// Requests with one connection each.
fn requests(keys: &str) -> String {
    format!(
        r#"{{{PATH}, "protocol": {{"kind": "tcp"{keys}}},
            "workload": {{"kind": "request-response", "requests": 8, "reconnect": true,
                "request_size": "200B", "response_size": "200B"}}, "seed": 1}}"#
    )
}

/// The median duration of a request with its own connection, in RTTs of 20 ms.
fn round_trips(keys: &str) -> Option<f64> {
    let record = record(&requests(keys))?;
    Some(figure(&record, "fct_p50_s") / 0.02)
}

/// Whether the first packet of a connection carries the request.
fn sends_with_its_syn(keys: &str) -> Option<bool> {
    let json = requests(keys);
    let (record, trace) = match run_traced(&spec(&json), &ControllerNames::new(), None, Tracing::default()) {
        Err(TrialError::Emulation(error @ (Error::Permission { .. } | Error::Missing { .. }))) => {
            skip_without(&error);
            return None;
        }
        result => result.unwrap(),
    };
    assert_eq!(record.error, None, "{keys}");
    let mut syns = trace.events.iter().filter(|event| event.frame == Some("syn"));
    Some(syns.any(|event| event.length > Some(0)))
}

#[test]
fn trials_open_early_with_both_stacks() {
    for (keys, expected) in [
        ("", 2.0),
        (r#", "fast_open": true"#, 1.0),
        (r#", "stack": "longfat""#, 2.0),
        (r#", "stack": "longfat", "fast_open": true"#, 1.0),
        (r#", "stack": "longfat", "ttcp": true"#, 1.0),
    ] {
        let Some(found) = round_trips(keys) else { return };
        assert!(found >= expected, "{keys}: {found} round trips");
        let Some(early) = sends_with_its_syn(keys) else {
            return;
        };
        assert_eq!(early, expected == 1.0, "{keys}");
    }
}

#[test]
fn kernels_refuse_ttcp() {
    let error = refusal(&format!(
        r#"{{{PATH}, "protocol": {{"kind": "tcp", "ttcp": true}}, "workload": {{"kind": "file", "size": "1kB"}}, "seed": 1}}"#
    ));
    assert!(
        error.contains("ttcp: not supported by kernels: write stack = \"longfat\""),
        "{error}"
    );
}
