//! Range checks of TCP's settings.

use foundation::{Duration, Problem, Size};

use super::config::{Recovery, TcpConfig};
use super::ecn_mode::EcnMode;

/// Maximum ACK delay (RFC 9293, section 3.8.6.3).
const MAX_DELAYED_ACK: Duration = Duration::from_millis(500);

impl TcpConfig {
    /// Returns one problem per invalid setting.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut check = |key: &str, is_valid: bool, value: &dyn std::fmt::Display, allowed: &str| {
            if !is_valid {
                problems.push(Problem::new(key, format!("{value} is out of range: {allowed}")));
            }
        };
        let packets = self.initial_window.unwrap_or(10);
        check(
            "initial_window",
            (1..=1_000_000).contains(&packets),
            &packets,
            "1 to 1000000 packets",
        );
        // RFC 9293, section 3.7.1: an MSS option has 16 bits. With 40 bytes of options, 88 leave 48 for data.
        let mss = self.mss();
        check("mss", (88..=65_495).contains(&mss.bytes()), &mss, "88B to 65495B");
        let every = self.ack_every.unwrap_or(2);
        check("ack_every", (1..=64).contains(&every), &every, "1 to 64 segments");
        let parameters = self.parameters();
        let delay = parameters.delayed_ack;
        check("delayed_ack", delay <= MAX_DELAYED_ACK, &delay, "at most 500ms");
        let (least, most) = (parameters.min_rto, parameters.max_rto);
        check(
            "min_rto",
            !least.is_zero() && least <= most,
            &least,
            "above 0 and at most max_rto",
        );
        check(
            "max_rto",
            most <= Duration::from_secs(3600),
            &most,
            "at most 3600s",
        );
        let first = parameters.initial_rto;
        check(
            "initial_rto",
            !first.is_zero() && first <= most,
            &first,
            "above 0 and at most max_rto",
        );
        // RFC 7323, section 2.3: the window stays below 2^30.
        let buffer = Size::from_bytes(parameters.receive_buffer);
        let room = (mss.bytes().min(1460)..1 << 30).contains(&buffer.bytes());
        check("receive_buffer", room, &buffer, "one segment or more, below 1GiB");
        let first = Size::from_bytes(parameters.initial_receive_window);
        check(
            "initial_receive_window",
            first <= buffer && first.bytes() > 0,
            &first,
            "above 0B, at most receive_buffer",
        );
        for (key, bytes) in [
            ("send_overhead", parameters.send_overhead),
            ("receive_overhead", parameters.receive_overhead),
        ] {
            let overhead = Size::from_bytes(bytes);
            check(key, bytes <= 1 << 20, &overhead, "at most 1MiB");
        }
        let buffer = Size::from_bytes(parameters.send_buffer);
        check("send_buffer", buffer.bytes() > 0, &buffer, "above 0B");
        let retries = self.syn_retries.unwrap_or(6);
        check("syn_retries", retries <= 127, &retries, "at most 127");
        let timeout = parameters.user_timeout;
        check("user_timeout", !timeout.is_zero(), &timeout, "above 0");
        let idle = self.keep_alive.unwrap_or(Duration::from_secs(1));
        check("keep_alive", !idle.is_zero(), &idle, "above 0");
        if self.recovery == Some(Recovery::RackTlp) && self.sack == Some(false) {
            problems.push(Problem::new("recovery", "\"rack-tlp\" needs sack = true"));
        }
        if self.recovery == Some(Recovery::Sack) && self.sack == Some(false) {
            problems.push(Problem::new("recovery", "\"sack\" needs sack = true"));
        }
        if self.sack_compression && self.sack == Some(false) {
            problems.push(Problem::new("sack_compression", "it needs sack = true"));
        }
        if self.tail_loss_probe == Some(true) && parameters.recovery != Recovery::RackTlp {
            problems.push(Problem::new(
                "tail_loss_probe",
                "it needs recovery = \"rack-tlp\"",
            ));
        }
        if self.fast_open && self.ttcp {
            problems.push(Problem::new(
                "ttcp",
                "it excludes fast_open: a SYN opens in one of the two ways",
            ));
        }
        let congestion = self.congestion();
        problems.extend(congestion.validate().into_iter().map(|p| p.within("congestion")));
        problems
    }

    /// Returns one problem per key that has no effect with the other settings: those of accurate ECN without it. Study files must
    /// not contain such keys, but conformance scripts set all sysctls of ECN.
    #[must_use]
    pub fn keys_without_effect(&self) -> Vec<Problem> {
        let parameters = self.parameters();
        if [parameters.ecn_request, parameters.ecn_accept].contains(&EcnMode::Accurate) {
            return Vec::new();
        }
        let keys = [
            ("ecn_option", self.ecn_option.is_some()),
            ("ecn_fallback", self.ecn_fallback.is_some()),
        ];
        let set = keys.into_iter().filter(|(_, is_set)| *is_set);
        set.map(|(key, _)| Problem::new(key, "it needs ecn = \"accecn\""))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Profile;

    fn read(text: &str) -> TcpConfig {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn profile_defaults_are_valid_and_round_trip_through_json() {
        for profile in [Profile::Linux, Profile::Rfc, Profile::Ns3] {
            let config = TcpConfig::new(profile);
            assert_eq!(config.validate(), [], "{profile:?}");
            let text = serde_json::to_string(&config).unwrap();
            assert_eq!(read(&text), config);
        }
        assert_eq!(read(r#"{"kind": "tcp"}"#), TcpConfig::new(Profile::Linux));
    }

    #[test]
    fn keys_of_accurate_ecn_need_it() {
        let keys = |text: &str| -> Vec<String> {
            let found = read(text).keys_without_effect();
            found.iter().map(Problem::to_string).collect()
        };
        let ecn = r#""ecn_option": "minimum", "ecn_fallback": true"#;
        let both = ["ecn_option", "ecn_fallback"].map(|key| format!("{key}: it needs ecn = \"accecn\""));
        assert_eq!(keys(&format!(r#"{{"kind": "tcp", {ecn}}}"#)), both);
        assert_eq!(keys(&format!(r#"{{"kind": "tcp", "ecn": true, {ecn}}}"#)), both);
        assert_eq!(
            keys(r#"{"kind": "tcp", "ecn": "dctcp", "ecn_fallback": false}"#),
            [both[1].clone()]
        );
        for accurate in [
            r#""ecn": "accecn""#,
            r#""ecn_accept": "accecn""#,
            r#""congestion": "prague""#,
        ] {
            assert!(
                keys(&format!(r#"{{"kind": "tcp", {accurate}, {ecn}}}"#)).is_empty(),
                "{accurate}"
            );
        }
        assert!(keys(r#"{"kind": "tcp", "ecn": true}"#).is_empty());
    }

    #[test]
    fn reports_each_invalid_setting() {
        let problems =
            |text: &str| -> Vec<String> { read(text).validate().iter().map(Problem::to_string).collect() };
        for (text, expected) in [
            (
                r#"{"kind": "tcp", "mss": "20B"}"#,
                "mss: 20B is out of range: 88B to 65495B",
            ),
            (
                r#"{"kind": "tcp", "delayed_ack": "600ms"}"#,
                "delayed_ack: 600ms is out of range: at most 500ms",
            ),
            (
                r#"{"kind": "tcp", "min_rto": "0ms"}"#,
                "min_rto: 0ns is out of range: above 0 and at most max_rto",
            ),
            (
                r#"{"kind": "tcp", "recovery": "sack", "sack": false}"#,
                "recovery: \"sack\" needs sack = true",
            ),
            (
                r#"{"kind": "tcp", "sack_compression": true, "sack": false}"#,
                "sack_compression: it needs sack = true",
            ),
            (
                r#"{"kind": "tcp", "fast_open": true, "ttcp": true}"#,
                "ttcp: it excludes fast_open",
            ),
            (
                r#"{"kind": "tcp", "ack_every": 0}"#,
                "ack_every: 0 is out of range: 1 to 64 segments",
            ),
            (
                r#"{"kind": "tcp", "initial_window": 0}"#,
                "initial_window: 0 is out of range: 1 to 1000000 packets",
            ),
        ] {
            let found = problems(text);
            assert!(found.iter().any(|p| p.starts_with(expected)), "{text}: {found:?}");
        }
        assert!(serde_json::from_str::<TcpConfig>(r#"{"kind": "tcp", "sak": true}"#).is_err());
        assert!(serde_json::from_str::<TcpConfig>(r#"{"kind": "udp"}"#).is_err());
    }
}
