//! Two hosts joined by parallel paths.
//!
//! ```text
//!         ┌─path/1─┐
//! sender ─┼─path/2─┼─ receiver
//!         └─path/3─┘
//! ```

use std::fmt;
use std::str::FromStr;

use foundation::{Duration, QuantityError, omit_unset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::TopologyKind;
use super::draft::Draft;
use super::links::Links;

/// Limit of paths (packets identify their path by one byte).
const MAX_PATHS: usize = 64;

/// One-way delays from the first path to the last in equal steps: `"10ms..100ms"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Delays {
    /// Delay of the first path.
    pub first: Duration,
    /// Delay of the last path.
    pub last: Duration,
}

impl Delays {
    /// Returns the delay of path `number` (from 0) of `count`.
    #[must_use]
    pub fn of(self, number: usize, count: usize) -> Duration {
        let steps = count.saturating_sub(1).max(1) as i128;
        let (first, last) = (
            i128::from(self.first.as_nanos()),
            i128::from(self.last.as_nanos()),
        );
        let nanos = first + (last - first) * number as i128 / steps;
        Duration::from_nanos(nanos as u64)
    }
}

impl FromStr for Delays {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let parse = |text: &str| text.trim().parse::<Duration>();
        match text.split_once("..") {
            Some((first, last)) => Ok(Self {
                first: parse(first)?,
                last: parse(last)?,
            }),
            None => parse(text).map(|delay| Self {
                first: delay,
                last: delay,
            }),
        }
    }
}

impl TryFrom<String> for Delays {
    type Error = QuantityError;

    fn try_from(text: String) -> Result<Self, QuantityError> {
        text.parse()
    }
}

impl From<Delays> for String {
    fn from(delays: Delays) -> Self {
        delays.to_string()
    }
}

impl fmt::Display for Delays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.first, self.last)
    }
}

omit_unset! {
    /// The hosts sender and receiver joined by parallel paths, for multipath protocols.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct Multipath {
        /// Number of paths, from 1 to 64; default: the length of the list path.
        pub paths: Option<u64>,
        /// Paths, a table of path keys for all or a list with one table each.
        pub path: Option<Links>,
        /// One-way delays from the first path to the last in equal steps, e.g. "10ms..100ms"; default: those of path.
        pub delays: Option<Delays>,
    }
}

impl TopologyKind for Multipath {
    fn draw(&self, draft: &mut Draft<'_>) {
        let count = draft.count_or_list("paths", self.paths, self.path.as_ref());
        let count = draft.count("paths", count as u64, MAX_PATHS);
        let Some(path) = draft.required("path", self.path.as_ref()) else {
            return;
        };
        let mut specs = draft.links("path", path, count);
        if let Some(delays) = self.delays {
            for (number, spec) in specs.iter_mut().enumerate() {
                for link in [&mut spec.forward, &mut spec.reverse] {
                    if !link.delay.is_zero() {
                        draft.problem("delays", "excludes delay in path: remove one of them");
                        return;
                    }
                    link.delay = delays.of(number, count);
                }
            }
        }
        let (near, far) = (draft.router("sender"), draft.router("receiver"));
        for (number, spec) in (1..).zip(&specs) {
            let number: usize = number;
            let topology = &mut draft.topology;
            let forward = topology.add_link(format!("path/{number}/forward"), &spec.forward, near, far);
            topology.add_link(format!("path/{number}/reverse"), &spec.reverse, far, near);
            draft.bottleneck(forward);
        }
        let sender = draft.topology.add_host("sender", near);
        let receiver = draft.topology.add_host("receiver", far);
        draft.pair(sender, receiver);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_even() {
        let delays: Delays = "10ms..100ms".parse().unwrap();
        let all: Vec<_> = (0..10).map(|n| delays.of(n, 10).as_nanos() / 1_000_000).collect();
        assert_eq!(all, [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
        assert_eq!(delays.of(0, 1), Duration::from_millis(10));
        let down: Delays = "4ms..2ms".parse().unwrap();
        assert_eq!(down.of(1, 3), Duration::from_millis(3));
        assert_eq!(down.to_string().parse::<Delays>().unwrap(), down);
        let one: Delays = "5ms".parse().unwrap();
        assert_eq!(one.of(3, 4), Duration::from_millis(5));
        assert!("5..6".parse::<Delays>().is_err());
    }
}
