//! State that all threads of a trial share.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use foundation::Instant;
use network::HostId;
use socket::clock::Clock;
use transport::mptcp::HostPaths;

use super::kernel_tcp::KernelTcp;
use crate::stack::UserStack;

/// Wall time since the trial started.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrialClock {
    pub clock: Clock,
    pub start: Instant,
}

impl TrialClock {
    pub(super) fn start(clock: Clock) -> Self {
        Self {
            clock,
            start: clock.now(),
        }
    }

    pub(super) fn now(&self) -> Instant {
        Instant::ZERO + self.clock.now().saturating_since(self.start)
    }
}

/// The user-space stacks of the hosts that run the project's TCP.
pub(super) type Stacks = BTreeMap<HostId, UserStack>;

/// The accounts of the hosts' paths, as in simulation.
pub(super) type Accounts = Mutex<Vec<HostPaths>>;

/// State and settings for the threads of one group of flows.
pub(super) struct TrialContext<'a> {
    pub clock: TrialClock,
    pub kernel: &'a KernelTcp,
    pub stacks: &'a Stacks,
    pub accounts: &'a Accounts,
    #[cfg(feature = "quic")]
    pub sessions: &'a super::quic::HostSessions,
    /// Set at the end of the trial; every thread that reads it returns.
    pub stop: &'a AtomicBool,
}

impl TrialContext<'_> {
    pub(super) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
