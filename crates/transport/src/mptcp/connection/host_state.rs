//! The host's account: what a connection adds to it, and what its policy makes of it.

use foundation::Instant;

use super::Connection;
use crate::mptcp::host::HostPaths;
use crate::mptcp::policy::Progress;

impl Connection {
    /// Tells the account of the host what happened since the last call, and lets the policy decide anew. Gives whether
    /// there may be something to send now that was not there before.
    pub fn update_host(&mut self, now: Instant, host: &mut HostPaths) -> bool {
        if self.unreported == 0 {
            return false;
        }
        let mut left = std::mem::take(&mut self.unreported);
        while left != 0 {
            let index = left.trailing_zeros() as usize;
            left &= left - 1;
            let Some(subflow) = self.subflows.get_mut(index) else {
                break;
            };
            // What left on all paths says nothing of one.
            if index == 0 && self.scatter.is_some() {
                continue;
            }
            let ended = self.over || subflow.gone;
            if let Some(at) = subflow.sampled_at
                && subflow.reported_sample != Some(at)
            {
                subflow.reported_sample = Some(at);
                host.on_round_trip(subflow.path, subflow.tcp.round_trips().latest());
            }
            let Some(account) = host.path_mut(subflow.path) else {
                continue;
            };
            let expected = subflow.expected.saturating_sub(subflow.acknowledged);
            let claim = if ended {
                0
            } else {
                subflow.outstanding().max(expected)
            };
            account.unfinished = account
                .unfinished
                .saturating_sub(subflow.reported_unfinished)
                .saturating_add(claim);
            if self.short {
                account.short = account
                    .short
                    .saturating_sub(subflow.reported_unfinished)
                    .saturating_add(claim);
            }
            subflow.reported_unfinished = claim;
            match (subflow.counted, ended) {
                (false, false) => account.subflows += 1,
                (true, true) => account.subflows -= 1,
                _ => {}
            }
            subflow.counted = !ended;
            let lost = subflow.tcp.segments_lost();
            let (acknowledged, lost_since) = (
                subflow.acknowledged - subflow.reported_acknowledged,
                lost - subflow.reported_lost,
            );
            subflow.reported_acknowledged = subflow.acknowledged;
            subflow.reported_lost = lost;
            host.on_delivery(subflow.path, now, acknowledged, lost_since);
        }
        self.run_policy(now, host)
    }

    fn run_policy(&mut self, now: Instant, host: &HostPaths) -> bool {
        let Some(policy) = &mut self.policy else {
            return false;
        };
        if self.joinable_since.is_none() || self.over {
            return false;
        }
        let progress = Progress {
            acknowledged: self.outgoing.acknowledged(),
            backlog: self.outgoing.written - 1 - self.outgoing.acknowledged(),
            age: now - self.opened_at,
            paths: &self.paths,
        };
        let joins = policy.progress(&progress, host);
        if joins.is_empty() {
            return false;
        }
        self.paths.extend(joins.iter().map(|join| join.path));
        self.joins.extend(joins);
        self.open_due_joins(now);
        true
    }
}
