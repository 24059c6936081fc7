//! Keys of a protocol with `kind = "mptcp"`.

use std::borrow::Cow;

use foundation::kinds::{self, Written};
use foundation::reading;
use foundation::{Duration, Problem, Size, omit_unset};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::policy::PolicyConfig;
use super::scheduler::{RoundRobin, SchedulerConfig};
use crate::congestion::Registry;
use crate::tcp::{Profile, TcpConfig};

/// When data of one subflow is assigned to another one too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReinjectionTrigger {
    /// At expiration of the subflow's retransmission timer, and when the subflow closes.
    Timeout,
    /// When the subflow closes.
    Failure,
}

/// When further subflows may be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JoinAfter {
    /// After a DATA_ACK of the peer (RFC 8684, section 3.1).
    Established,
    /// After the handshake of the first subflow, one round trip earlier.
    Handshake,
}

omit_unset! {
    /// Keys in addition to those of TCP.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct MptcpKeys {
        /// Packet scheduler, which selects the subflow of each segment. Default: "min-rtt", ns3 "round-robin".
        pub scheduler: Option<SchedulerConfig>,
        /// Path policy, which selects paths and the start of subflows. Default: "all".
        pub policy: Option<PolicyConfig>,
        /// Maximum number of subflows of a connection. Default: 64.
        #[schemars(range(min = 1, max = 64))]
        pub subflows: Option<u32>,
        /// When data of a subflow is sent on another one too: timeout (of the subflow) or failure. Default: "timeout", ns3 "failure".
        pub reinjection: Option<ReinjectionTrigger>,
        /// When further subflows may be opened: established (the peer acknowledged data) or handshake. Default: "established", ns3 "handshake".
        pub join_after: Option<JoinAfter>,
        /// With a full receive window, retransmit the oldest data on a faster subflow (Raiciu et al., NSDI 2012, section 4.2). Needs shared_window. Default: false.
        pub opportunistic_retransmission: Option<bool>,
        /// With opportunistic_retransmission: reduce the window of the subflow that carried that data, as after a congestion mark. Default: false.
        pub penalisation: Option<bool>,
        /// Delay before a failed subflow is replaced by another one on its path; doubles with each failure, up to one minute. Default: no replacement, as with Linux's in-kernel path manager.
        pub rejoin: Option<Duration>,
        /// One receive window for the whole connection (RFC 8684) instead of one for each subflow. Default: true, ns3 false.
        pub shared_window: Option<bool>,
    }
}

/// Names of the fields of [`MptcpKeys`].
const KEYS: [&str; 9] = [
    "scheduler",
    "policy",
    "subflows",
    "reinjection",
    "join_after",
    "rejoin",
    "opportunistic_retransmission",
    "penalisation",
    "shared_window",
];

/// Maximum number of subflows of a connection.
pub(super) const MOST_SUBFLOWS: u32 = 64;

/// Settings of multipath TCP: the TCP settings of each subflow, and the additional keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MptcpConfig {
    /// TCP settings as configured; buffers apply to the whole connection.
    pub tcp: TcpConfig,
    /// Additional keys.
    pub own: MptcpKeys,
}

/// Value of `kind`.
const KIND: &str = "mptcp";

impl MptcpConfig {
    /// Keys that running connections take over ([`Connection::reconfigure`](super::Connection::reconfigure)).
    pub const LIVE_KEYS: [&'static str; 5] =
        ["scheduler", "congestion", "min_rto", "delayed_ack", "ack_every"];

    /// Creates settings with this profile's defaults.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self {
            tcp: TcpConfig::new(profile),
            own: MptcpKeys::default(),
        }
    }

    fn is_ns3(&self) -> bool {
        self.tcp.profile == Profile::Ns3
    }

    /// Returns the scheduler.
    #[must_use]
    pub fn scheduler(&self) -> SchedulerConfig {
        self.own.scheduler.clone().unwrap_or_else(|| {
            if self.is_ns3() {
                SchedulerConfig::RoundRobin(RoundRobin {})
            } else {
                SchedulerConfig::default()
            }
        })
    }

    /// Returns the path policy.
    #[must_use]
    pub fn policy(&self) -> PolicyConfig {
        self.own.policy.clone().unwrap_or_default()
    }

    /// Returns the maximum number of subflows.
    #[must_use]
    pub fn subflows(&self) -> usize {
        self.own.subflows.unwrap_or(MOST_SUBFLOWS) as usize
    }

    /// Returns the trigger of reinjection.
    #[must_use]
    pub fn reinjection(&self) -> ReinjectionTrigger {
        self.own.reinjection.unwrap_or(if self.is_ns3() {
            ReinjectionTrigger::Failure
        } else {
            ReinjectionTrigger::Timeout
        })
    }

    /// Returns when further subflows may be opened.
    #[must_use]
    pub fn join_after(&self) -> JoinAfter {
        self.own.join_after.unwrap_or(if self.is_ns3() {
            JoinAfter::Handshake
        } else {
            JoinAfter::Established
        })
    }

    /// Returns whether all subflows share one receive window.
    #[must_use]
    pub fn shared_window(&self) -> bool {
        self.own.shared_window.unwrap_or(!self.is_ns3())
    }

    /// Returns whether the receive window of the connection grows with the data read. Only if configured: the profile
    /// has no effect.
    #[must_use]
    pub fn window_grows(&self) -> bool {
        self.shared_window() && self.tcp.receive_autotuning == Some(true)
    }

    /// Returns the TCP settings with the profile's MPTCP defaults. ns-3 starts with a window of one segment, offers
    /// 65,535 bytes without scaling, and has a minimum RTO of 0.2 s and an initial RTO of 3 s. The default controller
    /// is LIA (RFC 6356), except under Linux, which has none.
    #[must_use]
    pub fn filled(&self) -> TcpConfig {
        let mut tcp = self.tcp.clone();
        if self.is_ns3() {
            tcp.initial_window.get_or_insert(1);
            tcp.min_rto.get_or_insert(Duration::from_millis(200));
            tcp.initial_rto.get_or_insert(Duration::from_secs(3));
            tcp.window_scaling.get_or_insert(false);
            tcp.receive_buffer.get_or_insert(Size::from_bytes(65_535));
        }
        if tcp.congestion.is_none() && tcp.profile != Profile::Linux {
            // ns-3 starts with an ssthresh of 65,535 bytes.
            let threshold = self.is_ns3().then(|| json!("65535B"));
            let lia = json!({ "kind": "lia", "initial_threshold": threshold });
            tcp.congestion = Registry::builtin().read(&lia).ok();
        }
        tcp
    }

    /// Returns the keys of the receive window that have no effect with the others.
    fn window_problems(&self) -> impl Iterator<Item = Problem> {
        let own = &self.own;
        let shared = self.shared_window();
        let opportunistic = own.opportunistic_retransmission == Some(true);
        [
            (
                opportunistic && !shared,
                "opportunistic_retransmission",
                "has no effect with a window for each subflow: set shared_window = true",
            ),
            (
                shared && self.tcp.initial_receive_window.is_some() && !self.window_grows(),
                "initial_receive_window",
                "has no effect while the window is all of receive_buffer: set receive_autotuning = true",
            ),
            (
                own.penalisation == Some(true) && !opportunistic,
                "penalisation",
                "has no effect without opportunistic_retransmission = true: set that too",
            ),
        ]
        .into_iter()
        .filter(|(unused, ..)| *unused)
        .map(|(_, key, message)| Problem::new(key, message))
    }

    /// Returns all problems of these settings.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = self.filled().validate();
        if self.tcp.path.is_some() {
            problems.push(Problem::new(
                "path",
                "multipath TCP has no key path: set policy instead",
            ));
        }
        for (key, is_on) in [("fast_open", self.tcp.fast_open), ("ttcp", self.tcp.ttcp)] {
            if is_on {
                problems.push(Problem::new(
                    key,
                    "not supported by multipath TCP: remove the key",
                ));
            }
        }
        let (scheduler, policy) = (self.scheduler().validate(), self.policy().validate());
        problems.extend(scheduler.into_iter().map(|problem| problem.within("scheduler")));
        problems.extend(policy.into_iter().map(|problem| problem.within("policy")));
        let subflows = self.own.subflows.unwrap_or(1);
        let valid = (1..=MOST_SUBFLOWS).contains(&subflows);
        problems.extend(Problem::range("subflows", subflows, valid, "1 to 64"));
        problems.extend(self.window_problems());
        if self.own.rejoin.is_some_and(Duration::is_zero) {
            problems.push(Problem::new("rejoin", "0s is out of range: above 0s"));
        }
        problems
    }
}

impl Written for MptcpConfig {
    fn expected() -> Cow<'static, str> {
        "a table with kind = \"mptcp\" and the keys of TCP and multipath TCP".into()
    }

    fn from_table(mut table: Map<String, Value>) -> Result<Self, Problem> {
        if table.insert(kinds::KIND.into(), "tcp".into()) != Some(KIND.into()) {
            return Err(Problem::new(kinds::KIND, format!("expected {KIND:?}")));
        }
        let own: Map<String, Value> = KEYS
            .iter()
            .filter_map(|&key| Some((key.to_owned(), table.remove(key)?)))
            .collect();
        let tcp = reading::read_value(Value::Object(table)).map_err(|problem| {
            let allowed = format!("allowed: {}, ", KEYS.join(", "));
            Problem::new(problem.key, problem.message.replacen("allowed: ", &allowed, 1))
        })?;
        let own = reading::read_value(Value::Object(own))?;
        Ok(Self { tcp, own })
    }
}

impl<'de> Deserialize<'de> for MptcpConfig {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        kinds::deserialize(from)
    }
}

impl Serialize for MptcpConfig {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        let table = |value: Result<Value, serde_json::Error>| match value {
            Ok(Value::Object(table)) => Ok(table),
            Ok(_) => Err(S::Error::custom("settings must be a table")),
            Err(error) => Err(S::Error::custom(error)),
        };
        let mut all = table(serde_json::to_value(&self.tcp))?;
        all.insert("kind".into(), KIND.into());
        all.extend(table(serde_json::to_value(&self.own))?);
        all.serialize(to)
    }
}

impl JsonSchema for MptcpConfig {
    fn schema_name() -> Cow<'static, str> {
        "Mptcp".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut all = TcpConfig::json_schema(generator);
        let own = MptcpKeys::json_schema(generator);
        let description = "Multipath TCP (RFC 8684): the TCP settings of its subflows and its own; buffers apply to the whole connection.";
        all.insert("description".into(), description.into());
        if let (Some(Value::Object(all)), Some(Value::Object(own))) =
            (all.get_mut("properties"), own.get("properties"))
        {
            let kind = serde_json::json!({
                "description": "\"mptcp\": multipath TCP (RFC 8684).", "type": "string", "const": KIND,
            });
            for key in ["path", "fast_open", "ttcp"] {
                all.remove(key);
            }
            all.insert("kind".into(), kind);
            all.extend(own.clone());
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<MptcpConfig, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn reads_and_writes_keys_of_tcp_and_mptcp() {
        let text = r#"{"kind": "mptcp", "profile": "rfc", "mss": "1000B", "scheduler": "round-robin"}"#;
        let config = read(text).unwrap();
        assert_eq!(config.tcp.mss, Some(Size::from_bytes(1000)));
        assert_eq!(config.scheduler(), SchedulerConfig::RoundRobin(RoundRobin {}));
        assert_eq!(config.validate(), []);
        let written = serde_json::to_string(&config).unwrap();
        assert_eq!(read(&written).unwrap(), config, "{written}");
        assert!(read(r#"{"kind": "mptcp", "schedular": "ecf"}"#).is_err());
        assert!(read(r#"{"kind": "tcp"}"#).is_err());
        let written = serde_json::to_value(MptcpKeys::json_schema(&mut SchemaGenerator::default())).unwrap();
        let mut names: Vec<_> = written["properties"].as_object().unwrap().keys().collect();
        names.sort();
        let mut known = KEYS.to_vec();
        known.sort_unstable();
        assert_eq!(names, known);
    }

    #[test]
    fn profiles_are_valid() {
        for profile in [Profile::Linux, Profile::Rfc, Profile::Ns3] {
            assert_eq!(MptcpConfig::new(profile).validate(), [], "{profile:?}");
        }
        let ns3 = MptcpConfig::new(Profile::Ns3);
        assert_eq!(ns3.scheduler().kind(), "round-robin");
        assert!(!ns3.shared_window());
        let bad = read(r#"{"kind": "mptcp", "subflows": 0}"#).unwrap();
        assert_eq!(
            bad.validate()[0].to_string(),
            "subflows: 0 is out of range: 1 to 64"
        );
        let early = read(r#"{"kind": "mptcp", "fast_open": true}"#).unwrap();
        assert!(early.validate()[0].to_string().starts_with("fast_open: "));
    }
}
