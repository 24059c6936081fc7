//! The applications of a flow over the project's own protocols, whose frames are datagrams of the kernel: the very ones
//! that run in simulation, behind the UDP driver.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use experiment::application::{Application, Notice, Progress, Stream};
use experiment::outcome::Sent;
use experiment::plan::Group;
use experiment::trace::{Probe, Side};
use foundation::Instant;
use socket::datagrams::Peer;
use socket::payload::Arrived;
use socket::server::{Server, Service, Sessions};
use socket::session::{Session, Work};
use socket::{Error, client, pattern};
use transport::Statistics;
use transport::arq::{ArqConfig, Connection, StreamRange};

use super::flow::{Flow, Look};
use super::tcp::Setting;

/// Why a session ends that is still going when its trial is over.
const OVER: &str = "the trial is over";

/// What the application has written and the session has not taken yet.
#[derive(Debug, Default)]
struct Pipe {
    written: u64,
    finished: bool,
}

impl Stream for Pipe {
    fn write(&mut self, _: Instant, bytes: u64) {
        self.written += bytes;
    }

    fn finish(&mut self, _: Instant) {
        self.finished = true;
    }
}

/// One end of a flow, on top of a session.
struct End<'a> {
    setting: &'a Setting<'a>,
    flow: &'a Flow,
    side: Side,
    application: Application,
    progress: Progress,
    pipe: Pipe,
    has_started: bool,
    written: u64,
    acknowledged: u64,
    received: u64,
    is_wrong: bool,
    peer_finished: bool,
    /// Whether the round trips from before measuring began were told.
    has_marked: bool,
}

impl<'a> End<'a> {
    fn new(setting: &'a Setting<'a>, flow: &'a Flow, side: Side, application: Application) -> Self {
        Self {
            setting,
            flow,
            side,
            application,
            progress: Progress::default(),
            pipe: Pipe::default(),
            has_started: false,
            written: 0,
            acknowledged: 0,
            received: 0,
            is_wrong: false,
            peer_finished: false,
            has_marked: false,
        }
    }

    fn notice(&mut self, notice: Notice) {
        let now = self.setting.clock.now();
        self.application
            .on_notice(now, notice, &mut self.pipe, &mut self.progress);
        for transaction in self.progress.transactions.drain(..) {
            self.flow.answered(transaction);
        }
    }

    /// Tells the flow what the connection counts; `now` is the session's, whose clock is not the trial's.
    fn tell(&mut self, now: Instant, connection: &Connection<Arrived>) {
        let statistics = connection.statistics();
        let look = Look {
            sent: Sent::of(statistics),
            probe: Probe::of_arq(connection),
        };
        self.flow.tell(self.side, look);
        if self.side == Side::Sender {
            let here = self.setting.clock.now();
            let told = |at: Instant| {
                Instant::from_nanos((here.as_nanos() + at.as_nanos()).saturating_sub(now.as_nanos()))
            };
            if let Some(at) = statistics.first_data_at {
                self.flow.first_data_at.note(told(at));
            }
            if let Some(at) = statistics.last_acknowledged_at {
                self.flow.last_acknowledged_at.move_to(told(at));
            }
            self.tell_round_trips(statistics, connection.is_closed() || self.setting.is_over());
        }
    }

    /// Histograms are large: they are told when measuring begins, and at the end.
    fn tell_round_trips(&mut self, statistics: &Statistics, is_last: bool) {
        let Some(rtt) = &statistics.rtt else { return };
        if self.flow.marked.load(Ordering::Relaxed) && !std::mem::replace(&mut self.has_marked, true) {
            self.flow.tell_earlier_round_trips(rtt);
        }
        if is_last {
            self.flow.tell_round_trips(rtt);
        }
    }
}

impl socket::session::Application for End<'_> {
    fn fill(&mut self, range: StreamRange, out: &mut [u8]) {
        pattern::fill(range, out);
    }

    fn acknowledged(&mut self, offset: u64) {
        self.acknowledged = offset;
    }

    fn has_room(&self) -> bool {
        true
    }

    fn receive(&mut self, bytes: &[u8]) {
        if self.setting.is_over() {
            return;
        }
        self.is_wrong |= !pattern::matches(self.received, bytes);
        self.received += bytes.len() as u64;
        let total = self.flow.read(1 - self.side as usize, bytes.len() as u64);
        if self.side == Side::Receiver && Some(total) == self.flow.id.size {
            self.flow.received_at.note(self.setting.clock.now());
        }
        self.notice(Notice::Read(bytes.len() as u64));
    }

    fn peer_finished(&mut self) {
        self.peer_finished = true;
        self.notice(Notice::PeerFinished);
    }

    fn observe(&mut self, now: Instant, connection: &Connection<Arrived>) {
        self.tell(now, connection);
    }

    fn work(&mut self, now: Instant, _: u64) -> Result<Work, String> {
        if self.setting.is_over() {
            return Err(OVER.to_owned());
        }
        if self.is_wrong {
            return Err("the bytes that arrived are not those that were sent".to_owned());
        }
        let here = self.setting.clock.now();
        if self.side == Side::Sender && !std::mem::replace(&mut self.has_started, true) {
            self.application.start(here, &mut self.pipe);
        }
        if self.application.timeout() <= here {
            self.application.handle_timeout(here, &mut self.pipe);
        }
        let written = std::mem::take(&mut self.pipe.written);
        self.written += written;
        let next = self.application.timeout();
        Ok(Work {
            written,
            finish: self.pipe.finished,
            again_soon: false,
            again_at: (next != Instant::MAX).then(|| now + next.saturating_since(here)),
        })
    }

    fn is_complete(&self) -> bool {
        self.pipe.finished && self.peer_finished && self.acknowledged == self.written
    }
}

/// Opens the flow and runs its application to the end.
pub(super) fn open(setting: &Setting<'_>, group: &Group, flow: &Flow, config: &ArqConfig, to: SocketAddr) {
    let [application, _] = Application::of(group, flow.id.number, flow.id.size);
    let end = End::new(setting, flow, Side::Sender, application);
    let mut tick = |_: Instant, _: &Session<End<'_>>| match setting.is_over() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    match client::run(to, config, end, group.records_rtt, &mut tick) {
        Ok(session) => {
            if let Some(rtt) = &session.connection().statistics().rtt {
                flow.tell_round_trips(rtt);
            }
            flow.finished.store(true, Ordering::Relaxed);
        }
        Err(_) if setting.is_over() => {}
        Err(error) => flow.fail(error.to_string()),
    }
    flow.over.store(true, Ordering::Relaxed);
}

/// The end that the flow goes to: one session and no other.
struct Listening<'a> {
    setting: &'a Setting<'a>,
    flow: &'a Flow,
    application: Option<Application>,
}

impl<'a> Service for Listening<'a> {
    type Application = End<'a>;

    fn accept(&mut self, _: Instant, _: Peer, _: u64) -> Result<End<'a>, String> {
        let application = self.application.take().ok_or("it carries one flow")?;
        Ok(End::new(self.setting, self.flow, Side::Receiver, application))
    }

    fn turn(&mut self, _: Instant, _: &mut Sessions<End<'a>>) -> ControlFlow<()> {
        match self.setting.is_over() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn ended(&mut self, _: Instant, _: u64, _: Session<End<'a>>) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

/// Listens at any port of an address of the host that the calling thread is at.
pub(super) fn listen(address: std::net::Ipv4Addr, config: &ArqConfig) -> Result<Server, Error> {
    Server::bind((address, 0).into(), 1)?.with_config(config.clone())
}

/// Serves the flow until it, or the trial, is over.
pub(super) fn serve(setting: &Setting<'_>, group: &Group, flow: &Flow, server: Server) {
    let [_, application] = Application::of(group, flow.id.number, flow.id.size);
    let mut listening = Listening {
        setting,
        flow,
        application: Some(application),
    };
    if let Err(error) = server.serve(&mut listening) {
        flow.fail(error.to_string());
    }
}
