//! Captures of multipath TCP and all its options, decoded by tshark.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use capture::Capture;
use foundation::Instant;
use simulation::body::Side;
use transport::mptcp::keys::{Keys, address_hmac};
use transport::mptcp::wire::{HMAC_SHA256, Number, VERSION, WireMapping, WireOption};
use transport::tcp::wire::{Endpoints, encode_with_options};
use transport::tcp::{Flags, Segment, SequenceNumber};

use super::{RECOVERY, assert_expert, frames, has_tshark, routine_with, trial, tshark};

/// Returns the values of a field in all matching frames.
fn field(capture: &Path, filter: &str, name: &str) -> Vec<String> {
    let reported = tshark(capture, &["-Y", filter, "-T", "fields", "-e", name]);
    reported.lines().map(str::to_owned).collect()
}

/// Handshakes, mappings and the end of a transfer over two lossy paths: Wireshark assigns the subflows to one
/// connection without warnings.
#[test]
fn subflows_are_one_connection() {
    let Some(trial) = trial(
        r#"{"topology": {"kind": "multipath", "paths": 2, "delays": "5ms..20ms",
                         "path": {"rate": "20Mbit/s", "loss": "1%", "queue": "1000pkt"}},
            "protocol": {"kind": "mptcp", "policy": {"kind": "all", "first": "first"}},
            "workload": {"kind": "file", "size": "500kB"}, "seed": 2}"#,
    ) else {
        return;
    };
    for side in [Side::Sender, Side::Receiver] {
        let capture = trial.at(side);
        // The capture shows losses, or gaps only.
        let reported = [&RECOVERY[..], &["Previous segment(s) not captured"]].concat();
        assert_expert(&capture, &routine_with(&reported));
        assert!(frames(&capture, "_ws.malformed").is_empty());
        let subtype = |number: u8| frames(&capture, &format!("tcp.options.mptcp.subtype == {number}")).len();
        // SYN, SYN/ACK, ACK with both keys, and the first data with both keys.
        assert_eq!(subtype(0), 4);
        assert_eq!(subtype(1), 3, "the handshake of the join");
        let values = |name| field(&capture, "tcp", name).into_iter().collect::<BTreeSet<_>>();
        assert_eq!(values("tcp.stream").len(), 2);
        assert_eq!(
            values("mptcp.stream")
                .iter()
                .filter(|stream| !stream.is_empty())
                .count(),
            1,
            "one connection"
        );
        assert!(!frames(&capture, "tcp.options.mptcp.datafin.flag == 1").is_empty());
        let bare =
            "tcp.len > 0 && !(tcp.options.mptcp.dseqnpresent.flag == 1) && !(tcp.options.mptcp.subtype == 0)";
        assert!(frames(&capture, bare).is_empty(), "payload has a mapping");
        // Data sequence numbers are contiguous over all subflows.
        let numbers = field(
            &capture,
            "tcp.options.mptcp.dseqnpresent.flag == 1",
            "mptcp.dss.dsn",
        );
        let numbers: BTreeSet<u64> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
        let (first, last) = (numbers.first().unwrap(), numbers.last().unwrap());
        assert!((450_000..=500_001).contains(&(last - first)), "{first} {last}");
    }
}

/// Subflows on the same path have different ports: MMPTCP scatters the first subflow over all paths and then opens one
/// on each.
#[test]
fn subflows_on_one_path_are_separate_streams() {
    let Some(trial) = trial(
        r#"{"topology": {"kind": "multipath", "paths": 2, "delays": "5ms..6ms",
                         "path": {"rate": "20Mbit/s", "queue": "1000pkt"}},
            "protocol": {"kind": "mptcp", "policy": "mmptcp"},
            "workload": {"kind": "file", "size": "2MB"}, "seed": 2}"#,
    ) else {
        return;
    };
    let capture = trial.at(Side::Sender);
    let syns = field(&capture, "tcp.flags.syn == 1 && tcp.flags.ack == 0", "tcp.stream");
    assert_eq!(syns.len(), 3);
    assert_eq!(syns.iter().collect::<BTreeSet<_>>().len(), 3, "{syns:?}");
    let joined = field(
        &capture,
        "tcp.options.mptcp.subtype == 1 && !(tcp.flags.syn == 1)",
        "tcp.stream",
    );
    assert_eq!(joined.iter().collect::<BTreeSet<_>>(), syns[1..].iter().collect());
}

/// Returns every option in every form, with a display filter that must match it.
fn every_option() -> Vec<(WireOption, &'static str)> {
    let capable = |sender, receiver, data| WireOption::Capable {
        version: VERSION,
        flags: HMAC_SHA256,
        sender,
        receiver,
        data,
    };
    let dss = |acknowledgement, mapping, fin| WireOption::Dss {
        acknowledgement,
        mapping,
        fin,
    };
    let mapping = |data, checksum| WireMapping {
        data,
        subflow: 7,
        length: 100,
        checksum,
    };
    let add = |address: std::net::IpAddr, port, proves: bool| WireOption::AddAddress {
        id: 3,
        address,
        port,
        hmac: proves.then(|| {
            address_hmac(
                Keys {
                    sender: 1,
                    receiver: 2,
                },
                3,
                address,
                port,
            )
        }),
    };
    let v4 = Ipv4Addr::new(192, 0, 2, 9);
    let v6 = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9);
    vec![
        (
            capable(Some(5), Some(6), None),
            "tcp.options.mptcp.sendkey == 5 && tcp.options.mptcp.recvkey == 6",
        ),
        (
            capable(Some(5), Some(6), Some((9, None))),
            "tcp.options.mptcp.datalvllen == 9",
        ),
        (
            WireOption::JoinThird { hmac: [1; 20] },
            "tcp.options.mptcp.sendhmac == 01:01:01:01:01:01:01:01:01:01:01:01:01:01:01:01:01:01:01:01",
        ),
        (
            dss(Some(Number::Four(8)), None, false),
            "tcp.options.mptcp.rawdataack == 8",
        ),
        (
            dss(Some(Number::Eight(8 << 32)), None, false),
            "tcp.options.mptcp.dataack8.flag == 1 && tcp.options.mptcp.rawdataack == 34359738368",
        ),
        (
            dss(None, Some(mapping(Number::Four(12), None)), true),
            "tcp.options.mptcp.rawdataseqno == 12 && tcp.options.mptcp.datafin.flag == 1 && tcp.options.mptcp.subflowseqno == 7",
        ),
        (
            dss(
                Some(Number::Eight(1)),
                Some(mapping(Number::Eight(2), Some(0xabcd))),
                false,
            ),
            "tcp.options.mptcp.rawdataseqno == 2 && tcp.options.mptcp.datalvllen == 100",
        ),
        (
            add(v4.into(), None, true),
            "tcp.options.mptcp.ipv4 == 192.0.2.9 && tcp.options.mptcp.addrid == 3",
        ),
        (
            add(v4.into(), Some(80), true),
            "tcp.options.mptcp.ipv4 == 192.0.2.9 && tcp.options.mptcp.port == 80",
        ),
        (
            add(v6.into(), Some(80), true),
            "tcp.options.mptcp.ipv6 == 2001:db8::9 && tcp.options.mptcp.port == 80",
        ),
        (
            add(v6.into(), None, true),
            "tcp.options.mptcp.ipv6 == 2001:db8::9",
        ),
        (
            add(v4.into(), None, false),
            "tcp.options.mptcp.ipv4 == 192.0.2.9 && tcp.options.mptcp.echo == 1",
        ),
        (
            WireOption::RemoveAddress { ids: vec![3, 4] },
            "tcp.options.mptcp.addrid == 4",
        ),
        (
            WireOption::Priority { backup: true },
            "tcp.options.mptcp.subtype == 5 && tcp.options.mptcp.backup.flag == 1",
        ),
        (
            WireOption::Fail { data: 77 },
            "tcp.options.mptcp.subtype == 6 && tcp.options.mptcp.rawdataseqno == 77",
        ),
        (
            WireOption::FastClose { receiver: 88 },
            "tcp.options.mptcp.subtype == 7 && tcp.options.mptcp.recvkey == 88",
        ),
        (
            WireOption::Reset { flags: 1, reason: 2 },
            "tcp.options.mptcp.rst_reason == 2 && tcp.options.mptcp.flag_T.flag == 1",
        ),
    ]
}

#[test]
fn every_option_is_dissected() {
    if !has_tshark() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("options.pcapng");
    let hosts = ["host".to_owned()];
    let mut capture = Capture::new(std::fs::File::create(&path).unwrap(), &hosts, None).unwrap();
    let options = every_option();
    for (number, (option, _)) in options.iter().enumerate() {
        let endpoints = Endpoints {
            source: SocketAddr::new(Ipv4Addr::new(192, 0, 2, 1).into(), 2000 + number as u16),
            destination: SocketAddr::new(Ipv4Addr::new(192, 0, 2, 2).into(), 1000),
        };
        let segment = Segment::bare(SequenceNumber(1), SequenceNumber(1), Flags::ACK);
        let mut bytes = Vec::new();
        encode_with_options(&segment, &option.bytes(), endpoints, &mut bytes, |_| {}).unwrap();
        capture
            .write(Instant::from_nanos(number as u64), 0, &bytes)
            .unwrap();
    }
    drop(capture);
    assert!(
        frames(
            &path,
            "_ws.malformed || tcp.options.unknown || _ws.expert.severity == error"
        )
        .is_empty()
    );
    let each = (1..).zip(&options);
    let filters = each.map(|(number, (_, filter))| format!("(frame.number == {number} && {filter})"));
    let found = frames(&path, &filters.collect::<Vec<_>>().join(" || "));
    for (number, (option, filter)) in (1..).zip(&options) {
        assert!(found.contains(&number), "{option:?}: {filter}");
    }
}
