//! Sender of the model: a window, a pacer, selective ACKs, a retransmission timer.

use std::collections::VecDeque;

use foundation::{Duration, Instant, Rate};
use transport::congestion::{Acknowledgement, Controller, Estimator, Loss, Pacer, Sibling, Snapshot};

pub const SEGMENT: u64 = 1460;
const REORDERING: u64 = 3;

/// Start time of a flow, its application's rate (`None`: unlimited) and size.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    pub start: Instant,
    pub application: Option<Rate>,
    pub bytes: u64,
}

impl Workload {
    pub const BULK: Self = Self {
        start: Instant::ZERO,
        application: None,
        bytes: u64::MAX,
    };
}

struct InFlight {
    sent_at: Instant,
    snapshot: Snapshot,
    open: bool,
}

pub struct Flow {
    pub controller: Box<dyn Controller>,
    pub workload: Workload,
    estimator: Estimator,
    pacer: Pacer,
    /// Packets sent and not cleared, the first one with number `first`.
    flight: VecDeque<InFlight>,
    first: u64,
    in_flight: u64,
    /// Numbers in the order of arrival, whether each was marked, and how many of them were acknowledged.
    pub arrived: Vec<(u64, bool)>,
    known: usize,
    limited: bool,
    /// Whether pacing counts as a limit, as in TCP's profile "rfc"; in Linux, only the window does.
    pub pacing_limits: bool,
    smoothed: Duration,
    variation: Duration,
    min_rtt: Duration,
    heard_at: Instant,
    backoff: u32,
    pub wake_at: Instant,
    pub paused_until: Instant,
    /// Time at which 99 % had arrived; the rest depends on the repair of the last packets.
    pub bulk_at: Option<Instant>,
    pub sent: u64,
    pub lost: u64,
    pub timeouts: u64,
    /// Bytes delivered until the last loss, and between the two previous losses.
    lost_at: u64,
    between: u64,
    /// Losses of packets with lower numbers belong to the current episode.
    episode_ends: u64,
    /// The acknowledgement of this packet ends a reduction for a mark.
    reduced_until: Option<u64>,
}

impl Flow {
    pub fn new(controller: Box<dyn Controller>, workload: Workload) -> Self {
        Self {
            controller,
            workload,
            estimator: Estimator::new(),
            pacer: Pacer::new(),
            flight: VecDeque::new(),
            first: 0,
            in_flight: 0,
            arrived: Vec::new(),
            known: 0,
            limited: false,
            pacing_limits: false,
            smoothed: Duration::ZERO,
            variation: Duration::ZERO,
            min_rtt: Duration::ZERO,
            heard_at: Instant::ZERO,
            backoff: 0,
            wake_at: Instant::MAX,
            paused_until: Instant::ZERO,
            bulk_at: None,
            sent: 0,
            lost: 0,
            timeouts: 0,
            lost_at: 0,
            between: 0,
            episode_ends: 0,
            reduced_until: None,
        }
    }

    /// Returns the payload bytes delivered since the start.
    pub fn delivered(&self) -> u64 {
        self.estimator.delivered()
    }

    /// Returns the state for coupled controllers of other subflows.
    pub fn sibling(&self) -> Sibling {
        Sibling {
            window: self.controller.window(),
            rtt: self.smoothed,
            base_rtt: self.min_rtt,
            between_losses: self.between.max(self.delivered() - self.lost_at),
        }
    }

    /// Handles the loss of packets before `self.first`.
    fn note_loss(&mut self) {
        if self.first <= self.episode_ends {
            return;
        }
        self.episode_ends = self.first + self.flight.len() as u64;
        (self.between, self.lost_at) = (self.delivered() - self.lost_at, self.delivered());
    }

    /// Returns a metric of the controller.
    pub fn metric(&self, wanted: &str) -> f64 {
        let mut found = f64::NAN;
        self.controller.metrics(&mut |name, value| {
            if name == wanted {
                found = value;
            }
        });
        found
    }

    /// Returns whether a packet may be sent now; `Err` contains the earliest time, if known.
    pub fn may_send(&mut self, now: Instant) -> Result<(), Option<Instant>> {
        let wanted = self.delivered() + self.in_flight + SEGMENT;
        let written = match self.workload.application {
            None => self.workload.bytes,
            Some(rate) => rate.bytes_in(now - self.workload.start).min(self.workload.bytes),
        };
        let room = self.in_flight == 0 || self.in_flight + SEGMENT <= self.controller.window();
        self.limited = !room;
        if !room {
            return Err(None);
        }
        if now < self.paused_until {
            self.estimator.set_application_limited(self.in_flight);
            return Err(None);
        }
        if wanted > written.saturating_add(SEGMENT - 1) {
            self.estimator.set_application_limited(self.in_flight);
            let rate = self
                .workload
                .application
                .filter(|_| wanted <= self.workload.bytes);
            return Err(rate.map(|rate| {
                let at = self.workload.start + rate.time_for(wanted);
                at.max(now + Duration::from_nanos(1))
            }));
        }
        if let Some(rate) = self.controller.pacing_rate()
            && let Some(at) = self
                .pacer
                .next_departure(now, rate, self.controller.bursts(), SEGMENT)
        {
            self.limited = self.pacing_limits;
            return Err(Some(at));
        }
        Ok(())
    }

    pub fn transmit(&mut self, now: Instant) -> u64 {
        if self.in_flight == 0 {
            self.heard_at = now;
        }
        self.in_flight += SEGMENT;
        self.sent += 1;
        let snapshot = self.estimator.on_sent(now, SEGMENT, self.in_flight);
        self.pacer.on_sent(now, SEGMENT);
        self.controller.on_sent(now, SEGMENT, self.in_flight);
        self.flight.push_back(InFlight {
            sent_at: now,
            snapshot,
            open: true,
        });
        self.first + self.flight.len() as u64 - 1
    }

    /// Acknowledges the first `count` arrivals. Returns whether any was new.
    pub fn acknowledge(&mut self, now: Instant, count: usize) -> bool {
        if count <= self.known {
            return false;
        }
        let prior_in_flight = self.in_flight;
        let mut newest = 0;
        let mut bytes = 0;
        let mut marked_bytes = 0;
        let mut rtt = Duration::ZERO;
        let mut newest_sent_at = Instant::ZERO;
        for position in self.known..count {
            let (number, is_marked) = self.arrived[position];
            if number < self.first {
                continue;
            }
            let packet = &mut self.flight[(number - self.first) as usize];
            let late = !packet.open;
            packet.open = false;
            newest = newest.max(number);
            self.estimator
                .on_packet_acknowledged(now, &packet.snapshot, SEGMENT, packet.sent_at);
            newest_sent_at = newest_sent_at.max(packet.sent_at);
            rtt = now - packet.sent_at;
            bytes += SEGMENT;
            marked_bytes += if is_marked { SEGMENT } else { 0 };
            if !late {
                self.in_flight -= SEGMENT;
            }
        }
        self.known = count;
        if bytes == 0 {
            return false;
        }
        self.measure(now, rtt);
        self.detect_losses(now, newest, prior_in_flight);
        self.react_to_marks(now, newest, marked_bytes);
        let rate_sample = self.estimator.finish_ack(self.min_rtt);
        self.controller.on_acknowledged(&Acknowledgement {
            now,
            bytes,
            marked_bytes,
            rtt: Some(rtt),
            newest_sent_at,
            smoothed_rtt: self.smoothed,
            bytes_in_flight: self.in_flight,
            delivered: self.delivered(),
            rate_sample,
            window_limited: self.limited,
            in_recovery: self.reduced_until.is_some(),
        });
        true
    }

    /// Reports marks once per round trip (RFC 3168, section 6.1.2).
    fn react_to_marks(&mut self, now: Instant, newest: u64, marked_bytes: u64) {
        if self.reduced_until.is_some_and(|until| newest > until) {
            self.reduced_until = None;
        }
        if marked_bytes > 0 && self.reduced_until.is_none() {
            self.controller.on_congestion_experienced(now, now);
            self.reduced_until = Some(self.first + self.flight.len() as u64 - 1);
        }
    }

    fn measure(&mut self, now: Instant, rtt: Duration) {
        self.heard_at = now;
        self.backoff = 0;
        if self.smoothed.is_zero() {
            (self.smoothed, self.variation, self.min_rtt) = (rtt, rtt / 2, rtt);
            return;
        }
        let error = rtt.max(self.smoothed) - rtt.min(self.smoothed);
        self.variation = (self.variation * 3 + error) / 4;
        self.smoothed = (self.smoothed * 7 + rtt) / 8;
        self.min_rtt = self.min_rtt.min(rtt);
    }

    fn detect_losses(&mut self, now: Instant, newest: u64, prior_in_flight: u64) {
        let mut lost = 0;
        let mut last = None;
        while self
            .flight
            .front()
            .is_some_and(|p| !p.open || self.first + REORDERING <= newest)
        {
            let packet = self.flight.pop_front().unwrap();
            self.first += 1;
            if packet.open {
                lost += SEGMENT;
                last = Some(packet);
            }
        }
        let Some(packet) = last else { return };
        self.in_flight -= lost;
        self.lost += lost / SEGMENT;
        self.note_loss();
        self.estimator.on_lost(lost);
        self.controller.on_lost(&Loss {
            now,
            bytes: lost,
            newest_sent_at: packet.sent_at,
            prior_in_flight,
            bytes_in_flight: self.in_flight,
            in_flight_at_send: packet.snapshot.in_flight(),
            lost_since_send: self.estimator.lost_since(&packet.snapshot),
            application_limited: packet.snapshot.application_limited(),
            in_recovery: false,
        });
    }

    /// Returns when the retransmission timer expires (RFC 6298, minimum 200 ms).
    pub fn deadline(&self) -> Instant {
        if self.in_flight == 0 {
            return Instant::MAX;
        }
        let base = if self.smoothed.is_zero() {
            Duration::from_secs(1)
        } else {
            (self.smoothed + self.variation * 4).max(Duration::from_millis(200))
        };
        self.heard_at + base.doubled(self.backoff.min(6))
    }

    pub fn time_out(&mut self, now: Instant) {
        if now < self.deadline() {
            return;
        }
        self.controller.on_timeout(now, self.in_flight);
        self.timeouts += 1;
        self.note_loss();
        self.backoff += 1;
        self.heard_at = now;
        self.estimator.on_lost(self.in_flight);
        self.lost += self.in_flight / SEGMENT;
        self.in_flight = 0;
        for packet in &mut self.flight {
            packet.open = false;
        }
    }
}
