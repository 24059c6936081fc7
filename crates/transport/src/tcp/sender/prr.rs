//! Proportional rate reduction (RFC 6937, with the bound of its successor draft-ietf-tcpm-prr-rfc6937bis): during a
//! reduction, the sender transmits in proportion to deliveries, so that the window shrinks without bursts and pauses.
//! Units are segments.

/// A reduction in progress.
#[derive(Clone, Copy, Debug)]
pub struct Prr {
    /// Window before the reduction (`RecoverFS`).
    before: u64,
    /// `prr_delivered` and `prr_out`.
    delivered: u64,
    sent: u64,
    /// Current window.
    window: u64,
}

impl Prr {
    /// Returns a reduction from a window of `before` segments.
    pub const fn new(before: u64) -> Self {
        Self {
            before: if before == 0 { 1 } else { before },
            delivered: 0,
            sent: 0,
            window: before,
        }
    }

    /// Returns the current window.
    #[inline]
    pub const fn window(&self) -> u64 {
        self.window
    }

    /// Counts a sent segment.
    #[inline]
    pub fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// Updates the window for an ACK of `delivered` segments after which `in_flight` remain; `target`: the window after the
    /// reduction; `safe`: the ACK advanced and revealed no further loss (`safeACK` of rfc6937bis).
    pub fn on_acknowledged(&mut self, delivered: u64, in_flight: u64, target: u64, safe: bool) {
        if delivered == 0 {
            return;
        }
        self.delivered += delivered;
        let allowed = if in_flight > target {
            // RFC 6937, section 3: proportional to deliveries.
            (target * self.delivered)
                .div_ceil(self.before)
                .saturating_sub(self.sent)
        } else {
            // Slow start reduction bound, or packet conservation while losses continue.
            let conserved = self.delivered.saturating_sub(self.sent).max(delivered);
            (conserved + u64::from(safe)).min(target - in_flight)
        };
        // RFC 6937: the first retransmission leaves at once.
        let allowed = allowed.max(u64::from(self.sent == 0));
        self.window = in_flight + allowed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_loss_halves_the_rate() {
        // Example of RFC 6937, section 3.1: window 20, ssthresh 10, one loss; one segment for every other ACK.
        let mut prr = Prr::new(20);
        let mut in_flight = 19;
        let mut sent = Vec::new();
        for _ in 0..19 {
            in_flight -= 1;
            prr.on_acknowledged(1, in_flight, 10, false);
            let leave = prr.window().saturating_sub(in_flight);
            for _ in 0..leave {
                prr.on_sent();
            }
            in_flight += leave;
            sent.push(leave);
        }
        assert_eq!(sent.iter().sum::<u64>(), 10, "{sent:?}");
        assert!(sent.iter().all(|&n| n <= 1), "{sent:?}");
        assert_eq!(in_flight, 10);
    }

    #[test]
    fn heavy_loss_grows_back_by_slow_start() {
        // Many losses: in flight is far below the target, and each safe ACK allows two segments.
        let mut prr = Prr::new(20);
        prr.on_acknowledged(1, 4, 10, false);
        assert_eq!(prr.window(), 5, "packet conservation");
        prr.on_sent();
        prr.on_acknowledged(1, 4, 10, true);
        assert_eq!(prr.window(), 6, "one more without further losses");
    }
}
