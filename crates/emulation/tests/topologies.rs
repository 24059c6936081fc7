//! More than two hosts, and hosts with a user-space stack.

#![cfg(target_os = "linux")]

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use emulation::{Emulation, Error, MOST_HOSTS};
use network::HostId;

use crate::common::{FAR, NEAR, options, path, start, topology};

fn sockets(emulation: &Emulation) -> Vec<UdpSocket> {
    let hosts = (0..emulation.hosts() as u32).map(HostId);
    let bind = |host| emulation.in_host(host, || UdpSocket::bind("0.0.0.0:7")).unwrap();
    hosts
        .map(bind)
        .inspect(|socket| socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap())
        .collect()
}

#[test]
fn each_host_reaches_each_other_by_its_own_path() {
    let keys =
        r#"{"kind": "dumbbell", "pairs": 2, "bottleneck": {"delay": "20ms"}, "access": {"delay": "5ms"}}"#;
    let topology = topology(keys);
    let Some(emulation) = start(options(topology.clone())) else {
        return;
    };
    let sockets = sockets(&emulation);
    for from in 0..sockets.len() {
        for to in (0..sockets.len()).filter(|&to| to != from) {
            let address = emulation.host_address(HostId(to as u32));
            let start = Instant::now();
            sockets[from].send_to(&[from as u8], (address, 7)).unwrap();
            let mut buffer = [0; 10];
            let (length, source) = sockets[to].recv_from(&mut buffer).unwrap();
            let elapsed = start.elapsed();
            assert_eq!(buffer[..length], [from as u8]);
            assert_eq!(source.ip(), emulation.host_address(HostId(from as u32)));
            let way = topology
                .links_between(HostId(from as u32), HostId(to as u32))
                .unwrap();
            let delay: Duration = way
                .iter()
                .map(
                    |link| match topology.links()[link.0 as usize].name.starts_with("bottleneck") {
                        true => Duration::from_millis(20),
                        false => Duration::from_millis(5),
                    },
                )
                .sum();
            assert!(elapsed >= delay, "{from} {to}: {elapsed:?} of {delay:?}");
        }
    }
}

#[test]
fn senders_receive_unreachable_errors() {
    let keys = r#"{"kind": "free", "hosts": ["a", "b", "c"], "pairs": [["a", "b"]],
                   "links": [{"from": "a", "to": "b", "delay": "1ms"}]}"#;
    let Some(emulation) = start(options(topology(keys))) else {
        return;
    };
    let alone = emulation.host_address(HostId(2));
    for (address, kind) in [
        (alone, ErrorKind::HostUnreachable),
        (Ipv4Addr::new(192, 0, 2, 1), ErrorKind::NetworkUnreachable),
    ] {
        let to = (address, 80).into();
        let connect = || TcpStream::connect_timeout(&to, Duration::from_secs(5));
        let error = emulation.in_host(NEAR, connect).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
    assert_eq!(emulation.report().unroutable, 2);
}

#[test]
fn a_port_replaces_the_hosts_kernel() {
    let Some(emulation) = start(options(path(r#"{"delay": "5ms"}"#))) else {
        return;
    };
    let port = emulation.attach(FAR, None).unwrap();
    let client = emulation.in_host(NEAR, || UdpSocket::bind("0.0.0.0:0")).unwrap();
    client.connect((emulation.host_address(FAR), 7)).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    client.send(b"hello").unwrap();
    assert!(port.wait(foundation::Duration::from_secs(5)).unwrap());
    let mut packet = vec![0; 2000];
    let length = port.receive(&mut packet).unwrap().unwrap();
    packet.truncate(length);
    assert_eq!(packet[28..], *b"hello");
    assert_eq!(port.receive(&mut [0; 10]).unwrap(), None);
    // The reply swaps addresses and ports, which keeps the checksum.
    for (one, other) in [(12..16, 16), (20..22, 22)] {
        let kept = packet[one.clone()].to_vec();
        packet.copy_within(other..other + one.len(), one.start);
        packet[other..other + one.len()].copy_from_slice(&kept);
    }
    port.send(&packet).unwrap();
    let mut buffer = [0; 10];
    assert_eq!(client.recv(&mut buffer).unwrap(), 5);
    assert_eq!(buffer[..5], *b"hello");

    // Without the port, the kernel replies again that there is no listener.
    drop(port);
    std::thread::sleep(Duration::from_millis(20));
    client.send(b"hello").unwrap();
    assert_eq!(
        client.recv(&mut buffer).unwrap_err().kind(),
        ErrorKind::ConnectionRefused
    );
}

#[test]
fn ports_fail_after_the_emulation_ends() {
    let Some(emulation) = start(options(path("{}"))) else {
        return;
    };
    let port = emulation.attach(FAR, None).unwrap();
    drop(emulation);
    assert_eq!(
        port.receive(&mut [0; 10]).unwrap_err().kind(),
        ErrorKind::UnexpectedEof
    );
    assert_eq!(port.send(&[0x45; 20]).unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[test]
fn refuses_invalid_options() {
    let mut wrong = options(path("{}"));
    wrong.mtu = 67;
    let error = Emulation::start(wrong).unwrap_err();
    assert!(
        matches!(error, Error::Option(_)) && error.to_string().contains("mtu: 67"),
        "{error}"
    );
    let keys = format!(r#"{{"kind": "star", "leaves": {MOST_HOSTS}, "leaf": {{}}}}"#);
    let error = Emulation::start(options(topology(&keys))).unwrap_err();
    assert!(error.to_string().contains("1001 hosts"), "{error}");
    let mut outside = options(path("{}"));
    outside.nested = true;
    let error = Emulation::start(outside).unwrap_err();
    assert!(error.to_string().contains("not at a host"), "{error}");
}
