//! The keys of `[[protocols]]`: one table per protocol family.

use std::borrow::Cow;

use foundation::kinds::{self, KIND, Written};
use foundation::quantity::nearest;
use foundation::reading::read_value;
use foundation::{Duration, Problem, Size};
use quic::QuicConfig;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use transport::arq::ArqConfig;
use transport::congestion::Registry;
use transport::mptcp::MptcpConfig;
use transport::tcp::TcpConfig;

use crate::other_family::key_of_other_family;

/// A protocol with its settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ProtocolConfig {
    /// TCP.
    Tcp(TcpConfig),
    /// Multipath TCP.
    Mptcp(MptcpConfig),
    /// One of the ARQ protocols over UDP.
    Arq(ArqConfig),
    /// QUIC.
    Quic(QuicConfig),
    /// Datagrams.
    Udp(UdpConfig),
    /// ICMP echo.
    Icmp(IcmpConfig),
}

/// The one kind of [`UdpConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UdpKind {
    /// Datagrams without feedback, at the rate of the workload or as requests and responses.
    Udp,
}

/// UDP: datagrams without feedback, at the rate of the workload (cross traffic) or one per request and response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UdpConfig {
    /// Protocol "udp": datagrams without feedback, at the rate of the workload or one per request and response.
    pub kind: UdpKind,
    /// Payload of a datagram for the workloads bulk and on-off, from "1B" to "65507B"; default "1000B".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss: Option<Size>,
    /// Request-response: how long the client waits for a response before the request counts as unanswered, from "1ms" to "1d"; default "2s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_timeout: Option<Duration>,
}

impl UdpConfig {
    /// Returns the payload of a datagram for workloads without requests.
    #[must_use]
    pub fn datagram(&self) -> Size {
        self.mss.unwrap_or(Size::from_bytes(1000))
    }
}

/// The one kind of [`IcmpConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IcmpKind {
    /// ICMP echo requests and replies (RFC 792), like ping.
    Icmp,
}

/// ICMP: echo requests and replies (RFC 792), like ping; the kernel of the peer replies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IcmpConfig {
    /// Protocol "icmp": echo requests and replies (RFC 792), like ping.
    pub kind: IcmpKind,
    /// How long the client waits for a response before the request counts as unanswered, from "1ms" to "1d"; default "2s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_timeout: Option<Duration>,
}

/// The default of `response_timeout`. Datagrams are not retransmitted.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The shortest and the longest `response_timeout`.
const TIMEOUTS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(86_400));

/// Returns the problem of a `response_timeout` out of range.
fn check_timeout(timeout: Option<Duration>) -> Option<Problem> {
    let (least, most) = TIMEOUTS;
    let timeout = timeout?;
    let valid = (least..=most).contains(&timeout);
    Problem::range(
        "response_timeout",
        format_args!("\"{timeout}\""),
        valid,
        &format!("\"{least}\" to \"{most}\""),
    )
}

/// The largest payload of an IPv4 datagram.
pub(crate) const MAX_DATAGRAM: u64 = 65_507;

impl UdpConfig {
    fn validate(&self) -> Vec<Problem> {
        let size = self.datagram();
        let valid = (1..=MAX_DATAGRAM).contains(&size.bytes());
        let size = Problem::range(
            "mss",
            format_args!("\"{size}\""),
            valid,
            &format!("1B to {MAX_DATAGRAM}B"),
        );
        size.into_iter()
            .chain(check_timeout(self.response_timeout))
            .collect()
    }
}

/// All kinds in study files.
const KINDS: [&str; 8] = [
    "tcp",
    "mptcp",
    "quic",
    "udp",
    "icmp",
    "stop-and-wait",
    "go-back-n",
    "selective-repeat",
];

impl Written for ProtocolConfig {
    fn expected() -> Cow<'static, str> {
        "a table with a kind such as { kind = \"tcp\" }".into()
    }

    fn from_table(table: Map<String, Value>) -> Result<Self, Problem> {
        let kind = table
            .get(KIND)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if let Some(problem) = key_of_other_family(&kind, &table) {
            return Err(problem);
        }
        let table = Value::Object(table);
        match kind.as_str() {
            "tcp" => read_value(table).map(Self::Tcp),
            "mptcp" => read_value(table).map(Self::Mptcp),
            "quic" => read_value(table).map(Self::Quic),
            "udp" => read_value(table).map(Self::Udp),
            "icmp" => read_value(table).map(Self::Icmp),
            "" | "stop-and-wait" | "go-back-n" | "selective-repeat" => read_value(table).map(Self::Arq),
            other => {
                let controller = || {
                    let keys = Registry::builtin().tcp_keys(other)?;
                    Some(format!("write kind = \"tcp\", {keys}; "))
                };
                let hint = nearest(other, KINDS)
                    .map(|near| format!("did you mean {near:?}? "))
                    .or_else(controller)
                    .unwrap_or_default();
                let message = format!("{other:?} is not known: {hint}allowed: {}", KINDS.join(", "));
                Err(Problem::new(KIND, message))
            }
        }
    }
}

impl<'de> Deserialize<'de> for ProtocolConfig {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        kinds::deserialize(from)
    }
}

impl ProtocolConfig {
    /// Returns the time after which a request in a datagram counts as unanswered, if it is set.
    #[must_use]
    pub const fn response_timeout(&self) -> Option<Duration> {
        match self {
            Self::Udp(config) => config.response_timeout,
            Self::Icmp(config) => config.response_timeout,
            Self::Tcp(_) | Self::Mptcp(_) | Self::Arq(_) | Self::Quic(_) => None,
        }
    }

    /// Returns all problems of the settings.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        match self {
            Self::Tcp(config) => [config.validate(), config.keys_without_effect()].concat(),
            Self::Mptcp(config) => [config.validate(), config.tcp.keys_without_effect()].concat(),
            Self::Arq(config) => config.validate(),
            Self::Quic(config) => config.validate(),
            Self::Udp(config) => config.validate(),
            Self::Icmp(config) => check_timeout(config.response_timeout).into_iter().collect(),
        }
    }
}

impl JsonSchema for ProtocolConfig {
    fn schema_name() -> Cow<'static, str> {
        "Protocol".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let tables = [
            TcpConfig::json_schema(generator),
            MptcpConfig::json_schema(generator),
            ArqConfig::json_schema(generator),
            QuicConfig::json_schema(generator),
            UdpConfig::json_schema(generator),
            IcmpConfig::json_schema(generator),
        ];
        json_schema!({ "description": "a protocol and its settings", "anyOf": tables })
    }
}
