//! All-reduce: each of n hosts has a vector of the same size, and receives the sum of all vectors. The hosts exchange parts in
//! steps, and each sends the part of a step when that of the step before has arrived. No clock and no sockets.

use std::sync::Arc;

use foundation::{Instant, Problem};
use network::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The algorithm of an all-reduce.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// 2(n-1) steps of size/n from each host to the next one (Patarasuk and Yuan 2009).
    #[default]
    Ring,
    /// 2 log2(n) steps between hosts whose numbers differ in one bit: size/2, size/4, …, and back (Thakur et al. 2005); for 2, 4, 8, … hosts.
    HalvingDoubling,
}

impl Algorithm {
    /// Returns the pairs of sender and receiver, each with one flow.
    ///
    /// # Errors
    /// A number of members that the algorithm does not support.
    pub(crate) fn pairs(self, members: &[HostId]) -> Result<Vec<(HostId, HostId)>, Problem> {
        let count = members.len();
        let message = match self {
            _ if count < 2 => "an all-reduce requires at least 2 hosts".to_owned(),
            Self::HalvingDoubling if !count.is_power_of_two() => {
                format!("\"halving-doubling\" requires 2, 4, 8, … hosts, not {count}")
            }
            _ => {
                let pairs = self.peers(count).into_iter().enumerate();
                let pairs =
                    pairs.flat_map(|(member, peers)| peers.into_iter().map(move |peer| (member, peer)));
                return Ok(pairs.map(|(from, to)| (members[from], members[to])).collect());
            }
        };
        Err(Problem::new("from", message))
    }

    /// Returns the receivers of each member, in the order of its pairs.
    fn peers(self, members: usize) -> Vec<Vec<usize>> {
        let of = |member: usize| match self {
            Self::Ring => vec![(member + 1) % members],
            // The partners of the first steps are the most distant ones, so that the largest parts have one exchange each.
            Self::HalvingDoubling => (1..=members.ilog2())
                .map(|level| member ^ (members >> level))
                .collect(),
        };
        (0..members).map(of).collect()
    }
}

/// A part that a member sends in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Index of the pair of hosts.
    pub pair: u32,
    /// Bytes.
    pub bytes: u64,
}

/// The steps of an all-reduce, by member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    sends: Vec<Vec<Part>>,
    receives: Vec<Vec<Part>>,
    /// The receiving member of each pair, and the bytes of one all-reduce.
    pairs: Vec<(usize, u64)>,
}

impl Steps {
    /// Returns the steps for a vector of `size` bytes over the [pairs](Algorithm::pairs) of `members`.
    ///
    /// # Errors
    /// A vector with less than one byte per member.
    pub(crate) fn of(algorithm: Algorithm, members: usize, size: u64) -> Result<Self, Problem> {
        if size < members as u64 {
            let message =
                format!("\"{size}B\" is out of range: at least one byte for each of {members} hosts");
            return Err(Problem::new("size", message));
        }
        let peers = algorithm.peers(members);
        let sends = match algorithm {
            Algorithm::Ring => ring(members, size),
            Algorithm::HalvingDoubling => halving_doubling(members, size),
        };
        let mut pairs: Vec<(usize, u64)> = peers.into_iter().flatten().map(|to| (to, 0)).collect();
        let mut receives = vec![Vec::new(); members];
        for step in 0..sends[0].len() {
            for part in sends.iter().map(|parts| parts[step]) {
                let (to, bytes) = &mut pairs[part.pair as usize];
                *bytes += part.bytes;
                receives[*to].push(part);
            }
        }
        Ok(Self {
            sends,
            receives,
            pairs,
        })
    }

    /// Returns the bytes that a pair carries in one all-reduce.
    #[must_use]
    pub fn bytes(&self, pair: u32) -> u64 {
        self.pairs[pair as usize].1
    }
}

/// Returns the bounds of part `number` of `count` of a vector.
fn bound(size: u64, number: usize, count: usize) -> u64 {
    (u128::from(size) * number as u128 / count as u128) as u64
}

/// In step s, member m sends part m - s: first sums of parts, then results.
fn ring(members: usize, size: u64) -> Vec<Vec<Part>> {
    let part = |member: usize, step: usize| {
        let number = (member + 2 * members - step) % members;
        Part {
            pair: member as u32,
            bytes: bound(size, number + 1, members) - bound(size, number, members),
        }
    };
    let steps = 0..2 * (members - 1);
    (0..members)
        .map(|member| steps.clone().map(|step| part(member, step)).collect())
        .collect()
}

/// In each of the first steps, a member keeps half of its range and sends the other half. The second part returns the results in the
/// opposite order.
fn halving_doubling(members: usize, size: u64) -> Vec<Vec<Part>> {
    let levels = members.ilog2() as usize;
    let of = |member: usize| {
        let (mut from, mut until) = (0, members);
        let (mut halves, mut results) = (Vec::new(), Vec::new());
        for level in 0..levels {
            let middle = (from + until) / 2;
            let (kept, sent) = match member & (members >> (level + 1)) {
                0 => ((from, middle), (middle, until)),
                _ => ((middle, until), (from, middle)),
            };
            let pair = (member * levels + level) as u32;
            let part = |(from, until)| Part {
                pair,
                bytes: bound(size, until, members) - bound(size, from, members),
            };
            halves.push(part(sent));
            results.push(part(kept));
            (from, until) = kept;
        }
        halves.extend(results.into_iter().rev());
        halves
    };
    (0..members).map(of).collect()
}

/// A running all-reduce, which may be repeated.
#[derive(Clone, Debug)]
pub struct AllReduce {
    steps: Arc<Steps>,
    /// Rounds that have started.
    started: u64,
    started_at: Instant,
    /// Steps of each member whose data has arrived in this round.
    arrived: Vec<usize>,
    /// Bytes of each pair that belong to these steps, since the first round.
    counted: Vec<u64>,
    /// Bytes of each pair that its receiver has read.
    read: Vec<u64>,
}

impl AllReduce {
    /// Returns an all-reduce before its first round.
    #[must_use]
    pub fn new(steps: Arc<Steps>) -> Self {
        Self {
            started: 0,
            started_at: Instant::ZERO,
            arrived: vec![0; steps.sends.len()],
            counted: vec![0; steps.pairs.len()],
            read: vec![0; steps.pairs.len()],
            steps,
        }
    }

    /// Starts a round. Returns the parts of the first step.
    pub fn start(&mut self, now: Instant) -> Vec<Part> {
        self.started += 1;
        self.started_at = now;
        self.arrived.fill(0);
        self.steps.sends.iter().map(|parts| parts[0]).collect()
    }

    /// Returns the number of rounds that have started.
    #[must_use]
    pub const fn started(&self) -> u64 {
        self.started
    }

    /// Returns the start of the round.
    #[must_use]
    pub const fn started_at(&self) -> Instant {
        self.started_at
    }

    /// Records that the receiver of a pair has read `total` bytes since the start of its flow. Returns the parts that it sends now.
    pub fn read(&mut self, pair: u32, total: u64) -> Vec<Part> {
        let (member, _) = self.steps.pairs[pair as usize];
        self.read[pair as usize] = total;
        let (sends, receives) = (&self.steps.sends[member], &self.steps.receives[member]);
        let mut due = Vec::new();
        while let Some(part) = receives.get(self.arrived[member]) {
            let end = self.counted[part.pair as usize] + part.bytes;
            if self.read[part.pair as usize] < end {
                break;
            }
            self.counted[part.pair as usize] = end;
            self.arrived[member] += 1;
            due.extend(sends.get(self.arrived[member]));
        }
        due
    }

    /// Returns whether the receiver of a pair has read all its bytes of this round.
    #[must_use]
    pub fn is_complete(&self, pair: u32) -> bool {
        self.read[pair as usize] >= self.started * self.steps.bytes(pair)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hosts(count: u32) -> Vec<HostId> {
        (0..count).map(HostId).collect()
    }

    fn bytes(parts: &[Part]) -> Vec<u64> {
        parts.iter().map(|part| part.bytes).collect()
    }

    #[test]
    fn a_ring_sends_equal_parts_to_the_next_host() {
        let pairs = Algorithm::Ring.pairs(&hosts(3)).unwrap();
        assert_eq!(
            pairs,
            [(0, 1), (1, 2), (2, 0)].map(|(from, to)| (HostId(from), HostId(to)))
        );
        let steps = Steps::of(Algorithm::Ring, 3, 300).unwrap();
        assert_eq!(bytes(&steps.sends[1]), [100; 4]);
        assert_eq!(steps.bytes(1), 400);
    }

    #[test]
    fn halving_doubling_halves_and_doubles() {
        let pairs = Algorithm::HalvingDoubling.pairs(&hosts(4)).unwrap();
        let expected = [(0, 2), (0, 1), (1, 3), (1, 0), (2, 0), (2, 3), (3, 1), (3, 2)];
        assert_eq!(pairs, expected.map(|(from, to)| (HostId(from), HostId(to))));
        let steps = Steps::of(Algorithm::HalvingDoubling, 4, 400).unwrap();
        for member in 0..4 {
            assert_eq!(bytes(&steps.sends[member]), [200, 100, 100, 200]);
        }
    }

    #[test]
    fn unsupported_numbers_of_hosts_are_refused() {
        let refused = |algorithm: Algorithm, count| algorithm.pairs(&hosts(count)).unwrap_err().to_string();
        assert_eq!(
            refused(Algorithm::Ring, 1),
            "from: an all-reduce requires at least 2 hosts"
        );
        assert_eq!(
            refused(Algorithm::HalvingDoubling, 6),
            "from: \"halving-doubling\" requires 2, 4, 8, … hosts, not 6"
        );
        let message = Steps::of(Algorithm::Ring, 4, 3).unwrap_err().to_string();
        assert_eq!(
            message,
            "size: \"3B\" is out of range: at least one byte for each of 4 hosts"
        );
    }

    /// Delivers parts in a random order of pairs, and within a pair in order, in random pieces.
    fn simulate(algorithm: Algorithm, members: usize, size: u64, rounds: u64, choices: &[u64]) {
        let steps = Arc::new(Steps::of(algorithm, members, size).unwrap());
        let pairs = steps.pairs.len();
        let mut all = AllReduce::new(Arc::clone(&steps));
        let (mut sent, mut read) = (vec![0_u64; pairs], vec![0_u64; pairs]);
        let mut choices = choices.iter().cycle();
        for round in 1..=rounds {
            for part in all.start(Instant::ZERO) {
                sent[part.pair as usize] += part.bytes;
            }
            loop {
                let waiting: Vec<usize> = (0..pairs).filter(|&pair| read[pair] < sent[pair]).collect();
                if waiting.is_empty() {
                    break;
                }
                let choice = *choices.next().unwrap();
                let pair = waiting[choice as usize % waiting.len()];
                read[pair] += 1 + choice % (sent[pair] - read[pair]);
                for part in all.read(pair as u32, read[pair]) {
                    sent[part.pair as usize] += part.bytes;
                }
            }
            for (pair, &read) in (0..).zip(&read) {
                assert_eq!(read, round * steps.bytes(pair), "pair {pair}");
                assert!(all.is_complete(pair));
            }
        }
        // Both algorithms send 2 (n - 1) / n of the vector from each host, which is optimal (Patarasuk and Yuan 2009).
        let total: u64 = (0..pairs).map(|pair| steps.bytes(pair as u32)).sum();
        assert_eq!(total, 2 * (members as u64 - 1) * size);
    }

    proptest! {
        #[test]
        fn every_round_completes(members in 2_usize..9, size in 16_u64..2000, rounds in 1_u64..4, choices in prop::collection::vec(any::<u64>(), 1..50)) {
            simulate(Algorithm::Ring, members, size, rounds, &choices);
            simulate(Algorithm::HalvingDoubling, members.next_power_of_two(), size, rounds, &choices);
        }
    }
}
