//! The table of events and the capture of a trial agree.

use std::collections::HashSet;

use experiment::TrialRecord;
use experiment::TrialSpec;
use experiment::trace::TraceEventKind;
use experiment::trace::capture::CaptureOptions;
use pcap_file::pcapng::{Block, PcapNgReader};
use simulation::trace::Recorder;
use simulation::trace::pcapng;
use simulation::trial::run_watched;
use transport::arq::codec;

fn traced(path: &str) -> Recorder {
    recorded(path).0
}

fn recorded(path: &str) -> (Recorder, TrialRecord) {
    let json = format!(
        r#"{{"path": {path}, "protocol": {{"kind": "go-back-n", "window": 4}},
            "workload": {{"kind": "file", "size": "40kB"}}, "seed": 1}}"#
    );
    let spec = TrialSpec::from_json(&json).unwrap();
    let (record, mut world) = run_watched(&spec, None, Recorder::default(), None).unwrap();
    assert_eq!(record.error, None);
    (std::mem::take(world.network_mut().observer_mut()), record)
}

#[test]
fn every_packet_is_received_or_dropped_and_a_loss_is_followed_by_a_timeout() {
    let recorder = traced(
        r#"{"rate": "10Mbit/s", "delay": "5ms", "loss": {"packets": [12]}, "reverse": {"loss": "0%"}}"#,
    );
    let ids = |what: TraceEventKind| -> HashSet<u64> {
        recorder
            .table
            .events
            .iter()
            .filter(|e| e.what == what)
            .filter_map(|e| e.id)
            .collect()
    };
    let (sent, received, dropped) = (
        ids(TraceEventKind::Send),
        ids(TraceEventKind::Receive),
        ids(TraceEventKind::Drop),
    );
    assert_eq!(dropped.len(), 1);
    assert!(received.is_disjoint(&dropped) && received.is_subset(&sent));
    // The last ACK may be in flight at the end of the trial.
    assert!(sent.len() - received.len() - dropped.len() <= 1);
    let timeouts: Vec<f64> = recorder
        .table
        .events
        .iter()
        .filter(|e| e.what == TraceEventKind::Timeout)
        .map(|e| e.time)
        .collect();
    assert_eq!(timeouts.len(), 1);
    let again: Vec<_> = recorder
        .table
        .events
        .iter()
        .filter(|e| e.retransmission && e.what == TraceEventKind::Send)
        .collect();
    assert_eq!(again.len(), 4, "the window is retransmitted");
    assert!(again.iter().all(|e| e.time >= timeouts[0]));
    let delivered = recorder
        .table
        .events
        .iter()
        .filter_map(|e| e.delivered)
        .next_back();
    assert_eq!(delivered, Some(40_000));
    assert!(
        recorder.table.events.is_sorted_by_key(|e| (e.time * 1e9) as u64),
        "in order of time"
    );
}

#[test]
fn the_capture_has_every_packet_as_a_valid_datagram() {
    let (recorder, record) = recorded(r#"{"rate": "10Mbit/s", "delay": "5ms", "corrupt": "10%"}"#);
    let hosts = ["sender".to_owned(), "receiver".to_owned()];
    let mut file = Vec::new();
    let extent = CaptureOptions::default();
    pcapng::write(&mut file, &recorder.captured, &hosts, &record.flows, extent).unwrap();
    let mut reader = PcapNgReader::new(&file[..]).unwrap();
    let (mut good, mut corrupt) = (0, 0);
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            let parsed = etherparse::SlicedPacket::from_ip(&packet.data).unwrap();
            let Some(etherparse::TransportSlice::Udp(udp)) = parsed.transport else {
                panic!("no UDP")
            };
            match codec::decode(udp.payload()) {
                Ok(_) => good += 1,
                Err(codec::DecodeError::Checksum) => corrupt += 1,
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert_eq!(good + corrupt, recorder.captured.len());
    let flipped = recorder
        .table
        .events
        .iter()
        .filter(|e| e.what == TraceEventKind::Corrupt)
        .count();
    assert!(flipped > 0 && corrupt > 0 && corrupt <= flipped);
}
