//! The keys of several paths (draft-ietf-quic-multipath).

use std::borrow::Cow;

use foundation::{Duration, Generator, Instant, Problem};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use transport::mptcp::{
    ConnectionPlan, HostPaths, PathPolicy, PolicyConfig, SchedulerConfig, StartParameters,
};

use crate::{ControllerChoice, QuicConfig};

/// Most paths of a connection.
const MOST_PATHS: u32 = 64;

/// The packet scheduler of the QUIC library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LibraryScheduler {
    /// The path with the smallest ID whose window and pacer allow a packet, as in noq-proto.
    #[serde(rename = "quic-first")]
    First,
}

/// The packet scheduler of a connection with several paths.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PathScheduler {
    /// That of the library, by name.
    Library(LibraryScheduler),
    /// One of this project, by name or with settings.
    Own(SchedulerConfig),
}

impl PathScheduler {
    /// Returns why QUIC cannot have it.
    fn refusal(&self) -> Option<String> {
        let Self::Own(own) = self else {
            return None;
        };
        let reason = match own {
            SchedulerConfig::Redundant(_) => "sends copies",
            SchedulerConfig::Daps(_) | SchedulerConfig::Otias(_) => "queues packets on paths without room",
            _ => return None,
        };
        Some(format!(
            "{:?} {reason}, which the QUIC library does not: allowed: quic-first, min-rtt, round-robin, ecf, blest",
            own.kind()
        ))
    }
}

impl<'de> Deserialize<'de> for PathScheduler {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        if value.as_str().is_some_and(|name| name.starts_with("quic-")) {
            let unknown = || format!("unknown scheduler {value}: allowed of QUIC's own: quic-first");
            return LibraryScheduler::deserialize(&value)
                .map(Self::Library)
                .map_err(|_| D::Error::custom(unknown()));
        }
        SchedulerConfig::deserialize(value)
            .map(Self::Own)
            .map_err(D::Error::custom)
    }
}

impl JsonSchema for PathScheduler {
    fn schema_name() -> Cow<'static, str> {
        "QuicScheduler".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let own = generator.subschema_for::<SchedulerConfig>();
        let library = generator.subschema_for::<LibraryScheduler>();
        json_schema!({ "description": "a packet scheduler of this project or of the QUIC library", "anyOf": [library, own] })
    }
}

impl QuicConfig {
    /// Returns whether connections use several paths.
    #[must_use]
    pub fn is_multipath(&self) -> bool {
        self.multipath == Some(true)
    }

    /// Returns these settings between two hosts with this number of paths.
    #[must_use]
    pub fn between(&self, paths: usize) -> Self {
        let paths = u32::try_from(paths).unwrap_or(MOST_PATHS);
        Self {
            subflows: self
                .is_multipath()
                .then_some(self.subflows.unwrap_or(MOST_PATHS).min(paths)),
            ..self.clone()
        }
    }

    /// Returns the most paths of a connection at once.
    #[must_use]
    pub fn paths(&self) -> u32 {
        if self.is_multipath() {
            self.subflows.unwrap_or(MOST_PATHS)
        } else {
            1
        }
    }

    /// Returns the path policy.
    #[must_use]
    pub fn policy(&self) -> PolicyConfig {
        self.policy.clone().unwrap_or_default()
    }

    /// Opens a connection of `size` bytes, if known, by the path policy at time `now` of the host. Returns the plan, and the policy if it
    /// adds paths later.
    #[must_use]
    pub fn plan(
        &self,
        now: Instant,
        size: Option<u64>,
        host: &mut HostPaths,
        random: &mut Generator,
    ) -> (ConnectionPlan, Option<Box<dyn PathPolicy>>) {
        let mut policy = self.policy().build();
        policy.set_start_parameters(&StartParameters {
            initial_window: self.initial_window.unwrap_or(10),
            ..StartParameters::default()
        });
        let plan = policy.open(size, host, random);
        host.on_connection();
        if let Some(size) = size {
            host.on_flow(now, size);
        }
        (plan, policy.follows_progress().then_some(policy))
    }

    /// Returns the packet scheduler.
    #[must_use]
    pub fn scheduler(&self) -> PathScheduler {
        let default = || match self.congestion() {
            ControllerChoice::Library(_) => PathScheduler::Library(LibraryScheduler::First),
            ControllerChoice::Own(_) => PathScheduler::Own(SchedulerConfig::default()),
        };
        self.scheduler.clone().unwrap_or_else(default)
    }

    /// Returns the time without packets from the peer after which a path is closed.
    #[must_use]
    pub fn path_timeout(&self) -> Duration {
        self.path_timeout.unwrap_or(Duration::from_secs(3))
    }

    /// Returns the problems of the keys of several paths.
    pub(crate) fn path_problems(&self) -> Vec<Problem> {
        let keys = [
            ("subflows", self.subflows.is_some()),
            ("policy", self.policy.is_some()),
            ("scheduler", self.scheduler.is_some()),
            ("path_timeout", self.path_timeout.is_some()),
            ("early_key_update", self.early_key_update.is_some()),
        ];
        let mut problems = Vec::new();
        if !self.is_multipath() {
            let set = keys.into_iter().filter(|(_, is_set)| *is_set);
            let message = "has no effect on one path: set multipath = true";
            problems.extend(set.map(|(key, _)| Problem::new(key, message)));
            return problems;
        }
        if self.datagrams == Some(true) {
            let message = "true needs one path: remove multipath";
            problems.push(Problem::new("datagrams", message));
        }
        let subflows = self.subflows.unwrap_or(1);
        let valid = (1..=MOST_PATHS).contains(&subflows);
        problems.extend(Problem::range("subflows", subflows, valid, "1 to 64"));
        let policy = self.policy();
        problems.extend(
            policy
                .validate()
                .into_iter()
                .map(|problem| problem.within("policy")),
        );
        let handles = match &policy {
            PolicyConfig::Mmptcp(_) => Some("scatters packets over all paths"),
            PolicyConfig::Freeway(_) | PolicyConfig::Foresight(_) => {
                Some("needs the load of the host's paths")
            }
            _ => None,
        };
        problems.extend(handles.map(|reason| {
            let allowed = "allowed: all, single, fsfs, delayed, in-kernel";
            let message = format!(
                "{:?} {reason}, which QUIC does not support: {allowed}",
                policy.kind()
            );
            Problem::new("policy", message)
        }));
        if let Some(scheduler) = &self.scheduler {
            if let PathScheduler::Own(own) = scheduler {
                problems.extend(
                    own.validate()
                        .into_iter()
                        .map(|problem| problem.within("scheduler")),
                );
            }
            problems.extend(
                scheduler
                    .refusal()
                    .map(|message| Problem::new("scheduler", message)),
            );
            let is_foreign = matches!(self.congestion(), ControllerChoice::Library(_));
            if is_foreign && matches!(scheduler, PathScheduler::Own(_)) {
                let message =
                    "requires a congestion controller of this project: remove it, or set \"quic-first\"";
                problems.push(Problem::new("scheduler", message));
            }
        }
        let (least, most) = (Duration::from_millis(100), Duration::from_secs(3600));
        let timeout = self.path_timeout();
        problems.extend(Problem::range(
            "path_timeout",
            format_args!("\"{timeout}\""),
            (least..=most).contains(&timeout),
            "\"100ms\" to \"1h\"",
        ));
        problems
    }
}
