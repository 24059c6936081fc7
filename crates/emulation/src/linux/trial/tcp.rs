//! A flow over the kernel's TCP: its sockets, and the threads at its two ends.

use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as StdDuration;

use experiment::plan::Group;
use experiment::trace::Side;
use experiment::workload::WorkloadKind;
use kernel::TcpInfo;
use rustix::event::PollFlags;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::exchange::{CHUNK, patiently, send, wait_for, write};
use super::flow::{Flow, Look};
use super::info;
use super::multipath::Accounts;
use super::own::Stacks;
use super::pace::LOOK;
use super::requests;
use super::settings::KernelTcp;
use super::{TrialClock, fast_open};

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
    fn socket(&self) -> io::Result<Socket> {
        let protocol = match self.kernel.multipath {
            None => Protocol::TCP,
            Some(_) => Protocol::MPTCP,
        };
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
        // Asked for one that it does not list, the kernel might load a module that then stays.
        let name = &self.kernel.congestion;
        if !is_listed(name) {
            return Err(io::Error::other(no_controller(name)));
        }
        socket.set_tcp_congestion(name.as_bytes())?;
        socket.set_tcp_nodelay(self.kernel.no_delay)?;
        if self.kernel.segment > 0 {
            socket.set_tcp_mss(self.kernel.segment)?;
        }
        Ok(socket)
    }

    /// A listener at any port.
    pub(super) fn listen(&self, at: Ipv4Addr) -> io::Result<TcpListener> {
        let socket = self.socket()?;
        socket.bind(&SocketAddr::from((at, 0)).into())?;
        if self.kernel.fast_open {
            fast_open::serve(&socket)?;
        }
        socket.listen(8)?;
        socket.set_nonblocking(true)?;
        Ok(socket.into())
    }
}

/// What is wrong with a congestion controller that the kernel does not offer.
pub(super) fn no_controller(name: &str) -> String {
    format!("the kernel has no congestion controller {name:?}")
}

/// Whether the kernel offers a congestion controller.
pub(super) fn is_listed(name: &str) -> bool {
    let all = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    all.is_ok_and(|all| all.split_whitespace().any(|one| one == name))
}

/// The end that opens the flow, from its connection to its end.
pub(super) fn open(setting: &Setting<'_>, group: &Group, flow: &Flow, near: Ipv4Addr, to: SocketAddr) {
    if group.workload.kind == WorkloadKind::RequestResponse {
        return requests::ask(setting, group, flow, near, to);
    }
    run(setting, flow, connect_from(setting, None, to), |socket| {
        watch(flow, Side::Sender, socket);
        send(setting, group, flow, socket)
    });
}

/// Carries a flow over a connection by `carry`, and tells the flow how it ended.
pub(super) fn run(
    setting: &Setting<'_>,
    flow: &Flow,
    connected: io::Result<TcpStream>,
    carry: impl FnOnce(&mut TcpStream) -> io::Result<()>,
) {
    let result = connected.and_then(|mut socket| {
        let result = carry(&mut socket);
        leave(setting, flow, Side::Sender, &socket);
        result
    });
    if let Err(error) = result {
        flow.fail(error.to_string());
    }
    flow.over.store(true, Ordering::Relaxed);
}

/// An end has done its part.
fn leave(setting: &Setting<'_>, flow: &Flow, side: Side, socket: &TcpStream) {
    flow.leave(side);
    // Whatever is unsent when the trial is over is nobody's concern any more.
    if setting.is_over() {
        let _ = SockRef::from(socket).set_linger(Some(StdDuration::ZERO));
    }
}

/// From now on the kernel is asked for what it tells of this end.
fn watch(flow: &Flow, side: Side, socket: &TcpStream) {
    // A descriptor that cannot be had twice leaves the flow without counters, and its record says so by zeros.
    if let Ok(socket) = socket.try_clone() {
        let look = move || {
            let info = TcpInfo::of_socket(&socket).ok()?;
            Some(Look::new(info::sent(&info), info::probe(&info)))
        };
        flow.watch(side, Box::new(look));
    }
}

/// A connection that leaves from the address `from`, where one is given.
pub(super) fn connect_from(
    setting: &Setting<'_>,
    from: Option<Ipv4Addr>,
    to: SocketAddr,
) -> io::Result<TcpStream> {
    let socket = setting.socket()?;
    if let Some(from) = from {
        socket.bind(&SocketAddr::from((from, 0)).into())?;
    }
    if setting.kernel.fast_open {
        fast_open::defer(&socket)?;
    }
    socket.connect_timeout(&to.into(), CONNECT)?;
    socket.set_read_timeout(Some(LOOK))?;
    socket.set_write_timeout(Some(LOOK))?;
    Ok(socket.into())
}

/// Waits for a connection, as long as a thread waits before it looks whether the trial is over.
pub(super) fn next_connection(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    wait_for(listener, PollFlags::IN)?;
    listener.accept()
}

/// The end that the flow goes to.
pub(super) fn accept(setting: &Setting<'_>, group: &Group, flow: &Flow, listener: &TcpListener) {
    if group.workload.kind == WorkloadKind::RequestResponse && setting.kernel.multipath.is_none() {
        return requests::answer(setting, group, flow, listener);
    }
    let Some(Ok((mut socket, _))) = patiently(setting, || next_connection(listener)) else {
        return;
    };
    let ready = socket
        .set_nonblocking(false)
        .and_then(|()| socket.set_read_timeout(Some(LOOK)))
        .and_then(|()| socket.set_write_timeout(Some(LOOK)));
    if ready.is_err() {
        return;
    }
    let answers = group.workload.kind == WorkloadKind::RequestResponse;
    if answers {
        watch(flow, Side::Receiver, &socket);
    }
    let (request, response) = group.workload.exchange();
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
    leave(setting, flow, Side::Receiver, &socket);
}
