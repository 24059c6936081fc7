//! The send buffer: its capacity in terms of memory, and its growth with the congestion window (Linux:
//! `tcp_sndbuf_expand`, `tcp_should_expand_sndbuf` and `sk_stream_write_space`).

use crate::tcp::parameters::Parameters;

/// Size of a buffer's descriptor in Linux (`struct sk_buff`, rounded up to a cache line). The remaining overhead of a
/// segment shares one allocation with the headers, whose size is a power of two.
const DESCRIPTOR: u64 = 256;
/// Minimum window in that calculation (`TCP_INIT_CWND`).
const MIN_WINDOW: u64 = 10;

/// The memory of one connection's send buffer.
#[derive(Clone, Copy, Debug)]
pub struct SendBuffer {
    /// Bytes of memory: current size and maximum.
    memory: u64,
    most: u64,
    /// Memory per segment in addition to its payload.
    overhead: u64,
    /// Payload and options of a full segment.
    mss: u32,
    grows: bool,
    /// The memory as payload bytes of full segments, and one segment's overhead as payload bytes.
    capacity: u64,
    overhead_as_payload: u64,
    segment: u32,
}

impl SendBuffer {
    /// Returns a buffer for segments of `segment` payload bytes. With autotuning, it has room for `windows` congestion windows.
    pub fn new(parameters: &Parameters, segment: u32, windows: u64) -> Self {
        let mut buffer = Self {
            memory: if parameters.send_autotuning {
                0
            } else {
                parameters.send_buffer
            },
            most: parameters.send_buffer,
            overhead: parameters.send_overhead,
            mss: parameters.mss,
            grows: parameters.send_autotuning,
            capacity: 0,
            overhead_as_payload: 0,
            segment: 0,
        };
        buffer.set_segment(segment);
        buffer.expand(MIN_WINDOW, windows);
        buffer
    }

    /// Sets the payload bytes of a full segment.
    pub fn set_segment(&mut self, segment: u32) {
        self.segment = segment;
        self.update_capacity();
    }

    /// Sets the memory in bytes and stops autotuning (`SO_SNDBUF`).
    pub fn set_size(&mut self, bytes: u64) {
        (self.memory, self.most, self.grows) = (bytes, bytes, false);
        self.update_capacity();
    }

    fn update_capacity(&mut self) {
        let segment = u64::from(self.segment);
        self.overhead_as_payload = self.overhead * segment / (segment + self.overhead).max(1);
        self.capacity = if self.overhead == 0 {
            self.memory
        } else {
            // As long as any memory is free, another segment fits.
            self.memory
                .div_ceil(segment + self.overhead)
                .saturating_mul(segment)
        };
    }

    /// Returns the bytes charged for `bytes` of unacknowledged data with `sacked` selectively acknowledged segments. Linux
    /// merges adjacent ones (`tcp_shift_skb_data`), which frees their overhead for new data.
    #[inline]
    pub const fn charged(&self, bytes: u64, sacked: u64) -> u64 {
        bytes.saturating_sub(self.overhead_as_payload * sacked)
    }

    /// Returns the free payload bytes in addition to those [`charged`](Self::charged).
    #[inline]
    pub const fn room(&self, charged: u64) -> u64 {
        self.capacity.saturating_sub(charged)
    }

    /// Whether to wake a blocked writer: Linux waits until half as much is free as is charged (`sk_stream_min_wspace`), so
    /// that writes are large.
    #[inline]
    pub const fn wakes_writer(&self, charged: u64) -> bool {
        self.room(charged) >= charged / 2
    }

    /// Whether autotuning may still grow the buffer.
    #[inline]
    pub const fn may_grow(&self) -> bool {
        self.grows && self.memory < self.most
    }

    /// Grows the buffer for `windows` congestion windows of `window` segments.
    pub fn expand(&mut self, window: u64, windows: u64) {
        if !self.may_grow() {
            return;
        }
        let in_header = self.overhead.saturating_sub(DESCRIPTOR);
        let each = (u64::from(self.mss.max(self.segment)) + in_header).next_power_of_two() + DESCRIPTOR;
        let needed = windows * window.max(MIN_WINDOW) * each;
        if needed > self.memory {
            self.memory = needed.min(self.most);
            self.update_capacity();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Profile, TcpConfig};

    #[test]
    fn memory_grows_with_the_window_as_in_linux() {
        // `ss -m` of Linux 6.18 (tb), MSS 1460 with timestamps: congestion windows of 10, 20, 40, 80 and 626.
        let parameters = TcpConfig::new(Profile::Linux).parameters();
        let mut buffer = SendBuffer::new(&parameters, 1448, 2);
        let mut seen = Vec::new();
        for window in [1, 20, 40, 80, 626, 5, 1841] {
            buffer.expand(window, 2);
            seen.push(buffer.memory);
        }
        assert_eq!(
            seen,
            [46_080, 92_160, 184_320, 368_640, 2_884_608, 2_884_608, 4_194_304]
        );
        assert!(!buffer.may_grow());
        // Linux 6.18 on the same path: at most 1841 segments unacknowledged, the last of them not full.
        assert_eq!(buffer.room(0) / 1448, 1840);
        // BBR (`bbr_sndbuf_expand`): 69,120 bytes after the handshake, on the same path.
        let mut buffer = SendBuffer::new(&parameters, 1448, 3);
        assert_eq!(buffer.memory, 69_120);
        buffer.expand(80, 3);
        assert_eq!(buffer.memory, 552_960);
    }

    #[test]
    fn wakes_the_writer_when_a_third_is_free() {
        let config = TcpConfig {
            send_buffer: Some(foundation::Size::from_bytes(900)),
            ..TcpConfig::new(Profile::Rfc)
        };
        let buffer = SendBuffer::new(&config.parameters(), 100, 2);
        assert_eq!(
            buffer.room(0),
            900,
            "only payload counts, all of it from the start"
        );
        assert!(!buffer.wakes_writer(602));
        assert!(buffer.wakes_writer(600));
    }

    #[test]
    fn charges_no_overhead_for_selectively_acknowledged_segments() {
        // Linux 6.18 in fast recovery: 2119 unacknowledged segments in 3,861,800 bytes of memory, otherwise enough for 1841.
        let parameters = TcpConfig::new(Profile::Linux).parameters();
        let buffer = SendBuffer::new(&parameters, 1448, 2);
        // The overhead of 1165 segments was free: (2119 * 2280 - 3,861,800) / 832.
        let charged = buffer.charged(2119 * 1448, 1165);
        let memory = charged * 2280 / 1448;
        assert!(memory.abs_diff(3_861_800) < 2000, "{memory}");
    }

    #[test]
    fn does_not_grow_after_set_size() {
        let parameters = TcpConfig::new(Profile::Linux).parameters();
        let mut buffer = SendBuffer::new(&parameters, 1448, 2);
        buffer.set_size(2280 * 5);
        buffer.expand(1000, 2);
        assert_eq!(buffer.room(0), 1448 * 5);
        assert_eq!(buffer.room(1448 * 9), 0);
    }
}
