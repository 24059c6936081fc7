//! Runs an application of simulation at one end of a flow over any transport, and reports its progress to the flow.

use std::sync::atomic::Ordering;

use experiment::Side;
use experiment::application::{Application, Notice, Progress, Stream};
use foundation::{Duration, Instant};
use socket::pattern;
use transport::Statistics;

use super::barrier::Ticket;
use super::context::TrialContext;
use super::flow::{EndSnapshot, Flow};

/// The error of an end that received wrong bytes.
pub(super) const WRONG_BYTES: &str = "the received bytes differ from those sent";

/// Interval at which a waiting application looks at its barrier.
const LOOK: Duration = Duration::from_micros(200);

/// Bytes that the application wrote and the transport has not taken.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    pub waiting: u64,
    pub finished: bool,
    /// Messages with their numbers, if the transport has streams.
    pub messages: Option<Vec<(u32, u64)>>,
}

impl Stream for Pipe {
    fn write(&mut self, _: Instant, bytes: u64) {
        self.waiting += bytes;
    }

    fn finish(&mut self, _: Instant) {
        self.finished = true;
    }

    fn send_message(&mut self, now: Instant, number: u32, bytes: u64) {
        match &mut self.messages {
            Some(messages) => messages.push((number, bytes)),
            None => self.write(now, bytes),
        }
    }
}

/// An application at one end of a flow.
pub(super) struct ApplicationRunner<'a> {
    pub context: &'a TrialContext<'a>,
    pub flow: &'a Flow,
    pub side: Side,
    pub pipe: Pipe,
    application: Application,
    progress: Progress,
    has_started: bool,
    /// Its place at the barrier before the next request.
    ticket: Option<Ticket>,
    received: u64,
    peer_has_finished: bool,
    /// Whether the round trips before the measurement were reported.
    has_marked: bool,
}

impl<'a> ApplicationRunner<'a> {
    pub(super) fn new(
        context: &'a TrialContext<'a>,
        flow: &'a Flow,
        side: Side,
        application: Application,
    ) -> Self {
        Self {
            context,
            flow,
            side,
            pipe: Pipe::default(),
            application,
            progress: Progress::default(),
            has_started: false,
            ticket: None,
            received: 0,
            peer_has_finished: false,
            has_marked: false,
        }
    }

    fn notice(&mut self, notice: Notice) {
        let now = self.context.clock.now();
        self.application
            .on_notice(now, notice, &mut self.pipe, &mut self.progress);
        for transaction in self.progress.records_mut().transactions.drain(..) {
            self.flow.answered(transaction);
        }
    }

    /// Runs the application's own actions: the start, at the opening end, and its timer.
    pub(super) fn act(&mut self) {
        let now = self.context.clock.now();
        if self.side == Side::Sender && !std::mem::replace(&mut self.has_started, true) {
            self.application.start(now, &mut self.pipe);
        }
        if self.application.timeout() <= now {
            self.application
                .handle_timeout(now, &mut self.pipe, &mut self.progress);
        }
        if self.progress.waits() {
            self.pass_barrier(now);
        }
    }

    /// Lets the application send its next request once all flows have their responses.
    fn pass_barrier(&mut self, now: Instant) {
        let Some(barrier) = self.flow.barrier() else {
            return;
        };
        let ticket = *self.ticket.get_or_insert_with(|| barrier.arrive());
        if !barrier.is_released(ticket) {
            return;
        }
        self.ticket = None;
        self.application.release(now, &mut self.pipe, &mut self.progress);
    }

    /// The application's next timer; `Instant::MAX` for none.
    pub(super) fn acts_at(&self) -> Instant {
        if self.progress.waits() {
            return self.context.clock.now() + LOOK;
        }
        self.application.timeout()
    }

    /// Passes received bytes to the application; returns whether they are correct.
    pub(super) fn read(&mut self, bytes: &[u8]) -> bool {
        let is_right = pattern::matches(self.received, bytes);
        let count = bytes.len() as u64;
        self.received += count;
        self.add_read(count);
        self.notice(Notice::Read(count));
        is_right
    }

    /// Passes the number of bytes read to the application: of the message on the stream of this number, if any.
    #[cfg(feature = "quic")]
    pub(super) fn read_count(&mut self, message: Option<u32>, count: u64) {
        self.add_read(count);
        self.notice(match message {
            Some(number) => Notice::ReadMessage(number, count),
            None => Notice::Read(count),
        });
    }

    fn add_read(&mut self, count: u64) {
        let total = self.flow.read(1 - self.side as usize, count);
        if self.side == Side::Receiver && Some(total) == self.flow.id.size {
            self.flow.received_at.note(self.context.clock.now());
        }
    }

    pub(super) const fn peer_has_finished(&self) -> bool {
        self.peer_has_finished
    }

    /// Handles the end of the peer's stream.
    pub(super) fn peer_finished(&mut self) {
        if !std::mem::replace(&mut self.peer_has_finished, true) {
            self.notice(Notice::PeerFinished);
        }
    }

    /// Reports the connection's counters to the flow. `at` converts times of the connection to times of the trial;
    /// `is_last` marks the last report.
    pub(super) fn report(
        &mut self,
        snapshot: EndSnapshot,
        statistics: &Statistics,
        at: impl Fn(Instant) -> Instant,
        is_last: bool,
    ) {
        self.flow.report(self.side, snapshot);
        if self.side == Side::Receiver {
            return;
        }
        if let Some(time) = statistics.first_data_at {
            self.flow.first_data_at.note(at(time));
        }
        if let Some(time) = statistics.last_acknowledged_at {
            self.flow.last_acknowledged_at.move_to(at(time));
        }
        // Histograms are large, so they are copied only at the start and end of the measurement.
        let marks = self.flow.marked.load(Ordering::Relaxed) && !self.has_marked;
        if (marks || is_last)
            && let Some(rtt) = &statistics.round_trips()
        {
            if marks {
                self.has_marked = true;
                self.flow.set_earlier_round_trips(rtt);
            }
            if is_last {
                self.flow.set_round_trips(rtt);
            }
        }
    }

    /// Passes the times of real-time frames at this end to the flow.
    #[cfg(feature = "quic")]
    pub(super) fn report_frames(&mut self) {
        self.flow
            .set_frames(self.side, self.progress.take_records().frames);
    }
}
