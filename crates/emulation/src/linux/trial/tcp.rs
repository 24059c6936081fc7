//! The applications of a flow over the kernel's TCP: the same workloads as in simulation, over sockets.

use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as StdDuration;

use experiment::outcome::Transaction;
use experiment::plan::Group;
use experiment::random::exponential;
use experiment::trace::Side;
use experiment::workload::Kind;
use foundation::{Duration, Instant};
use kernel::mptcp::Connection;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send as send_to};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::TrialClock;
use super::flow::{Flow, Look};
use super::info::Info;
use super::multipath::Accounts;
use super::own::Stacks;
use super::settings::KernelTcp;

/// Bytes written or read at once.
const CHUNK: usize = 64 * 1024;
/// How often a thread that waits for the kernel looks whether the trial is over.
const LOOK: StdDuration = StdDuration::from_millis(50);
/// A connection that is not set up after so long has failed, as Linux has it after six retransmissions of the SYN.
const CONNECT: StdDuration = StdDuration::from_secs(127);

/// What the threads of a trial go by.
pub(super) struct Setting<'a> {
    pub clock: TrialClock,
    pub kernel: &'a KernelTcp,
    /// The project's TCP at the hosts that need it.
    pub stacks: &'a Stacks,
    /// What hosts know of their paths.
    pub accounts: &'a Accounts,
    /// Set when the trial is over: whoever sees it leaves.
    pub stop: &'a AtomicBool,
}

impl Setting<'_> {
    pub(super) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// A socket with what the study asks for; made in the namespace of the calling thread.
    fn socket(&self) -> std::io::Result<Socket> {
        let protocol = match self.kernel.multipath {
            None => Protocol::TCP,
            Some(_) => Protocol::MPTCP,
        };
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
        // Asked for one that it does not list, the kernel might load a module that then stays.
        let name = &self.kernel.congestion;
        if !listed(name) {
            return Err(std::io::Error::other(format!(
                "the kernel has no congestion controller {name:?}"
            )));
        }
        socket.set_tcp_congestion(name.as_bytes())?;
        socket.set_tcp_nodelay(self.kernel.no_delay)?;
        if self.kernel.segment > 0 {
            socket.set_tcp_mss(self.kernel.segment)?;
        }
        Ok(socket)
    }

    /// A listener at any port.
    pub(super) fn listen(&self, at: Ipv4Addr) -> std::io::Result<TcpListener> {
        let socket = self.socket()?;
        socket.bind(&SocketAddr::from((at, 0)).into())?;
        socket.listen(8)?;
        socket.set_nonblocking(true)?;
        Ok(socket.into())
    }
}

/// Whether the kernel offers a congestion controller.
fn listed(name: &str) -> bool {
    let all = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    all.is_ok_and(|all| all.split_whitespace().any(|one| one == name))
}

/// Waits until `act` gives something else than "would block", or the trial is over.
fn patiently<T>(
    setting: &Setting<'_>,
    mut act: impl FnMut() -> std::io::Result<T>,
) -> Option<std::io::Result<T>> {
    loop {
        if setting.is_over() {
            return None;
        }
        match act() {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            result => return Some(result),
        }
    }
}

/// The end that opens the flow, from its connection to its end.
pub(super) fn open(setting: &Setting<'_>, group: &Group, flow: &Flow, to: SocketAddr) {
    let result = connect_from(setting, None, to).and_then(|mut socket| {
        watch(flow, Side::Sender, &socket);
        let result = send(setting, group, flow, &mut socket);
        flow.leave(Side::Sender);
        // Whatever is unsent when the trial is over is nobody's concern any more.
        if setting.is_over() {
            let _ = SockRef::from(&socket).set_linger(Some(StdDuration::ZERO));
        }
        result
    });
    if let Err(error) = result {
        flow.fail(error.to_string());
    }
    flow.over.store(true, Ordering::Relaxed);
}

/// From now on the kernel is asked for what it tells of this end.
fn watch(flow: &Flow, side: Side, socket: &TcpStream) {
    // A descriptor that cannot be had twice leaves the flow without counters, and its record says so by zeros.
    if let Ok(socket) = socket.try_clone() {
        let look = move || {
            let info = Info::of(&socket).ok()?;
            Some(Look {
                sent: info.sent(),
                probe: info.probe(),
            })
        };
        flow.watch(side, Box::new(look));
    }
}

/// A connection that leaves from the address `from`, where one is given.
pub(super) fn connect_from(
    setting: &Setting<'_>,
    from: Option<Ipv4Addr>,
    to: SocketAddr,
) -> std::io::Result<TcpStream> {
    let socket = setting.socket()?;
    if let Some(from) = from {
        socket.bind(&SocketAddr::from((from, 0)).into())?;
    }
    socket.connect_timeout(&to.into(), CONNECT)?;
    socket.set_read_timeout(Some(LOOK))?;
    socket.set_write_timeout(Some(LOOK))?;
    Ok(socket.into())
}

/// Sends what the workload says, and ends the stream.
pub(super) fn send(
    setting: &Setting<'_>,
    group: &Group,
    flow: &Flow,
    socket: &mut TcpStream,
) -> std::io::Result<()> {
    match (group.workload.kind, group.workload.rate) {
        (Kind::File | Kind::Arrivals, _) => {
            write(setting, flow, socket, flow.id.size.unwrap_or(0))?;
            finish(setting, flow, socket)
        }
        (Kind::Bulk, None) => write(setting, flow, socket, u64::MAX),
        (Kind::Bulk | Kind::OnOff, Some(rate)) => {
            let chunk = group.payload();
            let gap = rate.time_for(chunk);
            for at in Pace::of(group, flow.id.number, setting.clock.now(), gap) {
                if !wait_until(setting, at) {
                    return Ok(());
                }
                write(setting, flow, socket, chunk)?;
            }
            finish(setting, flow, socket)
        }
        (Kind::OnOff, None) => Ok(()),
        (Kind::RequestResponse, _) => ask(setting, group, flow, socket),
    }
}

/// Times at which a source of constant rate sends, with its pauses.
pub(super) struct Pace {
    next: Instant,
    gap: Duration,
    stop_at: Instant,
    pauses: Option<(Duration, Duration, foundation::Generator, Instant)>,
}

impl Pace {
    pub(super) fn of(group: &Group, flow: u32, now: Instant, gap: Duration) -> Self {
        let second = Duration::from_secs(1);
        let workload = &group.workload;
        let pauses = (workload.kind == Kind::OnOff).then(|| {
            let (on, off) = (workload.on.unwrap_or(second), workload.off.unwrap_or(second));
            // As in simulation, so that both worlds' sources are on and off at the same times.
            let mut random = group.streams.stream(&format!("pauses/{flow}"));
            let until = now + exponential(&mut random, on);
            (on, off, random, until)
        });
        Self {
            next: now,
            gap,
            stop_at: group.stop_at(),
            pauses,
        }
    }
}

impl Iterator for Pace {
    type Item = Instant;

    fn next(&mut self) -> Option<Instant> {
        if let Some((on, off, random, until)) = &mut self.pauses {
            while self.next >= *until {
                self.next = *until + exponential(random, *off);
                *until = self.next + exponential(random, *on);
            }
        }
        let at = self.next;
        self.next += self.gap;
        (at < self.stop_at).then_some(at)
    }
}

/// Sleeps until a time; false where the trial is over before.
pub(super) fn wait_until(setting: &Setting<'_>, at: Instant) -> bool {
    loop {
        let left = at.saturating_since(setting.clock.now());
        if setting.is_over() {
            return false;
        }
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(StdDuration::from_nanos(left.as_nanos()).min(LOOK));
    }
}

/// Writes so many bytes, or as many as the time of the trial allows.
fn write(setting: &Setting<'_>, flow: &Flow, socket: &mut TcpStream, mut bytes: u64) -> std::io::Result<()> {
    let chunk = [0_u8; CHUNK];
    flow.first_data_at.note(setting.clock.now());
    while bytes > 0 {
        let part = CHUNK.min(usize::try_from(bytes).unwrap_or(CHUNK));
        match send_to(
            &*socket,
            &chunk[..part],
            SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
        ) {
            Ok(taken) => bytes -= taken as u64,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => match patiently(setting, || wait_for_room(socket)) {
                None => return Ok(()),
                Some(result) => result?,
            },
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Waits until the kernel says that there is room, as it wakes a write that blocks. (A write that gave up after a while and
/// tried again would find room sooner, and so change the rhythm of the flow.)
fn wait_for_room(socket: &TcpStream) -> std::io::Result<()> {
    let patience = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(LOOK.subsec_nanos()),
    };
    let mut asked = [PollFd::new(socket, PollFlags::OUT)];
    if poll(&mut asked, Some(&patience))? == 0 {
        return Err(ErrorKind::WouldBlock.into());
    }
    Ok(())
}

/// Ends the stream, and waits until the peer has ended its own.
fn finish(setting: &Setting<'_>, flow: &Flow, socket: &mut TcpStream) -> std::io::Result<()> {
    // Linux lets no subflow join a connection that this end has closed: it is closed when all has arrived.
    if setting.kernel.multipath.is_some() {
        wait_for_acknowledgement(setting, flow, socket);
    }
    socket.shutdown(Shutdown::Write)?;
    wait_for_acknowledgement(setting, flow, socket);
    let mut byte = [0];
    match patiently(setting, || socket.read(&mut byte)) {
        None => Ok(()),
        Some(result) => {
            result?;
            flow.finished.store(true, Ordering::Relaxed);
            Ok(())
        }
    }
}

/// Notes when the last byte (and the FIN behind it) was acknowledged; the kernel tells nobody, so it is asked.
fn wait_for_acknowledgement(setting: &Setting<'_>, flow: &Flow, socket: &TcpStream) {
    while !setting.is_over() {
        let left = match setting.kernel.multipath {
            None => Info::of(socket).map(|info| info.unacknowledged()),
            Some(_) => Connection::unacknowledged(socket).map(|left| left.unwrap_or(0)),
        };
        match left {
            Ok(1..) => std::thread::sleep(StdDuration::from_micros(200)),
            _ => break,
        }
    }
    flow.last_acknowledged_at.move_to(setting.clock.now());
}

/// Requests and their answers, one after the other.
fn ask(setting: &Setting<'_>, group: &Group, flow: &Flow, socket: &mut TcpStream) -> std::io::Result<()> {
    let (request, response) = sizes(group);
    let workload = &group.workload;
    let requests = if workload.reconnect == Some(true) {
        1
    } else {
        workload.requests.unwrap_or(1)
    };
    let mut buffer = vec![0; CHUNK];
    for number in 1..=requests {
        let asked_at = setting.clock.now();
        write(setting, flow, socket, request)?;
        if number == requests {
            socket.shutdown(Shutdown::Write)?;
        }
        let mut left = response;
        while left > 0 {
            match patiently(setting, || socket.read(&mut buffer)) {
                None => return Ok(()),
                Some(result) => match result? as u64 {
                    0 => return Err(ErrorKind::UnexpectedEof.into()),
                    bytes => {
                        flow.read(1, bytes);
                        left = left.saturating_sub(bytes);
                    }
                },
            }
        }
        let answered_at = setting.clock.now();
        flow.answered(Transaction {
            asked_at,
            answered_at,
        });
        flow.last_acknowledged_at.move_to(answered_at);
        if number < requests && !wait_until(setting, answered_at + workload.think.unwrap_or_default()) {
            return Ok(());
        }
    }
    flow.finished.store(true, Ordering::Relaxed);
    Ok(())
}

fn sizes(group: &Group) -> (u64, u64) {
    let bytes = |size: Option<foundation::Size>, default| size.map_or(default, foundation::Size::bytes);
    (
        bytes(group.workload.request_size, 100),
        bytes(group.workload.response_size, 10_000),
    )
}

/// The end that the flow goes to.
pub(super) fn accept(setting: &Setting<'_>, group: &Group, flow: &Flow, listener: &TcpListener) {
    let accepted = patiently(setting, || {
        let result = listener.accept();
        if result.is_err() {
            std::thread::sleep(StdDuration::from_micros(500));
        }
        result
    });
    let Some(Ok((mut socket, _))) = accepted else {
        return;
    };
    let ready = socket
        .set_nonblocking(false)
        .and_then(|()| socket.set_read_timeout(Some(LOOK)))
        .and_then(|()| socket.set_write_timeout(Some(LOOK)));
    if ready.is_err() {
        return;
    }
    let answers = group.workload.kind == Kind::RequestResponse;
    if answers {
        watch(flow, Side::Receiver, &socket);
    }
    let (request, response) = sizes(group);
    let mut buffer = vec![0; 4 * CHUNK];
    let mut unanswered = 0;
    while let Some(Ok(bytes @ 1..)) = patiently(setting, || socket.read(&mut buffer)) {
        let total = flow.read(0, bytes as u64);
        if Some(total) == flow.id.size {
            flow.received_at.note(setting.clock.now());
        }
        unanswered += bytes as u64;
        while answers && unanswered >= request {
            unanswered -= request;
            if write(setting, flow, &mut socket, response).is_err() {
                flow.leave(Side::Receiver);
                return;
            }
        }
    }
    flow.leave(Side::Receiver);
    if setting.is_over() {
        let _ = SockRef::from(&socket).set_linger(Some(StdDuration::ZERO));
    }
}
