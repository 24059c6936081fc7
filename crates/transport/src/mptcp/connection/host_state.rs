//! Exchange between a connection and the host: measurements for the host's path state, further subflows from the
//! policy.

use foundation::Instant;

use super::Connection;
use crate::mptcp::host::HostPaths;
use crate::mptcp::policy::Progress;

impl Connection {
    /// Reports the changes since the last call to the host and runs the policy. Returns whether new segments may be
    /// ready to leave.
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
            // Packets scattered across paths do not update path estimates.
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
            let Some(state) = host.path_mut(subflow.path) else {
                continue;
            };
            let expected = subflow.expected.saturating_sub(subflow.acknowledged);
            let unfinished = if ended {
                0
            } else {
                subflow.outstanding().max(expected)
            };
            state.update_unfinished(subflow.reported_unfinished, unfinished, self.short);
            subflow.reported_unfinished = unfinished;
            match (subflow.counted, ended) {
                (false, false) => state.subflows += 1,
                (true, true) => state.subflows -= 1,
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
