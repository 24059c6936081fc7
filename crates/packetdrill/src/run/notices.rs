//! The error queue of a socket: completions of `MSG_ZEROCOPY`, and time stamps of sent data (`SO_TIMESTAMPING`).

use std::collections::VecDeque;

use foundation::Instant;

/// `SOF_TIMESTAMPING_TX_SOFTWARE`: when the device took the data.
const ON_DEVICE: u64 = 0x2;
/// `SOF_TIMESTAMPING_TX_SCHED`: when the data entered the queue of the device.
const ON_QUEUE: u64 = 0x100;
/// `SOF_TIMESTAMPING_TX_ACK`: when the data was acknowledged.
const ON_ACK: u64 = 0x200;

/// An entry of the error queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The buffers of these calls with `MSG_ZEROCOPY`, counted from zero, are free.
    Completed {
        /// The first call.
        first: u64,
        /// The last call.
        last: u64,
    },
    /// The last byte of a call passed a point.
    Stamp {
        /// `SCM_TSTAMP_SCHED`, `SCM_TSTAMP_SND` or `SCM_TSTAMP_ACK`.
        point: &'static str,
        /// When.
        at: Instant,
        /// Number of the byte since time stamps were requested, from zero.
        byte: u64,
    },
}

/// The error queue, and the calls that will add to it. Positions count the bytes written, from zero.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    queue: VecDeque<Notice>,
    written: u64,
    sent: u64,
    /// `SO_ZEROCOPY`.
    pub zerocopy: bool,
    copies: u64,
    /// End and number of each call with `MSG_ZEROCOPY` that is not acknowledged.
    pending: VecDeque<(u64, u64)>,
    /// Flags of `SO_TIMESTAMPING`, and the bytes written before.
    stamping: (u64, u64),
    unsent: VecDeque<u64>,
    unacknowledged: VecDeque<u64>,
}

impl Notices {
    /// Requests time stamps.
    pub fn request_stamps(&mut self, flags: u64) {
        self.stamping = (flags, self.written);
    }

    /// Records that a call wrote `bytes`; `ends`: it returns then.
    pub fn on_written(&mut self, bytes: u64, zerocopy: bool, ends: bool) {
        self.written += bytes;
        if !ends {
            return;
        }
        if zerocopy && self.zerocopy {
            self.pending.push_back((self.written, self.copies));
            self.copies += 1;
        }
        if self.stamping.0 != 0 {
            self.unsent.push_back(self.written);
            self.unacknowledged.push_back(self.written);
        }
    }

    /// Records that the bytes up to `end` were sent.
    pub fn on_sent(&mut self, now: Instant, end: u64) {
        self.sent = self.sent.max(end);
        while let Some(end) = self.unsent.front().copied().filter(|end| *end <= self.sent) {
            self.unsent.pop_front();
            self.stamp(now, end, ON_QUEUE, "SCM_TSTAMP_SCHED");
            self.stamp(now, end, ON_DEVICE, "SCM_TSTAMP_SND");
        }
    }

    /// Records that the bytes up to `end` were acknowledged. Returns whether the queue grew.
    pub fn on_acknowledged(&mut self, now: Instant, end: u64) -> bool {
        let before = self.queue.len();
        while let Some(last) = self.unacknowledged.front().copied().filter(|last| *last <= end) {
            self.unacknowledged.pop_front();
            self.stamp(now, last, ON_ACK, "SCM_TSTAMP_ACK");
        }
        let mut grew = self.queue.len() > before;
        while let Some((_, number)) = self.pending.front().copied().filter(|(last, _)| *last <= end) {
            self.pending.pop_front();
            grew = true;
            // Linux merges consecutive completions (`skb_zerocopy_notify_extend`).
            match self.queue.back_mut() {
                Some(Notice::Completed { last, .. }) if *last + 1 == number => *last = number,
                _ => self.queue.push_back(Notice::Completed {
                    first: number,
                    last: number,
                }),
            }
        }
        grew
    }

    fn stamp(&mut self, at: Instant, end: u64, flag: u64, point: &'static str) {
        let (flags, from) = self.stamping;
        if flags & flag != 0 {
            // A later request restarts the count.
            let byte = end.saturating_sub(from + 1);
            self.queue.push_back(Notice::Stamp { point, at, byte });
        }
    }

    /// Whether there are entries.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes the first entry.
    pub fn take(&mut self) -> Option<Notice> {
        self.queue.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_completions_are_merged() {
        let mut notices = Notices {
            zerocopy: true,
            ..Notices::default()
        };
        for _ in 0..3 {
            notices.on_written(100, true, true);
        }
        assert!(!notices.on_acknowledged(Instant::ZERO, 99));
        assert!(notices.on_acknowledged(Instant::ZERO, 200));
        assert_eq!(notices.take(), Some(Notice::Completed { first: 0, last: 1 }));
        assert!(notices.on_acknowledged(Instant::ZERO, 300));
        assert_eq!(notices.take(), Some(Notice::Completed { first: 2, last: 2 }));
        assert!(notices.is_empty());
    }

    #[test]
    fn stamps_count_bytes_since_they_were_requested() {
        let mut notices = Notices::default();
        notices.on_written(50, false, true);
        notices.request_stamps(ON_QUEUE | ON_ACK);
        notices.on_written(60, false, false);
        notices.on_written(40, false, true);
        notices.on_sent(Instant::ZERO, 149);
        assert!(notices.is_empty());
        notices.on_sent(Instant::ZERO, 150);
        notices.on_acknowledged(Instant::ZERO, 150);
        for expected in ["SCM_TSTAMP_SCHED", "SCM_TSTAMP_ACK"] {
            let Some(Notice::Stamp { point, byte, .. }) = notices.take() else {
                panic!("no stamp")
            };
            assert_eq!((point, byte), (expected, 99));
        }
    }
}
