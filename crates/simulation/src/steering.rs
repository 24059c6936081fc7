//! A congestion controller whose window and rate a program sets, and that accounts for what happens.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foundation::{Duration, Instant, Rate};
use transport::congestion::{Acknowledgement, Controller, Loss};

/// What a sender did and observed over an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Account {
    /// Payload bytes sent, with retransmissions.
    pub sent: u64,
    /// Payload bytes acknowledged.
    pub acknowledged: u64,
    /// Payload bytes detected as lost.
    pub lost: u64,
    /// Number of RTT samples.
    pub samples: u64,
    /// Sum of the RTT samples in seconds.
    pub rtt_sum: f64,
    /// Smallest RTT sample in seconds; 0 without samples.
    pub rtt_min: f64,
    /// Sum of the times of RTT samples, in seconds.
    pub time_sum: f64,
    /// Sum of the squares of these times.
    pub time_square_sum: f64,
    /// Sum of time times RTT.
    pub product_sum: f64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

impl Account {
    fn add_rtt(&mut self, now: Instant, rtt: Duration) {
        let (time, rtt) = ((now - Instant::ZERO).as_secs_f64(), rtt.as_secs_f64());
        self.rtt_min = if self.samples == 0 {
            rtt
        } else {
            self.rtt_min.min(rtt)
        };
        self.samples += 1;
        self.rtt_sum += rtt;
        self.time_sum += time;
        self.time_square_sum += time * time;
        self.product_sum += time * rtt;
    }

    /// Returns the mean RTT in seconds; `None` without samples.
    #[must_use]
    pub fn rtt_mean(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.rtt_sum / self.samples as f64)
    }

    /// Returns the slope of the RTT over time (s/s), by least squares; 0 with fewer than two samples.
    #[must_use]
    pub fn rtt_slope(&self) -> f64 {
        let count = self.samples as f64;
        let spread = self.time_square_sum - self.time_sum * self.time_sum / count;
        if self.samples < 2 || spread <= 1e-18 {
            return 0.0;
        }
        (self.product_sum - self.time_sum * self.rtt_sum / count) / spread
    }
}

/// The state that a program and a controller share.
#[derive(Debug)]
struct Shared {
    window: u64,
    rate: Option<Rate>,
    account: Account,
}

/// The program's handle of a [`SteeredController`].
#[derive(Clone, Debug)]
pub struct Steering {
    shared: Arc<Mutex<Shared>>,
}

impl Steering {
    /// Returns a handle with a window in bytes and no pacing.
    #[must_use]
    pub fn new(window: u64) -> Self {
        let account = Account::default();
        let shared = Shared {
            window,
            rate: None,
            account,
        };
        Self {
            shared: Arc::new(Mutex::new(shared)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets window (bytes) and pacing rate. A new [`controller`](Self::controller) applies them at once, an existing one
    /// with the next ACK.
    pub fn set(&self, window: u64, rate: Option<Rate>) {
        let mut shared = self.lock();
        shared.window = window;
        shared.rate = rate;
    }

    /// Returns a controller that follows this handle.
    #[must_use]
    pub fn controller(&self) -> Box<dyn Controller> {
        Box::new(SteeredController {
            steering: self.clone(),
        })
    }

    /// Takes the account since the last call.
    #[must_use]
    pub fn take_account(&self) -> Account {
        std::mem::take(&mut self.lock().account)
    }
}

/// A controller that follows a [`Steering`].
#[derive(Debug)]
pub struct SteeredController {
    steering: Steering,
}

impl Controller for SteeredController {
    fn on_sent(&mut self, _: Instant, bytes: u64, _: u64) {
        self.steering.lock().account.sent += bytes;
    }

    fn on_acknowledged(&mut self, ack: &Acknowledgement) {
        let account = &mut self.steering.lock().account;
        account.acknowledged += ack.bytes;
        if let Some(rtt) = ack.rtt {
            account.add_rtt(ack.now, rtt);
        }
    }

    fn on_lost(&mut self, loss: &Loss) {
        self.steering.lock().account.lost += loss.bytes;
    }

    fn on_timeout(&mut self, _: Instant, _: u64) {
        self.steering.lock().account.timeouts += 1;
    }

    fn on_congestion_experienced(&mut self, _: Instant, _: Instant) {}

    fn window(&self) -> u64 {
        self.steering.lock().window
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.steering.lock().rate
    }

    fn changes_on_sent(&self) -> bool {
        false
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("window_bytes", self.window() as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_is_that_of_a_line() {
        let mut account = Account::default();
        for step in 0..5_u64 {
            let now = Instant::ZERO + Duration::from_millis(1000 + step * 10);
            account.add_rtt(now, Duration::from_millis(20 + step * 2));
        }
        assert!(
            (account.rtt_slope() - 0.2).abs() < 1e-6,
            "{}",
            account.rtt_slope()
        );
        assert_eq!(account.rtt_mean(), Some(0.024));
        assert_eq!(Account::default().rtt_slope(), 0.0);
    }
}
