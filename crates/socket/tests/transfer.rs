//! File transfers over loopback.

use std::fs;
use std::ops::ControlFlow;

use crate::common::{Receiver, bytes, protection, send};
use socket::transfer::{Outcome, ReceiveEvent, SendOptions, send_files};

#[test]
fn files_of_all_sizes_arrive_under_their_names() {
    let receiver = Receiver::start();
    let source = tempfile::tempdir().unwrap();
    let sizes = [0, 1, 1399, 1400, 1401, 524_287, 524_288, 524_289, 3_000_000];
    let paths: Vec<_> = sizes
        .iter()
        .map(|&size| {
            let path = source.path().join(format!("file-{size}.bin"));
            fs::write(&path, bytes(size, size as u64)).unwrap();
            path
        })
        .collect();
    let report = send(&receiver, paths.clone()).unwrap();
    assert_eq!(report.failures().count(), 0);
    assert_eq!(report.bytes, sizes.iter().sum::<usize>() as u64);
    for (path, size) in paths.iter().zip(sizes) {
        let name = path.file_name().unwrap();
        assert_eq!(
            fs::read(receiver.path().join(name)).unwrap(),
            bytes(size, size as u64)
        );
    }
    let report = send(&receiver, paths).unwrap();
    assert!(
        report
            .files
            .iter()
            .all(|file| matches!(file.outcome, Outcome::Already(_))),
        "{report:?}"
    );
    assert_eq!(report.bytes, 0);
    let end = receiver.stop();
    assert_eq!((end.files, end.already, end.failures), (18, 9, 0));
}

#[test]
fn many_small_files_arrive_over_one_connection() {
    let receiver = Receiver::start();
    let source = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..500)
        .map(|number| {
            let path = source.path().join(format!("{number}.txt"));
            fs::write(&path, bytes(number * 3, number as u64)).unwrap();
            path
        })
        .collect();
    let report = send(&receiver, paths).unwrap();
    assert_eq!(report.failures().count(), 0);
    assert_eq!(receiver.names().len(), 500);
    receiver.stop();
}

/// Returns the files below `folder` that this process has open. It reads one after the other, while others open and close.
#[cfg(target_os = "linux")]
fn open_below(folder: &std::path::Path) -> std::collections::BTreeSet<std::path::PathBuf> {
    let links = fs::read_dir("/proc/self/fd").unwrap();
    let paths = links.filter_map(|link| fs::read_link(link.ok()?.path()).ok());
    paths.filter(|path| path.parent() == Some(folder)).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn offered_files_are_not_open_until_they_are_sent() {
    let receiver = Receiver::start();
    let source = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..400)
        .map(|number| {
            let path = source.path().join(format!("{number}.txt"));
            fs::write(&path, bytes(20_000, number as u64)).unwrap();
            path
        })
        .collect();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let folder = source.path().to_owned();
    let counter = std::thread::spawn(move || {
        let (mut most, mut before) = (0, open_below(&folder));
        while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            // Each file is opened once, so those in both lists were open together between the two.
            let now = open_below(&folder);
            most = most.max(now.intersection(&before).count());
            before = now;
        }
        most
    });
    let report = send(&receiver, paths).unwrap();
    drop(stop);
    assert_eq!(report.failures().count(), 0);
    let most = counter.join().unwrap();
    assert!(most <= 17, "{most} files open at the sender");
    receiver.stop();
}

#[test]
fn a_receiver_with_once_stops_after_its_sender() {
    let receiver = Receiver::start_with(|options| {
        options.once = true;
        options.executables = true;
    });
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("program");
    fs::write(&path, bytes(100_000, 1)).unwrap();
    let modified = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(modified)
        .unwrap();
    #[cfg(unix)]
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(send(&receiver, vec![path.clone()]).unwrap().failures().count(), 0);
    let arrived = fs::metadata(receiver.path().join("program")).unwrap();
    assert_eq!(arrived.modified().unwrap(), modified);
    #[cfg(unix)]
    assert_ne!(
        std::os::unix::fs::PermissionsExt::mode(&arrived.permissions()) & 0o100,
        0
    );
    assert_eq!(receiver.join().files, 1);
}

#[test]
fn a_stopped_transfer_can_be_resumed() {
    let receiver = Receiver::start();
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("file");
    fs::write(&path, bytes(200_000_000, 1)).unwrap();
    let options = SendOptions::new(vec![path.clone()], receiver.address, protection());
    let stopped = send_files(&options, &mut |progress| match progress.done {
        0 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    assert_eq!(stopped.unwrap_err().to_string(), "cancelled");
    let report = send(&receiver, vec![path.clone()]).unwrap();
    assert!(report.files[0].resumed > 0);
    // The receiver received a reset, so no connection times out.
    let reported = |event: &ReceiveEvent| matches!(event, ReceiveEvent::Disconnected(_, Some(reason)) if reason == "the sender was stopped: send again to resume");
    assert!(receiver.events.lock().unwrap().iter().any(reported));
    assert!(fs::read(receiver.path().join("file")).unwrap() == bytes(200_000_000, 1));
    receiver.stop();
}

#[test]
fn packets_of_every_size_work() {
    let receiver = Receiver::start();
    let source = tempfile::tempdir().unwrap();
    for (size, mss) in [(3_000, 1), (300_000, 9000), (3_000_000, 65_459)] {
        let path = source.path().join(format!("{mss}"));
        fs::write(&path, bytes(size, mss)).unwrap();
        let mut options = SendOptions::new(vec![path], receiver.address, protection());
        options.protocol.mss = foundation::Size::from_bytes(mss);
        let report = send_files(&options, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(report.failures().count(), 0, "{report:?}");
        assert!(fs::read(receiver.path().join(format!("{mss}"))).unwrap() == bytes(size, mss));
    }
    let mut options = SendOptions::new(vec![source.path().join("1")], receiver.address, protection());
    options.protocol.mss = foundation::Size::from_bytes(65_460);
    let error = send_files(&options, &mut |_| ControlFlow::Continue(()))
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("mss: ") && error.contains("65459"), "{error}");
    receiver.stop();
}
