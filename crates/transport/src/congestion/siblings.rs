//! The subflows of a multipath connection as seen by coupled controllers (RFC 6356).

use foundation::Duration;

/// State of one subflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sibling {
    /// Congestion window in bytes.
    pub window: u64,
    /// Smoothed round-trip time; zero before the first sample.
    pub rtt: Duration,
    /// Minimum round-trip time; zero before the first sample.
    pub base_rtt: Duration,
    /// The larger one of the bytes acknowledged since the last loss and between the last two losses, OLIA's measure
    /// of path quality (Khalili et al., "MPTCP is not Pareto-optimal", 2012).
    pub between_losses: u64,
}

/// All usable subflows.
#[derive(Clone, Copy, Debug)]
pub struct Siblings<'a> {
    /// Subflows in the order of their opening. Those without a round-trip sample do not count yet.
    pub all: &'a [Sibling],
    /// Index of the subflow whose controller receives them.
    pub own_index: usize,
}

impl Siblings<'_> {
    /// Returns the subflow of the controller.
    ///
    /// # Panics
    /// If `own_index` is out of range.
    #[must_use]
    pub fn own(&self) -> &Sibling {
        &self.all[self.own_index]
    }

    /// Returns the subflows with a round-trip sample.
    pub fn measured(&self) -> impl Iterator<Item = &Sibling> {
        self.all.iter().filter(|sibling| !sibling.rtt.is_zero())
    }
}
