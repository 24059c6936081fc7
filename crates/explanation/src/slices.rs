//! A transfer in slices of about a round trip, as many as fit a fixed memory.

use foundation::{Duration, Instant};

use crate::gaps::Gaps;

/// Slices that a direction keeps; with twice as many, neighbours are joined.
const MOST_SLICES: usize = 2048;

/// Ratio of RTTs that are about the same.
const ALIKE: f64 = 1.1;

/// What a sender does in a moment, as far as the moment itself shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Everything is acknowledged, and the peer has sent no data since: the sender's application is silent.
    Idle,
    /// As idle, until data of the peer arrives: the application waits for a request.
    Request,
    /// The receiver's window is full, and less than half of its maximum: its application reads too slowly.
    Stalled,
    /// The flight fills the receiver's window.
    WindowLimited,
    /// Lost data is being repaired.
    Recovery,
    /// Nothing happens until a timer ends.
    Timeout,
    /// A small segment waits for an ACK (Nagle's algorithm) that the receiver delays.
    Delayed,
    /// None of them: the congestion window, the sender's buffer or its application limits the flight.
    Open,
}

/// Number of states.
pub const STATES: usize = 8;

/// Counters of a part of a transfer.
#[derive(Clone, Debug)]
pub struct Slice {
    /// Start.
    pub start: Instant,
    /// End.
    pub end: Instant,
    /// First and last frame of the sender in it; 0 without one.
    pub frames: (u64, u64),
    /// Time in each state, in the order of [`State`].
    pub times: [Duration; STATES],
    /// Bytes sent for the first time.
    pub sent: u64,
    /// Bytes that the receiver has got newly.
    pub delivered: u64,
    /// Time in which they arrived, by the times of the ACKs as captured.
    pub arrival: Duration,
    /// Retransmitted segments.
    pub repeated: u32,
    /// Losses that were detected: the starts of recoveries and timeouts.
    pub losses: u32,
    /// The RTT of the data before the first of them, without pauses.
    pub loss_rtt: Option<Duration>,
    /// The flight when the first lost packet was sent, in bytes.
    pub loss_flight: Option<u64>,
    /// Retransmissions that the receiver reported as unnecessary.
    pub spurious: u32,
    /// Timeouts among the losses, with probes of the tail.
    pub timeouts: u32,
    /// Maximum of the flight, in bytes.
    pub flight: u64,
    /// Maximum of the receiver's window, in bytes.
    pub window: u64,
    /// Smallest and largest RTT.
    pub rtt: Option<(Duration, Duration)>,
    /// Number of samples of the RTT.
    pub samples: u32,
    /// Largest RTT without pauses of the path or a host.
    pub steady_rtt: Option<Duration>,
    /// When the last RTT ended that is about as short as the smallest one.
    pub sampled: Instant,
    /// Bursts that started directly after an ACK, and those that did not.
    pub prompted: u32,
    /// Bursts that no ACK caused.
    pub unprompted: u32,
    /// Those of them with full segments after a silence in which a timer can have ended: probes of the tail.
    pub probes: u32,
    /// Segments below the maximum size that ended a burst.
    pub short: u32,
    /// New packets, and those with PSH: the last ones of writes.
    pub packets: u32,
    /// See [`packets`](Self::packets).
    pub pushed: u32,
    /// Times between new packets, without those in which the peer sent data.
    pub gaps: Gaps,
}

impl Slice {
    fn new(start: Instant) -> Self {
        Self {
            start,
            end: start,
            frames: (0, 0),
            times: [Duration::ZERO; STATES],
            sent: 0,
            delivered: 0,
            arrival: Duration::ZERO,
            repeated: 0,
            losses: 0,
            loss_rtt: None,
            loss_flight: None,
            spurious: 0,
            timeouts: 0,
            flight: 0,
            window: 0,
            rtt: None,
            samples: 0,
            steady_rtt: None,
            sampled: start,
            prompted: 0,
            unprompted: 0,
            probes: 0,
            short: 0,
            packets: 0,
            pushed: 0,
            gaps: Gaps::default(),
        }
    }

    /// Returns the duration.
    #[must_use]
    pub const fn duration(&self) -> Duration {
        self.end.saturating_since(self.start)
    }

    /// Returns the time in a state.
    #[must_use]
    pub const fn time(&self, state: State) -> Duration {
        self.times[state as usize]
    }

    /// Returns the bytes per second that the receiver got.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.delivered as f64 / self.arrival.max(Duration::from_micros(1)).as_secs_f64()
    }

    /// Takes a sample of the RTT.
    pub fn sample(&mut self, rtt: Duration, time: Instant) {
        let (least, most) = self.rtt.unwrap_or((rtt, rtt));
        if rtt <= least.mul_f64(ALIKE) {
            self.sampled = time;
        }
        self.rtt = Some((least.min(rtt), most.max(rtt)));
        self.samples += 1;
    }

    /// Adds a frame of the sender.
    pub const fn add_frame(&mut self, number: u64) {
        if self.frames.0 == 0 {
            self.frames.0 = number;
        }
        self.frames.1 = number;
    }

    fn join(&mut self, next: &Self) {
        self.end = next.end;
        self.frames = match (self.frames, next.frames) {
            ((0, _), other) | (other, (0, _)) => other,
            ((first, _), (_, last)) => (first, last),
        };
        for (own, other) in self.times.iter_mut().zip(next.times) {
            *own += other;
        }
        self.sent += next.sent;
        self.delivered += next.delivered;
        self.arrival += next.arrival;
        self.repeated += next.repeated;
        self.losses += next.losses;
        self.loss_rtt = self.loss_rtt.or(next.loss_rtt);
        self.loss_flight = self.loss_flight.or(next.loss_flight);
        self.spurious += next.spurious;
        self.timeouts += next.timeouts;
        self.flight = self.flight.max(next.flight);
        self.window = self.window.max(next.window);
        self.steady_rtt = self.steady_rtt.max(next.steady_rtt);
        let samples = self.samples + next.samples;
        if let Some((least, most)) = next.rtt {
            self.sample(most, next.end);
            self.sample(least, next.sampled);
        }
        self.samples = samples;
        self.prompted += next.prompted;
        self.unprompted += next.unprompted;
        self.probes += next.probes;
        self.short += next.short;
        self.packets += next.packets;
        self.pushed += next.pushed;
        self.gaps.join(&next.gaps);
    }
}

/// The slices of a direction, the last of which is open.
#[derive(Clone, Debug)]
pub struct Slices {
    done: Vec<Slice>,
    open: Slice,
    /// Slices shorter than this are joined with the next one.
    least: Duration,
}

impl Slices {
    /// Starts the first slice.
    pub fn starting_at(start: Instant) -> Self {
        Self {
            done: Vec::new(),
            open: Slice::new(start),
            least: Duration::ZERO,
        }
    }

    /// Returns the open slice.
    pub const fn open(&mut self) -> &mut Slice {
        &mut self.open
    }

    /// Adds time in a state up to a moment.
    pub fn spend(&mut self, state: State, until: Instant) {
        let spent = until.saturating_since(self.open.end);
        self.open.times[state as usize] += spent;
        self.open.end = self.open.end.max(until);
    }

    /// Moves the last time in a state to another one: what follows shows what it was.
    pub fn change(&mut self, from: State, to: State, time: Duration) {
        let last = if self.open.time(from).is_zero() {
            self.done.last_mut()
        } else {
            Some(&mut self.open)
        };
        if let Some(slice) = last {
            let moved = slice.time(from).min(time);
            slice.times[from as usize] = slice.time(from) - moved;
            slice.times[to as usize] += moved;
        }
    }

    /// Adds time in a state as a slice of its own.
    pub fn spend_apart(&mut self, state: State, until: Instant) {
        self.close();
        self.spend(state, until);
        self.close();
    }

    /// Closes the open slice, unless it is too short.
    pub fn close(&mut self) {
        if self.open.duration() <= self.least {
            return;
        }
        let next = Slice::new(self.open.end);
        self.done.push(std::mem::replace(&mut self.open, next));
        if self.done.len() >= 2 * MOST_SLICES {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let mut kept = Vec::with_capacity(2 * MOST_SLICES);
        for pair in self.done.chunks(2) {
            let mut joined = pair[0].clone();
            if let Some(next) = pair.get(1) {
                joined.join(next);
            }
            kept.push(joined);
        }
        let mut durations: Vec<Duration> = kept.iter().map(Slice::duration).collect();
        durations.sort_unstable();
        self.least = durations[durations.len() / 4];
        self.done = kept;
    }

    /// Returns all slices with a duration.
    pub fn finished(&self) -> Vec<Slice> {
        let open = (!self.open.duration().is_zero()).then_some(&self.open);
        self.done.iter().chain(open).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn long_transfers_keep_their_time_in_bounded_memory() {
        let mut slices = Slices::starting_at(at(0));
        for number in 1..=100_000 {
            slices.spend(State::Open, at(number));
            slices.open().delivered += 10;
            slices.close();
        }
        let found = slices.finished();
        assert!(found.len() <= 2 * MOST_SLICES, "{}", found.len());
        let time: u64 = found.iter().map(|one| one.time(State::Open).as_nanos()).sum();
        assert_eq!(time, 100_000 * 1_000_000);
        assert_eq!(found.iter().map(|one| one.delivered).sum::<u64>(), 1_000_000);
        assert!(found.windows(2).all(|pair| pair[0].end == pair[1].start));
    }

    #[test]
    fn a_pause_is_a_slice_of_its_own() {
        let mut slices = Slices::starting_at(at(0));
        slices.spend(State::Open, at(5));
        slices.spend_apart(State::Idle, at(50));
        slices.spend(State::Open, at(55));
        let found = slices.finished();
        assert_eq!(found.len(), 3);
        assert_eq!(found[1].time(State::Idle), Duration::from_millis(45));
    }
}
