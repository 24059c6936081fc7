//! The windows of one multipath connection, as coupled controllers see them (RFC 6356).

use foundation::Duration;

/// One subflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sibling {
    /// Congestion window in bytes.
    pub window: u64,
    /// Smoothed round-trip time; zero before the first sample.
    pub rtt: Duration,
    /// Least round-trip time; zero before the first sample.
    pub base_rtt: Duration,
    /// The larger one of the bytes acknowledged since the last loss and of those between the last two: what OLIA
    /// takes for a path's quality (Khalili et al., "MPTCP is not Pareto-optimal", 2012).
    pub between_losses: u64,
}

/// All subflows over which data flows.
#[derive(Clone, Copy, Debug)]
pub struct Siblings<'a> {
    /// In the order in which they were opened. Those without a round-trip sample count for nothing yet.
    pub all: &'a [Sibling],
    /// Which one is told.
    pub own_index: usize,
}

impl Siblings<'_> {
    /// The one that is told.
    ///
    /// # Panics
    /// Where `me` is not among them.
    #[must_use]
    pub fn own(&self) -> &Sibling {
        &self.all[self.own_index]
    }

    /// Those that count: with a round-trip sample.
    pub fn measured(&self) -> impl Iterator<Item = &Sibling> {
        self.all.iter().filter(|sibling| !sibling.rtt.is_zero())
    }
}
