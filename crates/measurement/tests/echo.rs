//! The echo server on loopback, with regular and hostile clients.

#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use crate::common::serving::{client, request, serve, wait_for_reply};
use measurement::datagram::{HEADER, Header, MessageKind};
use measurement::echo::Limits;
use measurement::ping::Progress;
use measurement::transact::{Options, Protocol, Report, transact};
use proptest::prelude::*;
use testing::Requirement;

fn transact_all(to: SocketAddr, protocols: &[Protocol], sizes: &[u32], count: u32) -> Report {
    let options = Options {
        to,
        protocols: protocols.to_vec(),
        sizes: sizes.to_vec(),
        count,
        interval: foundation::Duration::ZERO,
        timeout: foundation::Duration::from_secs(30),
    };
    transact(&options, &Progress::default()).unwrap()
}

/// A server that accepts connections and datagrams but never answers, with timeouts of an hour.
#[test]
fn transactions_without_an_answer_can_be_stopped() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = silent.local_addr().unwrap();
    let _datagrams = UdpSocket::bind(to).unwrap();
    for protocol in Protocol::ALL {
        let options = Options {
            to,
            protocols: vec![protocol],
            sizes: vec![100],
            count: 1,
            interval: foundation::Duration::ZERO,
            timeout: foundation::Duration::from_secs(3600),
        };
        let progress = Progress::default();
        let report = std::thread::scope(|scope| {
            let running = scope.spawn(|| transact(&options, &progress));
            // Also before the request leaves, and while it waits.
            std::thread::sleep(Duration::from_millis(if protocol == Protocol::Udp {
                0
            } else {
                100
            }));
            progress.end();
            running.join().unwrap().unwrap()
        });
        assert!(report.transactions.is_empty(), "{protocol:?}");
    }
}

#[test]
fn transactions_of_all_protocols_complete() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let server = serve(address, Limits::default());
        let report = transact_all(server.address, &Protocol::ALL, &[8, 100, 1400, 40_000], 3);
        assert_eq!(report.transactions.len(), 60);
        let captured = !report.notes.iter().any(|note| note.contains("CAP_NET_RAW"));
        if !captured {
            testing::skip(Requirement::Raw, report.notes.join("; "));
        }
        for made in &report.transactions {
            assert_eq!(made.error, None);
            let application = made.application.unwrap();
            if !captured {
                continue;
            }
            let wire = made.wire.unwrap_or_else(|| panic!("{made:?}"));
            assert!(wire.time <= application, "{made:?}");
            let minimum = match made.protocol {
                Protocol::Udp => 2,
                // Handshake, request and reply, two FINs, merged where possible.
                Protocol::Tcp => 7,
                Protocol::Tfo => 6,
                Protocol::TcpUser => 5,
                Protocol::Ttcp => 3,
            };
            assert!(wire.packets >= minimum, "{made:?}");
            assert!(wire.bytes >= 2 * u64::from(made.size), "{made:?}");
        }
        let counts = server.counts();
        // One more over TFO, which fetches the cookie.
        assert_eq!((counts.datagrams, counts.connections), (12, 25));
        // Likewise for T/TCP, whose first transaction fills the caches.
        assert_eq!(counts.user_transactions, 25);
        assert!(counts.sent <= counts.received);
    }
}

#[test]
fn answers_a_request_with_a_length_before_its_fin() {
    let server = serve("127.0.0.1:0", Limits::default());
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let whole = request(500, 500);
    stream.write_all(&whole[..200]).unwrap();
    stream.write_all(&whole[200..]).unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    assert_eq!(reply, whole);
    // A request longer than announced gets no reply.
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let _ = stream.write_all(&request(20, 600));
    assert_eq!(stream.read(&mut [0; 10]).ok().unwrap_or(0), 0);
    let counts = server.counts();
    assert_eq!((counts.connections, counts.sent), (1, 500));
}

#[test]
fn a_ttcp_transaction_takes_three_datagrams() {
    let server = serve("127.0.0.1:0", Limits::default());
    let report = transact_all(server.address, &[Protocol::Ttcp, Protocol::TcpUser], &[1400], 3);
    let packets = |wanted| {
        let of = report
            .transactions
            .iter()
            .filter(move |made| made.protocol == wanted);
        of.filter_map(|made| made.wire.map(|wire| wire.packets))
    };
    if report.transactions[0].wire.is_none() {
        return testing::skip(Requirement::Raw, report.notes.join("; "));
    }
    assert_eq!(packets(Protocol::Ttcp).collect::<Vec<_>>(), [3, 3, 3]);
    assert!(packets(Protocol::TcpUser).all(|count| count > 3));
    assert!(
        report
            .transactions
            .iter()
            .all(|made| made.syn_data == (made.protocol == Protocol::Ttcp))
    );
}

#[test]
fn a_missing_server_is_reported_with_a_remedy() {
    let to = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for protocol in Protocol::ALL {
        let options = Options {
            to,
            protocols: vec![protocol],
            sizes: vec![64],
            count: 1,
            interval: foundation::Duration::ZERO,
            timeout: foundation::Duration::from_secs(30),
        };
        let reported = transact(&options, &Progress::default()).unwrap_err().to_string();
        assert!(reported.contains("longfat echo"), "{reported}");
    }
}

#[test]
fn only_requests_are_answered() {
    let server = serve("127.0.0.1:0", Limits::default());
    let socket = client(server.address);
    let mut reply = request(7, 64);
    Header {
        kind: MessageKind::Reply,
        number: 7,
    }
    .write(&mut reply);
    // The reply of another server, text, a truncated header, and an empty datagram.
    for bytes in [&reply[..], b"hello", &request(1, 8)[..7], b""] {
        socket.send(bytes).unwrap();
    }
    wait_for_reply(&socket, 99);
    let counts = server.counts();
    assert_eq!(counts.malformed, 4);
    assert!(counts.sent <= counts.datagrams * HEADER as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testing::cases(8)))]

    /// For any datagrams, the server returns no more bytes than it received.
    #[test]
    fn no_client_receives_more_than_it_sent(
        datagrams in prop::collection::vec((prop::option::of(0..5_u8), prop::collection::vec(any::<u8>(), 0..300)), 0..60),
        streams in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..3000), any::<bool>()), 0..6),
    ) {
        let server = serve("127.0.0.1:0", Limits { request: 2000, ..Limits::default() });
        let socket = client(server.address);
        for (kind, mut bytes) in datagrams {
            if let Some(kind) = kind && bytes.len() >= HEADER {
                let kind = [MessageKind::Request, MessageKind::Reply, MessageKind::Up, MessageKind::Down, MessageKind::Request][usize::from(kind)];
                Header { kind, number: 5 }.write(&mut bytes);
            }
            socket.send(&bytes).unwrap();
        }
        for (bytes, ends) in streams {
            let mut stream = TcpStream::connect(server.address).unwrap();
            // The server refuses a request that is too long during its transmission.
            let _ = stream.write_all(&bytes);
            if ends {
                let _ = stream.shutdown(Shutdown::Write);
                let mut back = Vec::new();
                let whole = stream.read_to_end(&mut back).is_ok();
                prop_assert!(back.len() <= bytes.len());
                prop_assert!(!whole || bytes.len() > 2000 || back == bytes);
            }
        }
        wait_for_reply(&socket, 77);
        let counts = server.counts();
        prop_assert!(counts.sent <= counts.received, "{counts:?}");
    }
}

#[test]
fn limits_the_replies_to_one_source() {
    let limits = Limits {
        per_source: 100,
        ..Limits::default()
    };
    let server = serve("127.0.0.1:0", limits);
    let socket = client(server.address);
    let started = std::time::Instant::now();
    for number in 0..3000 {
        socket.send(&request(number, 32)).unwrap();
    }
    wait_for_reply(&socket, 5000);
    let elapsed = started.elapsed().as_secs_f64();
    let counts = server.counts();
    // A burst of a tenth of a second, then the rate.
    assert!(
        counts.datagrams as f64 <= 10.0 + 100.0 * elapsed + 2.0,
        "{counts:?} in {elapsed} s"
    );
    assert!(counts.limited > 0);
}

#[test]
fn limits_connections_and_their_bytes() {
    let limits = Limits {
        connections: 8,
        request: 4096,
        idle: foundation::Duration::from_millis(300),
        ..Limits::default()
    };
    let server = serve("127.0.0.1:0", limits);
    // Many connections are idle, and some never end.
    let silent: Vec<_> = (0..40)
        .filter_map(|_| TcpStream::connect(server.address).ok())
        .collect();
    for _ in 0..3 {
        let mut endless = TcpStream::connect(server.address).unwrap();
        endless.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
        // The connection was reset, or exceeded the limit.
        while endless.write_all(&[1; 4096]).is_ok() {}
    }
    let socket = client(server.address);
    wait_for_reply(&socket, 1);
    // Idle connections are closed soon.
    let mut buffer = [0; 10];
    for mut stream in silent {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        match stream.read(&mut buffer) {
            Ok(length) => assert_eq!(length, 0),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }
    let report = transact_all(server.address, &[Protocol::Tcp], &[1000], 1);
    assert_eq!(report.transactions[0].error, None);
    let counts = server.counts();
    assert!(counts.limited >= 32, "{counts:?}");
    assert!(counts.broken >= 8, "{counts:?}");
}
