//! Captures of TCP trials, analysed by tshark without warnings; skipped if tshark is not installed.

mod early;
mod multipath;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use experiment::TrialSpec;
use experiment::trace::capture::CaptureOptions;
use experiment::trace::{TraceEvent, TraceEventKind};
use simulation::body::Side;
use simulation::trace::Recorder;
use simulation::trace::addresses::AddressPlan;
use simulation::trace::pcapng;
use simulation::trial::run_watched;

use testing::{Requirement, skip};

struct Trial {
    folder: tempfile::TempDir,
    recorder: Recorder,
    hosts: Vec<String>,
    flows: Vec<experiment::flow_table::FlowRecord>,
}

/// Whether tshark is installed; skips the test otherwise.
fn has_tshark() -> bool {
    let found = Command::new("tshark").arg("--version").output().is_ok();
    if !found {
        skip(Requirement::Programs, "tshark is not installed");
    }
    found
}

/// Runs a trial; `None` without tshark.
fn trial(json: &str) -> Option<Trial> {
    if !has_tshark() {
        return None;
    }
    let spec = TrialSpec::from_json(json).unwrap();
    let (record, mut world) = run_watched(&spec, None, Recorder::default(), None).unwrap();
    assert_eq!(record.error, None);
    Some(Trial {
        folder: tempfile::tempdir().unwrap(),
        recorder: std::mem::take(world.network_mut().observer_mut()),
        hosts: world.topology().hosts().to_vec(),
        flows: record.flows,
    })
}

impl Trial {
    fn capture(&self, extent: CaptureOptions) -> PathBuf {
        let path = self.folder.path().join("trial.pcapng");
        let file = std::fs::File::create(&path).unwrap();
        pcapng::write(file, &self.recorder.captured, &self.hosts, &self.flows, extent).unwrap();
        path
    }

    fn at(&self, side: Side) -> PathBuf {
        self.capture(CaptureOptions {
            side: Some(side),
            snap: None,
        })
    }

    /// Returns the numbers, from 1, of the sender's frames with retransmissions.
    fn retransmissions(&self) -> Vec<usize> {
        let passed = |what| what == TraceEventKind::Send || what == TraceEventKind::Receive;
        let own = |event: &&TraceEvent| event.host == "sender" && passed(event.what);
        let frames = self.recorder.table.events.iter().filter(own).zip(1..);
        frames
            .filter(|(event, _)| event.what == TraceEventKind::Send && event.retransmission)
            .map(|(_, number)| number)
            .collect()
    }

    fn count(&self, which: impl Fn(&TraceEvent) -> bool) -> usize {
        self.recorder
            .table
            .events
            .iter()
            .filter(|event| which(event))
            .count()
    }
}

fn tshark(capture: &Path, arguments: &[&str]) -> String {
    let checks = [
        "tcp.check_checksum:TRUE",
        "ip.check_checksum:TRUE",
        "udp.check_checksum:TRUE",
    ];
    let done = Command::new("tshark")
        .arg("-r")
        .arg(capture)
        .args(checks.iter().flat_map(|check| ["-o", check]))
        .args(arguments)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// Returns the numbers of the frames that match a display filter.
fn frames(capture: &Path, filter: &str) -> Vec<usize> {
    let reported = tshark(capture, &["-Y", filter, "-T", "fields", "-e", "frame.number"]);
    reported.lines().map(|line| line.parse().unwrap()).collect()
}

/// Returns the summaries of tshark's expert information with their counts.
fn expert(capture: &Path) -> BTreeMap<String, usize> {
    let reported = tshark(capture, &["-q", "-z", "expert"]);
    reported
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let count = words.next()?.parse().ok()?;
            let (_group, _protocol) = (words.next()?, words.next()?);
            Some((words.collect::<Vec<_>>().join(" "), count))
        })
        .collect()
}

/// Asserts that all summaries of the expert information start with one of `allowed`.
fn assert_expert(capture: &Path, allowed: &[&str]) {
    let mut reported = expert(capture);
    reported.retain(|summary, _| !allowed.iter().any(|start| summary.starts_with(start)));
    assert!(reported.is_empty(), "tshark reports {reported:?}");
}

const ROUTINE: [&str; 5] = [
    "Connection establish",
    "Connection finish",
    "This frame initiates the connection closing",
    "This frame undergoes the connection closing",
    "TCP window update",
];

fn routine_with(more: &[&'static str]) -> Vec<&'static str> {
    ROUTINE.iter().chain(more).copied().collect()
}

const RECOVERY: [&str; 6] = [
    "Duplicate ACK",
    "D-SACK Sequence",
    "This frame is a (suspected) fast retransmission",
    "This frame is a (suspected) retransmission",
    "This frame is a (suspected) spurious retransmission",
    // Wireshark classifies data that fills a later gap within 3 ms of new data as out of order, even in the sender's
    // capture (User's Guide, "TCP Analysis").
    "This frame is a (suspected) out-of-order segment",
];

#[test]
fn a_clean_path_has_no_warnings() {
    let Some(trial) = trial(
        r#"{"path": {"rate": "20Mbit/s", "delay": "10ms", "queue": "1000pkt"}, "protocol": {"kind": "tcp"},
            "workload": {"kind": "file", "size": "2MB"}, "seed": 1}"#,
    ) else {
        return;
    };
    for side in [Side::Sender, Side::Receiver] {
        let capture = trial.at(side);
        assert_expert(&capture, &ROUTINE);
        let sent = tshark(&capture, &["-T", "fields", "-e", "tcp.len"]);
        let bytes: u64 = sent.lines().map(|length| length.parse::<u64>().unwrap()).sum();
        assert_eq!(bytes, 2_000_000);
        let bad = tshark(
            &capture,
            &["-Y", "tcp.checksum.status != 1 || ip.checksum.status != 1"],
        );
        assert_eq!(bad, "");
    }
}

#[test]
fn a_lossy_path_shows_only_losses_and_retransmissions() {
    for (loss, control) in [("2%", "cubic"), ("10%", "reno"), ("1%", "bbr")] {
        let Some(trial) = trial(&format!(
            r#"{{"path": {{"rate": "20Mbit/s", "delay": "10ms", "loss": "{loss}", "queue": "1000pkt"}},
                "protocol": {{"kind": "tcp", "congestion": "{control}"}},
                "workload": {{"kind": "file", "size": "3MB"}}, "seed": 2}}"#
        )) else {
            return;
        };
        let capture = trial.at(Side::Sender);
        assert_expert(&capture, &routine_with(&RECOVERY));
        let again = trial.retransmissions();
        assert!(again.len() > 10);
        let flags = "tcp.analysis.retransmission || tcp.analysis.out_of_order";
        assert_eq!(frames(&capture, flags), again, "at {loss} loss under {control}");
        let summaries = expert(&capture);
        let late = summaries
            .get("This frame is a (suspected) out-of-order segment")
            .unwrap_or(&0);
        assert!(
            late * 2 <= again.len(),
            "{late} of {} retransmissions",
            again.len()
        );
    }
}

#[test]
fn a_receiver_sees_gaps_where_segments_were_lost() {
    let Some(trial) = trial(
        r#"{"path": {"rate": "20Mbit/s", "delay": "10ms", "loss": {"packets": [40, 45]}, "queue": "1000pkt",
                     "reverse": {"loss": "0%"}},
            "protocol": {"kind": "tcp"}, "workload": {"kind": "file", "size": "400kB"}, "seed": 2}"#,
    ) else {
        return;
    };
    let lost = trial.count(|event| event.what == TraceEventKind::Drop && !event.retransmission);
    assert_eq!(lost, 2);
    let capture = trial.at(Side::Receiver);
    assert_eq!(frames(&capture, "tcp.analysis.lost_segment").len(), lost);
    assert!(!tshark(&capture, &["-Y", "tcp.options.sack_le"]).is_empty());
}

#[test]
fn congestion_marks_are_in_the_ip_header_and_echoed() {
    let Some(trial) = trial(
        r#"{"path": {"rate": "10Mbit/s", "delay": "10ms", "queue": {"kind": "codel", "ecn": true}},
            "protocol": {"kind": "tcp", "ecn": true}, "workload": {"kind": "file", "size": "2MB"}, "seed": 3}"#,
    ) else {
        return;
    };
    let marked = trial.count(|event| event.what == TraceEventKind::Mark);
    assert!(marked > 3);
    let capture = trial.at(Side::Receiver);
    assert_expert(&capture, &routine_with(&RECOVERY));
    assert_eq!(frames(&capture, "ip.dsfield.ecn == 3").len(), marked);
    assert!(frames(&capture, "tcp.flags.ece == 1 && tcp.flags.syn == 0").len() >= marked);
    assert!(!frames(&capture, "tcp.flags.cwr == 1 && tcp.flags.syn == 0").is_empty());
    assert!(frames(&capture, "ip.dsfield.ecn == 3 && tcp.checksum.status != 1").is_empty());
}

#[test]
fn corrupt_segments_fail_their_checksum_where_they_arrive() {
    let Some(trial) = trial(
        r#"{"path": {"rate": "10Mbit/s", "delay": "10ms", "corrupt": "3%", "queue": "1000pkt"},
            "protocol": {"kind": "tcp"}, "workload": {"kind": "file", "size": "500kB"}, "seed": 4}"#,
    ) else {
        return;
    };
    let bad = |side| frames(&trial.at(side), "tcp.checksum.status == 0").len();
    let corrupt = trial.count(|event| event.what == TraceEventKind::Corrupt);
    assert!(corrupt > 5);
    // Segments in flight at the end of the trial are not captured.
    let seen = bad(Side::Sender) + bad(Side::Receiver);
    assert!(seen <= corrupt && seen + 2 >= corrupt, "{seen} of {corrupt}");
    let left = frames(
        &trial.at(Side::Sender),
        "ip.src == 192.0.2.1 && tcp.checksum.status == 0",
    );
    assert!(left.is_empty(), "sent segments are intact");
}

#[test]
fn every_host_is_an_interface_and_every_flow_a_stream() {
    let Some(trial) = trial(
        r#"{"topology": {"kind": "dumbbell", "pairs": 3, "bottleneck": {"rate": "10Mbit/s", "delay": "5ms",
                         "queue": "500pkt"}, "access": {"rate": "100Mbit/s", "delay": "1ms"}},
            "protocol": {"kind": "tcp"}, "workload": {"kind": "file", "size": "60kB", "flows": 2}, "seed": 5}"#,
    ) else {
        return;
    };
    let capture = trial.at(Side::Sender);
    assert_expert(&capture, &ROUTINE);
    let table = tshark(
        &capture,
        &["-T", "fields", "-e", "frame.interface_name", "-e", "tcp.stream"],
    );
    let mut seen: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in table.lines() {
        let (name, stream) = line.split_once('\t').unwrap();
        let streams = seen.entry(name).or_default();
        if !streams.contains(&stream) {
            streams.push(stream);
        }
    }
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), ["s1", "s2", "s3"]);
    assert!(seen.values().all(|streams| streams.len() == 2), "{seen:?}");
}

#[test]
fn a_snap_length_leaves_headers_and_lengths() {
    let Some(trial) = trial(
        r#"{"path": {"rate": "20Mbit/s", "delay": "10ms"}, "protocol": {"kind": "tcp"},
            "workload": {"kind": "file", "size": "200kB"}, "seed": 1}"#,
    ) else {
        return;
    };
    let whole = trial.at(Side::Sender);
    let size = std::fs::metadata(&whole).unwrap().len();
    let capture = trial.capture(CaptureOptions {
        side: Some(Side::Sender),
        snap: Some(96),
    });
    assert!(std::fs::metadata(&capture).unwrap().len() * 4 < size);
    assert_expert(&capture, &ROUTINE);
    assert!(frames(&capture, "frame.cap_len > 96").is_empty());
    assert!(frames(&capture, "tcp.len == 1448").len() > 100);
}

#[test]
fn hosts_have_unique_documentation_addresses() {
    // RFC 5737 reserves 3 networks of 254 hosts; RFC 3849 reserves more.
    for (hosts, start) in [(2, "192.0.2."), (762, "192.0.2."), (763, "2001:db8::")] {
        let plan = AddressPlan::new(hosts);
        let addresses: BTreeSet<_> = (0..hosts).map(|host| plan.host(host)).collect();
        assert_eq!(addresses.len(), hosts);
        assert!(plan.host(0).to_string().starts_with(start));
    }
    assert_eq!(AddressPlan::new(762).host(761).to_string(), "203.0.113.254");
    let plan = AddressPlan::new(2);
    let flows: BTreeSet<_> = (0..40_000)
        .map(|flow| format!("{:?}", plan.flow(flow, 0, 1)))
        .collect();
    assert_eq!(flows.len(), 40_000);
}
