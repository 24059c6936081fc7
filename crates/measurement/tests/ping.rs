//! Round trips on loopback with every protocol.

#![cfg(target_os = "linux")]

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::Ordering;

use foundation::Duration;
use measurement::Error;
use measurement::ping::plan::{Pace, Schedule, State};
use measurement::ping::{Answer, Method, Options, Progress, Protocol, Report, ping};
use socket2::{Domain, Socket, Type};
use testing::Requirement;

fn options(to: SocketAddr, protocol: Protocol, sizes: &[u32], count: u32) -> Options {
    Options {
        to,
        protocol,
        schedule: Schedule {
            sizes: sizes.to_vec(),
            count,
            pace: Pace::Interval(Duration::from_micros(200)),
            window: 16,
            timeout: Duration::from_secs(30),
        },
        whole: false,
        spin: false,
    }
}

fn run(options: &Options) -> Option<Report> {
    match ping(options, &Progress::default()) {
        Ok(report) => Some(report),
        Err(error @ Error::Permission { .. }) => {
            testing::skip(Requirement::Raw, error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns a socket whose port is closed to all but its peer. While the socket lives, no
/// other program can open the port.
fn closed(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind(address).unwrap();
    let peer = UdpSocket::bind(address).unwrap();
    socket.connect(peer.local_addr().unwrap()).unwrap();
    socket
}

#[test]
fn kernel_timestamps_are_within_application_times() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let sizes = [0, 5, 8, 12, 56, 1400, 9000];
        let Some(report) = run(&options(address.parse().unwrap(), Protocol::Icmp, &sizes, 5)) else {
            return;
        };
        assert!(matches!(report.method, Method::IcmpDatagram | Method::IcmpRaw));
        assert_eq!(report.note.is_some(), report.method == Method::IcmpRaw);
        assert_eq!(report.samples.len(), 35);
        let order: Vec<u32> = report.samples[..14].iter().map(|sample| sample.size).collect();
        assert_eq!(order, [sizes, sizes].concat());
        let mut stamped = 0;
        for sample in &report.samples {
            assert_eq!(
                (sample.state, sample.answer),
                (State::Answered, Some(Answer::Reply)),
                "{sample:?}"
            );
            let (Some(kernel), Some(application)) = (sample.kernel, sample.application) else {
                continue;
            };
            stamped += 1;
            let (out, back) = (sample.outbound.unwrap(), sample.inbound.unwrap());
            assert!(kernel <= application, "{sample:?}");
            // The two clocks are read one after the other.
            let parts = out + kernel + back;
            assert!(parts + Duration::from_micros(1) >= application, "{sample:?}");
        }
        assert!(stamped > 10, "{stamped}");
    }
}

#[test]
fn a_closed_udp_port_answers() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let closed = closed(address);
        let to = closed.local_addr().unwrap();
        let report = run(&options(to, Protocol::Udp, &[8, 500], 4)).unwrap();
        let answers: Vec<_> = report.samples.iter().map(|sample| sample.answer).collect();
        assert_eq!(answers, [Some(Answer::Closed); 8]);
        assert!(report.samples.iter().all(|sample| sample.application.is_some()));
    }
}

#[test]
fn times_connections_to_open_and_closed_ports() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let open = listener.local_addr().unwrap();
    let report = run(&options(open, Protocol::Tcp, &[0], 5)).unwrap();
    assert!(
        report
            .samples
            .iter()
            .all(|sample| sample.answer == Some(Answer::Reply))
    );
    // The socket is bound but not listening: the port is closed, and no other program can open it.
    let closed = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    closed
        .bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into())
        .unwrap();
    let to = closed.local_addr().unwrap().as_socket().unwrap();
    let report = run(&options(to, Protocol::Tcp, &[0], 5)).unwrap();
    assert!(
        report
            .samples
            .iter()
            .all(|sample| sample.answer == Some(Answer::Closed))
    );
    assert_eq!(report.samples.len(), 5);
}

#[test]
fn a_stopped_measurement_returns_its_samples() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut requested = options(silent.local_addr().unwrap(), Protocol::Udp, &[8], 3);
    requested.schedule.timeout = Duration::from_millis(20);
    let report = run(&requested).unwrap();
    assert!(report.samples.iter().all(|sample| sample.state == State::Lost));
    assert_eq!(report.samples.len(), 3);

    requested.schedule.count = 1_000_000;
    requested.schedule.timeout = Duration::from_secs(1000);
    let progress = Progress::default();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| ping(&requested, &progress).unwrap());
        while progress.sent.load(Ordering::Relaxed) < 2 {
            std::thread::yield_now();
        }
        progress.end();
        // Unanswered requests are neither answered nor lost.
        assert_eq!(running.join().unwrap().samples.len(), 0);
    });
}

#[test]
fn a_flood_respects_its_window() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server
        .set_read_timeout(Some(std::time::Duration::from_secs(30)))
        .unwrap();
    let mut requested = options(server.local_addr().unwrap(), Protocol::Udp, &[100], 2000);
    requested.schedule.pace = Pace::Flood {
        least: Duration::from_micros(10),
        most: Duration::from_secs(30),
    };
    requested.schedule.window = 4;
    let progress = Progress::default();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| ping(&requested, &progress).unwrap());
        let mut buffer = [0; 200];
        let mut maximum = 0;
        for replied in 0..2000 {
            let Ok((length, from)) = server.recv_from(&mut buffer) else {
                progress.end();
                break;
            };
            // A reply differs from its request in the type and the checksum.
            buffer[2] += 1;
            buffer[3] = buffer[3].wrapping_sub(1);
            maximum = maximum.max(progress.sent.load(Ordering::Relaxed) - replied);
            server.send_to(&buffer[..length], from).unwrap();
        }
        let report = running.join().unwrap();
        assert!(maximum <= 4, "{maximum}");
        assert_eq!(report.samples.len(), 2000);
        assert!(
            report
                .samples
                .iter()
                .all(|sample| sample.state == State::Answered)
        );
    });
}

#[test]
fn the_mtu_limits_the_size_without_fragmentation() {
    let closed = closed("127.0.0.1:0");
    let mut requested = options(closed.local_addr().unwrap(), Protocol::Udp, &[65_507, 100], 1);
    requested.whole = true;
    let mtu = std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap();
    let report = run(&requested).unwrap();
    let largest = mtu.trim().parse::<u32>().unwrap() - 28;
    for sample in &report.samples {
        assert_eq!(
            sample.state == State::Answered,
            sample.size <= largest,
            "{sample:?}"
        );
    }
}

#[test]
fn reports_invalid_options_in_one_line() {
    let to: SocketAddr = "127.0.0.1:9".parse().unwrap();
    for (protocol, sizes, count, word) in [
        (Protocol::Udp, &[4][..], 1, "8 bytes"),
        (Protocol::Tcp, &[100], 1, "transact"),
        (Protocol::Icmp, &[], 1, "nothing to send"),
        (Protocol::Icmp, &[70_000], 1, "65507"),
        (Protocol::Icmp, &[8, 9], 600_000, "too many"),
    ] {
        let reported = ping(&options(to, protocol, sizes, count), &Progress::default());
        let reported = reported.unwrap_err().to_string();
        assert!(reported.contains(word), "{reported}");
    }
}
