//! Segments and duration of a transaction (one request, one reply) over TCP, TCP Fast Open and T/TCP.

use foundation::{Duration, Instant, Size};
use transport::tcp::{Event, Flags, Profile, Segment, SequenceNumber, TcpConfig};

use crate::tcp::pair::{Fate, Pair, Path, Side};

/// One-way delay.
pub const DELAY: Duration = Duration::from_millis(50);

pub fn plain() -> TcpConfig {
    TcpConfig::new(Profile::Rfc)
}

pub fn fast_open() -> TcpConfig {
    TcpConfig {
        fast_open: true,
        ..plain()
    }
}

pub fn ttcp() -> TcpConfig {
    TcpConfig {
        ttcp: true,
        ..plain()
    }
}

pub fn lossless() -> Path {
    Box::new(|_, _, _| Fate::arrives(DELAY))
}

/// Runs a transaction whose request and FIN are written when the connection opens. Returns the time until the client
/// has the reply and its FIN.
pub fn transact(pair: &mut Pair, request: u64, reply: u64) -> Duration {
    pair.end(Side::Server).answer = Some((request, reply));
    let client = pair.end(Side::Client);
    client.to_write = request;
    client.finish = true;
    let begin = pair.now;
    pair.open(Side::Client);
    let answered = pair.run_until(Duration::from_secs(60), |pair| {
        let client = pair.end(Side::Client);
        client.received == reply && client.saw(Event::PeerFinished)
    });
    let (now, client) = (pair.now, pair.end(Side::Client));
    assert!(answered, "{:?}: {:?}", client.state(), client.events);
    let closed = pair.run_until(Duration::from_secs(60), |pair| {
        pair.end(Side::Server).saw(Event::Closed)
    });
    assert!(closed, "{:?}", pair.end(Side::Server).state());
    assert_eq!(pair.end(Side::Server).received, request);
    now - begin
}

/// Returns a segment as a line: sender, flags, sequence numbers, length, acknowledgement and counts.
pub fn line(from: Side, segment: &Segment, initial: [SequenceNumber; 2]) -> String {
    let mut line = String::from(if from == Side::Client { "> " } else { "< " });
    for (flag, letter) in [
        (Flags::SYN, 'S'),
        (Flags::FIN, 'F'),
        (Flags::RST, 'R'),
        (Flags::PSH, 'P'),
        (Flags::ACK, '.'),
    ] {
        if segment.has(flag) {
            line.push(letter);
        }
    }
    let [own, peer] = if from == Side::Client {
        initial
    } else {
        [initial[1], initial[0]]
    };
    line += &format!(" {}:{}", segment.sequence - own, segment.end() - own);
    if segment.length > 0 {
        line += &format!(" {}", segment.length);
    }
    if segment.has(Flags::ACK) {
        line += &format!(" ack {}", segment.acknowledgement - peer);
    }
    for (has, name) in [
        (segment.options.opening().fast_open.is_some(), " cookie"),
        (segment.options.count.is_some(), " cc"),
        (segment.options.opening().count_is_new, ".new"),
        (segment.options.opening().count_echo.is_some(), " echo"),
    ] {
        if has {
            line += name;
        }
    }
    line
}

/// Returns all sent segments as lines.
pub fn lines(pair: &Pair) -> Vec<String> {
    let initial = [0, 1].map(|end| SequenceNumber(pair.ends[end].initial));
    let sent = pair.sent().iter();
    sent.map(|sent| line(sent.from, &sent.packet.segment, initial))
        .collect()
}

/// Runs the system calls of socket programs: `connect`, `write` and `shutdown` at the client; `write` and `close` at
/// the server after the end of the request.
#[test]
fn tcp_transaction_with_separate_calls_takes_nine_segments() {
    // A window that fits into the SYN's field avoids a window update after the first read.
    let config = TcpConfig {
        receive_buffer: Some(Size::from_bytes(32_768)),
        ..plain()
    };
    let mut pair = Pair::new(&config, &config, lossless());
    pair.open(Side::Client);
    let wait = |pair: &mut Pair, side: Side, event| {
        assert!(pair.run_until(Duration::from_secs(10), |pair| pair.end(side).saw(event)));
    };
    wait(&mut pair, Side::Client, Event::Connected);
    pair.with(Side::Client, |connection, now| connection.write(now, 100));
    pair.with(Side::Client, |connection, now| connection.finish(now));
    wait(&mut pair, Side::Server, Event::PeerFinished);
    pair.with(Side::Server, |connection, now| connection.write(now, 200));
    pair.with(Side::Server, |connection, now| connection.finish(now));
    wait(&mut pair, Side::Server, Event::Closed);
    assert_eq!(
        lines(&pair),
        [
            "> S 0:1",
            "< S. 0:1 ack 1",
            "> . 1:1 ack 1",
            "> P. 1:101 100 ack 1",
            "> F. 101:102 ack 1",
            // ACK of the request and its FIN: the ACK of the request alone was delayed until then.
            "< . 1:1 ack 102",
            "< P. 1:201 200 ack 102",
            "< F. 201:202 ack 102",
            // ACK of the reply and its FIN, likewise.
            "> . 102:102 ack 202",
        ]
    );
}

#[test]
fn tcp_transaction_with_combined_writes_takes_five_segments() {
    let mut pair = Pair::new(&plain(), &plain(), lossless());
    assert_eq!(transact(&mut pair, 100, 200), DELAY * 4, "two round trips");
    assert_eq!(
        lines(&pair),
        [
            "> S 0:1",
            "< S. 0:1 ack 1",
            "> FP. 1:102 100 ack 1",
            "< FP. 1:202 200 ack 102",
            "> . 102:102 ack 202",
        ]
    );
}

#[test]
fn ttcp_transaction_with_cached_counts_takes_three_segments() {
    let mut pair = Pair::new(&ttcp(), &ttcp(), lossless());
    assert_eq!(
        transact(&mut pair, 100, 200),
        DELAY * 4,
        "nothing is cached: a handshake"
    );
    assert_eq!(
        lines(&pair),
        [
            "> S 0:1 cc.new",
            "< S. 0:1 ack 1 cc echo",
            "> FP. 1:102 100 ack 1 cc",
            "< FP. 1:202 200 ack 102 cc",
            "> . 102:102 ack 202 cc",
        ]
    );
    for _ in 0..3 {
        pair.forget();
        assert_eq!(transact(&mut pair, 100, 200), DELAY * 2, "one round trip");
        assert_eq!(
            lines(&pair),
            [
                "> SFP 0:102 100 cc",
                "< SFP. 0:202 200 ack 102 cc echo",
                "> . 102:102 ack 202 cc",
            ]
        );
        assert!(pair.end(Side::Client).connection().used_early_data());
    }
}

#[test]
fn fast_open_transaction_takes_five_segments() {
    let mut pair = Pair::new(&fast_open(), &fast_open(), lossless());
    assert_eq!(transact(&mut pair, 100, 200), DELAY * 4, "no cookie is cached");
    assert_eq!(lines(&pair)[..2], ["> S 0:1 cookie", "< S. 0:1 ack 1 cookie"]);
    pair.forget();
    // A reply could arrive after one round trip, but this server waits for the end of the request, which leaves after
    // the handshake.
    assert_eq!(transact(&mut pair, 100, 200), DELAY * 4);
    assert_eq!(
        lines(&pair),
        [
            "> S 0:101 100 cookie",
            "< S. 0:1 ack 101",
            "> F. 101:102 ack 1",
            "< FP. 1:202 200 ack 102",
            "> . 102:102 ack 202",
        ]
    );
}

/// The time of a transaction is its round trips plus the server's processing time.
#[test]
fn fast_open_and_ttcp_save_a_round_trip() {
    let time = |config: &TcpConfig, processing: Duration| {
        let mut pair = Pair::new(config, config, lossless());
        let mut last = Duration::ZERO;
        for _ in 0..2 {
            pair.forget();
            let begin = pair.now;
            let client = pair.end(Side::Client);
            client.to_write = 100;
            pair.open(Side::Client);
            pair.run_until(Duration::from_secs(9), |pair| {
                pair.end(Side::Server).received == 100
            });
            let requested: Instant = pair.now;
            pair.run_until(processing, |_| false);
            assert_eq!(pair.now, requested + processing);
            pair.with(Side::Server, |connection, now| connection.write(now, 200));
            pair.run_until(Duration::from_secs(9), |pair| {
                pair.end(Side::Client).received == 200
            });
            last = pair.now - begin;
        }
        last
    };
    let processing = Duration::from_millis(7);
    let round_trip = DELAY * 2;
    assert_eq!(time(&plain(), processing), round_trip * 2 + processing);
    assert_eq!(time(&fast_open(), processing), round_trip + processing);
    assert_eq!(time(&ttcp(), processing), round_trip + processing);
}
