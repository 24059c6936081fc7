//! An application of simulation at one end of a flow, whatever carries its bytes: what it writes and reads, and what the flow
//! is told of it.

use std::sync::atomic::Ordering;

use experiment::application::{Application, Notice, Progress, Stream};
use experiment::trace::Side;
use foundation::Instant;
use socket::pattern;
use transport::Statistics;

use super::context::TrialContext;
use super::flow::{EndSnapshot, Flow};

/// Why an end fails that has read what the other one did not write.
pub(super) const WRONG_BYTES: &str = "the bytes that arrived are not those that were sent";

/// TraceEventKind the application has written and nobody has taken yet.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    pub waiting: u64,
    pub finished: bool,
}

impl Stream for Pipe {
    fn write(&mut self, _: Instant, bytes: u64) {
        self.waiting += bytes;
    }

    fn finish(&mut self, _: Instant) {
        self.finished = true;
    }
}

/// One end of a flow.
pub(super) struct ApplicationRunner<'a> {
    pub context: &'a TrialContext<'a>,
    pub flow: &'a Flow,
    pub side: Side,
    pub pipe: Pipe,
    application: Application,
    progress: Progress,
    has_started: bool,
    received: u64,
    peer_has_finished: bool,
    /// Whether the round trips from before measuring began were told.
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
            received: 0,
            peer_has_finished: false,
            has_marked: false,
        }
    }

    fn notice(&mut self, notice: Notice) {
        let now = self.context.clock.now();
        self.application
            .on_notice(now, notice, &mut self.pipe, &mut self.progress);
        for transaction in self.progress.transactions.drain(..) {
            self.flow.answered(transaction);
        }
    }

    /// Lets the application do what it does by itself: begin, at the end that opens the flow, and what is due by now.
    pub(super) fn act(&mut self) {
        let now = self.context.clock.now();
        if self.side == Side::Sender && !std::mem::replace(&mut self.has_started, true) {
            self.application.start(now, &mut self.pipe);
        }
        if self.application.timeout() <= now {
            self.application.handle_timeout(now, &mut self.pipe);
        }
    }

    /// When it does so next; `Instant::MAX` for never.
    pub(super) fn acts_at(&self) -> Instant {
        self.application.timeout()
    }

    /// The next bytes have arrived; gives whether they are those that were sent.
    pub(super) fn read(&mut self, bytes: &[u8]) -> bool {
        let is_right = pattern::matches(self.received, bytes);
        let count = bytes.len() as u64;
        self.received += count;
        let total = self.flow.read(1 - self.side as usize, count);
        if self.side == Side::Receiver && Some(total) == self.flow.id.size {
            self.flow.received_at.note(self.context.clock.now());
        }
        self.notice(Notice::Read(count));
        is_right
    }

    pub(super) const fn peer_has_finished(&self) -> bool {
        self.peer_has_finished
    }

    /// No byte follows.
    pub(super) fn peer_finished(&mut self) {
        if !std::mem::replace(&mut self.peer_has_finished, true) {
            self.notice(Notice::PeerFinished);
        }
    }

    /// Tells the flow what the connection counts. `at` turns times of the connection into those of the trial; `is_last`: it is
    /// not asked again.
    pub(super) fn tell(
        &mut self,
        look: EndSnapshot,
        statistics: &Statistics,
        at: impl Fn(Instant) -> Instant,
        is_last: bool,
    ) {
        self.flow.tell(self.side, look);
        if self.side == Side::Receiver {
            return;
        }
        if let Some(time) = statistics.first_data_at {
            self.flow.first_data_at.note(at(time));
        }
        if let Some(time) = statistics.last_acknowledged_at {
            self.flow.last_acknowledged_at.move_to(at(time));
        }
        // Histograms are large: they are told when measuring begins, and at the end.
        if let Some(rtt) = &statistics.rtt {
            if self.flow.marked.load(Ordering::Relaxed) && !std::mem::replace(&mut self.has_marked, true) {
                self.flow.set_earlier_round_trips(rtt);
            }
            if is_last {
                self.flow.set_round_trips(rtt);
            }
        }
    }
}
