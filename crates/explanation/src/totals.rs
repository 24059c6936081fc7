//! Counters of the data of one sender.

/// Counters of the data of one sender.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Packets, with and without data.
    pub packets: u64,
    /// Packets with data.
    pub data_packets: u64,
    /// Bytes sent for the first time.
    pub bytes: u64,
    /// Retransmitted bytes.
    pub repeated_bytes: u64,
    /// Retransmissions.
    pub repeated_packets: u64,
    /// Retransmissions of data that had arrived, as the receiver reports them (DSACK, RFC 2883).
    pub spurious_packets: u64,
    /// Losses that a timer detected.
    pub timeouts: u64,
    /// Packets that arrived late without a retransmission.
    pub reordered: u64,
    /// Bytes acknowledged but never captured.
    pub unseen_bytes: u64,
    /// Marked packets (Congestion Experienced).
    pub marked: u64,
    /// Packets larger than the maximum segment: captured before segmentation or after aggregation.
    pub large: u64,
}
