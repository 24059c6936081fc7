//! The state of a connection and of its paths, for hosts, traces and metrics.

use foundation::{Duration, Instant};
use noq_proto::{Connection as Inner, PathId, PathStatus};
use transport::congestion::Controller;
use transport::mptcp::{HostPaths, PathIndex, PathPolicy, Progress};

use super::Connection;
use super::paths::{Path, Paths};

/// State of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathInfo {
    /// Path ID.
    pub number: u8,
    /// Number of the path between the hosts.
    pub way: u8,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Packets with payload that was sent before.
    pub retransmissions: u64,
    /// Congestion window in bytes; 0 of a closed path.
    pub window: u64,
    /// Slow-start threshold in bytes, once set.
    pub ssthresh: Option<u64>,
    /// Smoothed round-trip time; zero before the first sample.
    pub smoothed_rtt: Duration,
    /// Bytes of packets in flight.
    pub in_flight: u64,
    /// Whether it carries data only without another path.
    pub is_backup: bool,
    /// Phase of the controller.
    pub phase: &'static str,
}

/// What has changed on a path since the last report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathReport {
    /// Latest round-trip sample, if it is new.
    pub rtt: Option<Duration>,
    /// Payload bytes acknowledged.
    pub acknowledged: u64,
}

/// What the host knows of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reported {
    sampled_at: Option<Instant>,
    acknowledged: u64,
}

impl Connection {
    /// Returns whether the settings allow several paths.
    #[must_use]
    pub const fn is_multipath(&self) -> bool {
        self.paths.is_some()
    }

    /// Returns the paths of a connection whose settings allow several, in the order of their opening, closed ones included.
    pub fn paths(&self) -> impl Iterator<Item = PathInfo> {
        let all = self.paths.iter().flat_map(|paths| paths.all());
        all.map(|path| self.path(path))
    }

    fn path(&self, path: &Path) -> PathInfo {
        let counters = self.ledger.path(path.number);
        let inner = self.inner.as_ref().map(|(_, inner)| inner);
        let library = inner.and_then(|inner| inner.congestion_state(path.id));
        let own = inner.and_then(|inner| Paths::adapter(inner, path));
        let view = own.map(|adapter| adapter.view(Instant::ZERO)).unwrap_or_default();
        let rtt = self.ledger.rtt_of(path.number);
        let threshold = library.and_then(|library| library.metrics().ssthresh);
        PathInfo {
            number: path.number,
            way: path.way,
            bytes_sent: counters.sent,
            retransmissions: counters.retransmissions,
            window: library.map_or(0, |library| library.window()),
            ssthresh: threshold.filter(|&threshold| threshold != u64::MAX),
            smoothed_rtt: rtt
                .filter(|rtt| rtt.has_sample())
                .map_or(Duration::ZERO, |rtt| rtt.smoothed()),
            in_flight: view.in_flight,
            is_backup: inner.is_some_and(|inner| inner.path_status(path.id) == Ok(PathStatus::Backup)),
            phase: if view.phase.is_empty() {
                "unknown"
            } else {
                view.phase
            },
        }
    }

    /// Passes the round trips and the acknowledged bytes since the last call to the estimates of the host, whose time is `at`, and opens
    /// further paths that the policy adds. Returns whether there are any.
    pub fn update_host(
        &mut self,
        now: Instant,
        at: Instant,
        policy: Option<&mut (dyn PathPolicy + 'static)>,
        host: &mut HostPaths,
    ) -> bool {
        let mut has_news = false;
        self.report_paths(|way, report| {
            has_news |= report.acknowledged > 0;
            let path = PathIndex(way);
            if let Some(rtt) = report.rtt {
                host.on_round_trip(path, rtt);
            }
            host.on_delivery(path, at, report.acknowledged, 0);
        });
        match policy {
            Some(policy) if has_news => self.follow(now, policy, host),
            _ => false,
        }
    }

    /// Passes to `report` what has changed on each path between the hosts since the last call.
    fn report_paths(&mut self, mut report: impl FnMut(u8, PathReport)) {
        let Some(paths) = &self.paths else {
            return;
        };
        self.reported.resize(paths.all().len(), Reported::default());
        for (path, before) in paths.all().iter().zip(&mut self.reported) {
            let rtt = self.ledger.rtt_of(path.number);
            let sampled_at = rtt.and_then(|rtt| rtt.sampled_at());
            let acknowledged = self.ledger.path(path.number).acknowledged;
            let is_new = sampled_at != before.sampled_at;
            let report_of = PathReport {
                rtt: rtt.filter(|_| is_new).map(|rtt| rtt.latest()),
                acknowledged: acknowledged - before.acknowledged,
            };
            *before = Reported {
                sampled_at,
                acknowledged,
            };
            report(path.way, report_of);
        }
    }

    /// Opens further paths that the policy adds to the plan. Returns whether there are any.
    fn follow(&mut self, now: Instant, policy: &mut dyn PathPolicy, host: &HostPaths) -> bool {
        let (Some(paths), Some((_, inner))) = (&mut self.paths, &mut self.inner) else {
            return false;
        };
        if !paths.is_joinable() || inner.is_closed() {
            return false;
        }
        let acknowledged = self.ledger.statistics().bytes_acknowledged;
        let progress = Progress {
            acknowledged,
            backlog: self.written.saturating_sub(acknowledged),
            age: now - self.ledger.statistics().opened_at.unwrap_or(now),
            paths: &paths.ways(),
        };
        let joins = policy.progress(&progress, host);
        let adds = !joins.is_empty();
        paths.join(joins);
        paths.act(now, inner, &self.ledger);
        adds
    }

    /// Returns the congestion window in bytes of packets, of all paths together; `None` before the connection exists.
    #[must_use]
    pub fn window(&self) -> Option<u64> {
        let (_, inner) = self.inner.as_ref()?;
        if self.is_multipath() {
            return Some(self.paths().map(|path| path.window).sum());
        }
        Some(inner.congestion_state(PathId::ZERO)?.window())
    }

    /// Returns the slow-start threshold in bytes, once set; of several paths, that of the first.
    #[must_use]
    pub fn ssthresh(&self) -> Option<u64> {
        let threshold = self
            .first_path()?
            .congestion_state(PathId::ZERO)?
            .metrics()
            .ssthresh?;
        (threshold != u64::MAX).then_some(threshold)
    }

    /// Returns the rate at which the controller paces in bit/s, if it sets one; of several paths, that of the first.
    #[must_use]
    pub fn pacing_rate(&self) -> Option<u64> {
        let state = self.first_path()?.congestion_state(PathId::ZERO)?;
        Some(8 * state.metrics().pacing_rate?)
    }

    /// Calls `read` with the controller, if it is one of this project's.
    pub fn with_controller<R>(&self, read: impl FnOnce(&dyn Controller) -> R) -> Option<R> {
        self.controllers.as_ref()?.with(read)
    }

    /// Returns the payload bytes sent and not acknowledged.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.ledger.in_flight()
    }

    /// Returns the payload bytes that arrived and are not read, which wait for earlier ones.
    #[must_use]
    pub fn early_bytes(&self) -> u64 {
        self.ledger.received() - self.read
    }

    fn first_path(&self) -> Option<&Inner> {
        self.inner.as_ref().map(|(_, inner)| inner)
    }
}
