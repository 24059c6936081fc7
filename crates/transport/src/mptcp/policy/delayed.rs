//! One path first; the others join once the size or age of the connection justifies their handshakes (requested for
//! Linux in mptcp_net-next issue 552).

use foundation::{Duration, Generator, Problem, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ConnectionPlan, HostPaths, Join, JoinTime, PathChoice, PathIndex, PathPolicy, PolicySettings, RttSource,
};

/// One path; the others join after a number of bytes or a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Delayed {
    /// Acknowledged bytes after which the others join, e.g. "300kB". Default: "100kB", unless after_time is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_bytes: Option<Size>,
    /// Time after which the others join, counted from when subflows can join, e.g. "200ms"; excludes after_bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_time: Option<Duration>,
    /// Path of the first subflow: random, first, round-robin or least-rtt. Default: "least-rtt".
    pub first: PathChoice,
    /// With first = "least-rtt": the round-trip time without queues ("base") or the latest sample ("latest"). Default: "latest".
    pub rtt: RttSource,
    /// Maximum number of paths. Default: 64.
    #[schemars(range(min = 1, max = 64))]
    pub paths: u32,
}

const DEFAULT_BYTES: u64 = 100_000;

impl Default for Delayed {
    fn default() -> Self {
        Self {
            after_bytes: None,
            after_time: None,
            first: PathChoice::LeastRtt,
            rtt: RttSource::default(),
            paths: 64,
        }
    }
}

impl PolicySettings for Delayed {
    fn validate(&self) -> Vec<Problem> {
        let both = self.after_bytes.is_some() && self.after_time.is_some();
        let either = both.then(|| Problem::new("after_time", "set either after_bytes or after_time"));
        let valid = (1..=64).contains(&self.paths);
        let paths = Problem::range("paths", self.paths, valid, "1 to 64");
        either.into_iter().chain(paths).collect()
    }

    fn build(&self) -> Box<dyn PathPolicy> {
        Box::new(self.clone())
    }
}

impl PathPolicy for Delayed {
    fn open(&mut self, _: Option<u64>, host: &HostPaths, random: &mut Generator) -> ConnectionPlan {
        let when = match (self.after_time, self.after_bytes) {
            (Some(time), _) => JoinTime::AfterTime(time),
            (None, Some(bytes)) => JoinTime::AfterBytes(bytes.bytes()),
            (None, None) => JoinTime::AfterBytes(DEFAULT_BYTES),
        };
        let first = self.first.path(host, self.rtt, random);
        let others = host.sorted_by(|path| self.rtt.of(path)).into_iter();
        let others: Vec<PathIndex> = others.filter(|&path| path != first).collect();
        let mut opening = ConnectionPlan::over([first]);
        opening.joins = others
            .into_iter()
            .take(self.paths as usize - 1)
            .map(|path| Join {
                when,
                ..Join::immediately(path)
            })
            .collect();
        opening
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foundation::Streams;

    fn open(policy: &mut Delayed) -> ConnectionPlan {
        let host = HostPaths::new([40, 20, 30].map(Duration::from_millis));
        policy.open(None, &host, &mut Streams::new(1, 0).stream("paths"))
    }

    #[test]
    fn other_paths_join_after_bytes_or_time() {
        let at = |opening: &ConnectionPlan| {
            let joins = opening.joins.iter();
            joins.map(|join| (join.path.0, join.when)).collect::<Vec<_>>()
        };
        let opening = open(&mut Delayed::default());
        assert_eq!(opening.first, PathIndex(1));
        let after = JoinTime::AfterBytes(100_000);
        assert_eq!(at(&opening), [(2, after), (0, after)]);
        let opening = open(&mut Delayed {
            after_time: Some(Duration::from_millis(70)),
            paths: 2,
            ..Delayed::default()
        });
        assert_eq!(
            at(&opening),
            [(2, JoinTime::AfterTime(Duration::from_millis(70)))]
        );
    }

    #[test]
    fn rejects_bytes_together_with_time() {
        let wrong = Delayed {
            after_bytes: Some(Size::from_bytes(1)),
            after_time: Some(Duration::ZERO),
            paths: 0,
            ..Delayed::default()
        };
        let problems: Vec<String> = wrong.validate().iter().map(Problem::to_string).collect();
        assert_eq!(
            problems,
            [
                "after_time: set either after_bytes or after_time",
                "paths: 0 is out of range: 1 to 64"
            ]
        );
    }
}
