//! The project's TCP at a host, with Linux's TCP at the other end of an emulated path.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

use crate::common::streams::{HostStack, Stream};
use crate::common::{FAR, NEAR, options, path, start};
use emulation::Emulation;
use transport::tcp::TcpConfig;

/// Bytes without repetition, so that shifts and duplicates show.
fn content(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    })
    .take(bytes)
    .collect()
}

fn digest(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

fn config(keys: &str) -> Arc<TcpConfig> {
    Arc::new(serde_json::from_str(&format!(r#"{{"kind": "tcp"{keys}}}"#)).unwrap())
}

/// Both ends send `bytes` bytes at once, close, and read to the end.
fn exchange<S: Send + Sync>(stream: &S, finish: impl Fn(&S) + Sync, out: &[u8]) -> Vec<u8>
where
    for<'a> &'a S: Read + Write,
{
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer: &S = stream;
            writer.write_all(out).unwrap();
            finish(stream);
        });
        let mut read = Vec::new();
        let mut reader: &S = stream;
        reader.read_to_end(&mut read).unwrap();
        read
    })
}

fn kernel_exchange(stream: &TcpStream, out: &[u8]) -> Vec<u8> {
    exchange(stream, |stream| stream.shutdown(Shutdown::Write).unwrap(), out)
}

/// Exchanges data in both directions, opened by either TCP, with these keys and this path.
fn interoperate(path_keys: &str, keys: &str, bytes: usize, prepare: impl Fn(&Emulation)) {
    let Some(emulation) = start(options(path(path_keys))) else {
        return;
    };
    prepare(&emulation);
    let stack = HostStack::attach(&emulation, NEAR, None);
    let (up, down) = (content(bytes, 11), content(bytes, 22));
    let finish = |stream: &Stream| stream.finish();
    for opens in [true, false] {
        let [ours, theirs] = if opens {
            let address = emulation.host_address(FAR);
            let listener = emulation
                .in_host(FAR, || TcpListener::bind((address, 0)))
                .unwrap();
            let to = listener.local_addr().unwrap();
            std::thread::scope(|scope| {
                let kernel = scope.spawn(|| kernel_exchange(&listener.accept().unwrap().0, &down));
                let stream = stack.connect(to, &config(keys)).unwrap();
                [exchange(&stream, finish, &up), kernel.join().unwrap()]
            })
        } else {
            let listener = stack.listen(0, config(keys)).unwrap();
            let to = listener.local_addr();
            std::thread::scope(|scope| {
                let kernel = scope.spawn(|| {
                    let stream = emulation.in_host(FAR, || TcpStream::connect(to)).unwrap();
                    kernel_exchange(&stream, &down)
                });
                let stream = listener.accept().unwrap();
                [exchange(&stream, finish, &up), kernel.join().unwrap()]
            })
        };
        assert_eq!((ours.len(), theirs.len()), (bytes, bytes), "opened here: {opens}");
        assert_eq!(digest(&ours), digest(&down), "opened here: {opens}");
        assert_eq!(digest(&theirs), digest(&up), "opened here: {opens}");
    }
    let counters = stack.counters();
    assert!(counters.received > 0 && counters.sent > 0);
}

#[test]
fn transfers_data_in_both_directions() {
    interoperate(r#"{"rate": "100Mbit/s", "delay": "2ms"}"#, "", 2_000_000, |_| {});
}

#[test]
fn survives_one_percent_loss() {
    interoperate(
        r#"{"rate": "50Mbit/s", "delay": "3ms", "loss": "1%"}"#,
        "",
        1_000_000,
        |_| {},
    );
}

#[test]
fn survives_heavy_loss_and_reordering() {
    interoperate(
        r#"{"rate": "50Mbit/s", "delay": "3ms", "loss": "5%", "reorder": {"probability": "5%", "delay": "4ms"}}"#,
        "",
        300_000,
        |_| {},
    );
}

#[test]
fn survives_duplicates_and_corruption() {
    interoperate(
        r#"{"rate": "50Mbit/s", "delay": "3ms", "duplicate": "3%", "corrupt": "2%"}"#,
        "",
        300_000,
        |_| {},
    );
}

#[test]
fn survives_a_tiny_kernel_window() {
    interoperate(
        r#"{"rate": "50Mbit/s", "delay": "1ms", "loss": "1%"}"#,
        "",
        200_000,
        |emulation| {
            emulation.in_host(FAR, || {
                std::fs::write("/proc/sys/net/ipv4/tcp_rmem", "4096 4096 4096").unwrap();
                std::fs::write("/proc/sys/net/ipv4/tcp_wmem", "4096 4096 4096").unwrap();
            });
        },
    );
}

#[test]
fn survives_a_tiny_own_window() {
    let keys = r#", "receive_buffer": "4KiB", "send_buffer": "4KiB", "initial_receive_window": "4KiB""#;
    interoperate(
        r#"{"rate": "50Mbit/s", "delay": "1ms", "loss": "1%"}"#,
        keys,
        200_000,
        |_| {},
    );
}

#[test]
fn all_options_can_be_disabled() {
    let lossy = r#"{"rate": "50Mbit/s", "delay": "2ms", "loss": "2%"}"#;
    for keys in [
        r#", "sack": false"#,
        r#", "timestamps": false"#,
        r#", "window_scaling": false"#,
        r#", "sack": false, "timestamps": false, "window_scaling": false, "profile": "rfc""#,
    ] {
        interoperate(lossy, keys, 200_000, |_| {});
    }
}

#[test]
fn segments_follow_the_path_mtu() {
    let Some(emulation) = start(options(path(
        r#"{"rate": "50Mbit/s", "delay": "2ms", "mtu": "900B"}"#,
    ))) else {
        return;
    };
    let stack = HostStack::attach(&emulation, NEAR, None);
    let address = emulation.host_address(FAR);
    let listener = emulation
        .in_host(FAR, || TcpListener::bind((address, 0)))
        .unwrap();
    let to = listener.local_addr().unwrap();
    let sent = content(200_000, 3);
    std::thread::scope(|scope| {
        let kernel = scope.spawn(|| kernel_exchange(&listener.accept().unwrap().0, b""));
        let stream = stack.connect(to, &config("")).unwrap();
        exchange(&stream, |stream| stream.finish(), &sent);
        assert_eq!(digest(&kernel.join().unwrap()), digest(&sent));
        // 900 without both headers and the timestamps.
        assert_eq!(stream.look(|connection| connection.info().segment), 848);
    });
    assert!(stack.counters().too_big > 0, "{:?}", stack.counters());
}

#[test]
fn half_closed_streams_keep_receiving() {
    let Some(emulation) = start(options(path(r#"{"delay": "1ms"}"#))) else {
        return;
    };
    let stack = HostStack::attach(&emulation, NEAR, None);
    let listener = stack.listen(80, config("")).unwrap();
    let to = listener.local_addr();
    let mut kernel = emulation.in_host(FAR, || TcpStream::connect(to)).unwrap();
    let mut ours = listener.accept().unwrap();
    kernel.shutdown(Shutdown::Write).unwrap();
    let mut buffer = [0; 16];
    assert_eq!(ours.read(&mut buffer).unwrap(), 0);
    ours.write_all(b"still here").unwrap();
    assert_eq!(kernel.read(&mut buffer).unwrap(), 10);
    assert_eq!(&buffer[..10], b"still here");
    ours.finish();
    assert_eq!(kernel.read(&mut buffer).unwrap(), 0);
    assert!(ours.write(b"more").is_err());
}

#[test]
fn resets_reach_both_ends() {
    let Some(emulation) = start(options(path(r#"{"delay": "1ms"}"#))) else {
        return;
    };
    let stack = HostStack::attach(&emulation, NEAR, None);
    let listener = stack.listen(80, config("")).unwrap();
    let to = listener.local_addr();
    let connect = || emulation.in_host(FAR, || TcpStream::connect(to)).unwrap();
    let mut buffer = [0; 16];

    let (mut kernel, ours) = (connect(), listener.accept().unwrap());
    ours.abort();
    assert_eq!(
        kernel.read(&mut buffer).unwrap_err().kind(),
        ErrorKind::ConnectionReset
    );

    let (kernel, mut ours) = (connect(), listener.accept().unwrap());
    socket2::SockRef::from(&kernel)
        .set_linger(Some(std::time::Duration::ZERO))
        .unwrap();
    drop(kernel);
    assert_eq!(
        ours.read(&mut buffer).unwrap_err().kind(),
        ErrorKind::ConnectionReset
    );

    // No listener.
    let closed = (emulation.host_address(NEAR), 81);
    let refused = emulation.in_host(FAR, || TcpStream::connect(closed)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    let closed = (emulation.host_address(FAR), 81).into();
    let refused = stack.connect(closed, &config("")).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert!(stack.listen(80, config("")).is_err(), "the port is taken");
}

#[test]
fn many_connections_live_at_once() {
    const COUNT: usize = 50;
    let keys = r#"{"rate": "100Mbit/s", "delay": "2ms", "loss": "1%", "queue": "200pkt"}"#;
    let Some(emulation) = start(options(path(keys))) else {
        return;
    };
    let stack = HostStack::attach(&emulation, NEAR, None);
    let listener = stack.listen(80, config("")).unwrap();
    let to = listener.local_addr();
    std::thread::scope(|scope| {
        for number in 0..COUNT {
            let emulation = &emulation;
            scope.spawn(move || {
                let mut stream = emulation.in_host(FAR, || TcpStream::connect(to)).unwrap();
                stream.write_all(&[number as u8]).unwrap();
                let mut read = Vec::new();
                stream.read_to_end(&mut read).unwrap();
                assert!(read == content(20_000, number as u64), "connection {number}");
            });
        }
        for _ in 0..COUNT {
            let mut stream = listener.accept().unwrap();
            scope.spawn(move || {
                let mut number = [0];
                stream.read_exact(&mut number).unwrap();
                stream.write_all(&content(20_000, u64::from(number[0]))).unwrap();
            });
        }
    });
}

#[test]
fn kernel_and_stack_share_a_host() {
    let Some(emulation) = start(options(path(r#"{"delay": "1ms"}"#))) else {
        return;
    };
    let address = emulation.host_address(NEAR);
    let stack = HostStack::attach(&emulation, NEAR, Some(10_000..=32_767));
    let ours = stack.listen(0, config("")).unwrap();
    let theirs = emulation
        .in_host(NEAR, || TcpListener::bind((address, 40_000)))
        .unwrap();
    let connect = |to| {
        emulation
            .in_host(FAR, move || TcpStream::connect::<std::net::SocketAddr>(to))
            .unwrap()
    };
    let (mut one, mut other) = (connect(ours.local_addr()), connect(theirs.local_addr().unwrap()));
    ours.accept().unwrap().write_all(b"stack").unwrap();
    theirs.accept().unwrap().0.write_all(b"kernel").unwrap();
    let mut events = [String::new(), String::new()];
    one.read_to_string(&mut events[0]).unwrap();
    other.read_to_string(&mut events[1]).unwrap();
    assert_eq!(events, ["stack", "kernel"]);
}
