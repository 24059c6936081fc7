//! Times in which a link is down.

use std::fmt;
use std::str::FromStr;

use foundation::{Duration, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limit of outages of a link.
const MOST: usize = 10_000;

/// A time in which a link is down, since the start of the trial: `"5s..7s"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Outage {
    /// Time of the failure.
    pub from: Duration,
    /// Time of the recovery.
    pub to: Duration,
}

/// A text that is not a time span.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time span: write a start and an end with units, e.g. \"5s..7s\"")]
pub struct OutageError(String);

impl FromStr for Outage {
    type Err = OutageError;

    fn from_str(text: &str) -> Result<Self, OutageError> {
        let time = |text: &str| text.trim().parse::<Duration>().ok();
        let ends = text.split_once("..");
        let ends = ends.and_then(|(from, to)| Some((time(from)?, time(to)?)));
        ends.map(|(from, to)| Self { from, to })
            .ok_or_else(|| OutageError(text.to_owned()))
    }
}

impl TryFrom<String> for Outage {
    type Error = OutageError;

    fn try_from(text: String) -> Result<Self, OutageError> {
        text.parse()
    }
}

impl From<Outage> for String {
    fn from(outage: Outage) -> Self {
        outage.to_string()
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.from, self.to)
    }
}

impl Outage {
    /// Returns the problems of the outages of one link: each must end after its start, and start after the end of the
    /// one before.
    pub(crate) fn validate(outages: &[Self]) -> Vec<Problem> {
        if outages.len() > MOST {
            let message = format!("{} outages are out of range: at most {MOST}", outages.len());
            return vec![Problem::new("", message)];
        }
        let backward = outages.iter().find(|outage| outage.to <= outage.from);
        let mut problems: Vec<Problem> = backward
            .map(|outage| Problem::new("", format!("\"{outage}\" ends before it starts")))
            .into_iter()
            .collect();
        let pairs = outages.windows(2);
        let overlap = pairs
            .map(|pair| (pair[0], pair[1]))
            .find(|(one, next)| next.from <= one.to);
        if let Some((one, next)) = overlap.filter(|_| problems.is_empty()) {
            let message = format!("\"{next}\" must start after the end of \"{one}\"");
            problems.push(Problem::new("", message));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(texts: &[&str]) -> Vec<String> {
        let outages: Vec<Outage> = texts.iter().map(|text| text.parse().unwrap()).collect();
        Outage::validate(&outages)
            .iter()
            .map(|problem| problem.message.clone())
            .collect()
    }

    #[test]
    fn a_text_has_two_times_with_units() {
        let outage: Outage = "5s..7.5s".parse().unwrap();
        assert_eq!(outage.from, Duration::from_secs(5));
        assert_eq!(outage.to, Duration::from_millis(7500));
        assert_eq!(outage.to_string().parse::<Outage>().unwrap(), outage);
        for text in ["5s", "5..7", "5s..", "", "5s-7s"] {
            let error = text.parse::<Outage>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("{text:?} is not a time span")),
                "{error}"
            );
        }
    }

    #[test]
    fn outages_are_disjoint_and_in_order() {
        assert_eq!(problems(&["0s..1s", "1.5s..2s"]), Vec::<String>::new());
        assert_eq!(problems(&["2s..1s"]), ["\"2s..1s\" ends before it starts"]);
        assert_eq!(problems(&["1s..1s"]), ["\"1s..1s\" ends before it starts"]);
        let touching = problems(&["1s..2s", "2s..3s"]);
        assert_eq!(touching, ["\"2s..3s\" must start after the end of \"1s..2s\""]);
        assert_eq!(problems(&["5s..6s", "1s..2s"]).len(), 1);
    }
}
