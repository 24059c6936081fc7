use quic::{ControllerChoice, Event, QuicConfig};

use crate::pair::{Pair, config, minute};

/// Both ends finish, then close, whichever of the client's last datagrams are lost once. With the ACK of the server's FIN lost,
/// the client's close replaces it.
#[test]
fn both_ends_close_over_loss_of_the_last_datagrams() {
    let losses: [fn(usize, usize) -> bool; 4] = [
        |_, _| false,
        |side, number| side == 0 && (4..6).contains(&number),
        |side, number| side == 0 && number == 4,
        |side, number| side == 0 && number == 5,
    ];
    for (number, drops) in losses.into_iter().enumerate() {
        let mut pair = Pair::new(&config(r#"{"kind": "quic"}"#), 1, 1000, drops);
        pair.run(minute());
        for events in &pair.events {
            assert!(
                events.ends_with(&[Event::Finished, Event::Closed]),
                "{number}: {events:?}"
            );
        }
    }
}

#[test]
fn client_fails_without_answers() {
    let mut pair = Pair::new(&config(r#"{"kind": "quic"}"#), 1, 1000, |_, _| true);
    pair.run(minute());
    assert_eq!(
        pair.events[0],
        [Event::Failed(
            "no packet from the peer for 30s (idle_timeout)".to_owned()
        )]
    );
}

#[test]
fn garbage_changes_nothing() {
    let mut pair = Pair::new(&config(r#"{"kind": "quic"}"#), 1, 100_000, |_, _| false);
    for length in [0_usize, 1, 21, 1200] {
        let garbage = quic::Datagram {
            bytes: vec![0xc3; length].into(),
            data: 0,
            ecn: foundation::Ecn::NotEct,
            path: None,
            client: None,
        };
        let now = pair.now;
        for end in &mut pair.ends {
            transport::Machine::handle_frame(end, now, garbage.clone());
        }
    }
    pair.run(minute());
    assert_eq!(pair.read[1], 100_000);
}

fn error(json: &str) -> String {
    match serde_json::from_str::<QuicConfig>(json) {
        Ok(config) => config.validate()[0].to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn settings_name_what_is_allowed() {
    let text = error(r#"{"kind": "quic", "max_datagram_size": "1kB"}"#);
    assert_eq!(
        text,
        r#"max_datagram_size: "1kB" is out of range: "1200B" to "65507B""#
    );
    let text = error(r#"{"kind": "quic", "congestion": "quic-bbr3"}"#);
    assert!(text.contains("quic-cubic, quic-reno"), "{text}");
    let text = error(r#"{"kind": "quic", "congestion": "dctcp"}"#);
    assert!(
        text.starts_with("congestion: \"dctcp\" counts marked bytes"),
        "{text}"
    );
    let text = error(r#"{"kind": "quic", "congestion": "quic-reno", "initial_window": 5}"#);
    assert!(text.starts_with("initial_window: "), "{text}");
    let text = error(r#"{"kind": "quic", "mtu_discovery": true, "max_datagram_size": "1200B"}"#);
    assert!(
        text.starts_with("mtu_discovery: true has nothing to find"),
        "{text}"
    );
}

/// Loses two of five datagrams in each direction.
fn loses_forty_percent(side: usize, number: usize) -> bool {
    let hash = (2 * number + side) as u64;
    hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & 0xffff < 26_214
}

/// The library closes connections with too many parts of a stream in its buffer. With the largest window, a transfer that
/// fills it behind lost packets completes.
#[test]
fn largest_receive_window_survives_losses() {
    for (keys, datagram) in [
        ("", 1472),
        (r#", "max_datagram_size": "1200B""#, 1200),
        (r#", "max_datagram_size": "4000B""#, 4000),
        (r#", "max_datagram_size": "9000B""#, 9000),
        (r#", "max_datagram_size": "9000B", "mtu_discovery": true"#, 1200),
    ] {
        let most = (1984 << 10).min(1412 * (datagram - 33));
        let json = |bytes: u64| {
            format!(
                r#"{{"kind": "quic"{keys}, "receive_window": "{bytes}B", "send_window": "64MiB",
                    "congestion": {{"kind": "fixed", "window": 4000}}}}"#
            )
        };
        let text = error(&json(most + 1));
        let allowed = format!(r#"is out of range: "16KiB" to "{most}B" with packets of {datagram} bytes"#);
        assert!(
            text.starts_with("receive_window: ") && text.ends_with(&allowed),
            "{text}"
        );
        let bytes = 4 * most;
        for seed in 1..=3 {
            let mut pair = Pair::new(&config(&json(most)), seed, bytes, loses_forty_percent);
            pair.run(minute());
            assert_eq!(pair.read[1], bytes, "{keys}: {:?}", pair.events[0].last());
        }
    }
}

#[test]
fn default_receive_window_is_the_largest() {
    let window = |keys: &str| config(&format!(r#"{{"kind": "quic"{keys}}}"#)).receive_window();
    assert_eq!(window(""), 1984 << 10);
    assert_eq!(window(r#", "max_datagram_size": "9000B""#), 1984 << 10);
    assert_eq!(window(r#", "max_datagram_size": "1200B""#), 1412 * 1167);
    assert_eq!(window(r#", "mtu_discovery": true"#), 1412 * 1167);
}

#[test]
fn reads_controllers_of_both_kinds() {
    let congestion = |json: &str| config(json).congestion();
    let own = congestion(r#"{"kind": "quic", "congestion": {"kind": "cubic", "beta": 0.8}}"#);
    assert!(matches!(own, ControllerChoice::Own(_)));
    let library = config(r#"{"kind": "quic", "congestion": "quic-reno"}"#);
    let text = serde_json::to_string(&library).unwrap();
    assert_eq!(text, r#"{"kind":"quic","congestion":"quic-reno"}"#);
}
