//! MPTCP-FSFS: short flows first. The number of paths grows with the size of the flow, and short flows take the paths
//! with the smallest round-trip times.

use foundation::{Generator, Problem, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConnectionPlan, HostPaths, PathPolicy, PolicySettings, RttSource};

/// More paths for larger flows, in the order of their round-trip times (MPTCP-FSFS).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fsfs {
    /// Largest size of each class but the last, ascending. Default: ["100KB", "300KB", "800KB"].
    pub thresholds: Vec<Size>,
    /// Number of paths of each of these classes; larger flows and flows of unknown size use all. Default: [1, 2, 3].
    pub paths: Vec<u32>,
    /// Round-trip time of a path without queues ("base") or its latest sample ("latest"). Default: "latest".
    pub rtt: RttSource,
}

impl Default for Fsfs {
    fn default() -> Self {
        Self {
            thresholds: [100_000, 300_000, 800_000].map(Size::from_bytes).to_vec(),
            paths: vec![1, 2, 3],
            rtt: RttSource::default(),
        }
    }
}

impl PolicySettings for Fsfs {
    fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if !self.thresholds.is_sorted_by(|a, b| a < b) {
            problems.push(Problem::new(
                "thresholds",
                "not in ascending order: each must exceed the one before",
            ));
        }
        if self.paths.len() != self.thresholds.len() {
            let message = format!(
                "{} values for {} thresholds: set one for each",
                self.paths.len(),
                self.thresholds.len()
            );
            problems.push(Problem::new("paths", message));
        }
        if self.paths.contains(&0) {
            problems.push(Problem::new("paths", "0 is out of range: at least 1"));
        }
        problems
    }

    fn build(&self) -> Box<dyn PathPolicy> {
        Box::new(self.clone())
    }
}

impl Fsfs {
    /// Returns the number of paths of a flow of `size` bytes, `None` for all.
    fn count(&self, size: Option<u64>) -> Option<usize> {
        let class = self
            .thresholds
            .iter()
            .position(|limit| size.is_some_and(|size| size <= limit.bytes()))?;
        self.paths.get(class).map(|&count| count as usize)
    }
}

impl PathPolicy for Fsfs {
    fn open(&mut self, size: Option<u64>, host: &HostPaths, _: &mut Generator) -> ConnectionPlan {
        let count = self.count(size).unwrap_or(usize::MAX);
        ConnectionPlan::over(host.sorted_by(|path| self.rtt.of(path)).into_iter().take(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mptcp::PathIndex;
    use foundation::{Duration, Streams};

    #[test]
    fn uses_the_size_classes_of_the_paper() {
        let host = HostPaths::new([40, 20, 30, 10, 50].map(Duration::from_millis));
        let mut random = Streams::new(1, 0).stream("paths");
        let mut paths = |size| {
            let opening = Fsfs::default().open(size, &host, &mut random);
            let mut all = vec![opening.first.0];
            all.extend(opening.joins.iter().map(|join| join.path.0));
            all
        };
        for (size, expected) in [
            (Some(1), vec![3]),
            (Some(100_000), vec![3]),
            (Some(100_001), vec![3, 1]),
            (Some(300_000), vec![3, 1]),
            (Some(800_000), vec![3, 1, 2]),
            (Some(800_001), vec![3, 1, 2, 0, 4]),
            (None, vec![3, 1, 2, 0, 4]),
        ] {
            assert_eq!(paths(size), expected, "{size:?}");
        }
        let mut host = host;
        host.on_round_trip(PathIndex(3), Duration::from_millis(25));
        let opening = Fsfs::default().open(Some(1), &host, &mut random);
        assert_eq!(opening.first, PathIndex(1), "its queue counts");
    }

    #[test]
    fn reports_keys_out_of_range() {
        let wrong = Fsfs {
            paths: vec![1, 0],
            ..Fsfs::default()
        };
        let problems: Vec<String> = wrong.validate().iter().map(Problem::to_string).collect();
        assert_eq!(
            problems,
            [
                "paths: 2 values for 3 thresholds: set one for each",
                "paths: 0 is out of range: at least 1"
            ]
        );
    }
}
