//! The specification of one trial.

use foundation::{Problem, Streams};
use network::topology::{Topology, TopologyConfig};
use network::{PathConfig, PathSpec};
use serde::Serialize;
use serde_json::Value;
use transport::arq::ArqConfig;

use crate::protocol::{MAX_DATAGRAM, ProtocolConfig};
use crate::traffic::TrafficConfig;
use crate::vocabulary::read_value;
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

/// Everything that a trial depends on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialSpec {
    /// The path between two hosts, or a topology.
    #[serde(flatten)]
    pub network: NetworkConfig,
    /// The protocol of the measured flows, and its settings.
    pub protocol: ProtocolConfig,
    /// What is sent.
    pub workload: WorkloadConfig,
    /// What else is on the network.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<TrafficConfig>,
    /// The study's seed.
    pub seed: u64,
    /// The number of the trial in its cell.
    pub trial: u64,
}

/// Why a specification cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// It is not a specification.
    #[error("{0}")]
    Unreadable(String),
    /// Its settings are out of range.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<Problem>),
}

impl From<Problem> for SpecError {
    fn from(problem: Problem) -> Self {
        Self::Unreadable(problem.to_string())
    }
}

/// What of the workload does not go with the protocol.
pub(crate) fn fit(protocol: &ProtocolConfig, workload: &WorkloadConfig) -> Option<Problem> {
    if let ProtocolConfig::Tcp(config) = protocol
        && config.path.is_some()
        && workload.each_path == Some(true)
    {
        let message =
            "true gives each path flows of its own, which choose none: leave it out, or the protocol's path";
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
        WorkloadKind::Bulk if !is_echo => Some(Problem::new(
            "rate",
            "the key is missing: udp has no rate of its own",
        )),
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

/// What requests and responses that are one datagram each cannot be.
fn messages_fit(protocol: &ProtocolConfig, workload: &WorkloadConfig) -> Option<Problem> {
    let (request, response) = workload.exchange();
    for (key, bytes) in [("request_size", request), ("response_size", response)] {
        if bytes > MAX_DATAGRAM {
            let message = format!("\"{bytes}B\" is more than a datagram holds: at most {MAX_DATAGRAM}B");
            return Some(Problem::new(key, message));
        }
    }
    match protocol {
        ProtocolConfig::Icmp(_) if request != response => {
            let message =
                format!("\"{response}B\" is not what icmp echoes: it must be request_size, \"{request}B\"");
            Some(Problem::new("response_size", message))
        }
        ProtocolConfig::Udp(config) if config.mss.is_some() => {
            let message = "a request and a response are one datagram each: leave out mss of the protocol udp";
            Some(Problem::new("kind", message))
        }
        _ => None,
    }
}

/// Reads a file that a specification names: a recorded trace, a table of sizes.
pub(crate) fn load(file: &str) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| error.to_string())
}

impl TrialSpec {
    /// Reads a specification from JSON and checks its settings.
    ///
    /// # Errors
    /// [`SpecError`] with everything that is wrong.
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
                    "path and topology are given: a trial has one or the other",
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

    /// Hosts and links; a recorded trace is read from its file.
    ///
    /// # Errors
    /// [`SpecError::Invalid`] with everything that is wrong with the network.
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

    /// The parts of a trial that processes with real sockets can run: one file over a path, by an ARQ protocol.
    ///
    /// # Errors
    /// What they cannot run, and everything that is wrong with the path.
    pub fn transfer(&self) -> Result<(PathSpec, &ArqConfig, u64), SpecError> {
        let only = |key: &str, what: &str| SpecError::Invalid(vec![Problem::new(key, what)]);
        let NetworkConfig::Path(path) = &self.network else {
            return Err(only("topology", "processes on real sockets run over a path only"));
        };
        let ProtocolConfig::Arq(protocol) = &self.protocol else {
            return Err(only(
                "protocol.kind",
                "processes on real sockets run ARQ protocols only",
            ));
        };
        let (WorkloadKind::File, Some(size), None) =
            (self.workload.kind, self.workload.size, self.traffic.first())
        else {
            return Err(only(
                "workload",
                "processes on real sockets carry one file only, without traffic",
            ));
        };
        let given = self.workload.given();
        if let Some(key) = given.keys().find(|key| !["kind", "size"].contains(&key.as_str())) {
            let message = "processes on real sockets carry one file at once: leave it out";
            return Err(only(&format!("workload.{key}"), message));
        }
        let within = |problems: Vec<Problem>| problems.into_iter().map(|p| p.within("path")).collect();
        let links = path
            .resolve(&mut load)
            .map_err(|problems| SpecError::Invalid(within(problems)))?;
        Ok((links, protocol, size.bytes()))
    }

    /// The random streams of this trial. They depend on seed and trial alone: protocols that are
    /// compared meet the same losses.
    #[must_use]
    pub const fn streams(&self) -> Streams {
        Streams::new(self.seed, self.trial)
    }
}
