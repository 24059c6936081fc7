//! The applications of a flow over the project's TCP as a stack of the hosts: the machine and the applications are the
//! very ones that run in simulation.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use experiment::application::{Application, Notice, Progress, Stream};
use experiment::outcome::Sent;
use experiment::plan::{Group, Protocol};
use experiment::trace::{Probe, Side};
use foundation::{Duration, Instant, Streams};
use network::HostId;
use socket::pattern;
use transport::arq::StreamRange;
use transport::tcp::{Connection, StackKind, TcpConfig};

use super::flow::{Flow, Look};
use super::tcp::Setting;
use crate::Emulation;
use crate::linux::stack::{PORTS, Told, UserListener, UserStack, UserStream};
use crate::stack::{Stack, StreamId};

/// How often an end looks whether the trial is over.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes written or read at once.
const CHUNK: usize = 64 * 1024;

/// The stacks of the hosts at which the project's TCP runs.
pub(super) type Stacks = BTreeMap<HostId, UserStack>;

/// Whether a protocol asks for the project's TCP.
pub(super) fn is_asked_for(config: &TcpConfig) -> bool {
    config.stack == Some(StackKind::Longfat)
}

/// A stack beside the kernel of each host that the project's TCP of a trial needs one at.
pub(super) fn attach(emulation: &Emulation, groups: &[Group], secret: Streams) -> io::Result<Stacks> {
    let mut stacks = Stacks::new();
    for group in groups {
        if !matches!(&group.protocol, Protocol::Tcp(config) if is_asked_for(config)) {
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

/// What the application has written and the connection has not taken yet.
#[derive(Debug, Default)]
struct Pipe {
    waiting: u64,
    finished: bool,
}

impl Stream for Pipe {
    fn write(&mut self, _: Instant, bytes: u64) {
        self.waiting += bytes;
    }

    fn finish(&mut self, _: Instant) {
        self.finished = true;
    }
}

/// One end of a flow, on top of a stream.
struct End<'a> {
    setting: &'a Setting<'a>,
    flow: &'a Flow,
    side: Side,
    application: Application,
    progress: Progress,
    pipe: Pipe,
    written: u64,
    has_finished: bool,
    received: u64,
    peer_has_finished: bool,
    /// Whether the round trips from before measuring began were told.
    has_marked: bool,
    buffer: Vec<u8>,
}

impl<'a> End<'a> {
    fn new(setting: &'a Setting<'a>, group: &Group, flow: &'a Flow, side: Side) -> Self {
        let [sender, receiver] = Application::of(group, flow.id.number, flow.id.size);
        Self {
            setting,
            flow,
            side,
            application: match side {
                Side::Sender => sender,
                Side::Receiver => receiver,
            },
            progress: Progress::default(),
            pipe: Pipe::default(),
            written: 0,
            has_finished: false,
            received: 0,
            peer_has_finished: false,
            has_marked: false,
            buffer: vec![0; CHUNK],
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

    /// Runs the application over the stream to the end of the flow, or of the trial.
    fn run(&mut self, stream: &UserStream) {
        if self.side == Side::Sender {
            self.application.start(self.setting.clock.now(), &mut self.pipe);
        }
        stream.converse(|stack, id, told| self.turn(stack, id, told));
    }

    fn turn(&mut self, stack: &mut Stack, id: StreamId, told: Told) -> ControlFlow<(), Duration> {
        let clock = self.setting.clock;
        if self.setting.is_over() {
            self.look(stack, id, true);
            // Whatever is unsent is nobody's concern any more.
            stack.abort(clock.clock.now(), id);
            return ControlFlow::Break(());
        }
        self.read(stack, id);
        if told.peer_has_finished && !std::mem::replace(&mut self.peer_has_finished, true) {
            self.notice(Notice::PeerFinished);
        }
        if self.application.timeout() <= clock.now() {
            self.application.handle_timeout(clock.now(), &mut self.pipe);
        }
        self.write(stack, id);
        let is_over = told.has_finished || told.is_closed;
        self.look(stack, id, is_over);
        if is_over {
            match told.failure {
                Some(failure) => self.flow.fail(failure.to_string()),
                None if self.side == Side::Sender => self.flow.finished.store(true, Ordering::Relaxed),
                None => {}
            }
            return ControlFlow::Break(());
        }
        let next = self.application.timeout().saturating_since(clock.now());
        ControlFlow::Continue(next.min(LOOK))
    }

    fn read(&mut self, stack: &mut Stack, id: StreamId) {
        let clock = self.setting.clock;
        loop {
            let count = stack.read(clock.clock.now(), id, &mut self.buffer);
            if count == 0 {
                return;
            }
            if !pattern::matches(self.received, &self.buffer[..count]) {
                self.flow
                    .fail("the bytes that arrived are not those that were sent".into());
            }
            self.received += count as u64;
            let total = self.flow.read(1 - self.side as usize, count as u64);
            if self.side == Side::Receiver && Some(total) == self.flow.id.size {
                self.flow.received_at.note(clock.now());
            }
            self.notice(Notice::Read(count as u64));
        }
    }

    fn write(&mut self, stack: &mut Stack, id: StreamId) {
        let now = self.setting.clock.clock.now();
        while self.pipe.waiting > 0 {
            let room = stack.connection(id).map_or(0, Connection::writable);
            // Where there is no room one byte is written in vain, so that the stack tells when there is.
            let part = self.pipe.waiting.min(room).clamp(1, CHUNK as u64) as usize;
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
            self.pipe.waiting -= taken;
        }
        if self.pipe.finished && !std::mem::replace(&mut self.has_finished, true) {
            stack.finish(now, id);
        }
    }

    /// Tells the flow what the connection counts.
    fn look(&mut self, stack: &Stack, id: StreamId, is_last: bool) {
        let Some(connection) = stack.connection(id) else {
            return;
        };
        let statistics = connection.statistics();
        let look = Look {
            sent: Sent::of(statistics),
            probe: Probe::of_tcp(connection),
        };
        self.flow.tell(self.side, look);
        if self.side == Side::Receiver {
            return;
        }
        let start = self.setting.clock.start;
        let told = |at: Instant| Instant::ZERO + at.saturating_since(start);
        if let Some(at) = statistics.first_data_at {
            self.flow.first_data_at.note(told(at));
        }
        if let Some(at) = statistics.last_acknowledged_at {
            self.flow.last_acknowledged_at.move_to(told(at));
        }
        // Histograms are large: they are told when measuring begins, and at the end.
        if let Some(rtt) = &statistics.rtt {
            if self.flow.marked.load(Ordering::Relaxed) && !std::mem::replace(&mut self.has_marked, true) {
                self.flow.tell_earlier_round_trips(rtt);
            }
            if is_last {
                self.flow.tell_round_trips(rtt);
            }
        }
    }
}

/// Listens at any port of a host.
pub(super) fn listen(stacks: &Stacks, host: HostId, config: &Arc<TcpConfig>) -> io::Result<UserListener> {
    let stack = stacks.get(&host).ok_or(io::ErrorKind::NotConnected)?;
    stack.listen(0, Arc::clone(config))
}

/// Opens the flow and runs its application to the end.
pub(super) fn open(
    setting: &Setting<'_>,
    group: &Group,
    flow: &Flow,
    config: &TcpConfig,
    stack: &UserStack,
    to: std::net::SocketAddr,
) {
    let opened = stack.open(to, config, |connection| {
        if group.records_rtt {
            connection.record_round_trips();
        }
    });
    match opened {
        Ok(stream) => End::new(setting, group, flow, Side::Sender).run(&stream),
        Err(error) => flow.fail(error.to_string()),
    }
    flow.over.store(true, Ordering::Relaxed);
}

/// Serves the flow until it, or the trial, is over.
pub(super) fn accept(setting: &Setting<'_>, group: &Group, flow: &Flow, listener: UserListener) {
    let patience = StdDuration::from_nanos(LOOK.as_nanos());
    while !setting.is_over() {
        match listener.accept(Some(patience)) {
            Ok(stream) => {
                drop(listener);
                return End::new(setting, group, flow, Side::Receiver).run(&stream);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return flow.fail(error.to_string()),
        }
    }
}
