//! One flow between two kernels: what its threads share, and what it came to.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use experiment::outcome::{Baseline, FlowOutcome, Sent, Transaction};
use foundation::Instant;
use hdrhistogram::Histogram;
use transport::Statistics;

use super::info::Info;

const NEVER: u64 = u64::MAX;

/// A moment that one thread notes and another reads.
#[derive(Debug)]
pub(super) struct Moment(AtomicU64);

impl Moment {
    const fn never() -> Self {
        Self(AtomicU64::new(NEVER))
    }

    /// Notes the moment, unless one was noted before.
    pub(super) fn note(&self, at: Instant) {
        let _ = self
            .0
            .compare_exchange(NEVER, at.as_nanos(), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Notes a later moment in the place of the one before.
    pub(super) fn move_to(&self, at: Instant) {
        self.0.store(at.as_nanos(), Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Option<Instant> {
        match self.0.load(Ordering::Relaxed) {
            NEVER => None,
            nanos => Some(Instant::from_nanos(nanos)),
        }
    }
}

/// What the threads of a flow, and the one that measures, share.
#[derive(Debug)]
pub(super) struct Flow {
    pub number: u32,
    pub group: u32,
    pub pair: u32,
    pub size: Option<u64>,
    pub opened_at: Instant,
    pub first_data_at: Moment,
    pub last_acknowledged_at: Moment,
    pub received_at: Moment,
    /// Bytes that the receiver has read, and the sender.
    pub delivered: [AtomicU64; 2],
    pub finished: AtomicBool,
    /// Whether the opener's thread has ended.
    pub over: AtomicBool,
    failure: Mutex<Option<String>>,
    transactions: Mutex<Vec<Transaction>>,
    socket: Mutex<Option<TcpStream>>,
    /// Counters of a connection that is closed by now, or of a source of datagrams.
    last_sent: Mutex<Sent>,
    rtt: Mutex<Option<Box<Histogram<u64>>>>,
    baseline: Mutex<Baseline>,
}

/// A thread that has panicked has said so; what it held is as good as it left it.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Of nanoseconds, 1 µs to 1000 s, three digits, as the simulator's.
fn histogram() -> Option<Box<Histogram<u64>>> {
    Histogram::new_with_bounds(1_000, 1_000_000_000_000, 3)
        .ok()
        .map(Box::new)
}

impl Flow {
    pub(super) fn new(
        number: u32,
        group: u32,
        pair: u32,
        size: Option<u64>,
        now: Instant,
        rtt: bool,
    ) -> Self {
        Self {
            number,
            group,
            pair,
            size,
            opened_at: now,
            first_data_at: Moment::never(),
            last_acknowledged_at: Moment::never(),
            received_at: Moment::never(),
            delivered: [AtomicU64::new(0), AtomicU64::new(0)],
            finished: AtomicBool::new(false),
            over: AtomicBool::new(false),
            failure: Mutex::new(None),
            transactions: Mutex::new(Vec::new()),
            socket: Mutex::new(None),
            last_sent: Mutex::new(Sent::default()),
            rtt: Mutex::new(if rtt { histogram() } else { None }),
            baseline: Mutex::new(Baseline::default()),
        }
    }

    /// The opener's connection stands; it is looked at from now on.
    pub(super) fn watch(&self, socket: &TcpStream) {
        *locked(&self.socket) = socket.try_clone().ok();
    }

    /// The opener's connection is about to be closed.
    pub(super) fn leave(&self) {
        if let Some(socket) = locked(&self.socket).take()
            && let Ok(info) = Info::of(&socket)
        {
            *locked(&self.last_sent) = info.sent();
        }
    }

    /// A source of datagrams has sent so much.
    pub(super) fn has_sent(&self, packets: u64, bytes: u64) {
        *locked(&self.last_sent) = Sent {
            packets,
            bytes,
            ..Sent::default()
        };
    }

    /// A file was sent by a protocol of the project's own, which counted so much by its own clock.
    pub(super) fn transferred(&self, statistics: &Statistics, size: u64, now: Instant) {
        *locked(&self.last_sent) = Sent::of(statistics);
        if let Some(rtt) = &statistics.rtt {
            *locked(&self.rtt) = Some(rtt.clone());
        }
        // The times of the statistics are of another clock: what lies between them is what counts.
        if let (Some(opened), Some(first), Some(last)) = (
            statistics.opened_at,
            statistics.first_data_at,
            statistics.last_acknowledged_at,
        ) {
            self.first_data_at.note(self.opened_at + (first - opened));
            self.last_acknowledged_at
                .move_to(self.opened_at + (last - opened));
            self.received_at.note(now.min(self.opened_at + (last - opened)));
        }
        self.delivered[0].store(size, Ordering::Relaxed);
        self.finished.store(true, Ordering::Relaxed);
    }

    /// Reads the connection's round-trip time.
    pub(super) fn sample(&self) -> Option<Info> {
        let info = Info::of(locked(&self.socket).as_ref()?).ok()?;
        if let (rtt @ 1.., Some(histogram)) = (info.smoothed_rtt(), locked(&self.rtt).as_mut()) {
            histogram.saturating_record(rtt);
        }
        Some(info)
    }

    pub(super) fn fail(&self, reason: String) {
        locked(&self.failure).get_or_insert(reason);
    }

    pub(super) fn answered(&self, transaction: Transaction) {
        locked(&self.transactions).push(transaction);
    }

    pub(super) fn read(&self, side: usize, bytes: u64) -> u64 {
        self.delivered[side].fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    fn figures(&self) -> Baseline {
        let now = self.sample().map(|info| info.sent());
        let read = |side: usize| self.delivered[side].load(Ordering::Relaxed);
        Baseline {
            sent: [now.unwrap_or(*locked(&self.last_sent)), Sent::default()],
            delivered: [read(1), read(0)],
            rtt: locked(&self.rtt).clone(),
        }
    }

    /// Measuring begins.
    pub(super) fn mark(&self) {
        *locked(&self.baseline) = self.figures();
    }

    /// What has become of the flow since then.
    pub(super) fn outcome(&self) -> FlowOutcome {
        let figures = self.figures();
        let delivered_in_all = figures.delivered.iter().sum();
        let since = figures.since(&locked(&self.baseline));
        FlowOutcome {
            number: self.number,
            group: self.group,
            pair: self.pair,
            size: self.size,
            opened_at: self.opened_at,
            first_data_at: self.first_data_at.get(),
            last_acknowledged_at: self.last_acknowledged_at.get(),
            received_at: self.received_at.get(),
            sent: since.sent[0].and(since.sent[1]),
            delivered: [since.delivered[1], since.delivered[0]],
            delivered_in_all,
            rtt: since.rtt,
            transactions: locked(&self.transactions).clone(),
            finished: self.finished.load(Ordering::Relaxed),
            failure: locked(&self.failure).clone(),
        }
    }
}
