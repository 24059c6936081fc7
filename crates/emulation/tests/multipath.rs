//! Hosts with several paths, and Linux's MPTCP over subflows that the test opens.

#![cfg(target_os = "linux")]

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use crate::common::multihomed::{PATIENCE, network, packets, send, sink, three_paths};
use crate::common::{FAR, NEAR, options, start};
use kernel::mptcp::{self, ConnectionInfo, Event, EventKind, Events, Manager, PathManager};

#[test]
fn addresses_select_paths() {
    let Some(emulation) = start(options(three_paths())) else {
        return;
    };
    assert_eq!((emulation.ways(NEAR), emulation.ways(FAR)), (3, 3));
    let listener = emulation.in_host(FAR, || TcpListener::bind("0.0.0.0:0").unwrap());
    let port = listener.local_addr().unwrap().port();
    let mut open = Vec::new();
    // The smallest RTTs of the three.
    for (way, minimum) in [62, 12, 42].into_iter().enumerate() {
        for (own, theirs) in [(way, 0), (0, way), (way, way)] {
            let (from, to) = (
                emulation.way_address(NEAR, own as u8),
                emulation.way_address(FAR, theirs as u8),
            );
            let before = packets(&emulation);
            let (socket, elapsed) = emulation.in_host(NEAR, || {
                use socket2::{Domain, Socket, Type};
                let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
                socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
                let started = Instant::now();
                socket.connect(&SocketAddr::from((to, port)).into()).unwrap();
                let elapsed = started.elapsed();
                (socket, elapsed)
            });
            // Only the SYN and the ACK have used the path.
            open.push(socket);
            assert!(
                elapsed >= Duration::from_millis(minimum),
                "{from} to {to}: {elapsed:?}"
            );
            while packets(&emulation)[way] < before[way] + 2 {
                std::thread::sleep(Duration::from_millis(2));
            }
            let after = packets(&emulation);
            for other in (0..3).filter(|&other| other != way) {
                assert_eq!(before[other], after[other], "{from} to {to}: way {other}");
            }
        }
    }
}

#[test]
fn interpose_refuses_hosts_with_several_paths() {
    let Some(emulation) = start(options(three_paths())) else {
        return;
    };
    let refused = emulation.interpose(NEAR).unwrap_err();
    assert!(
        refused.to_string().starts_with("the host has 3 devices"),
        "{refused}"
    );
}

#[test]
fn opens_requested_subflows() {
    let Some(emulation) = network() else { return };
    let to = sink(&emulation);
    let before = packets(&emulation);
    emulation.in_host(NEAR, || {
        let _restore = mptcp::set_path_manager(PathManager::User).unwrap();
        let paths = mptcp::paths().unwrap();
        assert_eq!(paths.len(), 3);
        let fast = paths[1];
        // A short transfer on the fastest path alone.
        let socket = mptcp::connect(Some(fast.address), to, PATIENCE).unwrap();
        send(socket, 50_000);
    });
    let short = packets(&emulation);
    assert!(short[1] - before[1] >= 35, "{before:?} {short:?}");
    assert_eq!((short[0], short[2]), (before[0], before[2]));
    emulation.in_host(NEAR, || {
        let _restore = mptcp::set_path_manager(PathManager::User).unwrap();
        let (events, manager) = (Events::listen().unwrap(), Manager::open().unwrap());
        let paths = mptcp::paths().unwrap();
        let mut socket = mptcp::connect(Some(paths[1].address), to, PATIENCE).unwrap();
        let token = ConnectionInfo::token(&socket).unwrap().expect("MPTCP");
        let early = manager.create_subflow(token, &paths[0], 2, to).unwrap_err();
        assert_eq!(early.raw_os_error(), Some(libc::ENOTCONN), "{early}");
        socket.write_all(&[7; 100_000]).unwrap();
        let started = Instant::now();
        for (id, path) in [(2, &paths[0]), (3, &paths[2])] {
            while let Err(error) = manager.create_subflow(token, path, id, to) {
                assert_eq!(error.raw_os_error(), Some(libc::ENOTCONN), "{error}");
                assert!(started.elapsed() < PATIENCE);
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        let mut received: Vec<Event> = Vec::new();
        while received
            .iter()
            .filter(|event| matches!(event.kind, EventKind::SubflowEstablished(_)))
            .count()
            < 2
        {
            received.extend(events.next().unwrap());
            assert!(started.elapsed() < PATIENCE, "{received:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
        let kind = EventKind::Established {
            pair: mptcp::SocketPair {
                local: socket.local_addr().unwrap(),
                remote: to,
            },
            server: false,
        };
        assert!(received.contains(&Event { token, kind }));
        let rest = vec![7; 5_000_000];
        socket.write_all(&rest).unwrap();
        let connection = ConnectionInfo::of_socket(&socket).unwrap().unwrap();
        assert_eq!(connection.token, token);
        assert_eq!(connection.subflows.len(), 3);
        let table = mptcp::tcp_sockets().unwrap();
        for subflow in &connection.subflows {
            let place = paths
                .iter()
                .position(|path| path.address == subflow.pair.local.ip())
                .unwrap();
            let minimum = [62_000, 12_000, 42_000][place];
            let rtt = subflow.tcp.min_rtt_us().unwrap();
            assert!(rtt >= minimum, "{subflow:?}");
            assert!(subflow.tcp.bytes_sent() > 200_000, "{subflow:?}");
            assert!(table[&subflow.pair].bytes_sent() >= subflow.tcp.bytes_sent());
        }
        send(socket, 1);
    });
    let long = packets(&emulation);
    for way in 0..3 {
        assert!(long[way] - short[way] >= 200, "{short:?} {long:?}");
    }
}

/// Number of attempts, which a busy machine may need.
const ATTEMPTS: usize = 20;

#[test]
fn the_kernels_path_manager_uses_all_paths() {
    let Some(emulation) = network() else { return };
    let to = sink(&emulation);
    emulation.in_host(NEAR, || {
        let manager = Manager::open().unwrap();
        manager.set_limits(8, 8).unwrap();
        for path in mptcp::paths().unwrap() {
            manager.add_endpoint(&path).unwrap();
        }
    });
    for size in [50_000, 5_000_000] {
        let takes_all = || {
            let before = packets(&emulation);
            emulation.in_host(NEAR, || send(mptcp::connect(None, to, PATIENCE).unwrap(), size));
            let after = packets(&emulation);
            // At least the subflow's handshake.
            (0..3).all(|way| after[way] - before[way] >= 2)
        };
        // On a busy machine a transfer may finish before the kernel's worker has joined a path.
        assert!((0..ATTEMPTS).any(|_| takes_all()), "{size}");
    }
}

#[test]
fn restores_the_path_manager() {
    let Some(emulation) = network() else { return };
    emulation.in_host(NEAR, || {
        assert_eq!(mptcp::path_manager().unwrap(), PathManager::Kernel);
        let restore = mptcp::set_path_manager(PathManager::User).unwrap();
        assert!(restore.has_changed());
        assert_eq!(mptcp::path_manager().unwrap(), PathManager::User);
        drop(restore);
        assert_eq!(mptcp::path_manager().unwrap(), PathManager::Kernel);
    });
}
