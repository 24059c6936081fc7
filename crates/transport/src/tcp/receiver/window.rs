//! The window that the receiver offers (RFC 9293, sections 3.8.6 and 3.8.6.2.2; RFC 7323, section 2).

use crate::tcp::profile::Parameters;

/// The largest value of a header's window field.
const MAX_FIELD: u64 = 65_535;

/// The window offered.
#[derive(Debug)]
pub struct Window {
    /// The position after the highest that was ever offered: it never moves back (RFC 9293, section 3.8.6).
    edge: u64,
    /// The largest window offered now, which grows with what arrives up to `buffer`.
    limit: u64,
    buffer: u64,
    scale: u8,
}

impl Window {
    pub fn new(parameters: &Parameters, scale: u8) -> Self {
        let segment = u64::from(parameters.mss);
        let mut limit = parameters.initial_receive_window;
        if parameters.is_linux() && limit > segment {
            // Whole segments, so that the last one of a window is full.
            limit -= limit % segment;
        }
        Self {
            edge: 1,
            limit,
            buffer: parameters.receive_buffer,
            scale,
        }
    }

    /// Window scaling is settled: a window without it has 16 bits.
    pub fn set_scale(&mut self, scale: u8) {
        self.scale = scale;
    }

    /// The position after the highest that was offered.
    #[inline]
    pub const fn edge(&self) -> u64 {
        self.edge
    }

    /// What is left of the window offered.
    #[inline]
    pub const fn size(&self, next: u64) -> u64 {
        self.edge.saturating_sub(next)
    }

    /// In-order data arrived: the limit grows by two segments, so that it stays ahead of a sender in slow start.
    #[inline]
    pub fn on_progress(&mut self, _next: u64, _unread: u64, length: u32) {
        if self.limit < self.buffer {
            self.limit = (self.limit + 2 * u64::from(length)).min(self.buffer);
        }
    }

    /// The window that there is room for, without silly small steps.
    #[inline]
    fn room(&self, next: u64, unread: u64, segment: u32) -> u64 {
        let free = self.buffer.saturating_sub(unread);
        let most = MAX_FIELD << self.scale;
        let window = free.min(self.limit).min(most);
        // RFC 9293, section 3.8.6.2.2: no step below a full segment or half the buffer.
        let least = u64::from(segment).min(self.buffer / 2);
        if window < least && next + window > self.edge {
            return 0;
        }
        window
    }

    /// The window field of a segment that leaves: never less than was offered before.
    #[inline]
    pub fn offer(&mut self, next: u64, unread: u64, segment: u32) -> u16 {
        let window = self.room(next, unread, segment).max(self.size(next));
        // Rounded up to the scale, as far as the field holds: rounding down would take back what was offered.
        let field = window.div_ceil(1 << self.scale).min(MAX_FIELD);
        self.edge = self.edge.max(next + (field << self.scale));
        field as u16
    }

    /// The window field of a SYN.
    pub fn offer_unscaled(&mut self, next: u64) -> u16 {
        let field = self.limit.min(MAX_FIELD);
        self.edge = self.edge.max(next + field);
        field as u16
    }

    /// After a read: whether the window grew so much that the peer should hear of it (twice what is left of it).
    pub fn is_update_due(&self, next: u64, unread: u64, segment: u32) -> bool {
        let left = self.size(next);
        if 2 * left > self.limit {
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
    fn the_right_edge_never_moves_back() {
        let mut w = window(10_000, 0);
        assert_eq!(w.edge(), 10_001);
        // 3000 bytes arrive and are not read: the same edge, a smaller window.
        assert_eq!(w.offer(3001, 3000, 1000), 7000);
        assert_eq!(w.edge(), 10_001);
    }

    #[test]
    fn no_silly_windows() {
        // RFC 9293, section 3.8.6.2.2: the buffer is full, and single bytes are read.
        let mut w = window(4000, 0);
        assert_eq!(w.offer(4001, 4000, 1000), 0);
        assert_eq!(w.offer(4001, 3999, 1000), 0, "one byte is no window");
        assert!(!w.is_update_due(4001, 3001, 1000));
        assert!(w.is_update_due(4001, 3000, 1000), "a full segment is");
        assert_eq!(w.offer(4001, 3000, 1000), 1000);
    }

    #[test]
    fn scaling_rounds_up_and_the_edge_says_so() {
        let mut w = window(1 << 20, 7);
        let field = w.offer(1001, 1000, 1000);
        assert_eq!(w.edge(), 1001 + (u64::from(field) << 7));
        assert!(u64::from(field) << 7 >= (1 << 20) - 1000);
    }
}
