//! Keys that TCP or Multipath TCP has and QUIC lacks, and the reverse.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use foundation::Problem;
use foundation::kinds::KIND;
use quic::QuicConfig;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};
use transport::mptcp::MptcpKeys;
use transport::tcp::TcpConfig;

/// Keys of TCP and of QUIC for the same purpose.
const COUNTERPARTS: [(&str, &str); 7] = [
    ("mss", "max_datagram_size"),
    ("send_buffer", "send_window"),
    ("receive_buffer", "receive_window"),
    ("initial_receive_window", "receive_window"),
    ("user_timeout", "idle_timeout"),
    ("initial_rto", "initial_rtt"),
    ("delayed_ack", "ack_delay"),
];

/// What QUIC has instead of keys of TCP and Multipath TCP without a counterpart.
const INSTEAD: [(&[&str], &str); 19] = [
    (&["profile", "stack"], "always runs noq-proto"),
    (&["path"], "uses the first path, or several: multipath"),
    (
        &["reinjection", "opportunistic_retransmission", "penalisation"],
        "retransmits lost data on the path that the scheduler selects",
    ),
    (
        &["join_after"],
        "opens further paths when the handshake is confirmed",
    ),
    (&["rejoin"], "closes a path for good: path_timeout"),
    (&["shared_window"], "has one receive_window for all paths"),
    (
        &["recovery", "limited_transmit", "frto"],
        "detects losses by packet_threshold and time (RFC 9002, section 6.1)",
    ),
    (&["prr"], "sends when the window allows (RFC 9002, section 7)"),
    (&["undo"], "undoes spurious reductions if the controller can"),
    (&["sack", "dsack"], "always acknowledges ranges of packets"),
    (
        &["sack_compression"],
        "acknowledges reordered packets at once, or by ack_every",
    ),
    (&["timestamps"], "measures round trips by packet numbers"),
    (
        &["window_scaling", "receive_autotuning", "receive_overhead"],
        "has a fixed receive_window in bytes",
    ),
    (
        &["send_autotuning", "send_overhead"],
        "has a fixed send_window in bytes",
    ),
    (
        &["ecn_accept", "ecn_option", "ecn_fallback"],
        "counts marks in each ACK: ecn",
    ),
    (
        &["min_rto", "max_rto", "tail_loss_probe"],
        "probes after a time from its round trips (RFC 9002, section 6.2)",
    ),
    (
        &["quick_acks", "nagle"],
        "sends at once, and delays ACKs by ack_every and ack_delay",
    ),
    (
        &["time_wait", "fin_timeout", "syn_retries", "keep_alive"],
        "fails after idle_timeout",
    ),
    (
        &["slow_start_after_idle", "fast_open", "ttcp"],
        "starts with initial_window after a full handshake",
    ),
];

static TCP: LazyLock<BTreeSet<String>> = LazyLock::new(keys::<TcpConfig>);
static MPTCP: LazyLock<BTreeSet<String>> = LazyLock::new(keys::<MptcpKeys>);
static QUIC: LazyLock<BTreeSet<String>> = LazyLock::new(keys::<QuicConfig>);

/// Returns the keys of a table.
fn keys<T: JsonSchema>() -> BTreeSet<String> {
    let schema = T::json_schema(&mut SchemaGenerator::default());
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(Map::keys).cloned().collect()
}

/// Returns the problem of the first key in a table of TCP that only QUIC has, or in a table of QUIC that only TCP or Multipath TCP
/// has.
pub(crate) fn key_of_other_family(kind: &str, table: &Map<String, Value>) -> Option<Problem> {
    let (own, other, other_kind) = match kind {
        "tcp" => (&*TCP, &*QUIC, "quic"),
        "quic" => (&*QUIC, &*TCP, "tcp"),
        _ => return None,
    };
    let is_mptcp = |key: &String| kind == "quic" && MPTCP.contains(key);
    let foreign =
        |key: &&String| *key != KIND && !own.contains(*key) && (other.contains(*key) || is_mptcp(key));
    let key = table.keys().find(foreign)?;
    let other_kind = if other.contains(key) { other_kind } else { "mptcp" };
    let counterpart = COUNTERPARTS.iter().find_map(|&(tcp, quic)| match kind {
        "quic" => (tcp == key).then_some(quic),
        _ => (quic == key).then_some(tcp),
    });
    let instead = INSTEAD.iter().filter(|_| kind == "quic");
    let instead = instead.copied().find(|(keys, _)| keys.contains(&key.as_str()));
    let instead = match (counterpart, instead) {
        (Some(counterpart), _) => format!("{kind:?} has {counterpart}"),
        (_, Some((_, instead))) => format!("remove it: {kind:?} {instead}"),
        _ => format!("{kind:?} has no such key: remove it"),
    };
    Some(Problem::new(
        key,
        format!("a key of kind {other_kind:?}; {instead}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(kind: &str, key: &str) -> Option<String> {
        let table = Map::from_iter([("kind".to_owned(), kind.into()), (key.to_owned(), 1.into())]);
        key_of_other_family(kind, &table).map(|problem| problem.to_string())
    }

    #[test]
    fn names_both_keys() {
        let mss = problem("quic", "mss").unwrap();
        assert_eq!(mss, r#"mss: a key of kind "tcp"; "quic" has max_datagram_size"#);
        let sack = problem("quic", "sack").unwrap();
        assert_eq!(
            sack,
            r#"sack: a key of kind "tcp"; remove it: "quic" always acknowledges ranges of packets"#
        );
        let window = problem("tcp", "receive_window").unwrap();
        assert_eq!(
            window,
            r#"receive_window: a key of kind "quic"; "tcp" has receive_buffer"#
        );
        assert_eq!(problem("tcp", "congestion"), None);
        assert_eq!(problem("quic", "unknown"), None);
        assert_eq!(problem("mptcp", "receive_window"), None);
        assert_eq!(
            problem("quic", "join_after").unwrap(),
            r#"join_after: a key of kind "mptcp"; remove it: "quic" opens further paths when the handshake is confirmed"#
        );
    }

    #[test]
    fn each_key_of_tcp_names_what_quic_has() {
        for key in TCP
            .union(&MPTCP)
            .filter(|key| *key != KIND && !QUIC.contains(*key))
        {
            let text = problem("quic", key).unwrap();
            assert!(!text.contains("no such key"), "{text}");
        }
        for key in INSTEAD.iter().flat_map(|(keys, _)| *keys) {
            let exists = TCP.contains(*key) || MPTCP.contains(*key);
            assert!(exists && !QUIC.contains(*key), "{key}");
        }
    }

    #[test]
    fn counterparts_exist() {
        for (tcp, quic) in COUNTERPARTS {
            assert!(TCP.contains(tcp) && !QUIC.contains(tcp), "{tcp}");
            assert!(QUIC.contains(quic) && !TCP.contains(quic), "{quic}");
        }
    }
}
