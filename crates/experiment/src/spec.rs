//! The specification of one trial.

use foundation::confinement::permit;
use foundation::reading::read;
use foundation::{Instant, Problem, Streams};
use network::topology::{Topology, TopologyConfig};
use network::{PathConfig, PathSpec};
use quic::QuicConfig;
use serde::{Deserialize, Serialize};
use transport::arq::ArqConfig;

use crate::fit::fit;
use crate::protocol::ProtocolConfig;
use crate::support::{WorldKind, refuse};
use crate::traffic::TrafficConfig;
use crate::workload::WorkloadConfig;

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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Keys")]
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
    /// Names of the links with metrics of their own, in addition to those of the bottlenecks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    /// Seed of the study.
    pub seed: u64,
    /// Number of the trial in its cell.
    pub trial: u64,
}

/// The keys of a specification.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    path: Option<Box<PathConfig>>,
    topology: Option<Box<TopologyConfig>>,
    protocol: ProtocolConfig,
    workload: WorkloadConfig,
    #[serde(default)]
    traffic: Vec<TrafficConfig>,
    #[serde(default)]
    links: Vec<String>,
    seed: u64,
    #[serde(default)]
    trial: u64,
}

impl TryFrom<Keys> for TrialSpec {
    type Error = &'static str;

    fn try_from(keys: Keys) -> Result<Self, &'static str> {
        let network = match (keys.path, keys.topology) {
            (Some(_), Some(_)) => {
                return Err("topology: path and topology exclude each other: remove one of them");
            }
            (None, Some(topology)) => NetworkConfig::Topology(topology),
            (path, None) => NetworkConfig::Path(path.unwrap_or_default()),
        };
        Ok(Self {
            network,
            protocol: keys.protocol,
            workload: keys.workload,
            traffic: keys.traffic,
            links: keys.links,
            seed: keys.seed,
            trial: keys.trial,
        })
    }
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

impl SpecError {
    /// Returns the error of problems of a table.
    pub fn within(problems: impl IntoIterator<Item = Problem>, table: &str) -> Self {
        Self::Invalid(Problem::all_within(problems, table))
    }
}

impl From<Problem> for SpecError {
    fn from(problem: Problem) -> Self {
        Self::Unreadable(problem.to_string())
    }
}

/// Reads a file named in a specification: a recorded trace or a table of sizes.
pub(crate) fn load(file: &str) -> Result<String, String> {
    permit(file)?;
    std::fs::read_to_string(file).map_err(|error| error.to_string())
}

/// The protocol of a transfer in the world relay.
#[derive(Clone, Copy, Debug)]
pub enum TransferProtocol<'s> {
    /// A protocol of this project.
    Arq(&'s ArqConfig),
    /// QUIC.
    Quic(&'s QuicConfig),
}

impl TrialSpec {
    /// Reads and validates a specification in JSON.
    ///
    /// # Errors
    /// [`SpecError`] with all problems.
    pub fn from_json(json: &str) -> Result<Self, SpecError> {
        let spec: Self = read(json)?;
        let mut problems = Problem::all_within(spec.protocol.validate(), "protocol");
        problems.extend(Problem::all_within(spec.workload.validate(), "workload"));
        problems.extend(Problem::all_within(
            fit(&spec.protocol, &spec.workload),
            "workload",
        ));
        for (number, traffic) in spec.traffic.iter().enumerate() {
            problems.extend(Problem::all_within(
                traffic.validate(),
                &format!("traffic.{number}"),
            ));
        }
        if problems.is_empty() {
            Ok(spec)
        } else {
            Err(SpecError::Invalid(problems))
        }
    }

    /// Builds the topology; reads recorded traces from their files.
    ///
    /// # Errors
    /// [`SpecError::Invalid`] with all problems of the network.
    pub fn topology(&self) -> Result<Topology, SpecError> {
        match &self.network {
            NetworkConfig::Path(path) => {
                let links = path.links(&mut load);
                Ok(Topology::chain(
                    &links.map_err(|found| SpecError::within(found, "path"))?,
                ))
            }
            NetworkConfig::Topology(topology) => {
                let resolved = topology.resolve(&mut load);
                resolved.map_err(|found| SpecError::within(found, "topology"))
            }
        }
    }

    /// Returns the parts of a trial in the world relay: path, protocol, and file size.
    ///
    /// # Errors
    /// What the relay does not support, and all problems of the path.
    pub fn transfer(&self) -> Result<(PathSpec, TransferProtocol<'_>, u64), SpecError> {
        refuse(WorldKind::Relay, self)?;
        let protocol = match &self.protocol {
            ProtocolConfig::Arq(config) => Some(TransferProtocol::Arq(config)),
            ProtocolConfig::Quic(config) => Some(TransferProtocol::Quic(config)),
            _ => None,
        };
        let (NetworkConfig::Path(path), Some(protocol), Some(size)) =
            (&self.network, protocol, self.workload.size)
        else {
            let problem = Problem::new("size", "the key is missing: required for a file");
            return Err(SpecError::within([problem], "workload"));
        };
        let links = path.resolve(&mut load);
        let links = links.map_err(|found| SpecError::within(found, "path"))?;
        Ok((links, protocol, size.bytes()))
    }

    /// Returns the planned start of the measured time.
    #[must_use]
    pub fn measured_from(&self) -> Instant {
        Instant::ZERO + self.workload.warm_up.unwrap_or_default()
    }

    /// Returns the random streams of this trial. They depend only on seed and trial, so that compared protocols see the same
    /// losses.
    #[must_use]
    pub const fn streams(&self) -> Streams {
        Streams::new(self.seed, self.trial)
    }
}
