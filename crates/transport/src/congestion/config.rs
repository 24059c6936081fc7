//! The configuration of a congestion controller.

use std::sync::Arc;

use foundation::Problem;
use foundation::extension::Configured;
use serde::Serialize;
use serde_json::Map;

use super::Controller;
use super::bbr::BbrTolerantSettings;
use super::settings::{ConnectionContext, ControllerSettings, MarkUse};

/// Name of the default controller.
pub(super) const DEFAULT: &str = "bbr-tolerant";

/// A configured congestion controller: a name ("bbr"), or a table with its kind and settings (`{kind = "cubic", beta
/// = 0.8}`).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct CongestionConfig(Configured<dyn ControllerSettings>);

impl CongestionConfig {
    /// Returns the default controller with settings for files of any size on an unknown path:
    /// - an initial window of 32 packets instead of ten, which saves two round trips. The limit of ten in RFC 6928 is for
    ///   senders without pacing.
    /// - Startup that stops its growth at a queue, which halves its losses or better.
    /// - no ProbeRTT while RTT samples show that the queue is empty.
    /// - a jump to the rate at which the bottleneck delivered the initial window.
    #[must_use]
    pub fn for_files() -> Self {
        let settings = BbrTolerantSettings::for_files();
        let given = Map::from_iter([
            ("initial_window".to_owned(), settings.draft.initial_window.into()),
            (
                "startup_queue".to_owned(),
                settings.startup_queue.to_string().into(),
            ),
            (
                "min_rtt_tolerance".to_owned(),
                settings.min_rtt_tolerance.to_string().into(),
            ),
            ("startup_jump".to_owned(), settings.startup_jump.into()),
        ]);
        Self(Configured::new(DEFAULT.into(), Arc::new(settings), given))
    }

    /// Returns the name of the controller.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// Returns the keys that are out of range.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        self.0.validate()
    }

    /// Returns how the controller uses congestion marks.
    #[must_use]
    pub fn mark_use(&self) -> MarkUse {
        self.0.settings().mark_use()
    }

    /// Builds the controller of a connection with packets of up to `segment_size` payload bytes.
    #[must_use]
    pub fn build(&self, segment_size: u64) -> Box<dyn Controller> {
        self.0.settings().build(segment_size)
    }

    /// Builds the controller of a connection.
    #[must_use]
    pub fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        self.0.settings().build_for(context)
    }
}

/// `bbr-tolerant`: fills a path with random loss and keeps the queue short.
impl Default for CongestionConfig {
    fn default() -> Self {
        let settings = Arc::new(BbrTolerantSettings::default());
        Self(Configured::new(DEFAULT.into(), settings, Map::new()))
    }
}

impl From<Configured<dyn ControllerSettings>> for CongestionConfig {
    fn from(configured: Configured<dyn ControllerSettings>) -> Self {
        Self(configured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Registry;
    use crate::congestion::tests::loss;
    use crate::congestion::{FixedSettings, Registration, Rules};
    use foundation::Instant;
    use schemars::JsonSchema;

    fn read(text: &str) -> Result<CongestionConfig, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn reads_name_or_table() {
        assert_eq!(read(r#""reno""#).unwrap().name(), "reno");
        let table = read(r#"{"beta": 0.8, "kind": "cubic"}"#).unwrap();
        assert_eq!(table.name(), "cubic");
        assert_eq!(
            serde_json::to_string(&table).unwrap(),
            r#"{"kind":"cubic","beta":0.8}"#
        );
        assert_eq!(
            read(r#"{"kind": "bbr-tolerant"}"#).unwrap(),
            CongestionConfig::default()
        );
        assert_eq!(
            serde_json::to_string(&CongestionConfig::default()).unwrap(),
            r#""bbr-tolerant""#
        );
        assert_eq!(table.build(1000).window(), 10_000);
    }

    #[test]
    fn applies_rules_and_window_of_connection() {
        let context = ConnectionContext {
            segment: 1000,
            rules: Rules::Linux,
            initial_window: Some(15),
        };
        // Linux halves whole packets of the window, the RFC the bytes in flight.
        let halved = |text: &str| {
            let mut reno = read(text).unwrap().build_for(&context);
            reno.on_lost(&loss(Instant::from_nanos(2), Instant::from_nanos(1), 11_000));
            reno.window()
        };
        assert_eq!(halved(r#""reno""#), 7000);
        assert_eq!(
            halved(r#"{"kind": "reno", "rules": "rfc", "initial_window": 40}"#),
            5500
        );
        let fixed = read(r#"{"kind": "fixed", "window": 3}"#).unwrap();
        assert_eq!(fixed.build_for(&context).window(), 3000, "its window is constant");
        for entry in Registry::builtin().iter().filter(|entry| entry.name() != "fixed") {
            let config = CongestionConfig::named(entry.name()).unwrap();
            assert_eq!(config.build_for(&context).window(), 15_000, "{}", entry.name());
        }
    }

    #[test]
    fn reports_unknown_names_and_keys() {
        for (text, parts) in [
            (
                r#""bbbr""#,
                &[
                    "unknown congestion controller \"bbbr\"; did you mean \"bbr\"? known: bbr, bbr-tolerant, bbr1",
                ][..],
            ),
            (
                r#""compound""#,
                &["unknown congestion controller \"compound\"; known: bbr"],
            ),
            (
                r#""newreno""#,
                &[
                    "unknown congestion controller \"newreno\"; in TCP write congestion = \"reno\", recovery = \"newreno\"; known: bbr",
                ],
            ),
            (
                r#"{"kind": "New-Reno"}"#,
                &[
                    "kind: unknown congestion controller \"New-Reno\"; in TCP write congestion = \"reno\", recovery = \"newreno\"",
                ],
            ),
            (
                r#"{"kind": "bbr", "random_loss_limit": "5%"}"#,
                &[
                    "random_loss_limit: unknown key of congestion controller \"bbr\"; \"bbr-tolerant\" has it; known: ",
                ],
            ),
            (
                r#""aimd.py:Aimd""#,
                &["\"aimd.py:Aimd\" is an external congestion controller, which this program cannot load"],
            ),
            (
                r#"{"kind": "cubik"}"#,
                &["kind: unknown congestion controller \"cubik\"", "\"cubic\""],
            ),
            (
                r#"{"beta": 0.5}"#,
                &["missing key \"kind\": one of bbr, bbr-tolerant, bbr1, cubic, reno, vegas, westwood"],
            ),
            (
                r#"{"kind": "cubic", "bta": 0.5}"#,
                &[
                    "bta: unknown key of congestion controller \"cubic\"; did you mean \"beta\"? known: beta, c",
                ],
            ),
            (
                r#"{"kind": "cubic", "beta": "high", "c": []}"#,
                &[
                    "beta: \"high\": must be a number",
                    "; c: a list: must be a number",
                ],
            ),
            (
                r#"{"kind": "bbr", "loss_threshold": 0.02}"#,
                &["loss_threshold: ", "in percent"],
            ),
            (
                "7",
                &["7 is not a congestion controller: use a name (bbr, bbr-tolerant, bbr1, cubic"],
            ),
            (r#"{"kind": 7}"#, &["kind: 7 is not a congestion controller"]),
        ] {
            let message = read(text).unwrap_err();
            for part in parts {
                assert!(message.contains(part), "{text}: {message}");
            }
        }
    }

    #[test]
    fn validates_ranges() {
        let problems = |text: &str| -> Vec<String> {
            let config = read(text).unwrap();
            config.validate().iter().map(Problem::to_string).collect()
        };
        assert_eq!(
            problems(r#"{"kind": "cubic", "beta": 1.5}"#),
            ["beta: 1.5 is out of range: 0.1 to 0.99"]
        );
        assert_eq!(
            problems(r#"{"kind": "fixed", "window": 0}"#),
            ["window: 0 is out of range: 1 to 4294967296 packets"]
        );
        assert_eq!(
            problems(r#"{"kind": "bbr", "loss_threshold": "0%", "probe_rtt_duration": "2s"}"#).len(),
            2
        );
        for entry in Registry::builtin().iter() {
            assert_eq!(CongestionConfig::named(entry.name()).unwrap().validate(), []);
        }
    }

    #[test]
    fn every_key_has_help() {
        let schema = serde_json::to_value(schemars::schema_for!(CongestionConfig)).unwrap();
        let tables = schema["anyOf"][1]["oneOf"].as_array().unwrap();
        assert_eq!(tables.len(), Registry::builtin().iter().count());
        for table in tables {
            assert_eq!(table["additionalProperties"], false, "{table}");
            for (key, property) in table["properties"].as_object().unwrap() {
                let help = property["description"].as_str();
                assert!(help.is_some_and(|help| !help.is_empty()), "{key}: {property}");
            }
        }
    }

    #[test]
    fn registers_external_controller() {
        #[derive(Debug, Default, serde::Serialize, serde::Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        struct Slow {
            /// Packets.
            packets: u64,
        }
        impl ControllerSettings for Slow {
            fn validate(&self) -> Vec<Problem> {
                Vec::new()
            }
            fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
                let fixed = FixedSettings {
                    window: self.packets,
                    rate: None,
                };
                fixed.build_for(context)
            }
        }
        let registry = Registry::builtin()
            .with(Registration::of::<Slow>("slow", "a test"))
            .unwrap();
        let config = registry
            .read(&serde_json::json!({"kind": "slow", "packets": 3}))
            .unwrap();
        assert_eq!(config.build(1000).window(), 3000);
        let again = registry.with(Registration::of::<Slow>("bbr", "another"));
        assert!(
            again
                .unwrap_err()
                .message
                .contains("\"bbr\" is registered already")
        );
    }
}
