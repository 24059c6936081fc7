//! Kernels at both ends of a path.

#![cfg(target_os = "linux")]

mod common;

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use common::{FAR, NEAR, options, path, start};

#[test]
fn a_datagram_takes_the_delay_and_its_time_on_the_link() {
    let Some(emulation) = start(options(path(r#"{"rate": "8Mbit/s", "delay": "20ms"}"#))) else {
        return;
    };
    let server = emulation.in_host(FAR, || UdpSocket::bind("0.0.0.0:7")).unwrap();
    let client = emulation.in_host(NEAR, || UdpSocket::bind("0.0.0.0:0")).unwrap();
    client.connect((emulation.host_address(FAR), 7)).unwrap();
    for socket in [&server, &client] {
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    }
    // 972 + 28 bytes at 8 Mbit/s are 1 ms, and the same back.
    let expected = Duration::from_millis(42);
    let mut quickest = Duration::MAX;
    for _ in 0..10 {
        let start = Instant::now();
        client.send(&[7; 972]).unwrap();
        let mut buffer = [0; 2000];
        let (length, from) = server.recv_from(&mut buffer).unwrap();
        assert_eq!((length, from.ip()), (972, emulation.host_address(NEAR).into()));
        server.send_to(&buffer[..length], from).unwrap();
        assert_eq!(client.recv(&mut buffer).unwrap(), 972);
        let took = start.elapsed();
        assert!(took >= expected, "{took:?}");
        quickest = quickest.min(took);
    }
    assert!(quickest < expected + Duration::from_millis(5), "{quickest:?}");
    let delivered = emulation.with_network(|network, _| {
        network
            .links()
            .map(|link| network.counters(link).delivered.packets)
            .collect::<Vec<_>>()
    });
    assert_eq!(delivered, [10, 10]);
}
