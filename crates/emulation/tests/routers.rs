//! Routers between links answer packets that expire, address them, or have no route, after the delay of their links.

#![cfg(target_os = "linux")]

use std::io::{ErrorKind, Read};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use emulation::Emulation;
use network::{HostId, LinkId, Topology};
use socket2::{Domain, Protocol, Socket, Type};

use crate::common::{self, FAR, NEAR, Requirement, options, path, start, topology};

/// One-way delays of the links of a chain, in milliseconds.
const DELAYS: [u64; 4] = [2, 5, 1, 8];

/// A chain of links with these delays, at 10 Mbit/s.
fn chain() -> Topology {
    let links = DELAYS.map(|delay| format!(r#"{{"rate": "10Mbit/s", "delay": "{delay}ms"}}"#));
    path(&format!(r#"{{"hops": [{}]}}"#, links.join(", ")))
}

/// The RTT over the first `hops` links, without transmission times.
fn round_trip(hops: usize) -> Duration {
    Duration::from_millis(2 * DELAYS[..hops].iter().sum::<u64>())
}

/// A raw socket that receives all ICMP messages of a host.
fn receiver(emulation: &Emulation, host: HostId) -> Socket {
    let open = || Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4));
    let receiver = emulation.in_host(host, open).unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    receiver
}

/// The next ICMP message other than an echo request: source, time to live, and the message.
fn receive(receiver: &Socket) -> (Ipv4Addr, u8, Vec<u8>) {
    loop {
        let mut buffer = [MaybeUninit::uninit(); 2000];
        let length = receiver.recv(&mut buffer).unwrap();
        // SAFETY: the kernel wrote `length` bytes.
        let packet: Vec<u8> = buffer[..length]
            .iter()
            .map(|byte| unsafe { byte.assume_init() })
            .collect();
        if packet[20] != 8 {
            let source = Ipv4Addr::new(packet[12], packet[13], packet[14], packet[15]);
            return (source, packet[8], packet[20..].to_vec());
        }
    }
}

fn sum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn echo(number: u16, payload: usize) -> Vec<u8> {
    let mut echo = vec![8, 0, 0, 0, 0x77, 0x77];
    echo.extend(number.to_be_bytes());
    echo.resize(8 + payload, 0x5a);
    let sum = sum(&echo);
    echo[2..4].copy_from_slice(&sum.to_be_bytes());
    echo
}

/// Sends a probe with each time to live, and checks source, content and time of the answer.
fn trace(emulation: &Emulation, protocol: &str, mut probe: impl FnMut(u32), last: Option<[u8; 2]>) {
    let receiver = receiver(emulation, NEAR);
    let routers = emulation.routers();
    assert_eq!(routers.len(), DELAYS.len() - 1);
    for hops in 1..DELAYS.len() + usize::from(last.is_some()) {
        let started = Instant::now();
        probe(hops as u32);
        let (source, live, message) = receive(&receiver);
        let elapsed = started.elapsed();
        let (expected, kind) = match routers.get(hops - 1) {
            Some(router) => (router.address, [11, 0]),
            None => (emulation.host_address(FAR), last.unwrap()),
        };
        assert_eq!(
            (source, &message[..2]),
            (expected, &kind[..]),
            "{protocol} to hop {hops}"
        );
        assert_eq!(
            usize::from(live),
            64 - (hops - 1),
            "each router on the reverse path decrements it"
        );
        assert!(
            elapsed >= round_trip(hops),
            "{protocol} to hop {hops}: {elapsed:?}"
        );
        if kind[0] == 11 {
            // The quoted probe is as it arrived: with one hop left and a correct checksum.
            assert_eq!((message[16], sum(&message[8..28])), (1, 0));
        }
    }
}

#[test]
fn udp_icmp_and_tcp_can_be_traced() {
    let Some(emulation) = start(options(chain())) else {
        return;
    };
    let far = emulation.host_address(FAR);
    let udp = emulation.in_host(NEAR, || UdpSocket::bind("0.0.0.0:0")).unwrap();
    let send_udp = |hops: u32| {
        udp.set_ttl(hops).unwrap();
        udp.send_to(&[0; 32], (far, 33_434 + hops as u16)).unwrap();
    };
    trace(&emulation, "udp", send_udp, Some([3, 3]));

    let icmp = receiver(&emulation, NEAR);
    let send_icmp = |hops: u32| {
        icmp.set_ttl_v4(hops).unwrap();
        icmp.send_to(&echo(hops as u16, 32), &SocketAddr::from((far, 0)).into())
            .unwrap();
    };
    trace(&emulation, "icmp", send_icmp, Some([0, 0]));

    let send_tcp = |hops: u32| {
        let syn = emulation
            .in_host(NEAR, || Socket::new(Domain::IPV4, Type::STREAM, None))
            .unwrap();
        syn.set_ttl_v4(hops).unwrap();
        syn.set_nonblocking(true).unwrap();
        let error = syn.connect(&SocketAddr::from((far, 80)).into()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINPROGRESS));
    };
    trace(&emulation, "tcp", send_tcp, None);
    let refused = emulation.in_host(NEAR, || TcpStream::connect((far, 80)).unwrap_err());
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn unprivileged_sockets_receive_expiry_errors() {
    let Some(emulation) = start(options(chain())) else {
        return;
    };
    let udp = emulation.in_host(NEAR, || UdpSocket::bind("0.0.0.0:0")).unwrap();
    let on: libc::c_int = 1;
    // SAFETY: the option's value is an integer that outlives the call.
    let set = unsafe {
        let value = std::ptr::from_ref(&on).cast();
        libc::setsockopt(udp.as_raw_fd(), libc::IPPROTO_IP, libc::IP_RECVERR, value, 4)
    };
    assert_eq!(set, 0);
    udp.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    udp.connect((emulation.host_address(FAR), 33_434)).unwrap();
    udp.set_ttl(2).unwrap();
    udp.send(&[0; 1400]).unwrap();
    assert_eq!(
        udp.recv(&mut [0; 10]).unwrap_err().kind(),
        ErrorKind::HostUnreachable
    );
    udp.set_ttl(DELAYS.len() as u32).unwrap();
    udp.send(&[0; 1400]).unwrap();
    assert_eq!(
        udp.recv(&mut [0; 10]).unwrap_err().kind(),
        ErrorKind::ConnectionRefused
    );
}

#[test]
fn routers_answer_at_their_own_addresses() {
    let Some(emulation) = start(options(chain())) else {
        return;
    };
    let receiver = receiver(&emulation, NEAR);
    for (number, router) in emulation.routers().iter().enumerate() {
        assert_eq!(router.name, format!("r{}", number + 1));
        let to = SocketAddr::from((router.address, 0));
        let started = Instant::now();
        receiver.send_to(&echo(9, 1000), &to.into()).unwrap();
        let (source, _, message) = receive(&receiver);
        assert_eq!((source, message.len(), message[0]), (router.address, 1008, 0));
        assert_eq!(sum(&message), 0);
        // 1028 bytes at 10 Mbit/s take 822 µs on each link in each direction.
        let sending = Duration::from_micros(2 * 822) * (number as u32 + 1);
        assert!(started.elapsed() >= round_trip(number + 1) + sending);

        let refused = |at: (Ipv4Addr, u16)| TcpStream::connect_timeout(&at.into(), Duration::from_secs(5));
        let error = emulation.in_host(NEAR, || refused((router.address, 80)).unwrap_err());
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let udp = emulation.in_host(NEAR, || UdpSocket::bind("0.0.0.0:0")).unwrap();
        udp.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        udp.connect((router.address, 53)).unwrap();
        udp.send(b"?").unwrap();
        assert_eq!(
            udp.recv(&mut [0; 10]).unwrap_err().kind(),
            ErrorKind::ConnectionRefused
        );
        receive(&receiver);
    }
    // The other host is nearer to the last router.
    let near_far = self::receiver(&emulation, FAR);
    let last = emulation.routers()[DELAYS.len() - 2].address;
    near_far
        .send_to(&echo(1, 0), &SocketAddr::from((last, 0)).into())
        .unwrap();
    assert_eq!(receive(&near_far).0, last);
}

#[test]
fn commands_resolve_router_names() {
    let Some(emulation) = start(options(chain())) else {
        return;
    };
    let mut command = std::process::Command::new("getent");
    command.args(["hosts", "r2"]).stdout(std::process::Stdio::piped());
    let mut child = emulation.spawn_in_host(NEAR, command).unwrap();
    let mut events = String::new();
    child.stdout.take().unwrap().read_to_string(&mut events).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(
        events.split_whitespace().collect::<Vec<_>>(),
        ["10.77.252.2", "r2"]
    );
}

#[test]
fn reports_the_mtu_before_a_narrow_link() {
    let keys = r#"{"kind": "free", "hosts": ["a", "b"], "routers": ["x", "y"], "links": [
        {"from": "a", "to": "x", "delay": "3ms"}, {"from": "x", "to": "y", "delay": "4ms"},
        {"from": "y", "to": "b", "delay": "1ms", "mtu": "1000B"}]}"#;
    let Some(emulation) = start(options(topology(keys))) else {
        return;
    };
    let receiver = receiver(&emulation, NEAR);
    let udp = emulation.in_host(NEAR, || UdpSocket::bind("0.0.0.0:0")).unwrap();
    let started = Instant::now();
    udp.send_to(&[0; 1200], (emulation.host_address(FAR), 9)).unwrap();
    let (source, _, message) = receive(&receiver);
    assert!(
        started.elapsed() >= Duration::from_millis(14),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(source, emulation.routers()[1].address);
    assert_eq!(
        (&message[..2], &message[6..8]),
        (&[3, 4][..], &1000_u16.to_be_bytes()[..])
    );
}

#[test]
fn fragments_packets_before_a_narrow_link() {
    let keys = r#"{"hops": [{"delay": "1ms"}, {"delay": "1ms", "mtu": "576B"}, {"delay": "1ms"}]}"#;
    let Some(emulation) = start(options(path(keys))) else {
        return;
    };
    let receiver = receiver(&emulation, NEAR);
    let off: libc::c_int = libc::IP_PMTUDISC_DONT;
    // SAFETY: the option's value is an integer that outlives the call.
    let set = unsafe {
        let value = std::ptr::from_ref(&off).cast();
        libc::setsockopt(
            receiver.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_MTU_DISCOVER,
            value,
            4,
        )
    };
    assert_eq!(set, 0);
    let to = SocketAddr::from((emulation.host_address(FAR), 0));
    receiver.send_to(&echo(1, 1400), &to.into()).unwrap();
    // The far kernel reassembles the request. Its reply is fragmented as well, or gets an MTU error.
    let mut seen = Vec::new();
    let parts = loop {
        let entered = emulation.with_network(|network, _| network.counters(LinkId(4)).entered.packets);
        if entered >= 3 {
            break entered;
        }
        seen.push(entered);
        assert!(seen.len() < 12_000);
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(parts, 3, "1428 bytes are three parts of 572 bytes at most");
}

#[test]
fn initial_ttl_covers_the_longest_path() {
    let keys = r#"{"kind": "parking-lot", "hops": 90, "bottleneck": {"delay": "10us"}}"#;
    let shape = topology(keys);
    let (from, to) = (shape.host("s0").unwrap(), shape.host("r0").unwrap());
    let Some(emulation) = start(options(shape)) else {
        return;
    };
    let to = SocketAddr::from((emulation.host_address(to), 9));
    let connect = || TcpStream::connect_timeout(&to, Duration::from_secs(5));
    let error = emulation.in_host(from, connect).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
}

/// Programs that trace a path, if installed.
#[test]
fn programs_that_trace_a_path_see_every_router() {
    let Some(emulation) = start(options(chain())) else {
        return;
    };
    let far = emulation.host_address(FAR).to_string();
    for words in [
        "traceroute -n -q 1 -w 2 FAR",
        "traceroute -n -q 1 -w 2 -I FAR",
        "traceroute -n -q 1 -w 2 -T -p 80 FAR",
        "tracepath -n FAR",
        "mtr -n --report --report-cycles 1 FAR",
    ] {
        let mut words = words.split(' ').map(|word| word.replace("FAR", &far));
        let program = words.next().unwrap();
        let mut command = std::process::Command::new(&program);
        command
            .args(words)
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped());
        let mut child = match emulation.spawn_in_host(NEAR, command) {
            Ok(child) => child,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                common::skip(Requirement::Programs, format!("{program} is not installed"));
                continue;
            }
            Err(error) => panic!("{program}: {error}"),
        };
        let mut events = String::new();
        child.stdout.take().unwrap().read_to_string(&mut events).unwrap();
        child.wait().unwrap();
        let addresses = emulation
            .routers()
            .iter()
            .map(|router| router.address.to_string());
        for address in addresses.chain([far.clone()]) {
            let is_shown = events.split([' ', '\n']).any(|word| word == address);
            assert!(is_shown, "{program} does not show {address}: {events}");
        }
    }
}

#[test]
fn the_first_router_reports_missing_routes() {
    let keys = r#"{"kind": "free", "hosts": ["a", "b", "c"], "routers": ["x"], "pairs": [["a", "b"]], "links": [
        {"from": "a", "to": "x", "delay": "3ms"}, {"from": "x", "to": "b", "delay": "4ms"}]}"#;
    let Some(emulation) = start(options(topology(keys))) else {
        return;
    };
    let receiver = receiver(&emulation, NEAR);
    let router = emulation.routers()[0].address;
    let alone = emulation.host_address(HostId(2));
    for (address, code) in [
        (Ipv4Addr::new(192, 0, 2, 1), 0),
        (alone, 1),
        (Ipv4Addr::new(10, 77, 0, 200), 1),
    ] {
        for hops in [1, 64] {
            let started = Instant::now();
            receiver.set_ttl_v4(hops).unwrap();
            receiver
                .send_to(&echo(1, 10), &SocketAddr::from((address, 0)).into())
                .unwrap();
            let (source, _, message) = receive(&receiver);
            assert_eq!((source, &message[..2]), (router, &[3, code][..]), "{address}");
            assert!(started.elapsed() >= Duration::from_millis(6));
        }
    }
    assert_eq!(emulation.report().unroutable, 6);
    // Packets to groups cause no errors.
    receiver
        .send_to(
            &echo(1, 10),
            &SocketAddr::from((IpAddr::from([224, 0, 0, 9]), 0)).into(),
        )
        .unwrap();
    receiver.set_ttl_v4(64).unwrap();
    receiver
        .send_to(&echo(2, 10), &SocketAddr::from((router, 0)).into())
        .unwrap();
    assert_eq!(receive(&receiver).2[6..8], 2_u16.to_be_bytes());
}

#[test]
fn the_switch_of_a_star_answers_as_a_router() {
    let keys = r#"{"kind": "star", "leaves": 2, "leaf": {"delay": "2ms"}}"#;
    let Some(emulation) = start(options(topology(keys))) else {
        return;
    };
    let [switch] = emulation.routers() else {
        panic!("one switch")
    };
    let host = |name: &str| topology(keys).host(name).unwrap();
    let receiver = receiver(&emulation, host("h1"));
    let h2 = emulation.host_address(host("h2"));
    let to = SocketAddr::from((h2, 0));
    for (hops, source, kind) in [(1, switch.address, 11), (2, h2, 0)] {
        receiver.set_ttl_v4(hops).unwrap();
        receiver.send_to(&echo(1, 10), &to.into()).unwrap();
        let events = receive(&receiver);
        assert_eq!((events.0, events.2[0]), (source, kind));
    }
}
