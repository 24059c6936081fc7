//! Measurements without privileges.

#![cfg(target_os = "linux")]

use std::os::unix::process::CommandExt as _;

use foundation::Duration;
use measurement::Error;
use measurement::capture::{Capture, Filter, Protocol as Above};
use measurement::echo::{Limits, Server};
use measurement::ping::plan::{Pace, Schedule};
use measurement::ping::{Options, Progress, Protocol, ping};
use measurement::transact;
use testing::Requirement;

/// A user without privileges.
const NOBODY: u32 = 65_534;

/// Measures as a user without privileges; the test below starts it.
#[test]
#[ignore = "run by another test as a user without privileges"]
fn measure_without_privileges() {
    if !testing::is_rerun() {
        return;
    }
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), Limits::default()).unwrap();
    let to = server.address();
    std::thread::spawn(move || server.run(&mut |_| true).unwrap());
    let options = |protocol, sizes: &[u32]| Options {
        to,
        protocol,
        schedule: Schedule {
            sizes: sizes.to_vec(),
            count: 5,
            pace: Pace::Interval(Duration::from_millis(1)),
            window: 4,
            timeout: Duration::from_secs(30),
        },
        whole: false,
        spin: false,
    };
    for (protocol, sizes) in [(Protocol::Udp, &[8, 500][..]), (Protocol::Tcp, &[0])] {
        let report = ping(&options(protocol, sizes), &Progress::default()).unwrap();
        assert!(report.samples.iter().all(|sample| sample.application.is_some()));
        assert!(report.samples.iter().any(|sample| sample.kernel.is_some()));
    }
    match ping(&options(Protocol::Icmp, &[8]), &Progress::default()) {
        Ok(report) => assert_eq!(report.note, None),
        Err(error @ Error::Permission { .. }) => {
            let reported = error.to_string();
            assert!(
                reported.contains("ping_group_range") && reported.contains("CAP_NET_RAW"),
                "{reported}"
            );
        }
        Err(error) => panic!("{error}"),
    }
    let filter = Filter {
        protocol: Above::Udp,
        near: to.ip(),
        far: to.ip(),
        near_port: None,
        far_port: None,
    };
    let reported = Capture::open(None, filter).unwrap_err().to_string();
    assert!(reported.contains("CAP_NET_RAW"), "{reported}");
    let options = transact::Options {
        to,
        protocols: transact::Protocol::ALL.to_vec(),
        sizes: vec![100],
        count: 2,
        interval: Duration::ZERO,
        timeout: Duration::from_secs(30),
    };
    let report = transact::transact(&options, &Progress::default()).unwrap();
    assert!(
        report
            .transactions
            .iter()
            .all(|made| made.error.is_none() && made.wire.is_none())
    );
    assert!(
        report.notes.iter().any(|note| note.contains("CAP_NET_RAW")),
        "{:?}",
        report.notes
    );
    println!("measured");
}

#[test]
fn a_user_without_privileges_gets_remedies_for_the_rest() {
    if !rustix::process::geteuid().is_root() {
        return testing::skip(Requirement::Users, "only root becomes another user");
    }
    let mut again = testing::rerun("unprivileged::measure_without_privileges");
    let done = again.uid(NOBODY).gid(NOBODY).output();
    let done = match done {
        Ok(done) => done,
        Err(error) => {
            return testing::skip(
                Requirement::Users,
                format!("another user may not run this program: {error}"),
            );
        }
    };
    let reported =
        String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success() && reported.contains("measured"),
        "{reported}"
    );
}
