//! One flow between two kernels: what its threads share, and what it came to.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use experiment::outcome::{FlowCounters, FlowOutcome, PathBytes, SendCounters, Transaction};
use experiment::trace::{Probe, Side};
use foundation::Instant;
use hdrhistogram::Histogram;

use super::context::TrialClock;

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

/// TraceEventKind an end tells of itself when it is looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct EndSnapshot {
    pub sent: SendCounters,
    pub probe: Probe,
    /// The payload of `sent` by way; `None` where all of it took the way on which the flow opened.
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

/// Asks a machine, which may be gone.
pub(super) type ReadEnd = Box<dyn Fn() -> Option<EndSnapshot> + Send>;

/// One end as the one who measures sees it.
#[derive(Default)]
struct EndState {
    /// How to ask the machine; `None` where it tells by itself, before it is there, and when it is gone.
    read_end: Option<ReadEnd>,
    last: EndSnapshot,
    timeouts: u64,
}

/// Something of a flow that no packet shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    pub at: Instant,
    pub side: Side,
    /// Bytes that were read in all; `None` for a retransmission timer that ran out.
    pub delivered: Option<u64>,
}

/// TraceEventKind a flow is, from its beginning.
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

/// TraceEventKind is kept of a flow besides its counters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recording {
    pub round_trips: bool,
    pub notes: bool,
}

/// TraceEventKind the threads of a flow, and the one that measures, share.
pub(super) struct Flow {
    pub id: Identity,
    /// Where the end that it goes to listens.
    to: OnceLock<SocketAddr>,
    pub first_data_at: Moment,
    pub last_acknowledged_at: Moment,
    pub received_at: Moment,
    /// Bytes that the receiver has read, and the sender.
    pub delivered: [AtomicU64; 2],
    pub finished: AtomicBool,
    /// Whether the opener's thread has ended.
    pub over: AtomicBool,
    /// The ways that carried its data, one bit each.
    ways: AtomicU64,
    /// Whether measuring has begun in its time.
    pub marked: AtomicBool,
    clock: TrialClock,
    failure: Mutex<Option<String>>,
    transactions: Mutex<Vec<Transaction>>,
    unanswered: AtomicU64,
    /// All packets of both ends, where they were counted.
    packets: OnceLock<u64>,
    /// The opener and the other end.
    ends: [Mutex<EndState>; 2],
    rtt: Mutex<Option<Box<Histogram<u64>>>>,
    baseline: Mutex<FlowCounters>,
    notes: Option<Mutex<Vec<Note>>>,
}

/// A thread that has panicked has said so; what it held is as good as it left it.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Of nanoseconds, 1 µs to 1000 s, three digits, as the simulator's.
fn histogram() -> Option<Box<Histogram<u64>>> {
    Histogram::new_with_bounds(1_000, 1_000_000_000_000, 3)
        .ok()
        .map(Box::new)
}

impl Flow {
    pub(super) fn new(id: Identity, clock: TrialClock, recording: Recording) -> Self {
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
            clock,
            failure: Mutex::new(None),
            transactions: Mutex::new(Vec::new()),
            unanswered: AtomicU64::new(0),
            packets: OnceLock::new(),
            ends: [Mutex::default(), Mutex::default()],
            rtt: Mutex::new(if recording.round_trips { histogram() } else { None }),
            baseline: Mutex::new(FlowCounters::default()),
            notes: recording.notes.then(Mutex::default),
        }
    }

    /// The other end listens there.
    pub(super) fn set_destination(&self, to: SocketAddr) {
        // It is told once.
        let _ = self.to.set(to);
    }

    /// Where the other end listens, once it does.
    pub(super) fn to(&self) -> Option<SocketAddr> {
        self.to.get().copied()
    }

    /// The machine of an end stands; it is asked from now on.
    pub(super) fn watch(&self, side: Side, read_end: ReadEnd) {
        locked(&self.ends[side as usize]).read_end = Some(read_end);
    }

    /// The machine of an end is about to go: it is asked for the last time.
    pub(super) fn leave(&self, side: Side) {
        let mut end = locked(&self.ends[side as usize]);
        if let Some(look) = end.read_end.take().and_then(|read_end| read_end()) {
            end.last = look;
        }
    }

    /// Data of it takes a way.
    pub(super) fn add_way(&self, number: u8) {
        self.ways.fetch_or(1 << number, Ordering::Relaxed);
    }

    /// An end that is not asked tells how it stands.
    pub(super) fn tell(&self, side: Side, look: EndSnapshot) {
        locked(&self.ends[side as usize]).last = look;
    }

    /// A source of datagrams has sent so much.
    pub(super) fn set_sent(&self, packets: u64, bytes: u64) {
        let sent = SendCounters {
            packets,
            bytes,
            ..SendCounters::default()
        };
        self.tell(Side::Sender, EndSnapshot::new(sent, Probe::default()));
    }

    /// The opener's round trips so far, by a machine that keeps them itself.
    pub(super) fn set_round_trips(&self, rtt: &Histogram<u64>) {
        *locked(&self.rtt) = Some(Box::new(rtt.clone()));
    }

    /// Those from before measuring began.
    pub(super) fn set_earlier_round_trips(&self, rtt: &Histogram<u64>) {
        locked(&self.baseline).rtt = Some(Box::new(rtt.clone()));
    }

    /// How an end stands now. A retransmission timer that has run out since the last look is noted.
    fn look(&self, side: Side) -> EndSnapshot {
        let mut end = locked(&self.ends[side as usize]);
        if let Some(look) = end.read_end.as_ref().and_then(|read_end| read_end()) {
            end.last = look;
        }
        let timeouts = end.last.sent.timeouts;
        if timeouts > std::mem::replace(&mut end.timeouts, timeouts) {
            self.note(side, None);
        }
        end.last.clone()
    }

    /// How an end stands, while it does.
    pub(super) fn probe(&self, side: Side) -> Option<Probe> {
        let stands = !self.over.load(Ordering::Relaxed);
        stands.then(|| self.look(side).probe)
    }

    /// Bytes that an end has read.
    pub(super) fn delivered_to(&self, side: Side) -> u64 {
        let place = match side {
            Side::Receiver => 0,
            Side::Sender => 1,
        };
        self.delivered[place].load(Ordering::Relaxed)
    }

    /// Reads the round-trip time of a machine that does not keep all of them.
    pub(super) fn sample(&self) {
        let is_asked = locked(&self.ends[0]).read_end.is_some();
        if is_asked {
            self.add_round_trip(self.look(Side::Sender).probe.smoothed_rtt);
        }
    }

    /// So long a round trip was seen, in seconds.
    pub(super) fn add_round_trip(&self, rtt: Option<f64>) {
        if let Some(rtt) = rtt {
            let mut kept = locked(&self.rtt);
            if let Some(histogram) = kept.as_mut() {
                histogram.saturating_record((rtt * 1e9) as u64);
            }
        }
    }

    pub(super) fn fail(&self, reason: String) {
        locked(&self.failure).get_or_insert(reason);
    }

    pub(super) fn answered(&self, transaction: Transaction) {
        locked(&self.transactions).push(transaction);
    }

    /// A request was not answered in time.
    pub(super) fn count_unanswered(&self) {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
    }

    /// So many packets of both ends have passed, where somebody has looked.
    pub(super) fn set_packets(&self, packets: Option<u64>) {
        if let Some(packets) = packets {
            // It is told once.
            let _ = self.packets.set(packets);
        }
    }

    /// An end has read so much more: the receiver is the first. Gives how much it has read in all.
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

    /// TraceEventKind was noted, where it was to be.
    pub(super) fn notes(&self) -> Vec<Note> {
        self.notes
            .as_ref()
            .map(|notes| locked(notes).clone())
            .unwrap_or_default()
    }

    fn figures(&self) -> FlowCounters {
        let read = |side: usize| self.delivered[side].load(Ordering::Relaxed);
        let looks = [Side::Sender, Side::Receiver].map(|side| self.look(side));
        let mut carried = PathBytes::default();
        for look in &looks {
            match &look.carried {
                Some(by_way) => carried.add_all(by_way),
                None => carried.add(self.id.way, look.sent.bytes),
            }
        }
        FlowCounters {
            sent: looks.map(|look| look.sent),
            carried,
            delivered: [read(1), read(0)],
            rtt: locked(&self.rtt).clone(),
        }
    }

    /// Measuring begins.
    pub(super) fn mark(&self) {
        *locked(&self.baseline) = self.figures();
        self.marked.store(true, Ordering::Relaxed);
    }

    /// TraceEventKind has become of the flow since then.
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
            transactions: locked(&self.transactions).clone(),
            unanswered: self.unanswered.load(Ordering::Relaxed),
            packets: self.packets.get().copied(),
            ways: self.ways.load(Ordering::Relaxed),
            finished: self.finished.load(Ordering::Relaxed),
            failure: locked(&self.failure).clone(),
        }
    }
}
