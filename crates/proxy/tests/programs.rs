//! Random programs on real sockets: bytes are equal, and no socket and no stream is left.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use foundation::Streams;
use proptest::prelude::RngExt as _;
use socket2::SockRef;

use crate::sockets::Running;

/// The steps of one end.
#[derive(Clone, Debug, Default)]
struct Script {
    /// Bytes and pauses.
    writes: Vec<(usize, u64)>,
    /// How long the reader waits before it reads.
    stall: u64,
    /// Whether the end resets the connection after its writes, instead of ending its stream.
    resets: bool,
}

fn script(random: &mut foundation::Generator) -> Script {
    let writes = (0..random.random_range(0..6_usize))
        .map(|_| {
            (
                random.random_range(1..200_000_usize),
                random.random_range(0..4_u64),
            )
        })
        .collect();
    Script {
        writes,
        stall: random.random_range(0..20),
        resets: random.random_range(0..6) == 0,
    }
}

fn pattern(number: u64, count: usize) -> Vec<u8> {
    (0..count)
        .map(|at| (at as u64 * 31 + number * 7 + (at as u64 >> 8)) as u8)
        .collect()
}

/// Runs one end. Returns what it read, and whether its stream ended in order.
fn run(mut socket: TcpStream, script: &Script, number: u64) -> (Vec<u8>, bool) {
    let mut copy = socket.try_clone().unwrap();
    let stall = script.stall;
    let reader = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(stall));
        let (mut read, mut buffer) = (Vec::new(), vec![0; 50_000]);
        loop {
            match copy.read(&mut buffer) {
                Ok(0) => return (read, true),
                Ok(count) => read.extend_from_slice(&buffer[..count]),
                Err(_) => return (read, false),
            }
        }
    });
    let data = pattern(number, script.writes.iter().map(|(count, _)| count).sum());
    let mut rest = &data[..];
    for &(count, pause) in &script.writes {
        // A reset of the other end.
        if socket.write_all(&rest[..count]).is_err() {
            break;
        }
        rest = &rest[count..];
        std::thread::sleep(Duration::from_millis(pause));
    }
    if script.resets {
        SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
        // The reader shares the file, so that closing it is not enough.
        let _ = socket.shutdown(Shutdown::Read);
        let read = reader.join().unwrap();
        drop(socket);
        return (read.0, false);
    }
    let _ = socket.shutdown(Shutdown::Write);
    reader.join().unwrap()
}

/// Serves connections whose first 8 bytes are their number.
fn serve(
    listener: TcpListener,
    scripts: Arc<Vec<[Script; 2]>>,
    stopped: Arc<AtomicBool>,
) -> Vec<(u64, Vec<u8>, bool)> {
    let mut running = Vec::new();
    while let Ok((mut socket, _)) = listener.accept() {
        if stopped.load(Ordering::Relaxed) {
            break;
        }
        let scripts = Arc::clone(&scripts);
        running.push(std::thread::spawn(move || {
            let mut number = [0; 8];
            // The client may have reset its connection already.
            socket.read_exact(&mut number).ok()?;
            let number = u64::from_le_bytes(number);
            let (read, has_end) = run(socket, &scripts[number as usize][1], number * 2 + 1);
            Some((number, read, has_end))
        }));
    }
    running
        .into_iter()
        .filter_map(|one| one.join().unwrap())
        .collect()
}

fn connect(address: SocketAddr, number: u64) -> TcpStream {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(&number.to_le_bytes()).unwrap();
    socket
}

#[test]
fn bytes_are_equal_and_nothing_is_left() {
    let count = testing::count("LONGFAT_SOCKET_SEQUENCES", 400);
    let mut random = Streams::new(testing::count("LONGFAT_SEED", 8), 0).stream("scripts");
    let scripts: Vec<[Script; 2]> = (0..count)
        .map(|_| [script(&mut random), script(&mut random)])
        .collect();
    let scripts = Arc::new(scripts);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    let stopped = Arc::new(AtomicBool::new(false));
    let server = {
        let (scripts, stopped) = (Arc::clone(&scripts), Arc::clone(&stopped));
        std::thread::spawn(move || serve(listener, scripts, stopped))
    };
    let relay = Running::start(
        r#"{"delay": "500us", "loss": "1%", "reorder": {"probability": "1%", "delay": "1ms"}}"#,
        target,
    );
    let mut clients = Vec::new();
    for (number, pair) in scripts.iter().enumerate() {
        let socket = connect(relay.address, number as u64);
        let script = pair[0].clone();
        clients.push(std::thread::spawn(move || {
            run(socket, &script, number as u64 * 2)
        }));
        // At most 16 at a time.
        if clients.len() > 16 {
            let oldest = clients.len() - 16;
            while !clients[oldest].is_finished() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
    let clients: Vec<(Vec<u8>, bool)> = clients.into_iter().map(|one| one.join().unwrap()).collect();
    let limit = Instant::now() + Duration::from_secs(100);
    while relay.sockets() > 0 {
        assert!(Instant::now() < limit, "{} ends are left", relay.sockets());
        std::thread::sleep(Duration::from_millis(5));
    }
    stopped.store(true, Ordering::Relaxed);
    drop(TcpStream::connect(target));
    let served = server.join().unwrap();
    let total = |script: &Script| script.writes.iter().map(|(count, _)| count).sum::<usize>();
    for (number, read, has_end) in &served {
        let [client, own] = &scripts[*number as usize];
        let sent = pattern(number * 2, total(client));
        assert!(sent.starts_with(read), "{number}: wrong bytes at the target");
        let is_cut = client.resets || own.resets;
        assert!(
            is_cut || (*has_end && read.len() == sent.len()),
            "{number}: bytes are missing at the target"
        );
    }
    for (number, (read, has_end)) in clients.iter().enumerate() {
        let [client, own] = &scripts[number];
        let sent = pattern(number as u64 * 2 + 1, total(own));
        assert!(sent.starts_with(read), "{number}: wrong bytes at the client");
        let is_cut = client.resets || own.resets;
        assert!(
            is_cut || (*has_end && read.len() == sent.len()),
            "{number}: bytes are missing at the client"
        );
    }
    let report = relay.stop();
    assert_eq!(report.accepted, count);
    assert_eq!(report.completed + report.reset, count);
    assert_eq!(report.failed, 0);
}
