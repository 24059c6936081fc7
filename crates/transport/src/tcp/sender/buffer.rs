//! The send buffer: what an application may write ahead of what is acknowledged, counted as memory, and how it grows
//! with the congestion window (Linux: `tcp_sndbuf_expand`, `tcp_should_expand_sndbuf` and `sk_stream_write_space`).

use crate::tcp::profile::Parameters;

/// What Linux allocates to describe a buffer (`struct sk_buff`, rounded up to a cache line); the rest of a segment's
/// overhead stands in one allocation with the headers, whose size is a power of two.
const DESCRIPTOR: u64 = 256;
/// `tcp_sndbuf_expand`: room for so many windows, so that fast recovery can send new data.
const WINDOWS: u64 = 2;
/// `tcp_sndbuf_expand`: a window counts as the initial one at least (`TCP_INIT_CWND`).
const LEAST_WINDOW: u64 = 10;

/// The memory of one connection's send buffer.
#[derive(Clone, Copy, Debug)]
pub struct SendBuffer {
    /// Bytes of memory now, and at most.
    memory: u64,
    most: u64,
    /// Bytes of memory that a segment takes besides its payload.
    overhead: u64,
    /// Payload and options of a full segment.
    mss: u64,
    grows: bool,
    /// The memory as payload, for segments of the size last told, and what a segment's overhead is worth so.
    capacity: u64,
    spared: u64,
    segment: u64,
}

impl SendBuffer {
    /// A buffer for segments of `segment` payload bytes.
    pub fn new(parameters: &Parameters, segment: u32) -> Self {
        let mut buffer = Self {
            memory: if parameters.send_autotuning {
                0
            } else {
                parameters.send_buffer
            },
            most: parameters.send_buffer,
            overhead: parameters.send_overhead,
            mss: u64::from(parameters.mss),
            grows: parameters.send_autotuning,
            capacity: 0,
            spared: 0,
            segment: 0,
        };
        buffer.set_segment(segment);
        buffer.expand(LEAST_WINDOW);
        buffer
    }

    /// Segments have `segment` payload bytes from now on.
    pub fn set_segment(&mut self, segment: u32) {
        self.segment = u64::from(segment);
        self.update_capacity();
    }

    /// It has `bytes` of memory from now on, and grows no more (`SO_SNDBUF`).
    pub fn set_size(&mut self, bytes: u64) {
        (self.memory, self.most, self.grows) = (bytes, bytes, false);
        self.update_capacity();
    }

    fn update_capacity(&mut self) {
        self.spared = self.overhead * self.segment / (self.segment + self.overhead).max(1);
        self.capacity = if self.overhead == 0 {
            self.memory
        } else {
            // A segment is begun while any memory is left.
            self.memory
                .div_ceil(self.segment + self.overhead)
                .saturating_mul(self.segment)
        };
    }

    /// Of `bytes` that are not acknowledged, those that count where `sacked` segments are selectively acknowledged: Linux
    /// joins such neighbours to one (`tcp_shift_skb_data`), which frees their overhead and lets new data be written.
    #[inline]
    pub const fn charged(&self, bytes: u64, sacked: u64) -> u64 {
        bytes.saturating_sub(self.spared * sacked)
    }

    /// Payload bytes that there is room for beside those [`held`](Self::held).
    #[inline]
    pub const fn room(&self, charged: u64) -> u64 {
        self.capacity.saturating_sub(charged)
    }

    /// Whether a writer that waits for room is woken: Linux does so when half as much is free as is held
    /// (`sk_stream_min_wspace`), so that it writes in large portions.
    #[inline]
    pub const fn wakes_writer(&self, charged: u64) -> bool {
        self.room(charged) >= charged / 2
    }

    /// Whether it may still grow.
    #[inline]
    pub const fn may_grow(&self) -> bool {
        self.grows && self.memory < self.most
    }

    /// There is to be room for a congestion window of `window` segments.
    pub fn expand(&mut self, window: u64) {
        if !self.may_grow() {
            return;
        }
        let in_header = self.overhead.saturating_sub(DESCRIPTOR);
        let each = (self.mss.max(self.segment) + in_header).next_power_of_two() + DESCRIPTOR;
        let wanted = WINDOWS * window.max(LEAST_WINDOW) * each;
        if wanted > self.memory {
            self.memory = wanted.min(self.most);
            self.update_capacity();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Profile, TcpConfig};

    #[test]
    fn memory_grows_with_the_window_as_linux_reports_it() {
        // As `ss -m` of Linux 6.18 shows it (tb), MSS 1460 with timestamps: congestion windows of 10, 20, 40, 80 and 626.
        let parameters = TcpConfig::new(Profile::Linux).parameters();
        let mut buffer = SendBuffer::new(&parameters, 1448);
        let mut seen = Vec::new();
        for window in [1, 20, 40, 80, 626, 5, 1841] {
            buffer.expand(window);
            seen.push(buffer.memory);
        }
        assert_eq!(
            seen,
            [46_080, 92_160, 184_320, 368_640, 2_884_608, 2_884_608, 4_194_304]
        );
        assert!(!buffer.may_grow());
        // Linux 6.18 on the same path: at most 1841 segments unacknowledged, the last of them not full.
        assert_eq!(buffer.room(0) / 1448, 1840);
    }

    #[test]
    fn a_writer_wakes_when_a_third_is_free() {
        let config = TcpConfig {
            send_buffer: Some(foundation::Size::from_bytes(900)),
            ..TcpConfig::new(Profile::Rfc)
        };
        let buffer = SendBuffer::new(&config.parameters(), 100);
        assert_eq!(
            buffer.room(0),
            900,
            "payload alone counts, and all of it from the start"
        );
        assert!(!buffer.wakes_writer(602));
        assert!(buffer.wakes_writer(600));
    }

    #[test]
    fn what_is_selectively_acknowledged_takes_its_payload_alone() {
        // Linux 6.18 in fast recovery: 2119 segments unacknowledged in 3,861,800 bytes of memory, where 1841 fit else.
        let parameters = TcpConfig::new(Profile::Linux).parameters();
        let buffer = SendBuffer::new(&parameters, 1448);
        // 1165 segments' overhead was free then: (2119 * 2280 - 3,861,800) / 832.
        let charged = buffer.charged(2119 * 1448, 1165);
        let memory = charged * 2280 / 1448;
        assert!(memory.abs_diff(3_861_800) < 2000, "{memory}");
    }

    #[test]
    fn a_buffer_that_was_set_stays() {
        let parameters = TcpConfig::new(Profile::Linux).parameters();
        let mut buffer = SendBuffer::new(&parameters, 1448);
        buffer.set_size(2280 * 5);
        buffer.expand(1000);
        assert_eq!(buffer.room(0), 1448 * 5);
        assert_eq!(buffer.room(1448 * 9), 0);
    }
}
