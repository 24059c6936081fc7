//! The applications of a flow over the project's TCP in user space: the machines and applications of simulation.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use std::sync::atomic::Ordering;

use experiment::Side;
use experiment::application::Application;
use experiment::outcome::SendCounters;
use experiment::plan::{Group, Protocol};
use experiment::trace::Probe;
use foundation::{Duration, Instant, Streams};
use network::HostId;
use socket::pattern;
use transport::arq::StreamRange;
use transport::tcp::{Connection, StackKind, TcpConfig};

use super::application::{ApplicationRunner, WRONG_BYTES};
use super::context::{Stacks, TrialContext};
use super::flow::{EndSnapshot, Flow};
use crate::emulation::Emulation;
use crate::stack::{PORTS, StreamState, UserListener, UserStack, UserStream};
use stack::{Stack, StreamId};

/// Interval at which an end checks for the end of the trial.
const INTERVAL: Duration = Duration::from_millis(50);
/// Bytes per read or write.
const CHUNK: usize = 64 * 1024;

/// Whether a protocol uses the project's TCP.
pub(super) fn is_configured(config: &TcpConfig) -> bool {
    config.stack == Some(StackKind::Longfat)
}

/// Adds a stack to each host of a flow over the project's TCP.
pub(super) fn attach(emulation: &Emulation, groups: &[Group], secret: Streams) -> io::Result<Stacks> {
    let mut stacks = Stacks::new();
    for group in groups {
        if !matches!(&group.protocol, Protocol::Tcp(config) if is_configured(config)) {
            continue;
        }
        for host in group.pairs.iter().flat_map(|pair| [pair.from, pair.to]) {
            if stacks.contains_key(&host) {
                continue;
            }
            let port = emulation.attach(host, Some(PORTS))?;
            let secret = secret.component(&format!("stack/{}", host.0));
            let stack = UserStack::start(port, emulation.host_address(host), emulation.clock(), secret)?;
            stacks.insert(host, stack);
        }
    }
    Ok(stacks)
}

/// One end of a flow over a stream.
struct End<'a> {
    application: ApplicationRunner<'a>,
    written: u64,
    has_finished: bool,
    buffer: Vec<u8>,
}

impl<'a> End<'a> {
    fn new(context: &'a TrialContext<'a>, group: &Group, flow: &'a Flow, side: Side) -> Self {
        let [sender, receiver] = Application::of(group, flow.id.number, flow.id.size);
        let application = match side {
            Side::Sender => sender,
            Side::Receiver => receiver,
        };
        Self {
            application: ApplicationRunner::new(context, flow, side, application),
            written: 0,
            has_finished: false,
            buffer: vec![0; CHUNK],
        }
    }

    /// Runs the application until the flow or the trial ends.
    fn run(&mut self, stream: &UserStream) {
        stream.converse(|stack, id, stream| self.turn(stack, id, stream));
    }

    /// Starts the application before the first packet leaves.
    fn start(&mut self, stack: &mut Stack, id: StreamId) {
        self.application.act();
        self.write(stack, id);
    }

    fn turn(&mut self, stack: &mut Stack, id: StreamId, stream: StreamState) -> ControlFlow<(), Duration> {
        let clock = self.application.context.clock;
        if self.application.context.is_over() {
            self.report(stack, id, true);
            // Discard unsent data.
            stack.abort(clock.clock.now(), id);
            return ControlFlow::Break(());
        }
        self.read(stack, id);
        if stream.peer_has_finished {
            self.application.peer_finished();
        }
        self.application.act();
        self.write(stack, id);
        let is_over = stream.has_finished || stream.is_closed;
        self.report(stack, id, is_over);
        if is_over {
            let flow = self.application.flow;
            match stream.failure {
                Some(failure) => flow.fail(failure.to_string()),
                None if self.application.side == Side::Sender => flow.finished.store(true, Ordering::Relaxed),
                None => {}
            }
            return ControlFlow::Break(());
        }
        let next = self.application.acts_at().saturating_since(clock.now());
        ControlFlow::Continue(next.min(INTERVAL))
    }

    fn read(&mut self, stack: &mut Stack, id: StreamId) {
        let clock = self.application.context.clock.clock;
        loop {
            let count = stack.read(clock.now(), id, &mut self.buffer);
            if count == 0 {
                return;
            }
            if !self.application.read(&self.buffer[..count]) {
                self.application.flow.fail(WRONG_BYTES.into());
            }
        }
    }

    fn write(&mut self, stack: &mut Stack, id: StreamId) {
        let now = self.application.context.clock.clock.now();
        let pipe = &mut self.application.pipe;
        while pipe.waiting > 0 {
            let room = stack.connection(id).map_or(0, Connection::writable);
            // A write without room makes the stack report when there is room.
            let part = pipe.waiting.min(room).clamp(1, CHUNK as u64) as usize;
            let range = StreamRange {
                offset: self.written,
                length: part as u32,
            };
            pattern::fill(range, &mut self.buffer[..part]);
            let bytes = &self.buffer[..part];
            let taken = if part as u64 == pipe.waiting {
                stack.write(now, id, bytes)
            } else {
                stack.write_more(now, id, bytes)
            } as u64;
            if taken == 0 {
                return;
            }
            self.written += taken;
            pipe.waiting -= taken;
        }
        if pipe.finished && !std::mem::replace(&mut self.has_finished, true) {
            stack.finish(now, id);
        }
    }

    /// Reports the connection's counters to the flow.
    fn report(&mut self, stack: &Stack, id: StreamId, is_last: bool) {
        let Some(connection) = stack.connection(id) else {
            return;
        };
        let statistics = connection.statistics();
        let traced = self.application.flow.is_traced();
        let probe = Probe::of_tcp(connection).with_controller(traced.then(|| connection.controller()));
        let snapshot = EndSnapshot::new(SendCounters::of(statistics), probe);
        let start = self.application.context.clock.start;
        let trial_time = |at: Instant| Instant::ZERO + at.saturating_since(start);
        self.application.report(snapshot, statistics, trial_time, is_last);
    }
}

/// Listens at any port of a host.
pub(super) fn listen(stacks: &Stacks, host: HostId, config: &Arc<TcpConfig>) -> io::Result<UserListener> {
    let stack = stacks.get(&host).ok_or(io::ErrorKind::NotConnected)?;
    stack.listen(0, Arc::clone(config))
}

/// Opens the flow and runs its application until it finishes.
pub(super) fn open(
    context: &TrialContext<'_>,
    group: &Group,
    flow: &Flow,
    config: &TcpConfig,
    stack: &UserStack,
    to: std::net::SocketAddr,
) {
    let mut end = End::new(context, group, flow, Side::Sender);
    let opened = stack.open(to, config, |stack, id| {
        if group.records_rtt {
            stack.touch(id, Connection::record_round_trips);
        }
        // Data written before the SYN leaves may go with it.
        end.start(stack, id);
    });
    match opened {
        Ok(stream) => end.run(&stream),
        Err(error) => flow.fail(error.to_string()),
    }
    flow.end();
}

/// Serves the flow until it finishes or the trial ends.
pub(super) fn accept(context: &TrialContext<'_>, group: &Group, flow: &Flow, listener: UserListener) {
    let patience = StdDuration::from_nanos(INTERVAL.as_nanos());
    while !context.is_over() {
        match listener.accept(patience) {
            Ok(stream) => {
                drop(listener);
                return End::new(context, group, flow, Side::Receiver).run(&stream);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return flow.fail(error.to_string()),
        }
    }
}
