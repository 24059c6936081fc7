//! Shared receive window: blocking and growth.

use transport::mptcp::MptcpConfig;

use crate::mptcp::links::{Link, Outcome, transfer};
use crate::mptcp::pair::{Pair, Side, at};

fn config(more: &str) -> MptcpConfig {
    let text = format!(r#"{{"kind": "mptcp", "policy": {{"kind": "all", "first": "first"}}{more}}}"#);
    serde_json::from_str(&text).unwrap()
}

/// 4 MB through a window of 128 KiB, over 10 Mbit/s at 20 ms and optionally a slow path with a long queue.
fn through_a_small_window(slow: Option<Link>, more: &str) -> Outcome {
    let keys = format!(r#", "profile": "rfc", "congestion": "reno", "receive_buffer": "128KiB"{more}"#);
    let config = config(&keys);
    assert_eq!(config.validate(), []);
    let links: Vec<Link> = [Some(Link::new(10.0, 20, 30)), slow]
        .into_iter()
        .flatten()
        .collect();
    let outcome = transfer(&config, &links, 4_000_000, 1);
    assert!(outcome.finished && outcome.received == 4_000_000);
    outcome
}

/// With a small window, a slow path makes a connection slower than its fast path alone; both mechanisms together
/// restore the rate (Raiciu et al. 2012, section 4.2). Opportunistic retransmission alone hardly helps here, since
/// the slow subflow keeps filling its queue.
#[test]
fn slow_path_does_not_block_fast_one() {
    const RETRANSMIT: &str = r#", "opportunistic_retransmission": true"#;
    const BOTH: &str = r#", "opportunistic_retransmission": true, "penalisation": true"#;
    let alone = through_a_small_window(None, "").seconds;
    for slow in [Link::new(1.0, 200, 100), Link::new(2.0, 300, 200)] {
        let [plain, retransmit, both] =
            ["", RETRANSMIT, BOTH].map(|more| through_a_small_window(Some(slow), more));
        assert!(
            plain.seconds > 2.0 * alone,
            "{} s, alone {alone} s",
            plain.seconds
        );
        assert!(both.seconds < 1.3 * alone, "{} s, alone {alone} s", both.seconds);
        assert!(
            (0.8..1.0).contains(&(retransmit.seconds / plain.seconds)),
            "{} s of {} s",
            retransmit.seconds,
            plain.seconds
        );
        assert!(retransmit.retransmissions > 300, "{}", retransmit.retransmissions);
    }
}

/// Without blocking the mechanisms have no effect.
#[test]
fn mechanisms_have_no_effect_in_a_large_window() {
    let links = [Link::new(10.0, 20, 30), Link::new(5.0, 60, 30)];
    let keys = r#", "profile": "rfc", "receive_buffer": "16MiB""#;
    let both = format!(r#"{keys}, "opportunistic_retransmission": true, "penalisation": true"#);
    let [plain, both] = [keys, &both].map(|keys| transfer(&config(keys), &links, 3_000_000, 1));
    assert_eq!((plain.seconds, plain.bytes), (both.seconds, both.bytes));
}

/// Returns the windows that the server offers at these times in ms, in KiB.
fn windows(more: &str, times: &[u64]) -> Vec<u64> {
    let config = config(&format!(r#", "profile": "linux"{more}"#));
    assert_eq!(config.validate(), []);
    let mut pair = Pair::lossless(&config, &[100, 100], 20_000_000);
    pair.open();
    let mut offered = |&time: &u64| {
        pair.run_until(at(time));
        let last = pair.trace.iter().rfind(|sent| sent.from == Side::Server);
        // The scale for 6 MiB.
        u64::from(last.unwrap().packet.segment.tcp.window) << 7 >> 10
    };
    times.iter().map(&mut offered).collect()
}

/// The window is the whole buffer from the start, or grows from Linux's initial window with the data read per round
/// trip, ahead of the sender.
#[test]
fn window_grows_with_autotuning() {
    let times = [150, 500, 1000];
    assert_eq!(windows("", &times), [6144; 3]);
    let grown = windows(r#", "receive_autotuning": true"#, &times);
    assert!(
        grown[0] == 64 && (128..3000).contains(&grown[1]) && grown[2] == 6144,
        "{grown:?}"
    );
    let links = [Link::new(20.0, 100, 300); 2];
    let seconds = |more: &str| {
        let keys = format!(r#", "profile": "linux"{more}"#);
        transfer(&config(&keys), &links, 20_000_000, 1).seconds
    };
    let (whole, grown) = (seconds(""), seconds(r#", "receive_autotuning": true"#));
    assert!(grown < 1.02 * whole, "{grown} s, {whole} s");
}

#[test]
fn rejects_keys_without_effect() {
    for (keys, key) in [
        (
            r#", "shared_window": false, "opportunistic_retransmission": true"#,
            "opportunistic_retransmission",
        ),
        (r#", "penalisation": true"#, "penalisation"),
        (r#", "initial_receive_window": "64KiB""#, "initial_receive_window"),
        (r#", "rejoin": "0s""#, "rejoin"),
    ] {
        let problems = config(keys).validate();
        assert_eq!(problems.len(), 1, "{keys}: {problems:?}");
        assert!(problems[0].to_string().starts_with(key), "{problems:?}");
    }
}

#[test]
fn a_partial_segment_waits_as_in_tcp() {
    // Linux waits for another partial segment only (Minshall); RFC 9293, section 3.7.4, for any segment.
    for (profile, second) in [("linux", 1), ("rfc", 0)] {
        let config: MptcpConfig = serde_json::from_value(serde_json::json!({
            "kind": "mptcp", "profile": profile, "policy": {"kind": "all", "first": "first"},
        }))
        .unwrap();
        let mut pair = Pair::lossless(&config, &[100], 0);
        pair.ends[0].finish = false;
        pair.open();
        pair.run_until(at(1000));
        let before = pair.trace.len();
        pair.with(Side::Client, |client, now| client.write(now, 2000));
        pair.run_until(at(1010));
        let sent = pair.trace.len() - before;
        assert_eq!(sent, 1 + second, "{profile}");
        // A second partial segment waits in both.
        pair.with(Side::Client, |client, now| client.write(now, 100));
        pair.run_until(at(1020));
        assert_eq!(pair.trace.len() - before, sent, "{profile}");
    }
}
