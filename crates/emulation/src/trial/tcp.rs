//! A flow over the kernel's TCP: the threads at its two ends.

use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration as StdDuration;

use experiment::Side;
use experiment::plan::Group;
use experiment::workload::WorkloadKind;
use kernel::TcpInfo;
use socket2::SockRef;

use super::context::TrialContext;
use super::exchange::{CHUNK, send, write};
use super::flow::{EndSnapshot, Flow};
use super::waiting::until_ready;
use super::{info, requests, sockets};

/// Runs the opening end of a flow.
pub(super) fn open(context: &TrialContext<'_>, group: &Group, flow: &Flow, near: Ipv4Addr, to: SocketAddr) {
    if group.workload.kind == WorkloadKind::RequestResponse {
        return requests::send(context, group, flow, near, to);
    }
    run(
        context,
        flow,
        sockets::connect(context.kernel, None, to),
        |socket| {
            watch(flow, Side::Sender, socket);
            send(context, group, flow, socket)
        },
    );
}

/// Runs a flow over a connection by `carry` and records its result.
pub(super) fn run(
    context: &TrialContext<'_>,
    flow: &Flow,
    connected: io::Result<TcpStream>,
    carry: impl FnOnce(&mut TcpStream) -> io::Result<()>,
) {
    let result = connected.and_then(|mut socket| {
        let result = carry(&mut socket);
        leave(context, flow, Side::Sender, &socket);
        result
    });
    if let Err(error) = result {
        flow.fail(error.to_string());
    }
    flow.end();
}

/// Reads the final counters of an end.
fn leave(context: &TrialContext<'_>, flow: &Flow, side: Side, socket: &TcpStream) {
    flow.leave(side);
    // Discards unsent data at the end of the trial.
    if context.is_over() {
        let _ = SockRef::from(socket).set_linger(Some(StdDuration::ZERO));
    }
}

/// Registers an end's connection with the flow.
fn watch(flow: &Flow, side: Side, socket: &TcpStream) {
    // If the descriptor cannot be duplicated, the record has zeros.
    if let Ok(socket) = socket.try_clone() {
        let look = move || {
            let info = TcpInfo::of_socket(&socket).ok()?;
            Some(EndSnapshot::new(info::sent(&info), info::probe(&info)))
        };
        flow.watch(side, Box::new(look));
    }
}

/// Runs the accepting end of a flow.
pub(super) fn accept(context: &TrialContext<'_>, group: &Group, flow: &Flow, listener: &TcpListener) {
    if group.workload.kind == WorkloadKind::RequestResponse && context.kernel.multipath.is_none() {
        return requests::answer(context, group, flow, listener);
    }
    let Some(Ok(mut socket)) = until_ready(context, || sockets::accept(listener)) else {
        return;
    };
    let answers = group.workload.kind == WorkloadKind::RequestResponse;
    if answers {
        watch(flow, Side::Receiver, &socket);
    }
    let (request, response) = group.workload.exchange();
    let mut buffer = vec![0; 4 * CHUNK];
    let mut unanswered = 0;
    while let Some(Ok(bytes @ 1..)) = until_ready(context, || socket.read(&mut buffer)) {
        let total = flow.read(0, bytes as u64);
        if Some(total) == flow.id.size {
            flow.received_at.note(context.clock.now());
        }
        unanswered += bytes as u64;
        while answers && unanswered >= request {
            unanswered -= request;
            if write(context, flow, &mut socket, response).is_err() {
                flow.leave(Side::Receiver);
                return;
            }
        }
    }
    leave(context, flow, Side::Receiver, &socket);
}
