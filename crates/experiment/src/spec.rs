//! The specification of one trial.

use foundation::kinds::read_value;
use foundation::{Problem, Streams};
use network::topology::{Topology, TopologyConfig};
use network::{PathConfig, PathSpec};
use serde::Serialize;
use serde_json::Value;
use transport::arq::ArqConfig;

use crate::protocol::{MAX_DATAGRAM, ProtocolConfig};
use crate::traffic::TrafficConfig;
use crate::workload::{WorkloadConfig, WorkloadKind};

/// The network of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkConfig {
    /// Two hosts.
    Path(Box<PathConfig>),
    /// Hosts, routers and links of any shape.
    Topology(Box<TopologyConfig>),
}

/// The complete input of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialSpec {
    /// Path or topology.
    #[serde(flatten)]
    pub network: NetworkConfig,
    /// Protocol of the measured flows.
    pub protocol: ProtocolConfig,
    /// Workload of the measured flows.
    pub workload: WorkloadConfig,
    /// Background traffic.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<TrafficConfig>,
    /// Seed of the study.
    pub seed: u64,
    /// Number of the trial in its cell.
    pub trial: u64,
}

/// An error in a specification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The format is wrong.
    #[error("{0}")]
    Unreadable(String),
    /// Settings are invalid.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<Problem>),
}

impl From<Problem> for SpecError {
    fn from(problem: Problem) -> Self {
        Self::Unreadable(problem.to_string())
    }
}

/// Returns the first conflict between protocol and workload.
pub(crate) fn fit(protocol: &ProtocolConfig, workload: &WorkloadConfig) -> Option<Problem> {
    if let ProtocolConfig::Tcp(config) = protocol
        && config.path.is_some()
        && workload.each_path == Some(true)
    {
        let message =
            "true excludes path of the protocol, since each path has its own flows: remove one of them";
        return Some(Problem::new("each_path", message));
    }
    let name = match protocol {
        ProtocolConfig::Udp(_) => "udp",
        ProtocolConfig::Icmp(_) => "icmp",
        _ => return None,
    };
    let is_echo = matches!(protocol, ProtocolConfig::Icmp(_));
    match workload.kind {
        WorkloadKind::RequestResponse => messages_fit(protocol, workload),
        WorkloadKind::OnOff if !is_echo => None,
        WorkloadKind::Bulk if workload.rate.is_some() && !is_echo => None,
        WorkloadKind::Bulk if !is_echo => Some(Problem::new("rate", "the key is missing: required for udp")),
        other => {
            let others = if is_echo {
                ""
            } else {
                ", bulk (with a rate), on-off"
            };
            let message = format!(
                "{name} cannot carry {:?}: allowed: request-response{others}",
                other.name()
            );
            Some(Problem::new("kind", message))
        }
    }
}

/// Returns the first problem of requests and responses of one datagram each.
fn messages_fit(protocol: &ProtocolConfig, workload: &WorkloadConfig) -> Option<Problem> {
    let (request, response) = workload.exchange();
    for (key, bytes) in [("request_size", request), ("response_size", response)] {
        if bytes > MAX_DATAGRAM {
            let message =
                format!("\"{bytes}B\" is out of range: at most {MAX_DATAGRAM}B, the size of a datagram");
            return Some(Problem::new(key, message));
        }
    }
    match protocol {
        ProtocolConfig::Icmp(_) if request != response => {
            let message =
                format!("\"{response}B\" is not possible: icmp echoes request_size = \"{request}B\"");
            Some(Problem::new("response_size", message))
        }
        ProtocolConfig::Udp(config) if config.mss.is_some() => {
            let message = "request-response over udp sends one datagram each: remove mss of the protocol";
            Some(Problem::new("kind", message))
        }
        _ => None,
    }
}

/// Reads a file named in a specification: a recorded trace or a table of sizes.
pub(crate) fn load(file: &str) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| error.to_string())
}

impl TrialSpec {
    /// Reads and validates a specification in JSON.
    ///
    /// # Errors
    /// [`SpecError`] with all problems.
    pub fn from_json(json: &str) -> Result<Self, SpecError> {
        let spec = Self::read(json)?;
        let mut problems: Vec<Problem> = Vec::new();
        problems.extend(spec.protocol.validate().into_iter().map(|p| p.within("protocol")));
        problems.extend(spec.workload.validate().into_iter().map(|p| p.within("workload")));
        problems.extend(fit(&spec.protocol, &spec.workload).map(|p| p.within("workload")));
        for (number, traffic) in spec.traffic.iter().enumerate() {
            let place = format!("traffic.{number}");
            problems.extend(traffic.validate().into_iter().map(|p| p.within(&place)));
        }
        if problems.is_empty() {
            Ok(spec)
        } else {
            Err(SpecError::Invalid(problems))
        }
    }

    fn read(json: &str) -> Result<Self, Problem> {
        let value: Value = serde_json::from_str(json).map_err(|error| Problem::new("", error.to_string()))?;
        let Value::Object(mut keys) = value else {
            return Err(Problem::new("", "a trial's specification is a table"));
        };
        let mut take = |key: &str| keys.remove(key);
        let required =
            |key: &str, value: Option<Value>| value.ok_or_else(|| Problem::new(key, "the key is missing"));
        let network = match (take("path"), take("topology")) {
            (Some(_), Some(_)) => {
                return Err(Problem::new(
                    "topology",
                    "path and topology exclude each other: remove one of them",
                ));
            }
            (None, Some(topology)) => {
                NetworkConfig::Topology(read_value(topology).map_err(|p| p.within("topology"))?)
            }
            (path, None) => {
                let path = path.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
                NetworkConfig::Path(read_value(path).map_err(|p| p.within("path"))?)
            }
        };
        let protocol = required("protocol", take("protocol"))?;
        let workload = required("workload", take("workload"))?;
        let traffic: Vec<Value> = match take("traffic") {
            None => Vec::new(),
            Some(list) => read_value(list).map_err(|p| p.within("traffic"))?,
        };
        let seed = required("seed", take("seed"))?;
        let trial = take("trial").unwrap_or(Value::from(0));
        if let Some(key) = keys.keys().next() {
            let message = "unknown key: allowed: path, topology, protocol, workload, traffic, seed, trial";
            return Err(Problem::new(key, message));
        }
        let traffic: Result<Vec<TrafficConfig>, Problem> = traffic
            .into_iter()
            .enumerate()
            .map(|(number, table)| {
                TrafficConfig::read(table).map_err(|problem| problem.within(&format!("traffic.{number}")))
            })
            .collect();
        Ok(Self {
            network,
            protocol: ProtocolConfig::read(protocol).map_err(|p| p.within("protocol"))?,
            workload: read_value(workload).map_err(|p| p.within("workload"))?,
            traffic: traffic?,
            seed: read_value(seed).map_err(|p| p.within("seed"))?,
            trial: read_value(trial).map_err(|p| p.within("trial"))?,
        })
    }

    /// Builds the topology; reads recorded traces from their files.
    ///
    /// # Errors
    /// [`SpecError::Invalid`] with all problems of the network.
    pub fn topology(&self) -> Result<Topology, SpecError> {
        let within = |table: &'static str| {
            move |problems: Vec<Problem>| {
                SpecError::Invalid(
                    problems
                        .into_iter()
                        .map(|problem| problem.within(table))
                        .collect(),
                )
            }
        };
        match &self.network {
            NetworkConfig::Path(path) => {
                let links = path.links(&mut load).map_err(within("path"))?;
                Ok(Topology::chain(&links))
            }
            NetworkConfig::Topology(topology) => topology.resolve(&mut load).map_err(within("topology")),
        }
    }

    /// Returns the parts of a trial in the world relay: path, ARQ protocol, and file size.
    ///
    /// # Errors
    /// What the relay does not support, and all problems of the path.
    pub fn transfer(&self) -> Result<(PathSpec, &ArqConfig, u64), SpecError> {
        let only = |key: &str, what: &str| SpecError::Invalid(vec![Problem::new(key, what)]);
        let NetworkConfig::Path(path) = &self.network else {
            return Err(only("topology", "the relay supports a path only"));
        };
        let ProtocolConfig::Arq(protocol) = &self.protocol else {
            return Err(only("protocol.kind", "the relay supports ARQ protocols only"));
        };
        let (WorkloadKind::File, Some(size), None) =
            (self.workload.kind, self.workload.size, self.traffic.first())
        else {
            return Err(only(
                "workload",
                "the relay supports one file only, without traffic",
            ));
        };
        let given = self.workload.given();
        if let Some(key) = given.keys().find(|key| !["kind", "size"].contains(&key.as_str())) {
            let message = "the relay sends one file immediately: remove this key";
            return Err(only(&format!("workload.{key}"), message));
        }
        let within = |problems: Vec<Problem>| problems.into_iter().map(|p| p.within("path")).collect();
        let links = path
            .resolve(&mut load)
            .map_err(|problems| SpecError::Invalid(within(problems)))?;
        Ok((links, protocol, size.bytes()))
    }

    /// Returns the random streams of this trial. They depend only on seed and trial, so that compared protocols see the same
    /// losses.
    #[must_use]
    pub const fn streams(&self) -> Streams {
        Streams::new(self.seed, self.trial)
    }
}
