//! The advertised window (RFC 9293, sections 3.8.6 and 3.8.6.2.2; RFC 7323, section 2).

use crate::tcp::parameters::Parameters;

/// Maximum value of the window field.
const MAX_FIELD: u64 = 65_535;
/// Unit of `Window::share`: the window is a number of 256ths of the memory (`TCP_RMEM_TO_WIN_SCALE`).
const WHOLE: u16 = 256;
/// Initial share if segments have overhead (`TCP_DEFAULT_SCALING_RATIO`).
const HALF: u16 = 128;
/// No window set by the caller.
const NOT_SET: u64 = u64::MAX;
/// Minimum payload of a segment that opens the window in Linux (`tcp_event_data_recv`).
const MIN_LENGTH_TO_GROW: u32 = 128;

/// The advertised window.
#[derive(Debug)]
pub struct Window {
    /// End of the advertised window; never moves back (RFC 9293, section 3.8.6).
    edge: u64,
    /// Current maximum of the window, which grows with arriving data up to `buffer`.
    limit: u64,
    /// Window set by the caller for a shared buffer; replaces the calculation here. `NOT_SET` without one.
    external: u64,
    /// Bytes of memory, the 256ths of it available as window, and the product.
    memory: u64,
    share: u16,
    buffer: u64,
    /// Memory per segment in addition to its payload.
    overhead: u64,
    /// Whether unread data limits the growth of the window, short segments do not open it, and segments that cross its end are
    /// accepted or dropped as a whole.
    linux: bool,
    scale: u8,
}

impl Window {
    pub fn new(parameters: &Parameters, scale: u8) -> Self {
        let segment = u64::from(parameters.mss);
        let mut limit = parameters.initial_receive_window;
        if parameters.is_linux() && limit > segment {
            // A multiple of the segment size, so that the last segment of a window is full.
            limit -= limit % segment;
        }
        let overhead = parameters.receive_overhead;
        let share = if overhead == 0 { WHOLE } else { HALF };
        let mut window = Self {
            edge: 1,
            limit,
            external: NOT_SET,
            memory: 0,
            share,
            buffer: 0,
            overhead,
            linux: parameters.is_linux(),
            scale,
        };
        let first = parameters.initial_receive_window.saturating_mul(u64::from(WHOLE)) / u64::from(share);
        let all = parameters.receive_buffer;
        window.set_memory(if parameters.receive_autotuning {
            first.min(all)
        } else {
            all
        });
        window.buffer = window.buffer.max(limit);
        window
    }

    fn set_memory(&mut self, memory: u64) {
        self.memory = memory;
        self.buffer = memory * u64::from(self.share) / u64::from(WHOLE);
    }

    /// Sets the payload of full segments, which determines the share of memory for payload (`tcp_measure_rcv_mss`).
    pub fn set_segment(&mut self, segment: u32) {
        if self.overhead > 0 {
            let segment = u64::from(segment);
            self.share = (u64::from(WHOLE) * segment / (segment + self.overhead)).max(1) as u16;
            self.set_memory(self.memory);
            self.limit = self.limit.min(self.buffer);
        }
    }

    /// Sets the window of a shared buffer.
    #[inline]
    pub fn set_external(&mut self, bytes: u64) {
        self.external = bytes.min(NOT_SET - 1);
    }

    /// Whether the caller sets the window.
    pub const fn is_external(&self) -> bool {
        self.external != NOT_SET
    }

    /// Grows the memory for a window of `window` bytes, up to `most` bytes of memory. Returns whether it has that maximum.
    pub fn grow_memory(&mut self, window: u64, most: u64) -> bool {
        let memory =
            (u128::from(window) * u128::from(WHOLE) / u128::from(self.share)).min(u128::from(most)) as u64;
        if memory > self.memory {
            self.set_memory(memory);
        }
        self.memory >= most
    }

    /// Whether Linux's rules apply.
    #[inline]
    pub const fn is_linux(&self) -> bool {
        self.linux
    }

    /// Sets the negotiated window shift.
    pub fn set_scale(&mut self, scale: u8) {
        self.scale = scale;
    }

    /// Returns the end of the advertised window.
    #[inline]
    pub const fn edge(&self) -> u64 {
        self.edge
    }

    /// Returns the remaining window.
    #[inline]
    pub const fn size(&self, next: u64) -> u64 {
        self.edge.saturating_sub(next)
    }

    /// Raises the limit by two segments for new data, so that it stays ahead of a sender in slow start (`tcp_grow_window`).
    /// Returns whether it grew.
    #[inline]
    pub fn on_progress(&mut self, unread: u64, length: u32) -> bool {
        let most = if self.linux {
            self.buffer.saturating_sub(unread)
        } else {
            self.buffer
        };
        if self.limit >= most || (self.linux && length < MIN_LENGTH_TO_GROW) {
            return false;
        }
        self.limit = (self.limit + 2 * u64::from(length)).min(most);
        true
    }

    /// Returns the window that the buffer has room for, with silly window avoidance.
    #[inline]
    fn room(&self, next: u64, unread: u64, segment: u32) -> u64 {
        let most = MAX_FIELD << self.scale;
        if self.is_external() {
            return self.external.min(most);
        }
        let free = self.buffer.saturating_sub(unread);
        let window = free.min(self.limit).min(most);
        // RFC 9293, section 3.8.6.2.2: steps of at least a full segment or half the buffer.
        let least = u64::from(segment).min(self.buffer / 2);
        if window < least && next + window > self.edge {
            return 0;
        }
        window
    }

    /// Returns the window field of a segment to send, which never takes back an advertised window.
    #[inline]
    pub fn offer(&mut self, next: u64, unread: u64, segment: u32) -> u16 {
        let mut window = self.room(next, unread, segment);
        // An external window has its own right edge.
        if !self.is_external() {
            window = window.max(self.size(next));
        }
        // Rounding down would take back part of the advertised window.
        let field = ((window + (1 << self.scale) - 1) >> self.scale).min(MAX_FIELD);
        self.edge = self.edge.max(next + (field << self.scale));
        field as u16
    }

    /// Returns the window field of a SYN.
    pub fn offer_unscaled(&mut self, next: u64) -> u16 {
        let window = if self.is_external() {
            self.external
        } else {
            self.limit
        };
        let field = window.min(MAX_FIELD);
        self.edge = self.edge.max(next + field);
        field as u16
    }

    /// Whether a read opened the window enough for an update: to twice the remaining window.
    pub fn is_update_due(&self, next: u64, unread: u64, segment: u32) -> bool {
        let left = self.size(next);
        if self.is_external() || 2 * left > self.limit {
            return false;
        }
        let room = self.room(next, unread, segment);
        room > 0 && room >= 2 * left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Profile, TcpConfig};
    use foundation::Size;

    fn window(buffer: u64, scale: u8) -> Window {
        let config = TcpConfig {
            receive_buffer: Some(Size::from_bytes(buffer)),
            ..TcpConfig::new(Profile::Rfc)
        };
        let mut window = Window::new(&config.parameters(), scale);
        window.offer_unscaled(1);
        window
    }

    #[test]
    fn right_edge_never_moves_back() {
        let mut w = window(10_000, 0);
        assert_eq!(w.edge(), 10_001);
        // 3000 bytes arrive and are not read: the same edge, a smaller window.
        assert_eq!(w.offer(3001, 3000, 1000), 7000);
        assert_eq!(w.edge(), 10_001);
    }

    #[test]
    fn avoids_silly_windows() {
        // RFC 9293, section 3.8.6.2.2: the buffer is full, and single bytes are read.
        let mut w = window(4000, 0);
        assert_eq!(w.offer(4001, 4000, 1000), 0);
        assert_eq!(w.offer(4001, 3999, 1000), 0, "one byte is no window");
        assert!(!w.is_update_due(4001, 3001, 1000));
        assert!(w.is_update_due(4001, 3000, 1000), "a full segment is");
        assert_eq!(w.offer(4001, 3000, 1000), 1000);
    }

    #[test]
    fn scaling_rounds_up() {
        let mut w = window(1 << 20, 7);
        let field = w.offer(1001, 1000, 1000);
        assert_eq!(w.edge(), 1001 + (u64::from(field) << 7));
        assert!(u64::from(field) << 7 >= (1 << 20) - 1000);
    }
}
