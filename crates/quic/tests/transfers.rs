use foundation::Duration;
use quic::Event;

use crate::pair::{DELAY, Pair, config, minute};

const NONE: fn(usize, usize) -> bool = |_, _| false;

#[test]
fn completes_without_loss() {
    let mut pair = Pair::new(&config(r#"{"kind": "quic"}"#), 1, 1_000_000, NONE);
    pair.run(minute());
    assert_eq!(pair.read[1], 1_000_000);
    assert!(pair.events[0].contains(&Event::Finished), "{:?}", pair.events[0]);
    assert!(pair.events[1].contains(&Event::Finished), "{:?}", pair.events[1]);
    let statistics = pair.ends[0].statistics();
    assert_eq!(statistics.bytes_acknowledged, 1_000_000);
    assert_eq!(
        (statistics.bytes_sent, statistics.retransmissions),
        (1_000_000, 0)
    );
}

/// Returns the time from the opening to the first payload.
fn setup(keys: &str) -> Duration {
    let config = config(&format!(r#"{{"kind": "quic", {keys}}}"#));
    let mut pair = Pair::new(&config, 1, 1000, NONE);
    pair.run(minute());
    pair.ends[0].statistics().first_data_at.unwrap() - foundation::Instant::default()
}

/// The first payload follows the server's first flight, if its chain fits the limit of three times the client's bytes.
#[test]
fn sends_payload_after_one_round_trip() {
    let time = setup(r#""initial_rtt": "10ms", "certificate_chain": "2500B""#);
    assert!(
        (DELAY * 2..DELAY * 2 + Duration::from_millis(5)).contains(&time),
        "{time}"
    );
}

/// A longer chain takes another round trip (RFC 9000, section 8.1).
#[test]
fn long_certificate_chain_takes_another_round_trip() {
    let time = setup(r#""initial_rtt": "10ms", "certificate_chain": "10kB""#);
    assert!(
        (DELAY * 4..DELAY * 4 + Duration::from_millis(5)).contains(&time),
        "{time}"
    );
}

/// Before its first RTT sample the library paces by `initial_rtt`, in bursts of one datagram at 333 ms. So the rest of the
/// server's flight follows the client's first acknowledgement.
#[test]
fn pacing_by_the_initial_rtt_delays_the_certificate() {
    assert_eq!(setup(r#""certificate_chain": "2500B""#), DELAY * 4);
    assert_eq!(setup(r#""certificate_chain": "800B""#), DELAY * 2);
}

#[test]
fn delivers_all_bytes_over_loss() {
    for congestion in ["cubic", "reno", "bbr", "quic-cubic", "quic-reno"] {
        let config = config(&format!(r#"{{"kind": "quic", "congestion": "{congestion}"}}"#));
        // 5 % of the data and of the acknowledgements, the handshake included.
        let mut pair = Pair::new(&config, 3, 2_000_000, |side, number| {
            (number * 7 + side) % 20 == 3
        });
        pair.run(minute());
        assert_eq!(pair.read[1], 2_000_000, "{congestion}");
        assert!(
            pair.events[0].contains(&Event::Finished),
            "{congestion}: {:?}",
            pair.events[0]
        );
        let statistics = pair.ends[0].statistics();
        assert_eq!(statistics.bytes_acknowledged, 2_000_000, "{congestion}");
        assert!(statistics.retransmissions > 20, "{congestion}");
        assert_eq!(
            statistics.bytes_sent,
            2_000_000 + statistics.bytes_retransmitted,
            "{congestion}"
        );
    }
}

#[test]
fn controllers_start_with_their_window() {
    let window = |keys: &str| {
        let config = config(&format!(r#"{{"kind": "quic", {keys}}}"#));
        let pair = Pair::new(&config, 1, 0, NONE);
        pair.ends[0].window().unwrap()
    };
    assert_eq!(window(r#""congestion": "reno""#), 10 * 1472);
    assert_eq!(window(r#""congestion": "reno", "initial_window": 32"#), 32 * 1472);
    assert_eq!(window(r#""max_datagram_size": "1200B""#), 10 * 1200);
    let discovers = r#""mtu_discovery": true, "max_datagram_size": "9000B""#;
    assert_eq!(window(discovers), 10 * 1200);
}

/// In slow start the window grows by the acknowledged bytes, and one loss halves Reno's (RFC 9002, section 7.3).
#[test]
fn reno_halves_its_window_once_per_round() {
    let config = config(r#"{"kind": "quic", "congestion": "reno"}"#);
    let mut pair = Pair::new(&config, 1, 400_000, |side, number| {
        side == 0 && (60..64).contains(&number)
    });
    let mut before = 0;
    for millisecond in 0.. {
        pair.run(foundation::Instant::default() + Duration::from_millis(millisecond));
        if pair.ends[0].ssthresh().is_some() {
            break;
        }
        before = pair.ends[0].window().unwrap();
    }
    assert!(before > 20 * 1472, "{before}");
    let threshold = pair.ends[0].ssthresh().unwrap();
    // The window may grow within the millisecond before the loss.
    assert!(
        (before / 2 - 1472..=before / 2 + 4 * 1472).contains(&threshold),
        "{threshold} of {before}"
    );
    pair.run(minute());
    assert_eq!(pair.read[1], 400_000);
}

/// The receiver acknowledges every second packet, or as often as the sender requests.
#[test]
fn receiver_acknowledges_as_often_as_requested() {
    let ratio = |keys: &str| {
        let config = config(&format!(r#"{{"kind": "quic"{keys}}}"#));
        let mut pair = Pair::new(&config, 1, 3_000_000, NONE);
        pair.run(minute());
        let packets = pair.ends[0].statistics().packets_sent as f64;
        packets / pair.ends[1].statistics().acknowledgements_sent as f64
    };
    for (keys, packets) in [
        ("", 2.0),
        (r#", "ack_every": 1"#, 1.0),
        (r#", "ack_every": 2"#, 2.0),
        (r#", "ack_every": 5"#, 5.0),
    ] {
        let ratio = ratio(keys);
        assert!((ratio / packets - 1.0).abs() < 0.1, "{keys}: {ratio}");
    }
}

/// Returns the median round-trip time of single packets, 50 ms apart, in ms.
fn median_round_trip(keys: &str) -> f64 {
    let config = config(&format!(r#"{{"kind": "quic"{keys}}}"#));
    let mut pair = Pair::idle(&config, 1);
    pair.ends[0].statistics_mut().rtt = Some(Box::default());
    for time in 1..=40 {
        pair.send(
            0,
            foundation::Instant::default() + Duration::from_millis(50 * time),
            100,
        );
    }
    let trips = pair.ends[0].statistics().round_trips().unwrap();
    trips.value_at_quantile(0.5) as f64 / 1e6
}

/// A single packet is acknowledged after the delay that the sender requests, up to the longer one of 25 ms and the RTT of 20 ms.
#[test]
fn receiver_delays_acknowledgements_as_requested() {
    for (keys, delay) in [
        ("", 25.0),
        (r#", "ack_delay": "5ms""#, 5.0),
        (r#", "ack_delay": "15ms""#, 15.0),
        (r#", "ack_delay": "400ms""#, 25.0),
        // Every packet is acknowledged at once.
        (r#", "ack_every": 1, "ack_delay": "15ms""#, 0.0),
    ] {
        let trip = median_round_trip(keys);
        assert!((trip - 20.0 - delay).abs() < 1.0, "{keys}: {trip} ms");
    }
}

/// Returns whether datagram `number` of a sequence is one of those lost from the client.
const fn is_lost(side: usize, number: usize) -> bool {
    side == 0 && number >= 100 && number.is_multiple_of(37)
}

/// A receiver that acknowledges every 25 ms reports a gap at once, after three packets, or not before.
#[test]
fn receiver_reports_reordering_as_requested() {
    // Median time in ms from the arrival of a lost packet, had it arrived, to the next acknowledgement. Others arrive each ms.
    let waits = |keys: &str| {
        let config = config(&format!(
            r#"{{"kind": "quic", "congestion": {{"kind": "fixed", "window": 1000}}, "ack_every": 1000{keys}}}"#
        ));
        let mut pair = Pair::idle(&config, 1);
        pair.drop_if(is_lost);
        for time in 100..700 {
            pair.send(
                0,
                foundation::Instant::default() + Duration::from_millis(time),
                1000,
            );
        }
        let lost = pair.sent.iter().filter(|sent| sent.from == 0).enumerate();
        let lost = lost.filter(|&(number, _)| number < 400 && is_lost(0, number));
        let waits = lost.map(|(_, lost)| {
            let arrival = lost.at + DELAY;
            let next = pair.sent.iter().find(|sent| sent.from == 1 && sent.at > arrival);
            (next.unwrap().at - arrival).as_nanos() / 1_000_000
        });
        let mut waits: Vec<u64> = waits.collect();
        waits.sort_unstable();
        waits[waits.len() / 2]
    };
    assert_eq!(waits(""), 1);
    assert_eq!(waits(r#", "ack_reordering": 3"#), 3);
    assert!(waits(r#", "ack_reordering": 0"#) > 5);
}

#[test]
fn measures_round_trips() {
    let mut pair = Pair::new(&config(r#"{"kind": "quic"}"#), 1, 1_000_000, NONE);
    pair.run(minute());
    let rtt = pair.ends[0].rtt();
    assert_eq!(rtt.minimum(), Some(DELAY * 2));
    // ACKs may wait for max_ack_delay (25 ms).
    assert!(
        rtt.smoothed() < DELAY * 2 + Duration::from_millis(25),
        "{}",
        rtt.smoothed()
    );
}
