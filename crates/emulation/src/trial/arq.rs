//! The applications of a flow over the project's ARQ protocols, which send their frames as the kernel's datagrams: the
//! machines of simulation on the UDP driver.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use experiment::Side;
use experiment::application::Application;
use experiment::outcome::SendCounters;
use experiment::plan::Group;
use experiment::trace::Probe;
use foundation::Instant;
use socket::clock::Clock;
use socket::payload::ReceivedPayload;
use socket::server::{Server, Service, Sessions, Visitor};
use socket::session::{Session, Work};
use socket::{Error, Protection, client, pattern};
use transport::arq::{ArqConfig, Connection, StreamRange};

use super::application::{ApplicationRunner, WRONG_BYTES};
use super::context::TrialContext;
use super::flow::{EndSnapshot, Flow};

/// The reason to abort a session at the end of its trial.
const OVER: &str = "the trial is over";

/// One end of a flow over a session.
struct End<'a> {
    application: ApplicationRunner<'a>,
    written: u64,
    acknowledged: u64,
    is_wrong: bool,
}

impl<'a> End<'a> {
    fn new(context: &'a TrialContext<'a>, flow: &'a Flow, side: Side, application: Application) -> Self {
        Self {
            application: ApplicationRunner::new(context, flow, side, application),
            written: 0,
            acknowledged: 0,
            is_wrong: false,
        }
    }
}

impl socket::session::Application for End<'_> {
    fn append(&mut self, range: StreamRange, out: &mut Vec<u8>) {
        pattern::append(range, out);
    }

    fn acknowledged(&mut self, offset: u64) {
        self.acknowledged = offset;
    }

    fn has_room(&self) -> bool {
        true
    }

    fn receive(&mut self, bytes: &[u8]) {
        if !self.application.context.is_over() {
            self.is_wrong |= !self.application.read(bytes);
        }
    }

    fn peer_finished(&mut self) {
        self.application.peer_finished();
    }

    /// `now` is the session's time, which differs from the trial's.
    fn observe(&mut self, now: Instant, connection: &Connection<ReceivedPayload>) {
        let statistics = connection.statistics();
        let traced = self.application.flow.is_traced();
        let controller = connection.sender().controller().filter(|_| traced);
        let probe = Probe::of_arq(connection).with_controller(controller);
        let snapshot = EndSnapshot::new(SendCounters::of(statistics), probe);
        let context = self.application.context;
        let here = context.clock.now();
        let trial_time = |at: Instant| {
            Instant::from_nanos((here.as_nanos() + at.as_nanos()).saturating_sub(now.as_nanos()))
        };
        let is_last = connection.is_closed() || context.is_over();
        self.application.report(snapshot, statistics, trial_time, is_last);
    }

    fn work(&mut self, now: Instant, _: u64) -> Result<Work, String> {
        if self.application.context.is_over() {
            return Err(OVER.to_owned());
        }
        if self.is_wrong {
            return Err(WRONG_BYTES.to_owned());
        }
        self.application.act();
        let written = std::mem::take(&mut self.application.pipe.waiting);
        self.written += written;
        let next = self.application.acts_at();
        let left = next.saturating_since(self.application.context.clock.now());
        Ok(Work {
            written,
            finish: self.application.pipe.finished,
            again_soon: false,
            again_at: (next != Instant::MAX).then(|| now + left),
        })
    }

    fn is_complete(&self) -> bool {
        self.application.pipe.finished
            && self.application.peer_has_finished()
            && self.acknowledged == self.written
    }
}

/// Opens the flow and runs its application until it finishes.
pub(super) fn open(
    context: &TrialContext<'_>,
    group: &Group,
    flow: &Flow,
    config: &ArqConfig,
    to: SocketAddr,
) {
    let [application, _] = Application::of(group, flow.id.number, flow.id.size);
    let end = End::new(context, flow, Side::Sender, application);
    let mut tick = |_: Instant, _: Option<&Session<End<'_>>>| match context.is_over() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let options = client::Options {
        record_round_trips: group.records_rtt,
        search_path_mtu: false,
    };
    match client::run(
        to,
        &Protection::None,
        config,
        end,
        options,
        Clock::new(),
        &mut tick,
    ) {
        Ok(session) => {
            if let Some(rtt) = &session.connection().statistics().round_trips() {
                flow.set_round_trips(rtt);
            }
            flow.finished.store(true, Ordering::Relaxed);
        }
        Err(_) if context.is_over() => {}
        Err(failed) => flow.fail(failed.error.to_string()),
    }
    flow.end();
}

/// The receiving end, which accepts one session.
struct Listening<'a> {
    context: &'a TrialContext<'a>,
    flow: &'a Flow,
    application: Option<Application>,
}

impl<'a> Service for Listening<'a> {
    type Application = End<'a>;

    fn accept(&mut self, _: Instant, _: &Visitor, _: u64) -> Result<End<'a>, String> {
        let application = self.application.take().ok_or("a server of one flow")?;
        Ok(End::new(self.context, self.flow, Side::Receiver, application))
    }

    fn turn(&mut self, _: Instant, _: &mut Sessions<End<'a>>) -> ControlFlow<()> {
        match self.context.is_over() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn ended(&mut self, _: Instant, _: u64, _: Session<End<'a>>) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

/// Listens at any port of an address, in the calling thread's namespace.
pub(super) fn listen(address: std::net::Ipv4Addr, config: &ArqConfig) -> Result<Server, Error> {
    Server::bind((address, 0).into(), 1, &Protection::None, config.clone())
}

/// Serves the flow until it finishes or the trial ends.
pub(super) fn serve(context: &TrialContext<'_>, group: &Group, flow: &Flow, server: Server) {
    let [_, application] = Application::of(group, flow.id.number, flow.id.size);
    let mut listening = Listening {
        context,
        flow,
        application: Some(application),
    };
    if let Err(error) = server.serve(&mut listening) {
        flow.fail(error.to_string());
    }
}
