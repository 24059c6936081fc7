use crate::pair::{Pair, config, minute};

fn run(json: &str, seed: u64) -> Pair {
    let mut pair = Pair::new(&config(json), seed, 500_000, |side, number| {
        side == 0 && number % 37 == 20
    });
    pair.run(minute());
    pair
}

/// All datagrams are equal: connection IDs, packet numbers and their skips, tokens, grease and times.
#[test]
fn same_seed_same_bits() {
    for json in [
        r#"{"kind": "quic"}"#,
        r#"{"kind": "quic", "congestion": "quic-cubic", "mtu_discovery": true}"#,
    ] {
        let (first, second) = (run(json, 7), run(json, 7));
        assert!(first.sent == second.sent, "{json}");
        assert!(first.sent.len() > 400, "{json}");
    }
}

#[test]
fn seeds_differ() {
    let json = r#"{"kind": "quic"}"#;
    assert!(run(json, 7).sent != run(json, 8).sent);
}
