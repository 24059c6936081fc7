//! Files from one end to the other over loopback.

mod common;

use std::fs;

use common::{Receiver, bytes, send};
use socket::transfer::Outcome;

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
