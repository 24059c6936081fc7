//! Limits of a receiver for authenticated senders: names, sizes, folders, and the user's decision.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use socket::transfer::{Approvals, FileEvent, Outcome, ReceiveEvent, SendOptions, SendReport, send_files};

use crate::common::{Receiver, bytes, protection, send};

fn write(path: &Path, content: &[u8]) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    path.to_owned()
}

fn send_folder(receiver: &Receiver, folder: PathBuf) -> SendReport {
    let mut options = SendOptions::new(vec![folder], receiver.address, protection());
    options.recursive = true;
    send_files(&options, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn reasons(report: &SendReport) -> Vec<&str> {
    report.failures().map(|(_, reason)| reason).collect()
}

#[test]
fn folders_arrive_with_their_files() {
    let receiver = Receiver::start();
    let source = tempfile::tempdir().unwrap();
    let folder = source.path().join("photos");
    for (name, size) in [("a.jpg", 3_000), ("2024/b.jpg", 200_000), ("2024/05/c.jpg", 0)] {
        write(&folder.join(name), &bytes(size, size as u64));
    }
    std::os::unix::fs::symlink("/etc/passwd", folder.join("link")).unwrap();
    let report = send_folder(&receiver, folder.clone());
    assert_eq!((reasons(&report), report.skipped), (vec![], 1));
    assert_eq!(
        fs::read(receiver.path().join("photos/2024/b.jpg")).unwrap(),
        bytes(200_000, 200_000)
    );
    assert!(receiver.path().join("photos/2024/05/c.jpg").exists());
    assert_eq!(receiver.names(), ["photos"]);
    // The second transfer finds all files; a changed file gets a number in its folder.
    write(&folder.join("2024/b.jpg"), b"new");
    let report = send_folder(&receiver, folder);
    let outcomes: Vec<_> = report.files.iter().map(|file| file.outcome.clone()).collect();
    assert_eq!(
        outcomes,
        [
            Outcome::Already("photos/2024/05/c.jpg".to_owned()),
            Outcome::Stored("photos/2024/b (1).jpg".to_owned()),
            Outcome::Already("photos/a.jpg".to_owned()),
        ]
    );
    receiver.stop();
}

#[test]
fn a_link_instead_of_a_folder_is_not_followed() {
    let receiver = Receiver::start();
    let (outside, source) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::os::unix::fs::symlink(outside.path(), receiver.path().join("photos")).unwrap();
    write(&source.path().join("photos/a.jpg"), b"a");
    let report = send_folder(&receiver, source.path().join("photos"));
    assert!(
        reasons(&report)[0].starts_with("refused by the receiver: cannot write"),
        "{report:?}"
    );
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    receiver.stop();
}

#[test]
fn hidden_names_and_executable_bits_need_permission() {
    let source = tempfile::tempdir().unwrap();
    let hidden = write(&source.path().join(".profile"), b"x");
    let program = write(&source.path().join("program"), b"#!/bin/sh\n");
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for allowed in [false, true] {
        let receiver = Receiver::start_with(|options| {
            options.dotfiles = allowed;
            options.executables = allowed;
        });
        let report = send(&receiver, vec![hidden.clone(), program.clone()]).unwrap();
        assert_eq!(reasons(&report).len(), usize::from(!allowed), "{report:?}");
        assert_eq!(receiver.path().join(".profile").exists(), allowed);
        let mode = fs::metadata(receiver.path().join("program"))
            .unwrap()
            .permissions();
        let executable = std::os::unix::fs::PermissionsExt::mode(&mode) & 0o111 != 0;
        assert_eq!(executable, allowed);
        receiver.stop();
    }
}

#[test]
fn the_byte_limit_covers_all_senders_and_applies_before_the_first_byte() {
    let receiver = Receiver::start_with(|options| options.max_bytes = Some(1_000_000));
    let source = tempfile::tempdir().unwrap();
    let large = write(&source.path().join("large"), &bytes(1_000_001, 1));
    let report = send(&receiver, vec![large]).unwrap();
    let expected = "refused by the receiver: its 1000001 bytes exceed the receiver's limit (--max-bytes): 1000000 bytes left";
    assert_eq!(reasons(&report), [expected]);
    assert_eq!(report.bytes, 0, "no byte of it was sent");
    assert_eq!(receiver.names(), [""; 0]);
    let fits = write(&source.path().join("fits"), &bytes(900_000, 2));
    assert_eq!(reasons(&send(&receiver, vec![fits.clone()]).unwrap()), [""; 0]);
    let second = write(&source.path().join("second"), &bytes(100_001, 3));
    assert!(reasons(&send(&receiver, vec![second]).unwrap())[0].contains("100000 bytes left"));
    // Existing files do not count.
    assert_eq!(reasons(&send(&receiver, vec![fits]).unwrap()), [""; 0]);
    receiver.stop();
}

/// A sparse file that is larger than any disk.
#[test]
fn a_file_that_exceeds_the_free_space_is_refused_before_its_first_byte() {
    let receiver = Receiver::start();
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("huge");
    fs::File::create(&path).unwrap().set_len(1 << 43).unwrap();
    let report = send(&receiver, vec![path]).unwrap();
    assert!(
        reasons(&report)[0].contains("exceed the free space of the receiver"),
        "{report:?}"
    );
    assert_eq!((report.bytes, receiver.names().len()), (0, 0));
    receiver.stop();
}

#[test]
fn the_user_decides_before_the_first_file() {
    for accept in [true, false] {
        let approvals = Approvals::default();
        let receiver = Receiver::start_with(|options| options.ask = Some(approvals.clone()));
        let source = tempfile::tempdir().unwrap();
        let paths: Vec<_> = ["a", "b"]
            .map(|name| write(&source.path().join(name), &bytes(1000, 1)))
            .into();
        let (address, events) = (receiver.address, Arc::clone(&receiver.events));
        let sender = std::thread::spawn(move || crate::common::send_to(address, paths));
        let request = |event: &ReceiveEvent| match event {
            ReceiveEvent::Request {
                number,
                files,
                bytes,
                first,
                ..
            } => Some((*number, *files, *bytes, first.clone())),
            _ => None,
        };
        let asked = loop {
            if let Some(asked) = events.lock().unwrap().iter().find_map(request) {
                break asked;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        assert_eq!(asked, (0, 2, Some(2000), "a".to_owned()));
        assert_eq!(
            receiver.names(),
            [""; 0],
            "nothing is written before the decision"
        );
        approvals.decide(asked.0, accept);
        let report = sender.join().unwrap().unwrap();
        if accept {
            assert_eq!(reasons(&report), [""; 0]);
            assert_eq!(receiver.names(), ["a", "b"]);
        } else {
            assert_eq!(reasons(&report), ["refused by the receiver: declined"; 2]);
            assert_eq!(receiver.names(), [""; 0]);
            let declined = |event: &ReceiveEvent| matches!(event, ReceiveEvent::File(_, FileEvent::Failed { reason, .. }) if reason == "declined");
            assert_eq!(
                events
                    .lock()
                    .unwrap()
                    .iter()
                    .filter(|event| declined(event))
                    .count(),
                2
            );
        }
        receiver.stop();
    }
}
