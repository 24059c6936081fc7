//! Which protocol a flow runs: the vocabulary of `[[protocols]]`, one table a family.

use foundation::quantity::nearest;
use foundation::{Problem, Size};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use transport::arq::ArqConfig;
use transport::mptcp::MptcpConfig;
use transport::tcp::TcpConfig;

use crate::vocabulary::read_value;

/// A protocol and its settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ProtocolConfig {
    /// TCP.
    Tcp(TcpConfig),
    /// Multipath TCP.
    Mptcp(MptcpConfig),
    /// One of the ARQ protocols over UDP.
    Arq(ArqConfig),
    /// Datagrams without an answer.
    Udp(UdpConfig),
}

/// The one kind of [`UdpConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UdpKind {
    /// Datagrams at the rate of the workload, whatever becomes of them.
    Udp,
}

/// Datagrams at the rate of the workload, whatever becomes of them: cross traffic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UdpConfig {
    /// "udp": datagrams at the rate of the workload, whatever becomes of them.
    pub kind: UdpKind,
    /// Payload of a datagram. Default: "1000B".
    #[serde(default = "default_datagram")]
    pub mss: Size,
}

const fn default_datagram() -> Size {
    Size::from_bytes(1000)
}

/// The largest payload of an IPv4 datagram.
const MAX_DATAGRAM: u64 = 65_507;

impl UdpConfig {
    fn validate(&self) -> Vec<Problem> {
        if (1..=MAX_DATAGRAM).contains(&self.mss.bytes()) {
            return Vec::new();
        }
        let message = format!("\"{}\" is out of range: 1B to {MAX_DATAGRAM}B", self.mss);
        vec![Problem::new("mss", message)]
    }
}

/// All kinds, as users write them.
const KINDS: [&str; 6] = [
    "tcp",
    "mptcp",
    "udp",
    "stop-and-wait",
    "go-back-n",
    "selective-repeat",
];

/// Reads the keys of multipath TCP: those of TCP, and its own.
fn read_mptcp(table: Value) -> Result<MptcpConfig, Problem> {
    let Value::Object(table) = table else {
        return Err(Problem::new("", format!("{table} is no table with a kind")));
    };
    let known = MptcpConfig::keys();
    let (tcp, own) = MptcpConfig::split(table);
    let tcp = read_value(Value::Object(tcp)).map_err(|problem| {
        let message = problem
            .message
            .replacen("allowed: ", &format!("allowed: {}, ", known.join(", ")), 1);
        Problem::new(problem.key, message)
    })?;
    let own = read_value(Value::Object(own))?;
    Ok(MptcpConfig { tcp, own })
}

impl ProtocolConfig {
    /// Reads the table of a protocol.
    ///
    /// # Errors
    /// The first thing that is wrong: its key, and what is allowed there.
    pub fn read(table: Value) -> Result<Self, Problem> {
        let kind = table.get("kind").and_then(Value::as_str).unwrap_or_default();
        match kind {
            "tcp" => read_value(table).map(Self::Tcp),
            "mptcp" => read_mptcp(table).map(Self::Mptcp),
            "udp" => read_value(table).map(Self::Udp),
            "" | "stop-and-wait" | "go-back-n" | "selective-repeat" => read_value(table).map(Self::Arq),
            other => {
                let hint =
                    nearest(other, KINDS).map_or(String::new(), |near| format!("did you mean {near:?}? "));
                let message = format!("{other:?} is not known: {hint}allowed: {}", KINDS.join(", "));
                Err(Problem::new("kind", message))
            }
        }
    }

    /// Everything that is wrong with these settings.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        match self {
            Self::Tcp(config) => config.validate(),
            Self::Mptcp(config) => config.validate(),
            Self::Arq(config) => config.validate(),
            Self::Udp(config) => config.validate(),
        }
    }
}

/// For the schema alone: reading goes through [`ProtocolConfig::read`], whose errors name their key.
impl JsonSchema for ProtocolConfig {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Protocol".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let tables = [
            TcpConfig::json_schema(generator),
            MptcpConfig::json_schema(generator),
            ArqConfig::json_schema(generator),
            UdpConfig::json_schema(generator),
        ];
        json_schema!({ "description": "a protocol and its settings", "anyOf": tables })
    }
}
