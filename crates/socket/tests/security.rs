//! Protected transfers over sockets: authentication, and an attacker on the path.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use security::{Code, Credentials, SecretKey, TrustedKeys};
use socket::transfer::{ReceiveEvent, ReceiveOptions, SendOptions, SendReport, receive, send_files};
use socket::{Error, Protection};

use crate::common::{Receiver, bytes, protection};

fn keys(own: u8, trusted: u8) -> Protection {
    let list = format!("{} number {trusted}", SecretKey::new([trusted; 32]).public());
    Protection::Secure(Credentials::Keys {
        identity: SecretKey::new([own; 32]),
        trusted: TrustedKeys::parse(&list).unwrap(),
    })
}

fn code(number: u8) -> Protection {
    Protection::Secure(Credentials::Code(Code::new([number; 12])))
}

fn file(size: usize) -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file.bin");
    fs::write(&path, bytes(size, 1)).unwrap();
    (place, path)
}

fn send(to: SocketAddr, path: PathBuf, protection: Protection) -> Result<SendReport, Error> {
    send_files(&SendOptions::new(vec![path], to, protection), &mut |_| {
        ControlFlow::Continue(())
    })
}

fn receiver(protection: Protection) -> Receiver {
    Receiver::start_with(|options| options.protection = protection)
}

#[test]
fn trusted_keys_transfer_and_have_names() {
    let receiver = receiver(keys(2, 1));
    let (_place, path) = file(100_000);
    let report = send(receiver.address, path, keys(1, 2)).unwrap();
    assert_eq!(report.failures().count(), 0);
    assert_eq!(
        fs::read(receiver.path().join("file.bin")).unwrap(),
        bytes(100_000, 1)
    );
    let named =
        |event: &ReceiveEvent| matches!(event, ReceiveEvent::Connected(_, Some(name)) if name == "number 1");
    assert!(receiver.events.lock().unwrap().iter().any(named));
    receiver.stop();
}

/// Each end refuses a less secure peer with one line, and nothing is written.
#[test]
fn mismatched_ends_refuse_each_other() {
    let cases = [
        (
            code(1),
            code(2),
            "the code is wrong or used: type the newest one that the receiver prints",
            Some("its code is wrong or used"),
        ),
        (
            keys(1, 3),
            keys(2, 1),
            "the receiver's key is not trusted: longfat-key-",
            None,
        ),
        (
            keys(1, 2),
            keys(2, 3),
            "the receiver does not trust this key",
            Some("its key is not trusted"),
        ),
        (
            code(1),
            keys(2, 1),
            "the receiver requires a trusted key instead of a code",
            Some("it has a code, but this receiver requires a trusted key"),
        ),
        (
            keys(1, 2),
            code(1),
            "the receiver requires the code that it prints",
            Some("it has a key, but this receiver requires the code"),
        ),
        (
            code(1),
            Protection::None,
            "the receiver does not encrypt",
            Some("it encrypts, but this receiver is insecure"),
        ),
        (
            Protection::None,
            code(1),
            "the peer requires encryption",
            Some("it does not encrypt"),
        ),
    ];
    for (sender, listener, expected, reported) in cases {
        let receiver = receiver(listener);
        let (_place, path) = file(1000);
        let error = send(receiver.address, path, sender).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("{}: {expected}", receiver.address)),
            "{error}"
        );
        assert!(!error.contains('\n'));
        assert_eq!(receiver.names(), [""; 0]);
        let events = Arc::clone(&receiver.events);
        assert_eq!(receiver.stop().files, 0);
        let events = events.lock().unwrap();
        let reasons: Vec<&str> = events
            .iter()
            .map(|event| match event {
                ReceiveEvent::Refused { reason, .. } => *reason,
                event => panic!("{expected}: nobody was admitted: {event:?}"),
            })
            .collect();
        assert_eq!(reasons.len(), usize::from(reported.is_some()), "{reasons:?}");
        assert!(
            reasons
                .iter()
                .zip(reported)
                .all(|(reason, start)| reason.starts_with(start)),
            "{reasons:?}"
        );
    }
}

/// A one-time code admits senders until one has finished; interrupted ones resume with it.
#[test]
fn a_code_is_valid_until_a_sender_has_finished() {
    let receiver = Receiver::start_with(|options| options.one_time = true);
    let next_code = || {
        let events = receiver.events.lock().unwrap();
        events.iter().rev().find_map(|event| match event {
            ReceiveEvent::NextCode(code) => Some(Protection::Secure(Credentials::Code(code.clone()))),
            _ => None,
        })
    };
    let (_place, path) = file(3_000_000);
    let mut options = SendOptions::new(vec![path.clone()], receiver.address, protection());
    // The transfer takes a second, so that it can be interrupted.
    options.protocol.congestion =
        Some(serde_json::from_str(r#"{"kind": "fixed", "window": 100, "rate": "20Mbit/s"}"#).unwrap());
    let interrupted = send_files(&options, &mut |progress| {
        if progress.done > 0 {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    assert!(matches!(interrupted, Err(Error::Cancelled)));
    assert!(next_code().is_none());
    let mut current = protection();
    for _ in 0..3 {
        let report = send(receiver.address, path.clone(), current.clone()).unwrap();
        assert_eq!(report.failures().count(), 0);
        let error = send(receiver.address, path.clone(), current).unwrap_err();
        assert!(error.to_string().contains("the code is wrong or used"), "{error}");
        current = next_code().unwrap();
    }
    assert_eq!(receiver.names(), ["file.bin"]);
    assert_eq!(receiver.stop().files, 3);
}

#[test]
fn one_time_codes_require_a_code() {
    let options = ReceiveOptions {
        one_time: true,
        ..ReceiveOptions::new(([127, 0, 0, 1], 0).into(), ".".into(), keys(2, 1))
    };
    let error = receive(&options, &mut |_| panic!("it listens")).unwrap_err();
    assert_eq!(error.to_string(), "one_time requires protection by a code");
}

#[test]
fn insecure_ends_transfer() {
    let receiver = receiver(Protection::None);
    let (_place, path) = file(100_000);
    assert_eq!(
        send(receiver.address, path, Protection::None)
            .unwrap()
            .failures()
            .count(),
        0
    );
    receiver.stop();
}

/// An attacker's reaction to a datagram.
type Attack = Box<dyn FnMut(Vec<u8>) -> Action + Send>;

enum Action {
    /// Forwards these datagrams instead.
    Forward(Vec<Vec<u8>>),
    /// Forwards the datagram and returns a copy to its sender.
    Reflect(Vec<u8>),
}

/// A man in the middle, which handles the datagrams of the sender and of the receiver.
struct Middle {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Middle {
    fn start(to: SocketAddr, mut forward: Attack, mut back: Attack) -> Self {
        let front = UdpSocket::bind("127.0.0.1:0").unwrap();
        let rear = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = front.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let pause = Some(std::time::Duration::from_micros(200));
            front.set_read_timeout(pause).unwrap();
            rear.set_read_timeout(pause).unwrap();
            let mut sender = None;
            let mut buffer = vec![0; 65_536];
            while !stopped.load(Ordering::Relaxed) {
                while let Ok((length, from)) = front.recv_from(&mut buffer) {
                    sender = Some(from);
                    handle(&buffer[..length], &mut forward, (&rear, to), (&front, from));
                }
                while let Ok((length, _)) = rear.recv_from(&mut buffer) {
                    if let Some(sender) = sender {
                        handle(&buffer[..length], &mut back, (&front, sender), (&rear, to));
                    }
                }
            }
        });
        Self {
            address,
            stop,
            thread,
        }
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

fn handle(
    datagram: &[u8],
    attack: &mut Attack,
    onwards: (&UdpSocket, SocketAddr),
    back: (&UdpSocket, SocketAddr),
) {
    let send = |(socket, to): (&UdpSocket, SocketAddr), bytes: &[u8]| {
        let _ = socket.send_to(bytes, to);
    };
    match attack(datagram.to_vec()) {
        Action::Forward(datagrams) => datagrams.iter().for_each(|bytes| send(onwards, bytes)),
        Action::Reflect(bytes) => {
            send(onwards, &bytes);
            send(back, &bytes);
        }
    }
}

fn honest() -> Attack {
    Box::new(|bytes| Action::Forward(vec![bytes]))
}

/// Protected frames; the rest is the handshake.
fn is_frame(bytes: &[u8]) -> bool {
    bytes[0] & 0x0f < 10
}

fn survives(forward: Attack, back: Attack) {
    let receiver = receiver(protection());
    let middle = Middle::start(receiver.address, forward, back);
    let (_place, path) = file(3_000_000);
    let report = send(middle.address, path, protection()).unwrap();
    assert_eq!(report.failures().count(), 0);
    assert!(fs::read(receiver.path().join("file.bin")).unwrap() == bytes(3_000_000, 1));
    middle.stop();
    assert_eq!(receiver.names(), ["file.bin"]);
    let end = receiver.stop();
    assert_eq!((end.files, end.failures), (1, 0));
}

#[test]
fn changed_frames_are_dropped() {
    // Flips one bit of every tenth frame: of headers, SACK ranges, payloads and tags.
    let flip = || -> Attack {
        let mut count = 0_usize;
        Box::new(move |mut bytes| {
            count += 1;
            let mut all = vec![bytes.clone()];
            if is_frame(&bytes) && count.is_multiple_of(10) {
                let bit = count * 7919 % (bytes.len() * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
                all = vec![bytes];
            }
            Action::Forward(all)
        })
    };
    survives(flip(), flip());
}

#[test]
fn replayed_and_reflected_datagrams_are_dropped() {
    let replay = || -> Attack {
        let mut past: Vec<Vec<u8>> = Vec::new();
        let mut count = 0_usize;
        Box::new(move |bytes| {
            count += 1;
            past.push(bytes.clone());
            // Any old datagram, including those of the handshake.
            let old = past[count * 31 % past.len()].clone();
            Action::Forward(vec![bytes.clone(), bytes, old])
        })
    };
    survives(replay(), replay());
    survives(Box::new(Action::Reflect), Box::new(Action::Reflect));
}

/// The receiver drops a handshake without its last message; the sender detects this.
#[test]
fn a_handshake_without_its_last_message_ends() {
    let receiver = receiver(protection());
    let drop_finish: Attack = Box::new(|bytes| {
        let is_finish = bytes[0] == 0x2d;
        Action::Forward(if is_finish { vec![] } else { vec![bytes] })
    });
    let middle = Middle::start(receiver.address, drop_finish, honest());
    let (_place, path) = file(1000);
    let error = send(middle.address, path, protection()).unwrap_err().to_string();
    assert!(
        error.contains("does not know this connection: it was restarted"),
        "{error}"
    );
    middle.stop();
    assert_eq!(receiver.stop().files, 0);
}

/// Unauthenticated refusals and resets of a stranger do not end a running connection.
#[test]
fn forged_refusals_do_not_end_a_connection() {
    let forge = || -> Attack {
        Box::new(|bytes| {
            let mut all = vec![bytes.clone()];
            if is_frame(&bytes) {
                // Reason 6 (unknown connection), then resets of both formats.
                all.push([&[0x2e, 6, 0, 0][..], &bytes[4..8]].concat());
                for version in [0x10, 0x20] {
                    let mut reset = vec![0; 32];
                    reset[0] = version | 9;
                    reset[4..8].copy_from_slice(&bytes[4..8]);
                    if version == 0x20 {
                        reset.extend([0; 16]);
                    } else {
                        let checksum = crc32c(&reset);
                        reset[28..32].copy_from_slice(&checksum.to_be_bytes());
                    }
                    all.push(reset);
                }
            }
            Action::Forward(all)
        })
    };
    survives(forge(), forge());
}

/// CRC-32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ 0x82f6_3b78
            } else {
                crc >> 1
            };
        }
    }
    !crc
}

/// A path that changes the sender's address from time to time, like a network address translator.
#[test]
fn a_transfer_survives_changes_of_the_sender_s_address() {
    let receiver = receiver(protection());
    let front = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (address, to) = (front.local_addr().unwrap(), receiver.address);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let path = std::thread::spawn(move || {
        let pause = Some(std::time::Duration::from_micros(100));
        front.set_read_timeout(pause).unwrap();
        let (mut sender, mut buffer, mut count) = (None, vec![0; 65_536], 0);
        let mut addresses = 0;
        let mut rear = UdpSocket::bind("127.0.0.1:0").unwrap();
        while !stopped.load(Ordering::Relaxed) {
            if let Ok((length, from)) = front.recv_from(&mut buffer) {
                sender = Some(from);
                rear.send_to(&buffer[..length], to).unwrap();
                count += 1;
                if count % 500 == 0 {
                    rear = UdpSocket::bind("127.0.0.1:0").unwrap();
                    addresses += 1;
                }
            }
            rear.set_read_timeout(pause).unwrap();
            while let Ok((length, _)) = rear.recv_from(&mut buffer) {
                if let Some(sender) = sender {
                    let _ = front.send_to(&buffer[..length], sender);
                }
            }
        }
        addresses
    });
    let (_place, file) = file(3_000_000);
    let report = send(address, file, protection()).unwrap();
    assert_eq!((report.failures().count(), report.reconnections), (0, 0));
    assert!(fs::read(receiver.path().join("file.bin")).unwrap() == bytes(3_000_000, 1));
    stop.store(true, Ordering::Relaxed);
    assert!(path.join().unwrap() >= 4);
    assert_eq!(receiver.stop().failures, 0);
}

/// Names, sizes and contents are encrypted; numbers and ACKs are readable.
#[test]
fn an_observer_reads_headers_only() {
    use transport::arq::codec::{self, Layout};
    use transport::arq::frame::FrameType;
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let observe = || -> Attack {
        let seen = Arc::clone(&seen);
        Box::new(move |bytes| {
            seen.lock().unwrap().push(bytes.clone());
            Action::Forward(vec![bytes])
        })
    };
    let receiver = receiver(protection());
    let middle = Middle::start(receiver.address, observe(), observe());
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("secret-name.txt");
    // Enough for many datagrams; the first packet of each is checked below.
    fs::write(&path, "confidential contents ".repeat(100_000)).unwrap();
    send(middle.address, path, protection()).unwrap();
    middle.stop();
    receiver.stop();
    let seen = seen.lock().unwrap();
    for word in [&b"secret-name"[..], b"confidential", b"longfat files"] {
        assert!(
            !seen
                .iter()
                .any(|bytes| bytes.windows(word.len()).any(|part| part == word))
        );
    }
    let read = |bytes: &Vec<u8>| {
        codec::read(Layout::PROTECTED, bytes)
            .ok()
            .map(|record| record.frame)
    };
    let frames: Vec<_> = seen.iter().filter_map(read).collect();
    // A frame may carry several packets.
    let data = || frames.iter().filter(|frame| frame.kind == FrameType::Data);
    let length: usize = data()
        .filter_map(|frame| frame.payload.as_ref())
        .map(|range| range.len())
        .sum();
    assert!(length > 22_000, "{length}");
    let acknowledged = frames.iter().any(|ack| {
        ack.kind == FrameType::Ack
            && data().any(|frame| frame.sequence == ack.acknowledgement.wrapping_sub(1))
    });
    assert!(acknowledged);
}

/// Before an address is validated, a receiver sends at most what it received.
#[test]
fn a_receiver_is_no_amplifier() {
    let receiver = receiver(protection());
    let victim = UdpSocket::bind("127.0.0.1:0").unwrap();
    victim
        .set_read_timeout(Some(std::time::Duration::from_millis(300)))
        .unwrap();
    let mut sent = 0;
    for number in 0..300_usize {
        let mut datagram = bytes(8 + number, number as u64);
        // All types in both formats.
        datagram[0] = if number % 2 == 0 { 0x10 } else { 0x20 } | (number / 2 % 16) as u8;
        victim.send_to(&datagram, receiver.address).unwrap();
        sent += datagram.len();
    }
    let (mut received, mut buffer) = (0, vec![0; 65_536]);
    while let Ok(length) = victim.recv(&mut buffer) {
        received += length;
    }
    assert!(received > 0 && received <= sent, "{received} for {sent}");
    receiver.stop();
}

#[test]
fn honest_middles_are_transparent() {
    survives(honest(), honest());
}
