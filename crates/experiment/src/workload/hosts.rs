//! The keys `from`, `to` and `pattern`: which hosts send to which.

use std::fmt;

use foundation::{Generator, Problem};
use network::HostId;
use rand::RngExt;
use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{WorkloadConfig, WorkloadKind};

/// Names of hosts; `*` stands for any characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Hosts {
    /// One host, or all that match.
    One(String),
    /// Several hosts.
    Many(Vec<String>),
}

impl Hosts {
    fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Many(names) => names,
        }
    }

    /// Returns the hosts of `key` in the order of the names, each once.
    fn select(&self, key: &str, hosts: &[String]) -> Result<Vec<HostId>, Problem> {
        let mut selected = Vec::new();
        for name in self.names() {
            let before = selected.len();
            let mut is_known = false;
            for (host, id) in hosts.iter().zip(0..) {
                if matches(name, host) {
                    is_known = true;
                    if !selected[..before].contains(&HostId(id)) {
                        selected.push(HostId(id));
                    }
                }
            }
            if !is_known {
                let message = format!("there is no host {name:?}: allowed: {}", hosts.join(", "));
                return Err(Problem::new(key, message));
            }
        }
        match selected.is_empty() {
            true => Err(Problem::new(key, "the list is empty: write at least one host")),
            false => Ok(selected),
        }
    }
}

impl<'de> Deserialize<'de> for Hosts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;

        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Hosts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(r#"a host such as "h1", or a list of hosts"#)
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Hosts, E> {
                Ok(Hosts::One(name.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Hosts, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Hosts::Many)
            }
        }

        deserializer.deserialize_any(OneOrMany)
    }
}

/// Returns whether a name matches a pattern with `*`.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(start) else {
        return false;
    };
    let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
    ends.into_iter().any(|at| matches(rest, &name[at..]))
}

/// The receivers of each sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// All receivers.
    AllToAll,
    /// One receiver, drawn in each trial.
    Random,
    /// One receiver, drawn in each trial; each receives from at most one sender.
    Permutation,
}

/// Limit of pairs of hosts, each of which has routes.
const MAX_PAIRS: usize = 100_000;

impl Pattern {
    /// Returns pairs of sender and receiver, which are never the same host.
    fn pairs(
        self,
        from: &[HostId],
        to: &[HostId],
        random: &mut Generator,
    ) -> Result<Vec<(HostId, HostId)>, Problem> {
        let others = |sender: HostId| to.iter().copied().filter(move |&receiver| receiver != sender);
        if let Some(&alone) = from.iter().find(|&&sender| others(sender).next().is_none()) {
            debug_assert!(to.iter().all(|&receiver| receiver == alone));
            return Err(Problem::new(
                "to",
                "its only host is also a sender: write another host",
            ));
        }
        match self {
            Self::AllToAll if from.len().saturating_mul(to.len()) > MAX_PAIRS => {
                let message = format!(
                    "{} senders and {} receivers are too many pairs: at most {MAX_PAIRS}",
                    from.len(),
                    to.len()
                );
                Err(Problem::new("pattern", message))
            }
            Self::AllToAll => Ok(from
                .iter()
                .flat_map(|&sender| others(sender).map(move |receiver| (sender, receiver)))
                .collect()),
            Self::Random => Ok(from
                .iter()
                .map(|&sender| {
                    let receivers: Vec<HostId> = others(sender).collect();
                    (sender, receivers[random.random_range(0..receivers.len())])
                })
                .collect()),
            Self::Permutation => permutation(from, to, random),
        }
    }
}

/// Draws one receiver for each sender, each receiver at most once and none for itself.
fn permutation(
    from: &[HostId],
    to: &[HostId],
    random: &mut Generator,
) -> Result<Vec<(HostId, HostId)>, Problem> {
    if from.len() > to.len() {
        let message = format!(
            "{} senders have {} receivers: a permutation needs at least as many receivers",
            from.len(),
            to.len()
        );
        return Err(Problem::new("to", message));
    }
    let mut receivers = to.to_vec();
    // At least a third of all permutations has no host that sends to itself.
    loop {
        receivers.shuffle(random);
        let pairs = from.iter().copied().zip(receivers.iter().copied());
        if pairs.clone().all(|(sender, receiver)| sender != receiver) {
            return Ok(pairs.collect());
        }
    }
}

/// The keys of a workload that choose the hosts and paths of its flows; no other one changes them.
pub const HOST_KEYS: [&str; 6] = ["kind", "from", "to", "pattern", "algorithm", "each_path"];

impl WorkloadConfig {
    /// Returns the pairs of sender and receiver, by some of [`HOST_KEYS`]. `hosts` are the names of all hosts and `pairs` the default pairs of the topology.
    ///
    /// # Errors
    /// Unknown hosts, and hosts without a pair.
    pub(crate) fn pairs(
        &self,
        hosts: &[String],
        pairs: &[(HostId, HostId)],
        random: &mut Generator,
    ) -> Result<Vec<(HostId, HostId)>, Problem> {
        let is_collective = self.kind == WorkloadKind::AllReduce;
        if !is_collective && self.from.is_none() && self.to.is_none() && self.pattern.is_none() {
            return Ok(pairs.to_vec());
        }
        let select = |key: &str, named: Option<&Hosts>| match named {
            Some(named) => named.select(key, hosts),
            None => Ok((0..hosts.len() as u32).map(HostId).collect()),
        };
        let from = select("from", self.from.as_ref())?;
        if is_collective {
            return self.algorithm.unwrap_or_default().pairs(&from);
        }
        let to = select("to", self.to.as_ref())?;
        self.pattern
            .unwrap_or(Pattern::AllToAll)
            .pairs(&from, &to, random)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn stars_match_any_characters() {
        for (pattern, name, expected) in [
            ("leaf1-*", "leaf1-3", true),
            ("leaf1-*", "leaf11-3", false),
            ("*", "", true),
            ("s*r", "sender", true),
            ("s*r", "senders", false),
            ("a*b*c", "a-b-b-c", true),
            ("a", "ab", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn pairs_are_limited_before_they_are_built() {
        let hosts: Vec<HostId> = (0..10_000).map(HostId).collect();
        let mut random = Generator::seed_from_u64(1);
        let problem = Pattern::AllToAll.pairs(&hosts, &hosts, &mut random).unwrap_err();
        assert!(problem.message.contains("at most 100000"), "{problem}");
        assert!(Pattern::Permutation.pairs(&hosts, &hosts, &mut random).is_ok());
    }

    fn hosts() -> impl Strategy<Value = Vec<HostId>> {
        prop::collection::btree_set(0_u32..12, 1..12).prop_map(|ids| ids.into_iter().map(HostId).collect())
    }

    proptest! {
        #[test]
        fn each_sender_has_its_receivers(from in hosts(), to in hosts(), seed: u64) {
            let mut random = Generator::seed_from_u64(seed);
            for pattern in [Pattern::AllToAll, Pattern::Random, Pattern::Permutation] {
                let Ok(pairs) = pattern.pairs(&from, &to, &mut random) else {
                    let is_alone = to.len() == 1 && from.contains(&to[0]);
                    prop_assert!(is_alone || (pattern == Pattern::Permutation && from.len() > to.len()));
                    continue;
                };
                prop_assert!(pairs.iter().all(|(sender, receiver)| sender != receiver), "{pattern:?} {pairs:?}");
                prop_assert!(pairs.iter().all(|(_, receiver)| to.contains(receiver)));
                let senders: BTreeSet<HostId> = pairs.iter().map(|pair| pair.0).collect();
                prop_assert_eq!(senders, from.iter().copied().collect());
                let receivers: BTreeSet<HostId> = pairs.iter().map(|pair| pair.1).collect();
                match pattern {
                    Pattern::AllToAll => {
                        let common = from.iter().filter(|host| to.contains(host)).count();
                        prop_assert_eq!(pairs.len(), from.len() * to.len() - common);
                    }
                    Pattern::Random => prop_assert_eq!(pairs.len(), from.len()),
                    Pattern::Permutation => prop_assert_eq!((pairs.len(), receivers.len()), (from.len(), from.len())),
                }
            }
        }
    }
}
