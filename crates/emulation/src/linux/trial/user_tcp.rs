//! The applications of a flow over the project's TCP as a stack of the hosts: the machine and the applications are the
//! very ones that run in simulation.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use std::sync::atomic::Ordering;

use experiment::application::Application;
use experiment::outcome::SendCounters;
use experiment::plan::{Group, Protocol};
use experiment::trace::{Probe, Side};
use foundation::{Duration, Instant, Streams};
use network::HostId;
use socket::pattern;
use transport::arq::StreamRange;
use transport::tcp::{Connection, StackKind, TcpConfig};

use super::application::{ApplicationRunner, WRONG_BYTES};
use super::context::{Stacks, TrialContext};
use super::flow::{EndSnapshot, Flow};
use crate::linux::emulation::Emulation;
use crate::linux::stack::{PORTS, StreamState, UserListener, UserStack, UserStream};
use stack::{Stack, StreamId};

/// How often an end looks whether the trial is over.
const INTERVAL: Duration = Duration::from_millis(50);
/// Bytes written or read at once.
const CHUNK: usize = 64 * 1024;

/// Whether a protocol asks for the project's TCP.
pub(super) fn is_configured(config: &TcpConfig) -> bool {
    config.stack == Some(StackKind::Longfat)
}

/// A stack beside the kernel of each host that the project's TCP of a trial needs one at.
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
            let port = emulation.attach_beside(host, PORTS)?;
            let secret = secret.component(&format!("stack/{}", host.0));
            let stack = UserStack::start(port, emulation.host_address(host), emulation.clock(), secret)?;
            stacks.insert(host, stack);
        }
    }
    Ok(stacks)
}

/// One end of a flow, on top of a stream.
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

    /// Runs the application over the stream to the end of the flow, or of the trial.
    fn run(&mut self, stream: &UserStream) {
        stream.converse(|stack, id, stream| self.turn(stack, id, stream));
    }

    /// Lets the application begin before anything has left.
    fn begin(&mut self, stack: &mut Stack, id: StreamId) {
        self.application.act();
        self.write(stack, id);
    }

    fn turn(&mut self, stack: &mut Stack, id: StreamId, stream: StreamState) -> ControlFlow<(), Duration> {
        let clock = self.application.context.clock;
        if self.application.context.is_over() {
            self.look(stack, id, true);
            // Whatever is unsent is nobody's concern any more.
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
        self.look(stack, id, is_over);
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
            // Where there is no room one byte is written in vain, so that the stack tells when there is.
            let part = pipe.waiting.min(room).clamp(1, CHUNK as u64) as usize;
            let range = StreamRange {
                offset: self.written,
                length: part as u32,
            };
            pattern::fill(range, &mut self.buffer[..part]);
            let taken = stack.write(now, id, &self.buffer[..part]) as u64;
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

    /// Tells the flow what the connection counts.
    fn look(&mut self, stack: &Stack, id: StreamId, is_last: bool) {
        let Some(connection) = stack.connection(id) else {
            return;
        };
        let statistics = connection.statistics();
        let look = EndSnapshot::new(SendCounters::of(statistics), Probe::of_tcp(connection));
        let start = self.application.context.clock.start;
        let told = |at: Instant| Instant::ZERO + at.saturating_since(start);
        self.application.tell(look, statistics, told, is_last);
    }
}

/// Listens at any port of a host.
pub(super) fn listen(stacks: &Stacks, host: HostId, config: &Arc<TcpConfig>) -> io::Result<UserListener> {
    let stack = stacks.get(&host).ok_or(io::ErrorKind::NotConnected)?;
    stack.listen(0, Arc::clone(config))
}

/// Opens the flow and runs its application to the end.
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
        // TraceEventKind is written before the SYN leaves may go with it.
        end.begin(stack, id);
    });
    match opened {
        Ok(stream) => end.run(&stream),
        Err(error) => flow.fail(error.to_string()),
    }
    flow.over.store(true, Ordering::Relaxed);
}

/// Serves the flow until it, or the trial, is over.
pub(super) fn accept(context: &TrialContext<'_>, group: &Group, flow: &Flow, listener: UserListener) {
    let patience = StdDuration::from_nanos(INTERVAL.as_nanos());
    while !context.is_over() {
        match listener.accept(Some(patience)) {
            Ok(stream) => {
                drop(listener);
                return End::new(context, group, flow, Side::Receiver).run(&stream);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return flow.fail(error.to_string()),
        }
    }
}
