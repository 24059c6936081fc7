//! The workloads over a kernel socket, as in simulation.

use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::time::Duration as StdDuration;

use experiment::outcome::Transaction;
use experiment::plan::Group;
use experiment::workload::WorkloadKind;
use kernel::TcpInfo;
use kernel::mptcp::ConnectionInfo;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{SendFlags, send as send_to};

use super::context::TrialContext;
use super::flow::Flow;
use super::pace::Pace;
use super::waiting::{sleep_until, until_ready, wait_for, wait_for_request};

/// Bytes per read or write.
pub(super) const CHUNK: usize = 64 * 1024;

/// Sends the workload's data and closes the stream.
pub(super) fn send(
    context: &TrialContext<'_>,
    group: &Group,
    flow: &Flow,
    socket: &mut TcpStream,
) -> std::io::Result<()> {
    match (group.workload.kind, group.workload.rate) {
        (WorkloadKind::File | WorkloadKind::Arrivals, _) => {
            write(context, flow, socket, flow.id.size.unwrap_or(0))?;
            finish(context, flow, socket)
        }
        (WorkloadKind::Bulk, None) => write(context, flow, socket, u64::MAX),
        (WorkloadKind::Bulk | WorkloadKind::OnOff, Some(rate)) => {
            let chunk = group.payload();
            let gap = rate.time_for(chunk);
            for at in Pace::of(group, flow.id.number, context.clock.now(), gap) {
                if !sleep_until(context, at) {
                    return Ok(());
                }
                write(context, flow, socket, chunk)?;
            }
            finish(context, flow, socket)
        }
        // Validation requires a rate, and this world refuses all-reduces, web pages and frames.
        (WorkloadKind::OnOff, None)
        | (WorkloadKind::AllReduce | WorkloadKind::WebPage | WorkloadKind::Frames, _) => Ok(()),
        (WorkloadKind::RequestResponse, _) => send_requests(context, group, flow, socket),
    }
}

/// Writes `bytes` bytes, or as many as the duration of the trial allows, to the kernel as one write: parts before the last
/// one state that more follows (`MSG_MORE`), or each would end with a small segment, and Nagle's algorithm hold back the last.
pub(super) fn write(
    context: &TrialContext<'_>,
    flow: &Flow,
    socket: &mut TcpStream,
    mut bytes: u64,
) -> std::io::Result<()> {
    let chunk = [0_u8; CHUNK];
    flow.first_data_at.note(context.clock.now());
    while bytes > 0 {
        let part = CHUNK.min(usize::try_from(bytes).unwrap_or(CHUNK));
        let mut flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        flags.set(SendFlags::MORE, bytes > part as u64);
        match send_to(&*socket, &chunk[..part], flags) {
            Ok(taken) => bytes -= taken as u64,
            Err(Errno::INTR) => {}
            // EINPROGRESS: the SYN left with these bytes.
            Err(Errno::AGAIN | Errno::INPROGRESS) => {
                match until_ready(context, || wait_for(socket, PollFlags::OUT)) {
                    None => return Ok(()),
                    Some(result) => result?,
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Closes the sending direction. While a SYN with data is unanswered, Linux would cancel the connection.
pub(super) fn end(context: &TrialContext<'_>, socket: &TcpStream) -> std::io::Result<()> {
    if context.kernel.fast_open
        && let Some(result) = until_ready(context, || wait_for(socket, PollFlags::OUT))
    {
        result?;
    }
    socket.shutdown(Shutdown::Write)
}

/// Closes the stream and waits until the peer has closed its own.
fn finish(context: &TrialContext<'_>, flow: &Flow, socket: &mut TcpStream) -> std::io::Result<()> {
    if context.kernel.multipath.is_some() {
        // Linux refuses subflows of a closed connection, so all data must arrive first. The DATA_FIN then goes alone,
        // and its acknowledgement is not that of the data.
        wait_for_acknowledgement(context, flow, socket);
        socket.shutdown(Shutdown::Write)?;
    } else {
        end(context, socket)?;
        wait_for_acknowledgement(context, flow, socket);
    }
    let mut byte = [0];
    match until_ready(context, || socket.read(&mut byte)) {
        None => Ok(()),
        Some(result) => {
            result?;
            flow.finished.store(true, Ordering::Relaxed);
            Ok(())
        }
    }
}

/// Records when the last byte and the FIN were acknowledged. The kernel has no event for this, so the thread polls.
fn wait_for_acknowledgement(context: &TrialContext<'_>, flow: &Flow, socket: &TcpStream) {
    while !context.is_over() {
        let left = match context.kernel.multipath {
            None => TcpInfo::of_socket(socket).map(|info| info.unacknowledged().into()),
            Some(_) => ConnectionInfo::unacknowledged(socket).map(|left| left.unwrap_or(0)),
        };
        match left {
            Ok(1..) => std::thread::sleep(StdDuration::from_micros(200)),
            _ => break,
        }
    }
    flow.last_acknowledged_at.move_to(context.clock.now());
}

/// Reads a complete response; returns false if the trial ended before.
pub(super) fn read_response(
    context: &TrialContext<'_>,
    flow: &Flow,
    socket: &mut TcpStream,
    mut bytes: u64,
    buffer: &mut [u8],
) -> std::io::Result<bool> {
    while bytes > 0 {
        match until_ready(context, || socket.read(buffer)) {
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

/// Sends requests and reads their responses, one after the other.
fn send_requests(
    context: &TrialContext<'_>,
    group: &Group,
    flow: &Flow,
    socket: &mut TcpStream,
) -> std::io::Result<()> {
    let (request, response) = group.workload.exchange();
    let workload = &group.workload;
    let requests = if workload.reconnect == Some(true) {
        1
    } else {
        workload.requests.unwrap_or(1)
    };
    let mut buffer = vec![0; CHUNK];
    for number in 1..=requests {
        let requested_at = match number {
            1 => flow.id.opened_at,
            _ => context.clock.now(),
        };
        write(context, flow, socket, request)?;
        if number == requests {
            socket.shutdown(Shutdown::Write)?;
        }
        if !read_response(context, flow, socket, response, &mut buffer)? {
            return Ok(());
        }
        let responded_at = context.clock.now();
        flow.answered(Transaction {
            requested_at,
            responded_at,
            on_wire: None,
        });
        flow.last_acknowledged_at.move_to(responded_at);
        if number < requests && !wait_for_request(context, group, flow, responded_at) {
            return Ok(());
        }
    }
    flow.finished.store(true, Ordering::Relaxed);
    Ok(())
}
