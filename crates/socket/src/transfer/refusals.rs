//! Reports of senders that were refused. Everybody can provoke refusals, so few are reported.

use std::net::SocketAddr;

use foundation::{Duration, Instant};
use security::Reason;

use crate::server::Refused;

/// Shortest time between two reports.
const INTERVAL: Duration = Duration::from_secs(1);

/// A report of a refused sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its address, which is not authenticated.
    pub peer: SocketAddr,
    /// Why it was refused.
    pub reason: &'static str,
    /// Refusals without a report before this one.
    pub others: u64,
}

/// The refusals of a receiver.
#[derive(Debug, Default)]
pub struct Refusals {
    reported_at: Option<Instant>,
    others: u64,
    due: Option<Report>,
}

impl Refusals {
    /// Records a refusal.
    pub fn record(&mut self, now: Instant, peer: SocketAddr, refused: Refused) {
        if self.reported_at.is_some_and(|at| now < at + INTERVAL) {
            self.others += 1;
            return;
        }
        self.reported_at = Some(now);
        let (reason, others) = (describe(refused), std::mem::take(&mut self.others));
        self.due = Some(Report { peer, reason, others });
    }

    /// Returns the next report, once.
    pub const fn take(&mut self) -> Option<Report> {
        self.due.take()
    }
}

const fn describe(refused: Refused) -> &'static str {
    match refused {
        Refused::Insecure => {
            "it does not encrypt: the sender needs the code or a trusted key instead of --insecure"
        }
        Refused::Handshake(reason) => match reason {
            Reason::Busy => "too many senders at a time (option --max-connections)",
            Reason::WrongCode => "its code is wrong or used",
            Reason::UntrustedKey => "its key is not trusted (longfat key --trust KEY)",
            Reason::NeedsCode => "it has a key, but this receiver requires the code",
            Reason::NeedsKey => "it has a code, but this receiver requires a trusted key",
            Reason::Unprotected => "it encrypts, but this receiver is insecure",
            Reason::Unknown | Reason::Closed => "its connection is unknown",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_one_refusal_per_second() {
        let mut refusals = Refusals::default();
        let peer = ([192, 0, 2, 1], 9).into();
        let mut reports = Vec::new();
        for tenth in 0..25 {
            let now = Instant::from_nanos(tenth * 100_000_000);
            refusals.record(now, peer, Refused::Handshake(Reason::WrongCode));
            reports.extend(refusals.take().map(|report| report.others));
        }
        assert_eq!(reports, [0, 9, 9]);
    }
}
