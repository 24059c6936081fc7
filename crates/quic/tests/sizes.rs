use quic::QuicConfig;
use quic::wire::{PacketType, packets};

use crate::pair::{Pair, Sent, config, minute};

fn sent(json: &str, bytes: u64) -> Vec<Sent> {
    let mut pair = Pair::new(&config(json), 1, bytes, |_, _| false);
    pair.run(minute());
    pair.sent
}

fn has(sent: &Sent, kind: PacketType) -> bool {
    let mut found = false;
    packets(&sent.datagram.bytes, |packet| found |= packet.kind == kind);
    found
}

/// Datagrams with Initial packets of a client have at least 1200 bytes (RFC 9000, section 14.1).
#[test]
fn client_pads_initial_packets() {
    let all = sent(r#"{"kind": "quic"}"#, 10_000);
    let initials: Vec<&Sent> = all
        .iter()
        .filter(|sent| sent.from == 0 && has(sent, PacketType::Initial))
        .collect();
    assert!(!initials.is_empty());
    assert!(initials.iter().all(|sent| sent.datagram.bytes.len() >= 1200));
}

/// The server's handshake packets carry the certificate chain, the other messages, and the headers of each packet.
#[test]
fn server_flight_has_the_certificate_chain() {
    let bytes = |chain: usize| -> usize {
        let json = format!(r#"{{"kind": "quic", "certificate_chain": "{chain}B"}}"#);
        let all = sent(&json, 1000);
        let flight = all
            .iter()
            .filter(|sent| sent.from == 1 && has(sent, PacketType::Handshake));
        flight.map(|sent| sent.datagram.bytes.len()).sum()
    };
    let (short, long) = (bytes(1000), bytes(3000));
    // The longer chain takes one or two packets more, each with headers and a tag of less than 64 bytes.
    assert!((2000..2128).contains(&(long - short)), "{short} and {long}");
}

/// Limit before the validation of an address (RFC 9000, section 8.1). A short initial RTT keeps pacing from hiding it.
#[test]
fn server_sends_at_most_three_times_the_client_before_validation() {
    let all = sent(
        r#"{"kind": "quic", "certificate_chain": "10kB", "initial_rtt": "10ms"}"#,
        1000,
    );
    let mut client = all.iter().filter(|sent| sent.from == 0);
    let received = client.next().unwrap().datagram.bytes.len();
    let second = client.next().unwrap().at;
    let answered = all.iter().filter(|sent| sent.from == 1 && sent.at <= second);
    let bytes: usize = answered.map(|sent| sent.datagram.bytes.len()).sum();
    // The library sends the datagram that crosses the limit in full.
    let limit = 3 * received;
    assert!((limit..limit + 1472).contains(&bytes), "{bytes} of {limit}");
}

#[test]
fn full_packets_fill_the_datagram_size() {
    for size in [1200_u64, 1472, 9000] {
        let json = format!(r#"{{"kind": "quic", "max_datagram_size": "{size}B"}}"#);
        let all = sent(&json, 300_000);
        let largest = all.iter().max_by_key(|sent| sent.datagram.bytes.len()).unwrap();
        assert_eq!(largest.datagram.bytes.len() as u64, size);
        // Packet numbers of one byte and small offsets leave a few bytes more.
        let most = all
            .iter()
            .map(|sent| u64::from(sent.datagram.data))
            .max()
            .unwrap();
        let segment = size - u64::from(QuicConfig::overhead());
        assert!((segment..segment + 6).contains(&most), "{most} of {segment}");
    }
}

#[test]
fn discovery_raises_the_size_from_1200() {
    let all = sent(r#"{"kind": "quic", "mtu_discovery": true}"#, 2_000_000);
    let sizes: Vec<usize> = all
        .iter()
        .filter(|sent| sent.datagram.data > 0)
        .map(|sent| sent.datagram.bytes.len())
        .collect();
    assert_eq!(sizes[0], 1200);
    assert!(*sizes.iter().max().unwrap() > 1440, "{:?}", sizes.iter().max());
}
