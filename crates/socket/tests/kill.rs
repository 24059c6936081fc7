//! Processes killed during a transfer, and full disks.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Receiver, bytes, protection, send_to};
use foundation::Streams;
use network::PathConfig;
use socket::relay::{Relay, RelayOptions};
use socket::transfer::{Outcome, ReceiveEvent, ReceiveOptions, SendOptions, SendReport, receive, send_files};

const SIZE: usize = 12_000_000;

/// The process that the tests start.
#[test]
#[ignore = "started by the other tests as a process"]
fn process() {
    let variable = |name: &str| std::env::var(name).unwrap();
    if let Ok(directory) = std::env::var("LONGFAT_RECEIVE") {
        let listen = variable("LONGFAT_LISTEN").parse().unwrap();
        let options = ReceiveOptions::new(listen, directory.into(), protection());
        let end = receive(&options, &mut |event| {
            match event {
                ReceiveEvent::Listening(address) => println!("\nlistening {address}"),
                ReceiveEvent::File(_, happened) => println!("\n{happened:?}"),
                _ => {}
            }
            ControlFlow::Continue(())
        });
        println!("{end:?}");
    } else {
        let options = SendOptions::new(
            vec![variable("LONGFAT_SEND").into()],
            variable("LONGFAT_TO").parse().unwrap(),
            protection(),
        );
        let mut maximum = 0;
        let end = send_files(&options, &mut |progress| {
            if progress.done > maximum {
                maximum = progress.done;
                println!("\ndone {maximum}");
            }
            ControlFlow::Continue(())
        });
        println!("{end:?}");
    }
}

struct Process {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Process {
    fn start(shell: &str, variables: &[(&str, &str)]) -> Self {
        let program = std::env::current_exe().unwrap();
        let mut child = Command::new("sh")
            .args([
                "-c",
                &format!("{shell} exec \"$0\" --ignored --exact kill::process --nocapture"),
            ])
            .arg(program)
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Returns the rest of the next line that starts with `start`.
    fn line(&mut self, start: &str) -> String {
        for line in &mut self.lines {
            if let Some(rest) = line.unwrap().strip_prefix(start) {
                return rest.to_owned();
            }
        }
        panic!("the process ended without a line {start:?}");
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn receiver(directory: &Path, listen: &str, shell: &str) -> (Process, SocketAddr) {
    let variables = [
        ("LONGFAT_RECEIVE", directory.to_str().unwrap()),
        ("LONGFAT_LISTEN", listen),
    ];
    let mut process = Process::start(shell, &variables);
    let address = process.line("listening ").parse().unwrap();
    (process, address)
}

/// Starts a path that delays the file by about a second. It runs until the tests end.
fn slow_path(to: SocketAddr) -> SocketAddr {
    let path: PathConfig = serde_json::from_str(r#"{"rate": "100Mbit/s", "delay": "1ms"}"#).unwrap();
    let path = path.resolve(&mut |_| Err("no files".into())).unwrap();
    let relay = Relay::bind(RelayOptions::new(
        ([127, 0, 0, 1], 0).into(),
        to,
        path,
        Streams::new(1, 0),
    ))
    .unwrap();
    let address = relay.address();
    std::thread::spawn(move || relay.run(&mut |_| ControlFlow::Continue(())));
    address
}

fn wait_for(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// A receiver behind a slow path, and a file for it.
struct SlowRun {
    place: tempfile::TempDir,
    source: tempfile::TempDir,
    receiver: Process,
    slow: SocketAddr,
}

impl SlowRun {
    fn new() -> Self {
        let (place, source) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (receiver, address) = receiver(place.path(), "127.0.0.1:0", "");
        let run = Self {
            slow: slow_path(address),
            place,
            source,
            receiver,
        };
        fs::write(run.file(), bytes(SIZE, 1)).unwrap();
        run
    }

    fn file(&self) -> PathBuf {
        self.source.path().join("file.bin")
    }

    /// Returns the length of the receiver's partial file.
    fn partial(&self) -> u64 {
        length(&self.place.path().join(".file.bin.longfat-part"))
    }

    /// Starts a process that sends the file.
    fn sender(&self) -> Process {
        let (file, to) = (self.file(), self.slow.to_string());
        Process::start(
            "",
            &[("LONGFAT_SEND", file.to_str().unwrap()), ("LONGFAT_TO", &to)],
        )
    }

    /// Sends the rest of the file, and checks that it arrived.
    fn finish(&self) -> SendReport {
        let report = send_to(self.slow, vec![self.file()]).unwrap();
        assert_eq!(report.files[0].outcome, Outcome::Stored("file.bin".to_owned()));
        assert!(fs::read(self.place.path().join("file.bin")).unwrap() == bytes(SIZE, 1));
        assert_eq!(fs::read_dir(self.place.path()).unwrap().count(), 1);
        report
    }
}

#[test]
fn a_killed_sender_resumes() {
    let run = SlowRun::new();
    for percent in [10, 40, 70] {
        let mut sender = run.sender();
        while sender.line("done ").parse::<usize>().unwrap() < SIZE * percent / 100 {}
        sender.kill();
    }
    let partial = run.partial();
    assert!(partial as usize > SIZE / 10, "{partial}");
    let report = run.finish();
    assert!(report.files[0].resumed as usize >= SIZE * 6 / 10, "{report:?}");
    run.receiver.kill();
}

/// A sender resumes after several killed senders that waited for the connection of another killed sender.
#[test]
fn a_sender_resumes_after_several_killed_ones() {
    let run = SlowRun::new();
    for round in 0..3 {
        let mut first = run.sender();
        first.line("done ");
        first.kill();
        let partial = run.partial();
        for _ in 0..2 {
            let waiting = run.sender();
            std::thread::sleep(Duration::from_millis(700));
            waiting.kill();
        }
        let report = run.finish();
        assert!(report.files[0].resumed >= partial, "round {round}: {report:?}");
        fs::remove_file(run.place.path().join("file.bin")).unwrap();
    }
    run.receiver.kill();
}

#[test]
fn a_killed_receiver_resumes() {
    let (place, source) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = source.path().join("file.bin");
    fs::write(&file, bytes(SIZE, 2)).unwrap();
    let partial = place.path().join(".file.bin.longfat-part");
    let (mut process, address) = receiver(place.path(), "127.0.0.1:0", "");
    let slow = slow_path(address);
    for percent in [20, 50, 80] {
        let sender = std::thread::spawn({
            let file = file.clone();
            move || send_to(slow, vec![file])
        });
        wait_for(|| length(&partial) as usize > SIZE * percent / 100);
        process.kill();
        process = receiver(place.path(), &address.to_string(), "").0;
        let error = sender.join().unwrap().unwrap_err().to_string();
        assert!(
            error.contains("does not know this connection: it was restarted"),
            "{error}"
        );
        assert!(!place.path().join("file.bin").exists());
    }
    let report = send_to(slow, vec![file]).unwrap();
    assert!(report.files[0].resumed as usize >= SIZE * 8 / 10, "{report:?}");
    assert!(fs::read(place.path().join("file.bin")).unwrap() == bytes(SIZE, 2));
    process.kill();
}

#[test]
fn a_sender_waits_for_a_killed_receiver() {
    let (place, source) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files: Vec<_> = ["first.bin", "second.bin", "third.bin"]
        .map(|name| source.path().join(name))
        .into();
    for (seed, file) in files.iter().enumerate() {
        fs::write(file, bytes(SIZE / 2, seed as u64)).unwrap();
    }
    let (mut process, address) = receiver(place.path(), "127.0.0.1:0", "");
    let slow = slow_path(address);
    let sender = std::thread::spawn({
        let mut options = SendOptions::new(files.clone(), slow, protection());
        options.wait = foundation::Duration::from_secs(60);
        move || send_files(&options, &mut |_| ControlFlow::Continue(()))
    });
    for name in ["first.bin", "second.bin"] {
        let partial = place.path().join(format!(".{name}.longfat-part"));
        wait_for(|| length(&partial) as usize > SIZE / 8);
        process.kill();
        // The last file disappears while the sender waits.
        let _ = fs::remove_file(&files[2]);
        process = receiver(place.path(), &address.to_string(), "").0;
    }
    let report = sender.join().unwrap().unwrap();
    let outcomes: Vec<_> = report.files.iter().map(|file| file.outcome.clone()).collect();
    let stored = |name: &str| Outcome::Stored(name.to_owned());
    assert_eq!(outcomes[..2], [stored("first.bin"), stored("second.bin")]);
    assert_eq!(
        outcomes[2],
        Outcome::Failed("No such file or directory".to_owned())
    );
    assert_eq!(report.reconnections, 2);
    for (seed, name) in ["first.bin", "second.bin"].into_iter().enumerate() {
        assert!(fs::read(place.path().join(name)).unwrap() == bytes(SIZE / 2, seed as u64));
    }
    assert!(
        report.bytes < SIZE as u64 * 5 / 4,
        "most of it was sent once: {}",
        report.bytes
    );
    process.kill();
}

/// Bytes are written soon, even if a full piece takes long.
#[test]
fn an_interrupted_slow_transfer_keeps_what_arrived() {
    let receiver = Receiver::start();
    let source = tempfile::tempdir().unwrap();
    let file = source.path().join("file.bin");
    fs::write(&file, bytes(SIZE, 1)).unwrap();
    let mut options = SendOptions::new(vec![file], receiver.address, protection());
    options.protocol.congestion =
        Some(serde_json::from_str(r#"{"kind": "fixed", "window": 100, "rate": "4Mbit/s"}"#).unwrap());
    let partial = receiver.path().join(".file.bin.longfat-part");
    let (mut seen, mut done) = (0, 0);
    let result = send_files(&options, &mut |progress| {
        done = progress.done;
        seen = length(&partial);
        if seen > 0 || done > 500_000 {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    assert!(matches!(result, Err(socket::Error::Cancelled)));
    assert!(seen > 0, "nothing was written of {done} bytes");
    receiver.stop_and(|_| {
        let kept = length(&partial);
        assert!(kept >= done, "{kept} of {done}");
    });
}

#[test]
fn a_sender_waits_up_to_its_limit() {
    let (place, source) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = source.path().join("file.bin");
    fs::write(&file, bytes(SIZE, 1)).unwrap();
    let (process, address) = receiver(place.path(), "127.0.0.1:0", "");
    let mut options = SendOptions::new(vec![file], slow_path(address), protection());
    options.wait = foundation::Duration::from_secs(1);
    let partial = place.path().join(".file.bin.longfat-part");
    let mut process = Some(process);
    let error = send_files(&options, &mut |_| {
        if length(&partial) > 1_000_000
            && let Some(process) = process.take()
        {
            process.kill();
        }
        ControlFlow::Continue(())
    });
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("is gone") || error.contains("nothing listens"),
        "{error}"
    );
    // A receiver that never ran is reported at once.
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    options.to = nobody;
    options.wait = foundation::Duration::from_secs(60);
    let start = Instant::now();
    send_files(&options, &mut |_| ControlFlow::Continue(())).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_partial_file_with_different_content_is_discarded() {
    let (place, source) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = source.path().join("file.bin");
    fs::write(&file, bytes(1_000_000, 3)).unwrap();
    let (receiver, address) = receiver(place.path(), "127.0.0.1:0", "");
    for other in [bytes(500_000, 4), bytes(2_000_000, 4), vec![0; 1]] {
        fs::write(place.path().join(".file.bin.longfat-part"), other).unwrap();
        let report = send_to(address, vec![file.clone()]).unwrap();
        assert_eq!(report.files[0].resumed, 0);
        assert!(fs::read(place.path().join("file.bin")).unwrap() == bytes(1_000_000, 3));
        fs::remove_file(place.path().join("file.bin")).unwrap();
    }
    // Equal content is reused, even if the file is complete.
    for there in [400_000, 1_000_000] {
        fs::write(
            place.path().join(".file.bin.longfat-part"),
            &bytes(1_000_000, 3)[..there],
        )
        .unwrap();
        let report = send_to(address, vec![file.clone()]).unwrap();
        assert_eq!(report.files[0].resumed, there as u64);
        assert!(fs::read(place.path().join("file.bin")).unwrap() == bytes(1_000_000, 3));
        fs::remove_file(place.path().join("file.bin")).unwrap();
    }
    receiver.kill();
}

#[test]
fn a_full_disk_is_a_one_line_error_without_data_loss() {
    let (place, source) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = source.path().join("file.bin");
    // More than the buffers of both ends hold, so that the refusal arrives amid the contents.
    let size = 100_000_000;
    fs::write(&file, bytes(size, 5)).unwrap();
    // Files of at most 4000 blocks of 512 or 1024 bytes, as if the disk were full.
    let (mut process, address) = receiver(place.path(), "127.0.0.1:0", "trap '' XFSZ; ulimit -f 4000;");
    let report = send_to(address, vec![file.clone(), file.clone()]).unwrap();
    let errors: Vec<&str> = report.failures().map(|(_, reason)| reason).collect();
    assert!(
        errors.len() == 2 && errors[1].starts_with("not sent, after "),
        "{errors:?}"
    );
    let error = errors[0];
    assert!(
        error.contains("refused by the receiver: cannot write") && error.ends_with("File too large"),
        "{error}"
    );
    let line = process.line("Failed");
    assert!(line.contains("File too large"), "{line}");
    let partial = length(&place.path().join(".file.bin.longfat-part"));
    assert!(partial > 1_000_000, "{partial}");
    process.kill();
    let (process, address) = receiver(place.path(), "127.0.0.1:0", "");
    let report = send_to(address, vec![file]).unwrap();
    assert_eq!(report.files[0].resumed, partial);
    assert!(fs::read(place.path().join("file.bin")).unwrap() == bytes(size, 5));
    process.kill();
}

#[test]
fn detects_that_the_receiver_is_gone() {
    let (place, source) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = source.path().join("file.bin");
    fs::File::create(&file).unwrap().set_len(4_000_000_000).unwrap();
    let (process, address) = receiver(place.path(), "127.0.0.1:0", "");
    let sender = std::thread::spawn(move || send_to(address, vec![file]));
    let partial = place.path().join(".file.bin.longfat-part");
    wait_for(|| length(&partial) > 1_000_000);
    process.kill();
    let error = sender.join().unwrap().unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("the receiver at {address} is gone")),
        "{error}"
    );
}
