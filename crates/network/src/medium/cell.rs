//! A cell of a mobile network: users with recorded channels share its time, and each has its own queue.
//!
//! A trace in mahimahi's format ([`DeliveryTrace`]) is what the cell could send to one user if it sent to nobody else. In each
//! millisecond the scheduler selects a user who has data and an opportunity; if that user's data takes less than the
//! millisecond, another one gets the rest. With one user, this is the link of Netravali et al., "Mahimahi: Accurate
//! Record-and-Replay for HTTP", USENIX ATC 2015. Queues per user: Winstein, Sivaraman and Balakrishnan, "Stochastic Forecasts
//! Achieve High Throughput and Low Delay over Cellular Networks", NSDI 2013, section 2. Proportional fairness: Jalali, Padovani
//! and Pankaj, "Data Throughput of CDMA-HDR", VTC 2000; Viswanath, Tse and Laroia, "Opportunistic Beamforming Using Dumb
//! Antennas", IEEE Transactions on Information Theory 48(6), 2002, section II.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use foundation::{Duration, Instant, Problem, Rate, Streams, omit_unset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Subscriber;
use crate::link::Count;
use crate::packet::HostId;
use crate::queue::{Discipline, QueueActions, QueueConfig, QueueContext, QueuedPacket, Transmitter};
use crate::trace::DeliveryTrace;

const MILLI: u64 = 1_000_000;
/// Limit of traces, one per user.
const MOST_TRACES: usize = 64;
/// The default of `window`: 100 subframes of LTE.
const DEFAULT_WINDOW: Duration = Duration::from_millis(100);
const MAX_WINDOW: Duration = Duration::from_secs(60);
const MAX_SHIFT: Duration = Duration::from_secs(3600);

/// The scheduler of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CellScheduler {
    /// Users take turns.
    RoundRobin,
    /// The user with the highest rate relative to its own mean.
    #[default]
    ProportionalFair,
}

omit_unset! {
    /// A cell of a mobile network: `{ traces = ["a.trace", "b.trace"], scheduler = "proportional-fair" }`.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, expecting = "a table such as { traces = [\"mobile.trace\"] }")]
    #[schemars(rename = "Cell")]
    pub struct CellConfig {
        /// What the cell can send to each user alone: 1 to 64 files in mahimahi format. The n-th user has the n-th; more users repeat the list.
        pub traces: Vec<String>,
        /// Scheduler: "proportional-fair" (the highest rate relative to the user's mean) or "round-robin"; default "proportional-fair".
        pub scheduler: Option<CellScheduler>,
        /// Time over which proportional fairness averages, from "1ms" to "60s"; default "100ms".
        pub window: Option<Duration>,
        /// How much later in its trace each user starts than the user before, in whole milliseconds, e.g. "7s"; default "0s".
        pub shift: Option<Duration>,
        /// End of the path at which the users are: "far" or "near"; default "far". Each host there is one user.
        pub users: Option<Subscriber>,
    }
}

impl CellConfig {
    /// Returns the same cell as seen from the opposite direction.
    #[must_use]
    pub(crate) fn reversed(mut self) -> Self {
        self.users = Some(match self.users.unwrap_or_default() {
            Subscriber::Far => Subscriber::Near,
            Subscriber::Near => Subscriber::Far,
        });
        self
    }

    /// Returns all values out of range.
    #[must_use]
    pub(crate) fn validate(&self) -> Vec<Problem> {
        let count = self.traces.len();
        let window = self.window.unwrap_or(DEFAULT_WINDOW);
        let shift = self.shift.unwrap_or_default();
        let is_window = (Duration::from_millis(1)..=MAX_WINDOW).contains(&window);
        let is_shift = shift <= MAX_SHIFT && shift.as_nanos().is_multiple_of(MILLI);
        let range = format!("1 to {MOST_TRACES}");
        let problems = [
            Problem::range(
                "traces",
                format!("{count} files"),
                (1..=MOST_TRACES).contains(&count),
                &range,
            ),
            Problem::range("window", format!("\"{window}\""), is_window, "\"1ms\" to \"60s\""),
            Problem::range(
                "shift",
                format!("\"{shift}\""),
                is_shift,
                "whole milliseconds, at most \"1h\"",
            ),
        ];
        problems.into_iter().flatten().collect()
    }

    /// Returns the cell. `read` returns the trace of a file.
    ///
    /// # Errors
    /// A trace that cannot be read.
    pub(crate) fn resolve(
        &self,
        read: &mut dyn FnMut(&str) -> Result<DeliveryTrace, Problem>,
    ) -> Result<Cell, Problem> {
        let traces = self.traces.iter().map(|file| read(file).map(Arc::new));
        Ok(Cell {
            traces: traces.collect::<Result<_, _>>()?,
            scheduler: self.scheduler.unwrap_or_default(),
            window: self.window.unwrap_or(DEFAULT_WINDOW),
            shift: self.shift.unwrap_or_default(),
            users: self.users.unwrap_or_default(),
        })
    }
}

/// The capacity of a link that is one direction of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What the cell can send to each user alone.
    pub traces: Vec<Arc<DeliveryTrace>>,
    /// Scheduler.
    pub scheduler: CellScheduler,
    /// Time constant of the mean rates of proportional fairness, 1 ms to 60 s (Viswanath, Tse and Laroia, section II).
    pub window: Duration,
    /// How much later in its trace each user starts than the user before: whole milliseconds, at most 1 h.
    pub shift: Duration,
    /// End of the link at which the users are.
    pub users: Subscriber,
}

impl Cell {
    /// Returns the mean rate if all users share the time equally: the mean of the traces. `None` below 1 bit/s.
    #[must_use]
    pub fn mean_rate(&self) -> Option<Rate> {
        let rates = self.traces.iter().filter_map(|trace| trace.mean_rate());
        let sum: u64 = rates.map(|rate| rate.bits_per_second()).sum();
        Rate::from_bits_per_second(sum / self.traces.len() as u64)
    }

    /// Returns the cell with times in place of random starts of its traces ([`DeliveryTrace::drawn`]).
    #[must_use]
    pub(crate) fn drawn(&self, streams: Streams) -> Self {
        let traces = self.traces.iter().map(|trace| Arc::new(trace.drawn(streams)));
        Self {
            traces: traces.collect(),
            ..self.clone()
        }
    }

    /// Returns the user at an end of a route, given its source and destination.
    pub(crate) const fn user(&self, [source, destination]: [HostId; 2]) -> HostId {
        match self.users {
            Subscriber::Far => destination,
            Subscriber::Near => source,
        }
    }

    pub(super) fn discipline(
        self: &Arc<Self>,
        queue: &QueueConfig,
        context: &QueueContext,
        users: &[HostId],
    ) -> Box<dyn Discipline + Send> {
        let mut cell = CellQueue {
            cell: Arc::clone(self),
            queue: queue.clone(),
            context: context.clone(),
            numbers: BTreeMap::new(),
            users: Vec::new(),
            sent: VecDeque::new(),
            waiting: Count::default(),
            turn: 0,
            slot: 0,
            next: u64::MAX,
        };
        for &host in users {
            cell.number(host);
        }
        Box::new(cell)
    }
}

/// A user: a channel and a queue.
struct User {
    trace: Arc<DeliveryTrace>,
    /// Time of the trace at time 0.
    start: u64,
    queue: Box<dyn Discipline + Send>,
    /// The packet that the cell sends to the user, and its bytes that are left.
    current: Option<(QueuedPacket, u32)>,
    /// Mean bytes per millisecond.
    mean: f64,
}

impl User {
    /// Returns the time of the next opportunity after `at`.
    fn next(&self, at: u64) -> u64 {
        self.trace.next_after(at.saturating_add(self.start)) - self.start
    }

    /// Returns the bytes of the opportunities at a time.
    fn bytes(&self, at: u64) -> u64 {
        let at = Instant::from_nanos(at.saturating_add(self.start));
        let before = Instant::from_nanos(at.as_nanos().saturating_sub(1));
        self.trace.bytes_between(before, at)
    }

    /// Returns the packets of the user, the one that the cell sends included.
    fn waiting(&self) -> Count {
        self.queue.waiting() + self.sending()
    }

    fn sending(&self) -> Count {
        let mut count = Count::default();
        if let Some((packet, _)) = &self.current {
            count.add(packet.size());
        }
        count
    }

    /// Returns whether a packet waits that can be sent.
    fn is_ready(&mut self, now: Instant, actions: &mut dyn QueueActions) -> bool {
        if self.current.is_none() {
            let next = self.queue.dequeue(now, actions);
            self.current = next.map(|packet| (packet, packet.size()));
        }
        self.current.is_some()
    }

    /// Sends up to `budget` bytes. Returns the bytes sent, and adds the packets that are complete.
    fn send(
        &mut self,
        now: Instant,
        budget: u64,
        sent: &mut VecDeque<QueuedPacket>,
        actions: &mut dyn QueueActions,
    ) -> u64 {
        let mut left = budget;
        while left > 0 && self.is_ready(now, actions) {
            let Some((packet, rest)) = &mut self.current else {
                break;
            };
            let part = u64::from(*rest).min(left);
            left -= part;
            *rest -= part as u32;
            if *rest == 0 {
                sent.push_back(*packet);
                self.current = None;
            }
        }
        budget - left
    }
}

/// The queues of a cell in one direction.
struct CellQueue {
    cell: Arc<Cell>,
    queue: QueueConfig,
    context: QueueContext,
    numbers: BTreeMap<HostId, usize>,
    users: Vec<User>,
    /// Packets that have been sent and not yet been released.
    sent: VecDeque<QueuedPacket>,
    /// The packets of all users and those in `sent`.
    waiting: Count,
    /// The user whose turn it is.
    turn: usize,
    /// Time of the last opportunity.
    slot: u64,
    /// Time of the next opportunity of any user while packets wait.
    next: u64,
}

impl CellQueue {
    /// Returns the number of a user, who joins the cell if necessary.
    fn number(&mut self, host: HostId) -> usize {
        let number = *self.numbers.entry(host).or_insert(self.users.len());
        if number == self.users.len() {
            let cell = &self.cell;
            let trace = Arc::clone(&cell.traces[number % cell.traces.len()]);
            let streams = self.context.streams.component(&format!("user/{number}"));
            let context = QueueContext {
                rate: trace.mean_rate(),
                streams,
                ..self.context.clone()
            };
            self.users.push(User {
                trace,
                start: cell.shift.as_nanos() * number as u64,
                queue: self.queue.discipline_or_tail(&context),
                current: None,
                mean: 0.0,
            });
        }
        number
    }

    /// Returns the place, among users with opportunities, of the one to whom the cell sends first.
    fn choose(&self, open: &[(usize, u64)]) -> Option<usize> {
        let places = 0..open.len();
        match self.cell.scheduler {
            CellScheduler::RoundRobin => {
                let distance = |place: &usize| {
                    let after = open[*place].0 + self.users.len() - self.turn;
                    after % self.users.len()
                };
                places.min_by_key(distance)
            }
            CellScheduler::ProportionalFair => places.reduce(|best, other| {
                // Compares rate by mean without a division, since means start at 0.
                let worth = |one: usize, two: usize| open[one].1 as f64 * self.users[open[two].0].mean;
                if worth(other, best) > worth(best, other) {
                    other
                } else {
                    best
                }
            }),
        }
    }

    /// Uses the opportunities at `now`.
    fn serve(&mut self, now: u64, actions: &mut dyn QueueActions) {
        let at = Instant::from_nanos(now);
        let weight = 1.0 / (self.cell.window.as_nanos() as f64 / MILLI as f64);
        let fade = power(1.0 - weight, (now - self.slot) / MILLI);
        self.slot = now;
        for user in &mut self.users {
            user.mean *= fade;
        }
        let open = self
            .users
            .iter()
            .enumerate()
            .map(|(number, user)| (number, user.bytes(now)));
        let mut open: Vec<(usize, u64)> = open.filter(|&(_, bytes)| bytes > 0).collect();
        // The part of the millisecond that is left.
        let mut share = 1.0;
        let mut is_first = true;
        while let Some(place) = self.choose(&open) {
            let (number, bytes) = open.remove(place);
            let user = &mut self.users[number];
            // Packets that the user's queue drops no longer wait; those in `sent` do.
            let (before, sent) = (user.waiting(), self.sent.len());
            let used = user.send(at, (share * bytes as f64) as u64, &mut self.sent, actions);
            self.waiting = self.waiting - before + user.waiting();
            for packet in self.sent.range(sent..) {
                self.waiting.add(packet.size());
            }
            user.mean += weight * used as f64;
            share -= used as f64 / bytes as f64;
            if user.current.is_some() {
                // The user has more data than fits.
                open.clear();
            }
            if used > 0 && std::mem::take(&mut is_first) {
                self.turn = (number + 1) % self.users.len();
            }
        }
    }
}

impl Discipline for CellQueue {
    fn enqueue(
        &mut self,
        now: Instant,
        arriving: QueuedPacket,
        _: &Transmitter,
        actions: &mut dyn QueueActions,
    ) {
        let host = self.cell.user(self.context.hosts.of(arriving.route));
        let number = self.number(host);
        let user = &mut self.users[number];
        let transmitter = Transmitter {
            sending: user.sending(),
            free: now,
        };
        let before = user.queue.waiting();
        user.queue.enqueue(now, arriving, &transmitter, actions);
        self.waiting = self.waiting - before + user.queue.waiting();
    }

    fn dequeue(&mut self, now: Instant, actions: &mut dyn QueueActions) -> Option<QueuedPacket> {
        let at = now.as_nanos();
        if self.next <= at {
            // A packet that arrives later has no part in the opportunities of this time.
            self.next = u64::MAX;
            self.serve(at, actions);
        }
        if let Some(packet) = self.sent.pop_front() {
            let released = Count {
                packets: 1,
                bytes: u64::from(packet.size()),
            };
            self.waiting = self.waiting - released;
            return Some(packet);
        }
        let next = self.users.iter().map(|user| user.next(at)).min();
        self.next = next.unwrap_or(u64::MAX);
        None
    }

    fn ready(&self) -> Option<Instant> {
        (self.next < u64::MAX).then(|| Instant::from_nanos(self.next))
    }

    fn withdraw(&mut self, now: Instant, actions: &mut dyn QueueActions) -> Vec<QueuedPacket> {
        let mut all: Vec<QueuedPacket> = self.sent.drain(..).collect();
        for user in &mut self.users {
            all.extend(user.current.take().map(|(packet, _)| packet));
            all.extend(user.queue.withdraw(now, actions));
        }
        self.waiting = Count::default();
        self.next = u64::MAX;
        all
    }

    fn waiting(&self) -> Count {
        self.waiting
    }
}

/// Returns `base` to the power of `exponent`, with the same bits on each machine.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut product = 1.0;
    while exponent > 0 {
        if exponent % 2 == 1 {
            product *= base;
        }
        base *= base;
        exponent /= 2;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::power;

    #[test]
    fn powers_are_products() {
        assert_eq!(power(0.5, 0), 1.0);
        assert_eq!(power(0.5, 1), 0.5);
        assert_eq!(power(0.5, 10), 1.0 / 1024.0);
        assert_eq!(power(0.99, u64::MAX), 0.0);
    }
}
