//! Decisions of senders: a row for each change of the state in which a sender decides.

use foundation::omit_unset;
use serde::Serialize;
use transport::arq;
use transport::tcp::{Recovery, SenderSnapshot};

omit_unset! {
    /// The state of a sender after a change. Counts are totals so far.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct Decision {
        /// Seconds since the start of the trial.
        pub time: f64,
        /// Flow.
        pub flow: u32,
        /// Number of the subflow of a multipath connection.
        pub subflow: Option<u8>,
        /// Loss recovery state: "open", "disorder", "cwr", "recovery" or "loss".
        pub state: &'static str,
        /// Phase of the congestion controller.
        pub phase: &'static str,
        /// Loss detection: "rack", "sack" or "newreno".
        pub detection: Option<&'static str>,
        /// Congestion window in bytes.
        pub cwnd_bytes: u64,
        /// Slow-start threshold in bytes, once set.
        pub ssthresh_bytes: Option<u64>,
        /// Retransmission timeout in seconds, back-off included.
        pub rto_s: Option<f64>,
        /// Segments acknowledged selectively; without SACK, duplicate ACKs.
        pub sacked: u64,
        /// Expiries of the retransmission timer; `None` for protocols that do not count them.
        pub timeouts: Option<u64>,
        /// Tail loss probes.
        pub probes: u64,
        /// Losses detected by the reordering timer.
        pub late: u64,
        /// Retransmissions that proved spurious.
        pub undone: u64,
    }
}

impl Decision {
    /// Returns the state of a TCP sender.
    #[must_use]
    pub fn of_tcp(snapshot: &SenderSnapshot) -> Self {
        Self {
            state: snapshot.state.name(),
            phase: snapshot.phase,
            detection: Some(match snapshot.detection {
                Recovery::RackTlp => "rack",
                Recovery::Sack => "sack",
                Recovery::Newreno => "newreno",
            }),
            cwnd_bytes: snapshot.window,
            ssthresh_bytes: snapshot.ssthresh,
            rto_s: Some(snapshot.rto.as_secs_f64()),
            sacked: snapshot.sacked,
            timeouts: Some(snapshot.timeouts),
            probes: snapshot.probes,
            late: snapshot.late,
            undone: snapshot.spurious,
            ..Self::default()
        }
    }

    /// Returns the state of an ARQ sender.
    #[must_use]
    pub fn of_arq<P: arq::Payload>(connection: &arq::Connection<P>) -> Self {
        let (sender, statistics) = (connection.sender(), connection.statistics());
        Self {
            state: "open",
            phase: sender.phase(),
            cwnd_bytes: sender.window_bytes(),
            ssthresh_bytes: sender.ssthresh().filter(|&threshold| threshold != u64::MAX),
            timeouts: Some(statistics.timeouts),
            undone: statistics.spurious_retransmissions,
            ..Self::default()
        }
    }

    /// Returns whether the sender decided anything since `before`.
    #[must_use]
    pub fn differs(&self, before: &Self) -> bool {
        let key = |one: &Self| {
            let counts = (one.timeouts, one.probes, one.late, one.undone);
            (one.state, one.phase, one.ssthresh_bytes, counts)
        };
        key(self) != key(before)
    }
}
