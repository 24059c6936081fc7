//! The path manager in user space, with registered and unregistered connections.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::multihomed::{PATIENCE, network, packets, send, sink, source};
use crate::common::{self, FAR, NEAR, Requirement};
use emulation::Emulation;
use kernel::mptcp::daemon::{NAME, Notification, Options, run};
use kernel::mptcp::{self, ConnectionInfo, PathManager};
use network::HostId;
use serde_json::{Value, json};
use transport::mptcp::policy::{Fsfs, PolicyConfig};

/// Sets a flag when dropped.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `f` while the path manager runs at the near host; returns its notifications.
fn with_manager(
    emulation: &Emulation,
    options: &Options,
    f: impl FnOnce(&Mutex<Vec<Notification>>),
) -> Vec<Notification> {
    with_manager_at(emulation, NEAR, options, f)
}

/// Like [`with_manager`], at a given host.
fn with_manager_at(
    emulation: &Emulation,
    host: HostId,
    options: &Options,
    f: impl FnOnce(&Mutex<Vec<Notification>>),
) -> Vec<Notification> {
    let (stop, events) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        let daemon = scope.spawn(|| {
            emulation.in_host(host, || {
                let mut is_running = || !stop.load(Ordering::Relaxed);
                run(options, &mut is_running, &mut |event| {
                    events.lock().unwrap().push(event)
                })
            })
        });
        let started = Instant::now();
        while events.lock().unwrap().is_empty() && !daemon.is_finished() {
            assert!(started.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(2));
        }
        {
            // A failing test stops the path manager, too.
            let _stop = StopOnDrop(&stop);
            f(&events);
        }
        daemon.join().unwrap().unwrap();
    });
    events.into_inner().unwrap()
}

fn fsfs() -> Options {
    Options {
        policy: PolicyConfig::Fsfs(Fsfs::default()),
        name: NAME.into(),
        set_sysctl: true,
        requested_only: false,
        announce: false,
        seed: 1,
    }
}

/// Sends a request to the path manager in the calling thread's namespace.
fn send_request(request: &Value) -> Value {
    let address = UnixAddress::from_abstract_name(NAME).unwrap();
    let mut socket = UnixStream::connect_addr(&address).unwrap();
    socket.write_all(format!("{request}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(socket).read_line(&mut answer).unwrap();
    serde_json::from_str(&answer).unwrap()
}

/// A registered connection that sends `bytes` bytes.
fn transfer(emulation: &Emulation, to: SocketAddr, size: usize) {
    emulation.in_host(NEAR, || {
        let answer = send_request(&json!({"open": {"to": to.ip(), "size": size}}));
        let opening = &answer["opening"];
        let from = opening["from"].as_str().unwrap().parse().unwrap();
        let socket = mptcp::connect(Some(from), to, PATIENCE).unwrap();
        let token = ConnectionInfo::token(&socket).unwrap().unwrap();
        let begun = send_request(
            &json!({"begin": {"opening": opening["opening"], "token": token, "port": to.port()}}),
        );
        assert_eq!(begun, json!({"begun": {"token": token}}));
        send(socket, size);
    });
}

/// Waits until the path manager has reported `count` closed connections.
fn await_closed(events: &Mutex<Vec<Notification>>, count: usize) {
    let started = Instant::now();
    let closed = || {
        let events = events.lock().unwrap();
        events
            .iter()
            .filter(|event| matches!(event, Notification::Closed { .. }))
            .count()
    };
    while closed() < count {
        assert!(started.elapsed() < PATIENCE, "{:?}", events.lock().unwrap());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until no path has carried packets for longer than an RTO; returns the packets of each.
fn await_silence(emulation: &Emulation) -> [u64; 3] {
    let started = Instant::now();
    let (mut last, mut since) = (packets(emulation), Instant::now());
    while since.elapsed() < Duration::from_millis(500) {
        std::thread::sleep(Duration::from_millis(20));
        let now = packets(emulation);
        if now != last {
            assert!(started.elapsed() < PATIENCE, "{now:?}");
            (last, since) = (now, Instant::now());
        }
    }
    last
}

fn used(before: [u64; 3], after: [u64; 3]) -> [bool; 3] {
    [0, 1, 2].map(|way| after[way] > before[way])
}

#[test]
fn short_flows_use_the_fastest_path_and_long_ones_all() {
    let Some(emulation) = network() else { return };
    let to = sink(&emulation);
    let events = with_manager(&emulation, &fsfs(), |events| {
        // Without any RTT, a long transfer tries all paths.
        let start = packets(&emulation);
        transfer(&emulation, to, 5_000_000);
        let long = packets(&emulation);
        assert_eq!(used(start, long), [true; 3]);
        await_closed(events, 1);
        await_silence(&emulation);
        for closed in 2..=3 {
            let status = emulation.in_host(NEAR, || send_request(&json!({"status": {}})));
            let paths = &status["status"]["peers"][0]["paths"];
            for (place, minimum) in [62.0, 12.0, 42.0].into_iter().enumerate() {
                let base = paths[place]["base_rtt_ms"].as_f64().unwrap();
                assert!(base >= minimum, "{status}");
            }
            // The smoothed RTTs still contain queues of the long transfer, so that the shortest path may not be the fastest.
            let rtts = [0, 1, 2].map(|place: usize| paths[place]["rtt_ms"].as_f64().unwrap());
            let fastest = rtts.map(|rtt| rtt == rtts.into_iter().fold(f64::MAX, f64::min));
            let before = packets(&emulation);
            transfer(&emulation, to, 50_000);
            await_closed(events, closed);
            let after = await_silence(&emulation);
            assert_eq!(used(before, after), fastest, "{before:?} {after:?} {status}");
        }
    });
    assert!(
        matches!(&events[0], Notification::Ready { paths, set_sysctl: true, policy } if policy == "fsfs" && paths.len() == 3)
    );
    let closed = events.iter().filter_map(|event| match event {
        Notification::Closed { bytes, .. } => Some(bytes.len()),
        _ => None,
    });
    // The kernel may have forgotten a short connection before its bytes are read.
    let closed: Vec<usize> = closed.collect();
    assert!(matches!(closed[..], [3, 0..=1, 0..=1]), "{events:?}");
    // The sysctl is restored.
    let manager = emulation.in_host(NEAR, || mptcp::path_manager().unwrap());
    assert_eq!(manager, PathManager::Kernel);
}

#[test]
fn an_unregistered_connection_joins_paths_as_it_grows() {
    let Some(emulation) = network() else { return };
    let to = sink(&emulation);
    let events = with_manager(&emulation, &fsfs(), |_| {
        for (size, expected) in [(50_000, [true, false, false]), (5_000_000, [true; 3])] {
            let before = packets(&emulation);
            emulation.in_host(NEAR, || send(mptcp::connect(None, to, PATIENCE).unwrap(), size));
            assert_eq!(used(before, await_silence(&emulation)), expected, "{size}");
        }
    });
    let joined = events
        .iter()
        .filter(|event| matches!(event, Notification::Joined { .. }))
        .count();
    assert_eq!(joined, 2, "{events:?}");
}

#[test]
fn an_unregistered_download_joins_paths_as_it_grows() {
    let Some(emulation) = network() else { return };
    let to = source(&emulation, 5_000_000);
    let mut status = Value::Null;
    let events = with_manager(&emulation, &fsfs(), |events| {
        emulation.in_host(NEAR, || {
            let mut socket = mptcp::connect(None, to, PATIENCE).unwrap();
            socket.write_all(b"?").unwrap();
            let mut buffer = vec![0; 65_536];
            let mut received = 0;
            while received < 4_000_000 {
                received += socket.read(&mut buffer).unwrap();
            }
            status = send_request(&json!({"status": {}}));
            while socket.read(&mut buffer).unwrap() > 0 {}
        });
        await_closed(events, 1);
    });
    let joined = events.iter().filter_map(|event| match event {
        Notification::Joined { to: remote, .. } => Some(*remote),
        _ => None,
    });
    assert_eq!(joined.collect::<Vec<_>>(), [to.ip(); 2], "{events:?}");
    let closed = events.iter().find_map(|event| match event {
        Notification::Closed { received, .. } => Some(received.iter().map(|(_, bytes)| bytes).sum::<u64>()),
        _ => None,
    });
    // The last read may be before the last bytes.
    assert!(closed.unwrap() > 1_000_000, "{events:?}");
    let status = &status["status"];
    assert_eq!(status["policy"], "fsfs");
    for path in status["peers"][0]["paths"].as_array().unwrap() {
        assert_eq!(path["remote"], to.ip().to_string(), "{status}");
    }
    for subflow in status["connections"][0]["subflows"].as_array().unwrap() {
        assert_eq!(subflow["remote"], to.to_string(), "{status}");
    }
}

#[test]
fn joins_announced_addresses_and_leaves_withdrawn_ones() {
    let Some(emulation) = network() else { return };
    let to = sink(&emulation);
    let all = |announce| Options {
        policy: PolicyConfig::default(),
        announce,
        ..fsfs()
    };
    let lost = std::net::IpAddr::V4(emulation.way_address(NEAR, 2));
    let mut near = Vec::new();
    let far = with_manager_at(&emulation, FAR, &all(true), |_| {
        near = with_manager(&emulation, &all(false), |events| {
            let mut socket = emulation.in_host(NEAR, || mptcp::connect(None, to, PATIENCE).unwrap());
            let started = Instant::now();
            let send_more = |socket: &mut std::net::TcpStream| {
                let subflows = ConnectionInfo::of_socket(socket).unwrap().unwrap().subflows;
                assert!(
                    started.elapsed() < 3 * PATIENCE,
                    "{:?} {subflows:?}",
                    events.lock().unwrap()
                );
                socket.write_all(&[7; 20_000]).unwrap();
                std::thread::sleep(Duration::from_millis(20));
                subflows
            };
            // Three subflows from its addresses to the peer's first one, and one to each other address of the peer.
            loop {
                let subflows = send_more(&mut socket);
                let established = subflows
                    .iter()
                    .filter(|subflow| subflow.tcp.smoothed_rtt_us() > 0);
                let remotes: BTreeSet<_> = established
                    .clone()
                    .map(|subflow| subflow.pair.remote.ip())
                    .collect();
                if (established.count(), remotes.len()) == (5, 3) {
                    break;
                }
            }
            let flushed = emulation.in_host(NEAR, || {
                let to = lost.to_string();
                std::process::Command::new("ip")
                    .args(["addr", "flush", "to", &to])
                    .status()
            });
            if !flushed.is_ok_and(|status| status.success()) {
                return common::skip(
                    Requirement::Programs,
                    "the ip command, which removes an address, is not installed",
                );
            }
            let left = Notification::Left {
                token: ConnectionInfo::token(&socket).unwrap().unwrap(),
                from: lost,
            };
            while !events.lock().unwrap().contains(&left)
                || send_more(&mut socket)
                    .iter()
                    .any(|subflow| subflow.pair.local.ip() == lost)
            {
                send_more(&mut socket);
            }
            send(socket, 1);
        });
    });
    let announced = far
        .iter()
        .filter(|event| matches!(event, Notification::Announced { .. }));
    assert_eq!(announced.count(), 2, "{far:?}");
    let joined = near
        .iter()
        .filter(|event| matches!(event, Notification::Joined { .. }));
    assert!(joined.count() >= 4, "{near:?}");
}

#[test]
fn refuses_policies_that_linux_cannot_apply() {
    let scatter: PolicyConfig = serde_json::from_value(json!("mmptcp")).unwrap();
    let tail: PolicyConfig = serde_json::from_value(json!({"kind": "foresight", "tail": 2})).unwrap();
    for (policy, message) in [
        (scatter, "policy.kind: Linux"),
        (tail, "policy.tail: not supported by Linux"),
    ] {
        let options = Options { policy, ..fsfs() };
        let refused = run(&options, &mut || false, &mut |_| {}).unwrap_err().to_string();
        assert!(refused.starts_with(message), "{refused}");
    }
}

#[test]
fn names_the_sysctl_for_user_space_path_managers() {
    let Some(emulation) = network() else { return };
    let options = Options {
        set_sysctl: false,
        ..fsfs()
    };
    let refused = emulation.in_host(NEAR, || run(&options, &mut || false, &mut |_| {}));
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("sysctl net.mptcp.pm_type=1"), "{message}");
}
