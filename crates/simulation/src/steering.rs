//! A congestion controller whose window and rate a program sets, and that accounts for what happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use foundation::{Duration, Instant, Rate};
use transport::congestion::{Acknowledgement, Controller, Loss, Outputs};

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

/// A number that one thread at a time writes: the environment of a controller moves between threads as a whole. So it needs
/// no lock, and no atomic addition.
#[derive(Debug, Default)]
struct Number(AtomicU64);

impl Number {
    fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed) + more, Relaxed);
    }

    fn add_float(&self, more: f64) {
        self.set_float(self.float() + more);
    }

    fn float(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }

    fn set_float(&self, value: f64) {
        self.0.store(value.to_bits(), Relaxed);
    }

    fn take(&self) -> u64 {
        let value = self.0.load(Relaxed);
        self.0.store(0, Relaxed);
        value
    }

    fn take_float(&self) -> f64 {
        f64::from_bits(self.take())
    }
}

/// The account of the current interval.
#[derive(Debug, Default)]
struct Running {
    sent: Number,
    acknowledged: Number,
    lost: Number,
    samples: Number,
    rtt_sum: Number,
    rtt_min: Number,
    time_sum: Number,
    time_square_sum: Number,
    product_sum: Number,
    timeouts: Number,
}

impl Running {
    fn add_rtt(&self, now: Instant, rtt: Duration) {
        let (time, rtt) = ((now - Instant::ZERO).as_secs_f64(), rtt.as_secs_f64());
        if self.samples.0.load(Relaxed) == 0 || rtt < self.rtt_min.float() {
            self.rtt_min.set_float(rtt);
        }
        self.samples.add(1);
        self.rtt_sum.add_float(rtt);
        self.time_sum.add_float(time);
        self.time_square_sum.add_float(time * time);
        self.product_sum.add_float(time * rtt);
    }

    fn take(&self) -> Account {
        Account {
            sent: self.sent.take(),
            acknowledged: self.acknowledged.take(),
            lost: self.lost.take(),
            samples: self.samples.take(),
            rtt_sum: self.rtt_sum.take_float(),
            rtt_min: self.rtt_min.take_float(),
            time_sum: self.time_sum.take_float(),
            time_square_sum: self.time_square_sum.take_float(),
            product_sum: self.product_sum.take_float(),
            timeouts: self.timeouts.take(),
        }
    }
}

/// The account of one sender over all of its controllers.
#[derive(Debug, Default)]
pub struct Steering {
    running: Arc<Running>,
}

impl Steering {
    /// Returns a controller with a window in bytes and a pacing rate.
    #[must_use]
    pub fn controller(&self, window: u64, rate: Option<Rate>) -> Box<dyn Controller> {
        Box::new(SteeredController {
            window,
            rate,
            running: Arc::clone(&self.running),
        })
    }

    /// Takes the account since the last call.
    #[must_use]
    pub fn take_account(&self) -> Account {
        self.running.take()
    }
}

/// A controller with a constant window and rate that accounts for what happens.
#[derive(Debug)]
struct SteeredController {
    window: u64,
    rate: Option<Rate>,
    running: Arc<Running>,
}

impl Controller for SteeredController {
    fn on_sent(&mut self, _: Instant, bytes: u64, _: u64) {
        self.running.sent.add(bytes);
    }

    fn on_acknowledged(&mut self, ack: &Acknowledgement) {
        self.running.acknowledged.add(ack.bytes);
        if let Some(rtt) = ack.rtt {
            self.running.add_rtt(ack.now, rtt);
        }
    }

    fn on_lost(&mut self, loss: &Loss) {
        self.running.lost.add(loss.bytes);
    }

    fn on_timeout(&mut self, _: Instant, _: u64) {
        self.running.timeouts.add(1);
    }

    fn outputs(&self) -> Outputs {
        Outputs {
            window: self.window,
            pacing_rate: self.rate,
            in_slow_start: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_is_that_of_a_line() {
        let running = Running::default();
        for step in 0..5_u64 {
            let now = Instant::ZERO + Duration::from_millis(1000 + step * 10);
            running.add_rtt(now, Duration::from_millis(20 + step * 2));
        }
        let account = running.take();
        assert_eq!(running.take(), Account::default());
        assert!(
            (account.rtt_slope() - 0.2).abs() < 1e-6,
            "{}",
            account.rtt_slope()
        );
        assert_eq!(account.rtt_mean(), Some(0.024));
        assert_eq!(Account::default().rtt_slope(), 0.0);
    }
}
