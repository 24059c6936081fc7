//! The applications of a flow over QUIC: the machine of simulation with TLS over the kernel's datagrams.

mod paths;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use experiment::application::Application;
use experiment::outcome::SendCounters;
use experiment::plan::Group;
use experiment::trace::Probe;
use experiment::{QuicConfig, Side, carriage};
use foundation::Instant;
use network::HostId;
use socket::Error;
use socket::quic::{Connection, Event, Failed, Listener, Options, Sessions, connect};

use super::application::ApplicationRunner;
use super::context::TrialContext;
use super::flow::{EndSnapshot, Flow, locked};
use crate::emulation::Emulation;
use paths::{EndPaths, of_moves};
pub(super) use paths::{PathStart, choose};

/// The parts of an end that both threads need before they start.
pub(super) struct Start {
    config: Arc<QuicConfig>,
    application: Application,
    options: Options,
}

impl Start {
    /// Returns the parts of both ends of a flow: the client's first.
    ///
    /// # Errors
    /// [`Error::Tls`] if there is no certificate of the size in the settings.
    pub(super) fn both(
        context: &TrialContext<'_>,
        emulation: &Emulation,
        group: &Group,
        config: &Arc<QuicConfig>,
        flow: &Flow,
        paths: Option<&PathStart>,
    ) -> Result<[Self; 2], Error> {
        let pair = &group.pairs[flow.id.pair as usize];
        let options = Options {
            record_round_trips: group.records_rtt,
            carriage: carriage(config, &group.workload),
            sessions: sessions(context, config, (pair.from, pair.to))?,
            client_addresses: match paths {
                Some(paths) => paths.addresses(),
                None => of_moves(emulation, config, pair),
            },
            plan: paths.map(|paths| paths.plan.clone()),
        };
        let config = match paths {
            Some(_) => Arc::new(config.between(pair.ways.len())),
            None => Arc::clone(config),
        };
        let [client, server] = Application::of(group, flow.id.number, flow.id.size);
        Ok([client, server].map(|application| Self {
            config: Arc::clone(&config),
            application,
            options: options.clone(),
        }))
    }
}

/// TLS with tickets, by client and server.
pub(super) type HostSessions = Mutex<BTreeMap<(HostId, HostId), Sessions>>;

/// Returns the TLS of two hosts, if the settings have early data. Their first connection makes it.
pub(super) fn sessions(
    context: &TrialContext<'_>,
    config: &QuicConfig,
    hosts: (HostId, HostId),
) -> Result<Option<Sessions>, Error> {
    if config.zero_rtt != Some(true) {
        return Ok(None);
    }
    let mut all = locked(context.sessions);
    if let Some(known) = all.get(&hosts) {
        return Ok(Some(known.clone()));
    }
    let sessions = Sessions::new(config)?;
    all.insert(hosts, sessions.clone());
    Ok(Some(sessions))
}

/// One end of a flow.
struct End<'a> {
    runner: ApplicationRunner<'a>,
    has_finished: bool,
    /// The paths of a connection with several.
    paths: Option<EndPaths>,
}

impl<'a> End<'a> {
    fn new(context: &'a TrialContext<'a>, flow: &'a Flow, side: Side, start: Start) -> Self {
        let mut runner = ApplicationRunner::new(context, flow, side, start.application);
        runner.pipe.messages = start.options.carriage.has_messages().then(Vec::new);
        Self {
            runner,
            has_finished: false,
            paths: None,
        }
    }

    fn write(&mut self, connection: &mut Connection) {
        let pipe = &mut self.runner.pipe;
        for (number, bytes) in pipe.messages.iter_mut().flat_map(|messages| messages.drain(..)) {
            connection.send_message(number, bytes);
        }
        pipe.waiting -= connection.write(pipe.waiting);
        if pipe.finished && pipe.waiting == 0 && !std::mem::replace(&mut self.has_finished, true) {
            connection.finish();
        }
    }
}

impl socket::quic::Application for End<'_> {
    fn handle(&mut self, now: Instant, event: Event, connection: &mut Connection) {
        if self.runner.context.is_over() {
            return;
        }
        match event {
            Event::Readable => {
                let bytes = connection.read_all(now);
                self.runner.read_count(None, bytes);
            }
            Event::ReadMessage(number, bytes) => self.runner.read_count(Some(number), bytes),
            Event::PeerFinished => self.runner.peer_finished(),
            Event::Finished if self.runner.side == Side::Sender => {
                self.runner.flow.finished.store(true, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    /// The time of the connection is that of the trial's clock.
    fn work(&mut self, now: Instant, connection: &mut Connection) -> Result<Instant, String> {
        if let Some(paths) = &mut self.paths {
            paths.update_host(self.runner.context, now, connection);
        }
        self.runner.act();
        self.write(connection);
        let clock = self.runner.context.clock;
        let at = self.runner.acts_at();
        Ok(match at {
            Instant::MAX => at,
            at => clock.start + at.saturating_since(Instant::ZERO),
        })
    }

    fn observe(&mut self, _: Instant, connection: &Connection, is_last: bool) {
        let statistics = connection.statistics();
        let probe = Probe::of_quic(connection);
        let snapshot = EndSnapshot {
            carried: self
                .paths
                .as_ref()
                .map(|paths| paths.carried(self.runner.flow, connection)),
            ..EndSnapshot::new(SendCounters::of(statistics), probe)
        };
        let start = self.runner.context.clock.start;
        let trial_time = |at: Instant| Instant::ZERO + at.saturating_since(start);
        self.runner.report(snapshot, statistics, trial_time, is_last);
        if is_last {
            self.runner.report_frames();
        }
    }
}

fn until_over(context: &TrialContext<'_>) -> impl FnMut() -> ControlFlow<()> {
    || match context.is_over() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// Opens the flow and runs its application until it finishes.
pub(super) fn open(
    context: &TrialContext<'_>,
    flow: &Flow,
    start: Start,
    paths: Option<PathStart>,
    to: SocketAddr,
) {
    let (config, options) = (Arc::clone(&start.config), start.options.clone());
    let mut end = End::new(context, flow, Side::Sender, start);
    end.paths = paths.map(PathStart::into_client);
    let clock = context.clock.clock;
    match connect(to, &config, end, options, clock, &mut until_over(context)) {
        Err(failed) if !context.is_over() => flow.fail(failed.error.to_string()),
        _ => {}
    }
    flow.end();
}

/// Listens at any port of an address, in the calling thread's namespace.
pub(super) fn listen(address: Ipv4Addr, start: &Start) -> Result<Listener, Error> {
    Listener::bind((address, 0).into(), &start.config)
}

/// Serves the flow until it finishes or the trial ends.
pub(super) fn serve(
    context: &TrialContext<'_>,
    flow: &Flow,
    listener: Listener,
    start: Start,
    paths: Option<EndPaths>,
) {
    let options = start.options.clone();
    let mut end = End::new(context, flow, Side::Receiver, start);
    end.paths = paths;
    let clock = context.clock.clock;
    let served = listener.serve(end, options, clock, &mut until_over(context));
    if let Err(Failed { error, .. }) = served
        && !context.is_over()
    {
        flow.fail(error.to_string());
    }
}
