//! Parts of a sender's state.

use std::collections::VecDeque;

use foundation::Instant;

use super::HandshakeResult;
use crate::tcp::config::Recovery;

/// What the application wrote, and how its writes become segments.
#[derive(Debug)]
pub(super) struct Writes {
    /// The position after the last byte written.
    pub end: u64,
    /// Whether the stream ends there.
    pub finishing: bool,
    /// The last write was partial.
    pub blocked: bool,
    pub nodelay: bool,
    pub cork: bool,
    /// The application announced further writes; data before `flush_to` leaves nevertheless.
    pub more_to_come: bool,
    pub flush_to: u64,
    /// End of the last partial segment (Minshall's variant of Nagle's algorithm).
    pub small_end: u64,
    /// End of the last write to push, and position after the last PSH.
    pub push_at: u64,
    pub pushed: u64,
    /// Ends of records (`MSG_EOR`), which no segment spans. Those before the next position to send have no effect.
    pub records: Option<Box<RecordEnds>>,
}

/// The positions after the last bytes of records, in order. Boxed, since few connections have any.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordEnds(VecDeque<u64>);

impl Writes {
    /// Returns the position up to which a segment that starts at `from` may extend.
    #[inline]
    pub fn limit(&self, from: u64) -> u64 {
        match &self.records {
            None => self.end,
            Some(records) => {
                let mut ends = records.0.iter().copied();
                ends.find(|&end| end > from).unwrap_or(self.end)
            }
        }
    }

    /// Ends a record at the last byte written.
    pub fn end_record(&mut self) {
        let records = &mut self.records.get_or_insert_default().0;
        if records.back() != Some(&self.end) {
            records.push_back(self.end);
        }
    }

    /// Whether a record ends at `end`, the position that the last segment reached.
    #[inline]
    pub fn pass_record(&mut self, end: u64) -> bool {
        let Some(RecordEnds(records)) = self.records.as_deref_mut() else {
            return false;
        };
        let mut passed = false;
        while records.front().is_some_and(|&record| record <= end) {
            passed = records.pop_front() == Some(end);
        }
        if records.is_empty() {
            self.records = None;
        }
        passed
    }

    pub const fn new(nodelay: bool) -> Self {
        Self {
            end: 1,
            finishing: false,
            blocked: false,
            nodelay,
            cork: false,
            more_to_come: false,
            flush_to: 0,
            small_end: 0,
            push_at: 0,
            pushed: 1,
            records: None,
        }
    }
}

/// The window that the peer advertises.
#[derive(Debug)]
pub(super) struct PeerWindow {
    /// From the lowest position not acknowledged.
    pub window: u64,
    /// Its maximum so far.
    pub largest: u64,
    /// The position of the segment that advertised it (SND.WL1 of RFC 9293).
    pub from: u64,
}

impl PeerWindow {
    pub const fn new(start: &HandshakeResult) -> Self {
        Self {
            window: start.window,
            largest: start.window,
            from: start.window_from,
        }
    }
}

/// What the handshake negotiated.
#[derive(Debug)]
pub(super) struct Negotiated {
    pub sack: bool,
    pub timestamps: bool,
    pub ecn: bool,
    /// Offset of the timestamp clock from the time in ms.
    pub clock_offset: u32,
}

impl Negotiated {
    pub fn new(start: &HandshakeResult, recovery: Recovery) -> Self {
        Self {
            sack: start.sack && recovery != Recovery::Newreno,
            timestamps: start.timestamps,
            ecn: start.ecn,
            clock_offset: start.clock_offset,
        }
    }
}

/// The reordering of the path.
#[derive(Debug)]
pub(super) struct Reordering {
    /// Reordering to expect, in segments.
    pub extent: u32,
    /// The number of reordering events.
    pub events: u32,
}

/// F-RTO checks whether the last timeout was spurious (RFC 5682).
#[derive(Debug, Default)]
pub(super) struct Frto {
    pub checking: bool,
    /// Whether new data goes before retransmissions.
    pub new_data_first: bool,
}

/// What is due: segments regardless of the windows, and an announcement.
#[derive(Debug, Default)]
pub(super) struct Due {
    pub first: bool,
    pub tail_probe: bool,
    pub window_probe: bool,
    /// The next data segment announces a window reduction (CWR).
    pub reduction: bool,
    /// Probes of the current zero window.
    pub window_probes: u32,
}

/// What was sent since the last external event.
#[derive(Debug)]
pub(super) struct Burst {
    pub segments: u32,
    /// Whether new data was among them.
    pub has_new: bool,
    pub at: Instant,
    /// When the pacer allows the next segment.
    pub paced_until: Option<Instant>,
}

impl Burst {
    pub const fn new(now: Instant) -> Self {
        Self {
            segments: 0,
            has_new: false,
            at: now,
            paced_until: None,
        }
    }
}

/// The use of the congestion window in a period.
#[derive(Debug, Default)]
pub(super) struct WindowUsage {
    /// Whether the window was limiting.
    pub limited: bool,
    /// The most segments in flight.
    pub most_out: u32,
    /// The position whose acknowledgement ends the period.
    pub until: u64,
}

/// Totals of segments.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub delivered: u64,
    /// Delivered by ACKs with a congestion echo.
    pub marked: u32,
    /// Considered lost.
    pub lost: u32,
    pub retransmitted: u32,
    pub tail_probes: u32,
    /// Losses that the reordering timer detected.
    pub late: u32,
}
