//! The memory of an echo server under a flood, measured in a separate process so that other tests do not count.

#![cfg(target_os = "linux")]

use std::net::UdpSocket;
use std::time::Duration;

use crate::common::serving::{client, serve, wait_for_reply};
use measurement::datagram::{HEADER, Header, MessageKind};
use measurement::echo::Limits;

/// Resident memory of this process, in bytes.
fn memory() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn a_flood_leaves_memory_bounded_and_the_server_responsive() {
    let done = testing::rerun("echo_memory::flood").output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}

/// Floods the server of this process.
#[test]
#[ignore = "run by the test above, in a separate process"]
fn flood() {
    if !testing::is_rerun() {
        return;
    }
    let limits = Limits::default();
    let server = serve("127.0.0.1:0", limits);
    let before = memory();
    let end = std::time::Instant::now() + Duration::from_secs(2);
    std::thread::scope(|scope| {
        for seed in 0..2_u32 {
            let to = server.address;
            scope.spawn(move || {
                let mut number = seed;
                let mut bytes = vec![0; 1400];
                while std::time::Instant::now() < end {
                    // Each address of a network sends a few datagrams.
                    let source = [127, 7, (number >> 8) as u8, number as u8];
                    let Ok(socket) = UdpSocket::bind((std::net::Ipv4Addr::from(source), 0)) else {
                        continue;
                    };
                    for round in 0..16_u32 {
                        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        let length = (number >> 16) as usize % 1400;
                        bytes[..4].copy_from_slice(&number.to_be_bytes());
                        if round % 3 == 0 && length >= HEADER {
                            Header {
                                kind: MessageKind::Request,
                                number,
                            }
                            .write(&mut bytes);
                        }
                        let _ = socket.send_to(&bytes[..length], to);
                    }
                }
            });
        }
    });
    let socket = client(server.address);
    wait_for_reply(&socket, 4);
    let grown = memory().saturating_sub(before);
    let counts = server.counts();
    assert!(grown < limits.memory() + (8 << 20), "{grown}");
    assert!(counts.malformed > 0 && counts.datagrams > 0, "{counts:?}");
    assert!(counts.sent <= counts.received);
}
