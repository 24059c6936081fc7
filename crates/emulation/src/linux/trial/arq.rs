//! The applications of a flow over the project's own protocols, whose frames are datagrams of the kernel: the very ones
//! that run in simulation, behind the UDP driver.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use experiment::application::Application;
use experiment::outcome::SendCounters;
use experiment::plan::Group;
use experiment::trace::{Probe, Side};
use foundation::Instant;
use socket::datagrams::Peer;
use socket::payload::Arrived;
use socket::server::{Server, Service, Sessions};
use socket::session::{Session, Work};
use socket::{Error, client, pattern};
use transport::arq::{ArqConfig, Connection, StreamRange};

use super::flow::{Flow, Look};
use super::player::{Player, WRONG};
use super::tcp::Setting;

/// Why a session ends that is still going when its trial is over.
const OVER: &str = "the trial is over";

/// One end of a flow, on top of a session.
struct End<'a> {
    player: Player<'a>,
    written: u64,
    acknowledged: u64,
    is_wrong: bool,
}

impl<'a> End<'a> {
    fn new(setting: &'a Setting<'a>, flow: &'a Flow, side: Side, application: Application) -> Self {
        Self {
            player: Player::new(setting, flow, side, application),
            written: 0,
            acknowledged: 0,
            is_wrong: false,
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
        if !self.player.setting.is_over() {
            self.is_wrong |= !self.player.read(bytes);
        }
    }

    fn peer_finished(&mut self) {
        self.player.peer_finished();
    }

    /// `now` is the session's, whose clock is not the trial's.
    fn observe(&mut self, now: Instant, connection: &Connection<Arrived>) {
        let statistics = connection.statistics();
        let look = Look::new(SendCounters::of(statistics), Probe::of_arq(connection));
        let setting = self.player.setting;
        let here = setting.clock.now();
        let told = |at: Instant| {
            Instant::from_nanos((here.as_nanos() + at.as_nanos()).saturating_sub(now.as_nanos()))
        };
        let is_last = connection.is_closed() || setting.is_over();
        self.player.tell(look, statistics, told, is_last);
    }

    fn work(&mut self, now: Instant, _: u64) -> Result<Work, String> {
        if self.player.setting.is_over() {
            return Err(OVER.to_owned());
        }
        if self.is_wrong {
            return Err(WRONG.to_owned());
        }
        self.player.act();
        let written = std::mem::take(&mut self.player.pipe.waiting);
        self.written += written;
        let next = self.player.acts_at();
        let left = next.saturating_since(self.player.setting.clock.now());
        Ok(Work {
            written,
            finish: self.player.pipe.finished,
            again_soon: false,
            again_at: (next != Instant::MAX).then(|| now + left),
        })
    }

    fn is_complete(&self) -> bool {
        self.player.pipe.finished && self.player.peer_has_finished() && self.acknowledged == self.written
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
