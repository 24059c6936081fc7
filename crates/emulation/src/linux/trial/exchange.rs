//! What a workload does over a socket of the kernel: the same as in simulation.

use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Duration as StdDuration;

use experiment::outcome::Transaction;
use experiment::plan::Group;
use experiment::workload::WorkloadKind;
use kernel::TcpInfo;
use kernel::mptcp::ConnectionInfo;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send as send_to};

use super::flow::Flow;
use super::pace::{LOOK, Pace, wait_until};
use super::tcp::Setting;

/// Bytes written or read at once.
pub(super) const CHUNK: usize = 64 * 1024;

/// Waits until `act` gives something else than "would block", or the trial is over.
pub(super) fn patiently<T>(
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

/// Sends what the workload says, and ends the stream.
pub(super) fn send(
    setting: &Setting<'_>,
    group: &Group,
    flow: &Flow,
    socket: &mut TcpStream,
) -> std::io::Result<()> {
    match (group.workload.kind, group.workload.rate) {
        (WorkloadKind::File | WorkloadKind::Arrivals, _) => {
            write(setting, flow, socket, flow.id.size.unwrap_or(0))?;
            finish(setting, flow, socket)
        }
        (WorkloadKind::Bulk, None) => write(setting, flow, socket, u64::MAX),
        (WorkloadKind::Bulk | WorkloadKind::OnOff, Some(rate)) => {
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
        (WorkloadKind::OnOff, None) => Ok(()),
        (WorkloadKind::RequestResponse, _) => ask(setting, group, flow, socket),
    }
}

/// Writes so many bytes, or as many as the time of the trial allows.
pub(super) fn write(
    setting: &Setting<'_>,
    flow: &Flow,
    socket: &mut TcpStream,
    mut bytes: u64,
) -> std::io::Result<()> {
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
            // The latter from a connection that leaves with these bytes.
            Err(Errno::AGAIN | Errno::INPROGRESS) => {
                match patiently(setting, || wait_for(socket, PollFlags::OUT)) {
                    None => return Ok(()),
                    Some(result) => result?,
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Waits until the kernel says that there is room, or something to take, as it wakes a call that blocks. (A write that gave
/// up after a while and tried again would find room sooner, and so change the rhythm of the flow.)
pub(super) fn wait_for(socket: &impl AsFd, what: PollFlags) -> std::io::Result<()> {
    let patience = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(LOOK.subsec_nanos()),
    };
    let mut asked = [PollFd::new(socket, what)];
    if poll(&mut asked, Some(&patience))? == 0 {
        return Err(ErrorKind::WouldBlock.into());
    }
    Ok(())
}

/// Ends the stream. Linux would take back a connection whose SYN, though it has left with data, is not answered yet.
pub(super) fn end(setting: &Setting<'_>, socket: &TcpStream) -> std::io::Result<()> {
    if setting.kernel.fast_open
        && let Some(result) = patiently(setting, || wait_for(socket, PollFlags::OUT))
    {
        result?;
    }
    socket.shutdown(Shutdown::Write)
}

/// Ends the stream, and waits until the peer has ended its own.
fn finish(setting: &Setting<'_>, flow: &Flow, socket: &mut TcpStream) -> std::io::Result<()> {
    if setting.kernel.multipath.is_some() {
        // Linux lets no subflow join a connection that this end has closed: it is closed when all has arrived. The
        // DATA_FIN then goes alone, and its acknowledgement is not the data's.
        wait_for_acknowledgement(setting, flow, socket);
        socket.shutdown(Shutdown::Write)?;
    } else {
        end(setting, socket)?;
        wait_for_acknowledgement(setting, flow, socket);
    }
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
            None => TcpInfo::of_socket(socket).map(|info| info.unacknowledged().into()),
            Some(_) => ConnectionInfo::unacknowledged(socket).map(|left| left.unwrap_or(0)),
        };
        match left {
            Ok(1..) => std::thread::sleep(StdDuration::from_micros(200)),
            _ => break,
        }
    }
    flow.last_acknowledged_at.move_to(setting.clock.now());
}

/// Reads a whole response; false where the trial is over before.
pub(super) fn read_response(
    setting: &Setting<'_>,
    flow: &Flow,
    socket: &mut TcpStream,
    mut bytes: u64,
    buffer: &mut [u8],
) -> std::io::Result<bool> {
    while bytes > 0 {
        match patiently(setting, || socket.read(buffer)) {
            None => return Ok(false),
            Some(result) => match result? as u64 {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                part => {
                    flow.read(1, part);
                    bytes = bytes.saturating_sub(part);
                }
            },
        }
    }
    Ok(true)
}

/// Requests and their answers, one after the other.
fn ask(setting: &Setting<'_>, group: &Group, flow: &Flow, socket: &mut TcpStream) -> std::io::Result<()> {
    let (request, response) = group.workload.exchange();
    let workload = &group.workload;
    let requests = if workload.reconnect == Some(true) {
        1
    } else {
        workload.requests.unwrap_or(1)
    };
    let mut buffer = vec![0; CHUNK];
    for number in 1..=requests {
        let requested_at = setting.clock.now();
        write(setting, flow, socket, request)?;
        if number == requests {
            socket.shutdown(Shutdown::Write)?;
        }
        if !read_response(setting, flow, socket, response, &mut buffer)? {
            return Ok(());
        }
        let responded_at = setting.clock.now();
        flow.answered(Transaction {
            requested_at,
            responded_at,
            on_wire: None,
        });
        flow.last_acknowledged_at.move_to(responded_at);
        if number < requests && !wait_until(setting, responded_at + workload.think.unwrap_or_default()) {
            return Ok(());
        }
    }
    flow.finished.store(true, Ordering::Relaxed);
    Ok(())
}
