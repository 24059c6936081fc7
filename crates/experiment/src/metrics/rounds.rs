//! Metrics of rounds: requests of several flows that start together (`barrier`), or all-reduces.

use foundation::{Duration, Instant};

use super::TrialOutcome;
use crate::censored::Censored;
use crate::outcome::FlowOutcome;
use crate::workload::WorkloadKind;

impl TrialOutcome<'_> {
    /// Returns the time of each round of requests that start together, or of each all-reduce, until its slowest flow; empty without
    /// rounds. A round ends before the next one starts.
    pub(crate) fn rounds(&self) -> Vec<Duration> {
        let has_barrier = self.groups[0].workload.barrier == Some(true);
        if !has_barrier && self.kind() != WorkloadKind::AllReduce {
            return Vec::new();
        }
        let transactions = self.own().flat_map(|flow| &flow.transactions);
        let mut spans: Vec<(Instant, Instant)> = transactions
            .map(|transaction| (transaction.requested_at, transaction.responded_at))
            .collect();
        spans.sort_unstable();
        let mut rounds: Vec<(Instant, Instant)> = Vec::new();
        for (from, until) in spans {
            match rounds.last_mut().filter(|round| from < round.1) {
                Some(round) => round.1 = round.1.max(until),
                None => rounds.push((from, until)),
            }
        }
        rounds.into_iter().map(|(from, until)| until - from).collect()
    }

    pub(super) fn set_rounds(&self, set: &mut impl FnMut(&str, Option<f64>)) {
        let rounds = self.rounds();
        if rounds.is_empty() {
            return;
        }
        let rounds = Censored::new(rounds.iter().map(|round| round.as_secs_f64()).collect(), 0);
        set("round_mean_s", rounds.mean());
        set("round_p50_s", rounds.quantile(0.5));
        set("round_p99_s", rounds.quantile(0.99));
        set("round_timeout_share", self.timeout_share());
    }

    /// Returns the share of rounds in which a flow had a retransmission timeout; `None` if timeouts were not counted by rounds.
    fn timeout_share(&self) -> Option<f64> {
        let counts = self.groups[0].protocol.counts_timeouts();
        counts.then(|| timeout_share(self.own())).flatten()
    }
}

fn timeout_share<'f>(flows: impl Iterator<Item = &'f FlowOutcome>) -> Option<f64> {
    let mut has_timeout: Vec<bool> = Vec::new();
    for flow in flows {
        let rounds = flow.transactions.len();
        has_timeout.resize(has_timeout.len().max(rounds), false);
        // The last round ends with the flow.
        let ends = flow.round_timeouts.as_ref()?.iter().copied();
        let mut before = 0;
        for (round, timeouts) in ends.chain([flow.sent.timeouts]).enumerate().take(rounds) {
            has_timeout[round] |= timeouts > before;
            before = timeouts;
        }
    }
    let with = has_timeout.iter().filter(|&&has| has).count();
    (!has_timeout.is_empty()).then(|| with as f64 / has_timeout.len() as f64)
}
