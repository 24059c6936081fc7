//! One flow between two hosts: the state that its threads share, and its outcome.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use experiment::Side;
use experiment::outcome::{FlowCounters, FlowOutcome, FrameTimes, PathBytes, SendCounters, Transaction};
use experiment::trace::Probe;
use foundation::{Duration, Instant, duration_histogram};
use hdrhistogram::Histogram;

use super::barrier::RequestBarrier;
use super::context::TrialClock;

const NEVER: u64 = u64::MAX;

/// A time that one thread sets and another reads.
#[derive(Debug)]
pub(super) struct Moment(AtomicU64);

impl Moment {
    const fn never() -> Self {
        Self(AtomicU64::new(NEVER))
    }

    /// Sets the time, unless it is set.
    pub(super) fn note(&self, at: Instant) {
        let _ = self
            .0
            .compare_exchange(NEVER, at.as_nanos(), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Replaces the time.
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

/// The counters and state of an end.
#[derive(Clone, Debug, Default)]
pub(super) struct EndSnapshot {
    pub sent: SendCounters,
    pub probe: Probe,
    /// The payload of `sent` by way; `None` if all of it used the flow's first way.
    pub carried: Option<PathBytes>,
}

impl EndSnapshot {
    /// An end that uses one way.
    pub(super) const fn new(sent: SendCounters, probe: Probe) -> Self {
        Self {
            sent,
            probe,
            carried: None,
        }
    }
}

/// Reads an end; `None` once its connection is gone.
pub(super) type ReadEnd = Box<dyn Fn() -> Option<EndSnapshot> + Send>;

/// One end of a flow.
#[derive(Default)]
struct EndState {
    /// Reads the connection; `None` if the end reports by itself, and before and after the connection.
    read_end: Option<ReadEnd>,
    last: EndSnapshot,
    timeouts: u64,
}

/// An event that no packet shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    pub at: Instant,
    pub side: Side,
    /// Total bytes read; `None` for an RTO.
    pub delivered: Option<u64>,
}

/// The constant properties of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    pub number: u32,
    pub group: u32,
    pub pair: u32,
    pub size: Option<u64>,
    /// The number of the way on which it opens.
    pub way: u8,
    pub opened_at: Instant,
}

/// Optional recordings of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recording {
    pub round_trips: bool,
    pub notes: bool,
}

/// The state that a flow's threads and the schedule share.
pub(super) struct Flow {
    pub id: Identity,
    /// The address at which the receiver listens.
    to: OnceLock<SocketAddr>,
    pub first_data_at: Moment,
    pub last_acknowledged_at: Moment,
    pub received_at: Moment,
    /// Bytes read by the receiver and by the sender.
    pub delivered: [AtomicU64; 2],
    pub finished: AtomicBool,
    /// Whether the opening thread has ended.
    pub over: AtomicBool,
    /// The ways that carried data, one bit each.
    ways: AtomicU64,
    /// Whether the measurement started during the flow.
    pub marked: AtomicBool,
    /// Holds its requests (`barrier`).
    barrier: Option<Arc<RequestBarrier>>,
    clock: TrialClock,
    failure: Mutex<Option<String>>,
    transactions: Mutex<Vec<Transaction>>,
    /// Times of real-time frames at the source and at the sink.
    frames: [Mutex<Vec<Instant>>; 2],
    unanswered: AtomicU64,
    /// All packets of both ends, if counted.
    packets: OnceLock<u64>,
    /// The opener and the other end.
    ends: [Mutex<EndState>; 2],
    rtt: Mutex<Option<Box<Histogram<u64>>>>,
    baseline: Mutex<FlowCounters>,
    notes: Option<Mutex<Vec<Note>>>,
}

/// A panic is reported elsewhere; the value stays usable.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Flow {
    pub(super) fn new(
        id: Identity,
        clock: TrialClock,
        recording: Recording,
        barrier: Option<Arc<RequestBarrier>>,
    ) -> Self {
        Self {
            id,
            to: OnceLock::new(),
            first_data_at: Moment::never(),
            last_acknowledged_at: Moment::never(),
            received_at: Moment::never(),
            delivered: [AtomicU64::new(0), AtomicU64::new(0)],
            finished: AtomicBool::new(false),
            over: AtomicBool::new(false),
            ways: AtomicU64::new(0),
            marked: AtomicBool::new(false),
            barrier,
            clock,
            failure: Mutex::new(None),
            transactions: Mutex::new(Vec::new()),
            frames: [Mutex::default(), Mutex::default()],
            unanswered: AtomicU64::new(0),
            packets: OnceLock::new(),
            ends: [Mutex::default(), Mutex::default()],
            rtt: Mutex::new(if recording.round_trips {
                Some(Box::new(duration_histogram::new()))
            } else {
                None
            }),
            baseline: Mutex::new(FlowCounters::default()),
            notes: recording.notes.then(Mutex::default),
        }
    }

    /// Records that the opening thread has ended.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(barrier) = &self.barrier {
            barrier.leave();
        }
    }

    /// Returns the barrier that holds its requests.
    pub(super) fn barrier(&self) -> Option<&RequestBarrier> {
        self.barrier.as_deref()
    }

    /// Sets the address at which the receiver listens.
    pub(super) fn set_destination(&self, to: SocketAddr) {
        // Set once.
        let _ = self.to.set(to);
    }

    /// The address at which the receiver listens, once it does.
    pub(super) fn to(&self) -> Option<SocketAddr> {
        self.to.get().copied()
    }

    /// Registers how to read an end's connection.
    pub(super) fn watch(&self, side: Side, read_end: ReadEnd) {
        locked(&self.ends[side as usize]).read_end = Some(read_end);
    }

    /// Reads an end's connection for the last time.
    pub(super) fn leave(&self, side: Side) {
        let mut end = locked(&self.ends[side as usize]);
        if let Some(snapshot) = end.read_end.take().and_then(|read_end| read_end()) {
            end.last = snapshot;
        }
    }

    /// Records that data used a way.
    pub(super) fn add_way(&self, number: u8) {
        self.ways.fetch_or(1 << number, Ordering::Relaxed);
    }

    /// Stores the counters of an end that reports by itself.
    pub(super) fn report(&self, side: Side, snapshot: EndSnapshot) {
        locked(&self.ends[side as usize]).last = snapshot;
    }

    /// Whether the trial is traced.
    pub(super) const fn is_traced(&self) -> bool {
        self.notes.is_some()
    }

    /// Stores the counters of a source of datagrams.
    pub(super) fn set_sent(&self, packets: u64, bytes: u64) {
        let sent = SendCounters {
            packets,
            bytes,
            ..SendCounters::default()
        };
        self.report(Side::Sender, EndSnapshot::new(sent, Probe::default()));
    }

    /// Stores the opener's round trips, from a machine that records all of them.
    pub(super) fn set_round_trips(&self, rtt: &Histogram<u64>) {
        *locked(&self.rtt) = Some(Box::new(rtt.clone()));
    }

    /// Stores the round trips before the measurement.
    pub(super) fn set_earlier_round_trips(&self, rtt: &Histogram<u64>) {
        locked(&self.baseline).rtt = Some(Box::new(rtt.clone()));
    }

    /// Reads an end. Records an RTO since the last read.
    fn read_end(&self, side: Side) -> EndSnapshot {
        let mut end = locked(&self.ends[side as usize]);
        if let Some(snapshot) = end.read_end.as_ref().and_then(|read_end| read_end()) {
            end.last = snapshot;
        }
        let timeouts = end.last.sent.timeouts;
        if timeouts > std::mem::replace(&mut end.timeouts, timeouts) {
            self.note(side, None);
        }
        end.last.clone()
    }

    /// The state of an end while the flow runs.
    pub(super) fn probe(&self, side: Side) -> Option<Probe> {
        let is_open = !self.over.load(Ordering::Relaxed);
        is_open.then(|| self.read_end(side).probe)
    }

    /// Bytes that an end has read.
    pub(super) fn delivered_to(&self, side: Side) -> u64 {
        let place = match side {
            Side::Receiver => 0,
            Side::Sender => 1,
        };
        self.delivered[place].load(Ordering::Relaxed)
    }

    /// Samples the RTT of a kernel connection, which does not record all of them.
    pub(super) fn sample(&self) {
        let is_watched = locked(&self.ends[0]).read_end.is_some();
        if is_watched {
            self.add_round_trip(self.read_end(Side::Sender).probe.smoothed_rtt);
        }
    }

    /// Adds an RTT in seconds.
    pub(super) fn add_round_trip(&self, rtt: Option<f64>) {
        if let Some(rtt) = rtt {
            let mut kept = locked(&self.rtt);
            if let Some(histogram) = kept.as_mut() {
                duration_histogram::record(histogram, Duration::from_nanos((rtt * 1e9) as u64));
            }
        }
    }

    pub(super) fn fail(&self, reason: String) {
        locked(&self.failure).get_or_insert(reason);
    }

    pub(super) fn answered(&self, transaction: Transaction) {
        locked(&self.transactions).push(transaction);
    }

    /// Stores the times of real-time frames at an end, by number.
    #[cfg(feature = "quic")]
    pub(super) fn set_frames(&self, side: Side, times: Vec<Instant>) {
        *locked(&self.frames[side as usize]) = times;
    }

    /// Counts a request without a response in time.
    pub(super) fn count_unanswered(&self) {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
    }

    /// Stores the number of packets of both ends, if counted.
    pub(super) fn set_packets(&self, packets: Option<u64>) {
        if let Some(packets) = packets {
            // Set once.
            let _ = self.packets.set(packets);
        }
    }

    /// Adds bytes read at an end (0 is the receiver); returns the total.
    pub(super) fn read(&self, side: usize, bytes: u64) -> u64 {
        let total = self.delivered[side].fetch_add(bytes, Ordering::Relaxed) + bytes;
        let side = if side == 0 { Side::Receiver } else { Side::Sender };
        self.note(side, Some(total));
        total
    }

    fn note(&self, side: Side, delivered: Option<u64>) {
        if let Some(notes) = &self.notes {
            let at = self.clock.now();
            locked(notes).push(Note { at, side, delivered });
        }
    }

    /// The recorded events.
    pub(super) fn notes(&self) -> Vec<Note> {
        self.notes
            .as_ref()
            .map(|notes| locked(notes).clone())
            .unwrap_or_default()
    }

    fn figures(&self) -> FlowCounters {
        let read = |side: usize| self.delivered[side].load(Ordering::Relaxed);
        let snapshots = [Side::Sender, Side::Receiver].map(|side| self.read_end(side));
        let mut carried = PathBytes::default();
        for snapshot in &snapshots {
            match &snapshot.carried {
                Some(by_way) => carried.add_all(by_way),
                None => carried.add(self.id.way, snapshot.sent.bytes),
            }
        }
        FlowCounters {
            sent: snapshots.map(|snapshot| snapshot.sent),
            carried,
            delivered: [read(1), read(0)],
            rtt: locked(&self.rtt).clone(),
            one_way: None,
        }
    }

    /// Marks the start of the measurement.
    pub(super) fn mark(&self) {
        *locked(&self.baseline) = self.figures();
        self.marked.store(true, Ordering::Relaxed);
    }

    /// The outcome since the start of the measurement.
    pub(super) fn outcome(&self) -> FlowOutcome {
        let figures = self.figures();
        let delivered_in_all = figures.delivered.iter().sum();
        let since = figures.since(&locked(&self.baseline));
        FlowOutcome {
            number: self.id.number,
            group: self.id.group,
            pair: self.id.pair,
            size: self.id.size,
            opened_at: self.id.opened_at,
            first_data_at: self.first_data_at.get(),
            last_acknowledged_at: self.last_acknowledged_at.get(),
            received_at: self.received_at.get(),
            sent: since.sent[0].and(since.sent[1]),
            carried: since.carried,
            delivered: [since.delivered[1], since.delivered[0]],
            delivered_in_all,
            rtt: since.rtt,
            one_way: since.one_way,
            transactions: locked(&self.transactions).clone(),
            unanswered: self.unanswered.load(Ordering::Relaxed),
            round_timeouts: None,
            frames: FrameTimes::of(&locked(&self.frames[0]), &locked(&self.frames[1])),
            packets: self.packets.get().copied(),
            ways: self.ways.load(Ordering::Relaxed),
            finished: self.finished.load(Ordering::Relaxed),
            failure: locked(&self.failure).as_deref().map(Box::from),
            ideal: None,
        }
    }
}
