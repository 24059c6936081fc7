//! A receiver with hostile and faulty peers.

use std::fs;
use std::net::UdpSocket;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Receiver, bytes, protection, send, send_to};
use foundation::Instant as Moment;
use socket::Error;
use socket::clock::Clock;
use socket::session::{Application, Work};
use socket::transfer::{FileEvent, Outcome, ReceiveEvent};
use transport::arq::frame::{FrameType, Payload};
use transport::arq::{ArqConfig, Frame, StreamRange, codec};

/// Sends scripted bytes and records the reply.
struct Script {
    script: Vec<u8>,
    started: bool,
    replies: Arc<std::sync::Mutex<Vec<u8>>>,
    /// Number of received bytes after which it finishes.
    enough: usize,
}

impl Application for Script {
    fn append(&mut self, range: StreamRange, out: &mut Vec<u8>) {
        let start = range.offset as usize;
        out.extend_from_slice(&self.script[start..start + range.length as usize]);
    }
    fn acknowledged(&mut self, _: u64) {}
    fn has_room(&self) -> bool {
        true
    }
    fn receive(&mut self, bytes: &[u8]) {
        self.replies.lock().unwrap().extend_from_slice(bytes);
    }
    fn peer_finished(&mut self) {}
    fn work(&mut self, _: Moment, _: u64) -> Result<Work, String> {
        if self.replies.lock().unwrap().len() >= self.enough {
            return Err("received enough".to_owned());
        }
        let written = if self.started { 0 } else { self.script.len() as u64 };
        self.started = true;
        Ok(Work {
            written,
            ..Work::default()
        })
    }
    fn is_complete(&self) -> bool {
        false
    }
}

/// Sends `script` to the receiver; returns its reply and the connection's error.
pub fn play(receiver: &Receiver, script: Vec<u8>, enough: usize) -> (Vec<u8>, Error) {
    let replies = Arc::new(std::sync::Mutex::new(Vec::new()));
    let script = Script {
        script,
        started: false,
        replies: Arc::clone(&replies),
        enough,
    };
    let mut config = ArqConfig::for_files();
    (config.keep_alive, config.give_up) = ("200ms".parse().unwrap(), "3s".parse().unwrap());
    let end = socket::client::run(
        receiver.address,
        &protection(),
        &config,
        script,
        socket::client::Options::default(),
        Clock::new(),
        &mut |_, _| ControlFlow::Continue(()),
    );
    let received = replies.lock().unwrap().clone();
    (received, end.map(|_| ()).unwrap_err().error)
}

/// The sender's greeting, and an announcement of as many files and bytes as possible.
const START: &[u8] = b"longfat files 4\n\x0a\0\0\0\x0c\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
/// Length of the receiver's greeting.
const GREETING: usize = 16;

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![kind];
    out.extend((body.len() as u32).to_be_bytes());
    out.extend(body);
    out
}

fn announce(files: u32, bytes: u64) -> Vec<u8> {
    message(10, &[&files.to_be_bytes()[..], &bytes.to_be_bytes()].concat())
}

fn offer(file: u32, size: u64, name: &[u8]) -> Vec<u8> {
    let mut body = file.to_be_bytes().to_vec();
    body.extend(size.to_be_bytes());
    body.extend([0; 9]);
    body.extend(name);
    message(1, &body)
}

#[test]
fn refuses_names_that_lead_outside() {
    let outside = tempfile::tempdir().unwrap();
    let inside = outside.path().join("inside");
    fs::create_dir(&inside).unwrap();
    let receiver = Receiver::start_with(|options| options.directory = inside.clone());
    let absolute = outside.path().join("absolute").display().to_string();
    let names: Vec<&[u8]> = vec![
        b"../evil",
        b"..",
        b".",
        b"",
        b"a/../b",
        b"/b",
        b"a//b",
        b".hidden",
        b"a/.ssh/authorized_keys",
        b"a\\b",
        absolute.as_bytes(),
        b"nul\0byte",
        b"line\nfeed",
        "right\u{202e}left".as_bytes(),
        &[b'x'; 256],
        b".x.longfat-part",
    ];
    for name in names {
        let mut script = START.to_vec();
        script.extend(offer(0, 4, name));
        // The sender starts, sends and ends the file without waiting for the reply.
        script.extend(message(4, &[0; 12]));
        script.extend(b"evil");
        script.extend(message(5, &[0; 36]));
        let (received, _) = play(&receiver, script, GREETING + 6);
        // The reply is a refusal (8) only.
        assert!(
            received.len() <= GREETING || received[GREETING] == 8,
            "{name:?}: {received:?}"
        );
    }
    let entries: Vec<_> = fs::read_dir(outside.path()).unwrap().collect();
    assert_eq!(entries.len(), 1);
    assert_eq!(fs::read_dir(&inside).unwrap().count(), 0);
    let report = receiver.stop();
    assert_eq!(report.files, 0);
}

#[test]
fn invalid_messages_close_only_their_connection() {
    let receiver = Receiver::start();
    let scripts: Vec<Vec<u8>> = vec![
        b"GET / HTTP/1.1\r\nHost: longfat\r\n\r\n".to_vec(),
        [START, &[1, 0xff, 0xff, 0xff, 0xff]].concat(),
        [START, &message(77, b"?")].concat(),
        [START, &message(1, b"short")].concat(),
        [START, &message(7, &[0; 5])].concat(),
        [START, &message(4, &[0; 12])].concat(),
        [START, &message(3, &[0; 4])].concat(),
        // A wrong file number, and more open offers than allowed.
        [START, &offer(5, 1, b"x")].concat(),
        std::iter::once(START.to_vec())
            .chain((0..600).map(|n| offer(n, 1, b"x")))
            .flatten()
            .collect(),
        // Offers without an announcement, two announcements, and more files than announced.
        [&START[..16], &offer(0, 1, b"x")].concat(),
        [START, &START[16..]].concat(),
        [&START[..16], &announce(1, 10), &offer(0, 11, b"x")].concat(),
        [
            &START[..16],
            &announce(1, 10),
            &offer(0, 1, b"x"),
            &offer(1, 1, b"y"),
        ]
        .concat(),
        // Contents of unknown size after a known announcement, and parts of a file that was not started.
        [&START[..16], &announce(1, 10), &offer(0, u64::MAX, b"x")].concat(),
        [
            START,
            &offer(0, u64::MAX, b"x"),
            &message(11, &[0, 0, 0, 0, 0, 0, 0, 1]),
        ]
        .concat(),
        // A start before the agreement on an offset.
        [
            START,
            &offer(0, u64::MAX, b"huge"),
            &message(4, &[0, 0, 0, 0, 0xff, 0, 0, 0, 0, 0, 0, 0]),
        ]
        .concat(),
        bytes(5000, 99),
    ];
    for script in scripts {
        let (_, end) = play(&receiver, script.clone(), usize::MAX);
        let aborted = matches!(
            &end,
            Error::Connection {
                source: transport::arq::Error::Aborted,
                ..
            }
        );
        assert!(aborted, "{end}: {script:?}");
    }
    let file = receiver.path().join("../good");
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("good");
    fs::write(&path, b"good").unwrap();
    assert_eq!(send(&receiver, vec![path]).unwrap().failures().count(), 0);
    assert_eq!(fs::read(receiver.path().join("good")).unwrap(), b"good");
    assert!(!file.exists());
    assert_eq!(receiver.names(), ["good"], "no litter");
    receiver.stop();
}

#[test]
fn a_transfer_survives_random_datagrams() {
    let receiver = Receiver::start();
    let stop = Arc::new(AtomicBool::new(false));
    let rain = {
        let (stop, to) = (Arc::clone(&stop), receiver.address);
        std::thread::spawn(move || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let mut seed = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                seed += 1;
                let noise = bytes((seed % 200) as usize, seed);
                let _ = socket.send_to(&noise, to);
                // Well-formed frames of connections that do not exist.
                for kind in [
                    FrameType::Data,
                    FrameType::Ack,
                    FrameType::Fin,
                    FrameType::Ping,
                    FrameType::Reset,
                    FrameType::Update,
                ] {
                    let mut frame = Frame::new(kind, seed as u32);
                    let length = 1 + (seed % 50) as u32;
                    frame.payload = (kind == FrameType::Data).then_some(StreamRange { offset: 0, length });
                    frame.sequence = seed as u32;
                    let mut out = Vec::new();
                    codec::encode::<_, ()>(&frame, &mut out, |payload, _| {
                        assert!(payload.length() > 0);
                        Ok(())
                    })
                    .unwrap();
                    let _ = socket.send_to(&out, to);
                    // As a protected frame, which is not authentic.
                    out[0] = 0x20 | out[0] & 0x0f;
                    let _ = socket.send_to(&[&out[..], &[0; 16]].concat(), to);
                    out[0] = 0x10 | out[0] & 0x0f;
                    // The same with a flipped bit.
                    let bit = (seed as usize * 7) % (out.len() * 8);
                    out[bit / 8] ^= 1 << (bit % 8);
                    let _ = socket.send_to(&out, to);
                }
            }
        })
    };
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("file");
    fs::write(&path, bytes(5_000_000, 1)).unwrap();
    let report = send(&receiver, vec![path]).unwrap();
    stop.store(true, Ordering::Relaxed);
    rain.join().unwrap();
    assert_eq!(report.failures().count(), 0);
    assert!(fs::read(receiver.path().join("file")).unwrap() == bytes(5_000_000, 1));
    receiver.stop();
}

#[test]
fn existing_files_are_never_replaced() {
    let receiver = Receiver::start();
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("notes.txt");
    fs::write(receiver.path().join("notes.txt"), b"mine").unwrap();
    for (content, expected) in [
        ("yours", "notes (1).txt"),
        ("hers", "notes (2).txt"),
        ("his!", "notes (3).txt"),
    ] {
        fs::write(&path, content).unwrap();
        let report = send(&receiver, vec![path.clone()]).unwrap();
        assert_eq!(report.files[0].outcome, Outcome::Stored(expected.to_owned()));
        let report = send(&receiver, vec![path.clone()]).unwrap();
        assert_eq!(report.files[0].outcome, Outcome::Already(expected.to_owned()));
        assert_eq!(
            fs::read_to_string(receiver.path().join(expected)).unwrap(),
            content
        );
    }
    assert_eq!(fs::read(receiver.path().join("notes.txt")).unwrap(), b"mine");
    assert_eq!(receiver.names().len(), 4);
    receiver.stop();
}

#[test]
#[cfg(unix)]
fn links_at_the_temporary_name_are_not_followed() {
    let receiver = Receiver::start();
    let outside = tempfile::tempdir().unwrap();
    let victim = outside.path().join("victim");
    fs::write(&victim, b"precious").unwrap();
    std::os::unix::fs::symlink(&victim, receiver.path().join(".file.longfat-part")).unwrap();
    std::os::unix::fs::symlink(&victim, receiver.path().join("file")).unwrap();
    let path = outside.path().join("file");
    fs::write(&path, bytes(100_000, 5)).unwrap();
    let report = send(&receiver, vec![path]).unwrap();
    assert_eq!(report.files[0].outcome, Outcome::Stored("file (1)".to_owned()));
    assert!(fs::read(receiver.path().join("file (1)")).unwrap() == bytes(100_000, 5));
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    receiver.stop();
}

#[test]
fn simultaneous_senders_of_one_name_do_not_mix() {
    let receiver = Receiver::start();
    let senders: Vec<_> = (0..4_u64)
        .map(|number| {
            let address = receiver.address;
            std::thread::spawn(move || {
                let source = tempfile::tempdir().unwrap();
                let path = source.path().join("same.bin");
                fs::write(&path, bytes(2_000_000 + number as usize, number)).unwrap();
                let report = send_to(address, vec![path]).unwrap();
                match report.files[0].outcome.clone() {
                    Outcome::Stored(name) => (name, number),
                    other => panic!("{other:?}"),
                }
            })
        })
        .collect();
    for sender in senders {
        let (name, number) = sender.join().unwrap();
        let arrived = fs::read(receiver.path().join(&name)).unwrap();
        assert!(arrived == bytes(2_000_000 + number as usize, number), "{name}");
    }
    assert_eq!(receiver.names().len(), 4);
    receiver.stop();
}

#[test]
fn refuses_connections_beyond_the_limit_as_busy() {
    let receiver = Receiver::start_with(|options| options.max_connections = 1);
    let address = receiver.address;
    let (connected, is_connected) = std::sync::mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&stop);
    let first = std::thread::spawn(move || {
        let replies = Arc::new(std::sync::Mutex::new(Vec::new()));
        let script = Script {
            script: START.to_vec(),
            started: false,
            replies: Arc::clone(&replies),
            enough: usize::MAX,
        };
        let config = ArqConfig::for_files();
        let _ = socket::client::run(
            address,
            &protection(),
            &config,
            script,
            socket::client::Options::default(),
            Clock::new(),
            &mut |_, _| {
                if !replies.lock().unwrap().is_empty() {
                    let _ = connected.send(());
                }
                if ended.load(Ordering::Relaxed) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            },
        );
    });
    is_connected.recv().unwrap();
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("file");
    fs::write(&path, b"x").unwrap();
    let error = send(&receiver, vec![path.clone()]).unwrap_err().to_string();
    assert!(error.contains("busy"), "{error}");
    stop.store(true, Ordering::Relaxed);
    first.join().unwrap();
    let start = Instant::now();
    while send(&receiver, vec![path.clone()]).is_err() {
        assert!(start.elapsed() < Duration::from_secs(60));
    }
    receiver.stop();
}

#[test]
fn errors_of_the_sender_are_one_line() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    fs::write(&file, b"x").unwrap();
    // A port that was free just before.
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = send_to(closed, vec![file]).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("nothing listens at {closed}: start longfat recv there")
    );
    let directory = place.path().to_owned();
    let error = send_to(closed, vec![directory]).unwrap_err().to_string();
    assert!(
        error.ends_with("is a directory: add -r to send its files"),
        "{error}"
    );
    let error = send_to(closed, vec![place.path().join("missing")])
        .unwrap_err()
        .to_string();
    assert!(error.ends_with("missing: No such file or directory"), "{error}");
}

#[test]
fn both_ends_detect_a_file_that_changes() {
    let receiver = Receiver::start();
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("log");
    fs::write(&path, bytes(30_000_000, 3)).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (stop, path) = (Arc::clone(&stop), path.clone());
        std::thread::spawn(move || {
            use std::io::Write;
            let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
            while !stop.load(Ordering::Relaxed) {
                file.write_all(b"one more line\n").unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        })
    };
    let report = send(&receiver, vec![path]).unwrap();
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    let (_, reason) = report.failures().next().unwrap();
    assert!(reason.contains("it changed"), "{reason}");
    let events = Arc::clone(&receiver.events);
    // The sender may detect it first; the receiver removes its file a moment later.
    let patience = std::time::Instant::now() + Duration::from_secs(60);
    while !receiver.names().is_empty() && std::time::Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(receiver.names().is_empty(), "{:?}", receiver.names());
    assert_eq!(receiver.stop().failures, 1);
    let failed = |event: &ReceiveEvent| matches!(event, ReceiveEvent::File(_, FileEvent::Failed { reason, .. }) if reason.contains("changed"));
    assert!(events.lock().unwrap().iter().any(failed));
}
