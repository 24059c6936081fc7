//! Changes of single keys of a protocol while its flows run.

use std::sync::Arc;

use foundation::{Problem, reading};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use transport::arq::ArqConfig;
use transport::mptcp::{MptcpConfig, Setup};
use transport::tcp::TcpConfig;

use super::Protocol;

impl Protocol {
    /// Returns the protocol after a change of one key that running flows can take over. `value` is JSON as in a study; null
    /// removes the key.
    ///
    /// # Errors
    /// An unknown key, an invalid value, and a key that cannot change while flows run.
    pub fn changed(&self, key: &str, value: &Value) -> Result<Self, Problem> {
        Ok(match self {
            Self::Tcp(config) => {
                let next: TcpConfig = read(&**config, key, value, &TcpConfig::LIVE_KEYS)?;
                first(next.validate())?;
                Self::Tcp(Arc::new(next))
            }
            Self::Mptcp(setup) => {
                let next: MptcpConfig = read(setup.config(), key, value, &MptcpConfig::LIVE_KEYS)?;
                first(next.validate())?;
                Self::Mptcp(Arc::new(Setup::new(next)))
            }
            Self::Arq(config) => {
                let next: ArqConfig = read(&**config, key, value, &ArqConfig::LIVE_KEYS)?;
                first(next.validate())?;
                first(config.obstacle_to(&next))?;
                Self::Arq(Arc::new(next))
            }
            Self::Quic(_) | Self::Udp(_) | Self::Icmp => {
                let message = "the settings of QUIC, UDP and ICMP cannot change while flows run";
                return Err(Problem::new(key, message));
            }
        })
    }
}

/// Returns settings with another value of a key.
fn read<T: Serialize + DeserializeOwned>(
    config: &T,
    key: &str,
    value: &Value,
    live: &[&str],
) -> Result<T, Problem> {
    let written = serde_json::to_value(config);
    let mut keys = written.map_err(|error| Problem::new(key, error.to_string()))?;
    if let Some(table) = keys.as_object_mut() {
        table.remove(key);
        if !value.is_null() {
            table.insert(key.to_owned(), value.clone());
        }
    }
    let next = reading::read_value(keys)?;
    if !live.contains(&key) {
        let message = format!("cannot change while flows run: allowed: {}", live.join(", "));
        return Err(Problem::new(key, message));
    }
    Ok(next)
}

fn first(problems: impl IntoIterator<Item = Problem>) -> Result<(), Problem> {
    problems.into_iter().next().map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use transport::arq::ArqProtocol;

    fn changed(protocol: &str, key: &str, value: Value) -> Result<Protocol, String> {
        let config: crate::ProtocolConfig = serde_json::from_str(protocol).unwrap();
        Protocol::of(&config)
            .changed(key, &value)
            .map_err(|problem| problem.to_string())
    }

    #[test]
    fn reports_the_same_problems_as_a_study_file() {
        let arq = r#"{"kind": "go-back-n", "window": 8}"#;
        for (protocol, key, value, message) in [
            (
                arq,
                "window",
                json!(0),
                "window: 0 is out of range: 1 to 1048576 packets",
            ),
            (
                arq,
                "windw",
                json!(3),
                "windw: unknown key: did you mean \"window\"?",
            ),
            (
                arq,
                "rto",
                json!("adaptiv"),
                "rto: \"adaptiv\" is not a timeout; did you mean \"adaptive\"?",
            ),
            (
                arq,
                "acknowledge_delay",
                json!("2s"),
                "acknowledge_delay: 2s is out of range: at most 1s",
            ),
            (
                arq,
                "mss",
                json!("500B"),
                "mss: cannot change while flows run: allowed: window, rto, ",
            ),
            (
                arq,
                "window",
                json!("auto"),
                "window: cannot change between a number of packets and",
            ),
            (
                r#"{"kind": "stop-and-wait"}"#,
                "window",
                json!(3),
                "window: the window of stop-and-wait is 1 packet",
            ),
            (
                r#"{"kind": "tcp"}"#,
                "min_rto",
                json!("0ms"),
                "min_rto: 0ns is out of range: above 0",
            ),
            (
                r#"{"kind": "tcp"}"#,
                "congestion",
                json!("cubik"),
                "congestion: unknown congestion controller \"cubik\"; did you mean \"cubic\"?",
            ),
            (
                r#"{"kind": "mptcp"}"#,
                "policy",
                json!("single"),
                "policy: cannot change while flows run: allowed: scheduler, ",
            ),
            (
                r#"{"kind": "mptcp"}"#,
                "scheduler",
                json!("ecv"),
                "scheduler: \"ecv\" is not known: did you mean \"ecf\"?",
            ),
            (
                r#"{"kind": "udp"}"#,
                "size",
                json!("100B"),
                "size: the settings of QUIC, UDP and ICMP cannot change",
            ),
        ] {
            let found = changed(protocol, key, value).unwrap_err();
            assert!(found.starts_with(message), "{found}");
        }
    }

    #[test]
    fn null_restores_the_default() {
        let Ok(Protocol::Arq(config)) = changed(r#"{"kind": "go-back-n", "rto": "1s"}"#, "rto", Value::Null)
        else {
            panic!("rto has a default");
        };
        assert_eq!(*config, ArqConfig::new(ArqProtocol::GoBackN));
    }

    #[test]
    fn every_live_key_is_a_key_of_its_protocol() {
        let live = [
            (r#"{"kind": "tcp"}"#, TcpConfig::LIVE_KEYS.as_slice()),
            (r#"{"kind": "mptcp"}"#, &MptcpConfig::LIVE_KEYS),
            (r#"{"kind": "go-back-n", "window": 1}"#, &ArqConfig::LIVE_KEYS),
        ];
        for (protocol, keys) in live {
            for key in keys.iter().filter(|&&key| key != "window") {
                changed(protocol, key, Value::Null).unwrap();
            }
        }
    }
}
