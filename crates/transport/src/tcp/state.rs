//! States of a connection and of its congestion control.

/// State of a connection (RFC 9293, section 3.3.2). The caller implements LISTEN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// No connection.
    Closed,
    /// SYN sent.
    SynSent,
    /// SYN received and answered.
    SynReceived,
    /// Data transfer.
    Established,
    /// This end's stream is closed; its FIN is unacknowledged.
    FinWait1,
    /// This end's FIN is acknowledged; the peer's stream is open.
    FinWait2,
    /// The peer's stream is closed; this end's stream is open.
    CloseWait,
    /// Both ends closed at once; this end's FIN is unacknowledged.
    Closing,
    /// The peer closed first; this end's FIN is unacknowledged.
    LastAck,
    /// Both streams are closed; old segments of the connection expire.
    TimeWait,
}

/// State of congestion control, with the names of Linux's `tcp_info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CongestionState {
    /// No sign of loss or congestion.
    #[default]
    Open,
    /// Duplicate or selective acknowledgements arrived: loss or reordering.
    Disorder,
    /// Window reduction for a congestion mark (ECN).
    Cwr,
    /// Fast recovery: the sender retransmits lost segments.
    Recovery,
    /// Recovery after a retransmission timeout.
    Loss,
}

impl CongestionState {
    /// Returns the name of the state in traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Disorder => "disorder",
            Self::Cwr => "cwr",
            Self::Recovery => "recovery",
            Self::Loss => "loss",
        }
    }
}
