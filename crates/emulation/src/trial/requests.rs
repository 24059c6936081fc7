//! Requests and responses over the kernel's TCP, on one connection or on one each.

use std::io::{self, ErrorKind, Read};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::Ordering;

use experiment::Side;
use experiment::outcome::{SendCounters, Transaction};
use experiment::plan::Group;
use experiment::trace::Probe;
use kernel::TcpInfo;
use measurement::capture::Protocol;
use socket2::SockRef;

use super::context::TrialContext;
use super::exchange::{CHUNK, end, read_response, write};
use super::flow::{EndSnapshot, Flow};
use super::info;
use super::request_capture::RequestCapture;
use super::sockets;
use super::waiting::{until_ready, wait_for_request};

/// Counters of all connections of one end.
#[derive(Default)]
struct Totals {
    /// Counters of closed connections.
    before: SendCounters,
}

impl Totals {
    /// Reports this end's counters, including the open connection, to the flow; `is_over` closes the connection's
    /// account.
    fn report(&mut self, flow: &Flow, side: Side, socket: &TcpStream, is_over: bool) {
        let Ok(info) = TcpInfo::of_socket(socket) else {
            return;
        };
        let sent = self.before.and(info::sent(&info));
        let probe = info::probe(&info);
        let smoothed = probe.smoothed_rtt;
        flow.report(side, EndSnapshot::new(sent, probe));
        if is_over {
            self.before = sent;
            flow.report(side, EndSnapshot::new(sent, Probe::default()));
            if side == Side::Sender {
                flow.add_round_trip(smoothed);
            }
        }
    }
}

/// Sends the workload's requests, one after the other.
pub(super) fn send(context: &TrialContext<'_>, group: &Group, flow: &Flow, near: Ipv4Addr, to: SocketAddr) {
    let mut capture = RequestCapture::open(Protocol::Tcp, near, None, to, true);
    if let Err(error) = send_all(context, group, flow, &mut capture, to) {
        flow.fail(error.to_string());
    }
    flow.set_packets(capture.packets());
    flow.end();
}

fn send_all(
    context: &TrialContext<'_>,
    group: &Group,
    flow: &Flow,
    capture: &mut RequestCapture,
    to: SocketAddr,
) -> io::Result<()> {
    let workload = &group.workload;
    let (request, response) = workload.exchange();
    let requests = workload.requests.unwrap_or(1);
    let reconnects = workload.reconnect == Some(true);
    let mut buffer = vec![0; CHUNK];
    let mut account = Totals::default();
    let mut open: Option<TcpStream> = None;
    for number in 1..=requests {
        let from = capture.start();
        let requested_at = context.clock.now();
        let mut socket = match open.take() {
            Some(socket) => socket,
            None => sockets::connect(context.kernel, None, to)?,
        };
        let is_last = reconnects || number == requests;
        write(context, flow, &mut socket, request)?;
        if is_last {
            end(context, &socket)?;
        }
        if !read_response(context, flow, &mut socket, response, &mut buffer)? {
            return leave(&socket);
        }
        let responded_at = context.clock.now();
        flow.answered(Transaction {
            requested_at,
            responded_at,
            on_wire: capture.answered(from),
        });
        flow.last_acknowledged_at.move_to(responded_at);
        if is_last {
            // Wait for the peer's FIN: closing earlier could cause a reset.
            if let Some(result) = until_ready(context, || socket.read(&mut buffer)) {
                result?;
            }
        }
        account.report(flow, Side::Sender, &socket, is_last);
        if !is_last {
            open = Some(socket);
        }
        if number < requests && !wait_for_request(context, group, flow, responded_at) {
            return open.as_ref().map_or(Ok(()), leave);
        }
    }
    flow.finished.store(true, Ordering::Relaxed);
    Ok(())
}

/// Discards unsent data at the end of the trial.
fn leave(socket: &TcpStream) -> io::Result<()> {
    SockRef::from(socket).set_linger(Some(std::time::Duration::ZERO))
}

/// Answers requests on one connection after the other.
pub(super) fn answer(context: &TrialContext<'_>, group: &Group, flow: &Flow, listener: &TcpListener) {
    let mut account = Totals::default();
    let is_over = || flow.over.load(Ordering::Relaxed);
    while let Some(Ok(mut socket)) = until_ready(context, || match sockets::accept(listener) {
        Err(error) if error.kind() == ErrorKind::WouldBlock && is_over() => {
            Err(ErrorKind::NotConnected.into())
        }
        result => result,
    }) {
        // The requesting end reports a broken connection; the next one is served.
        let _ = serve(context, group, flow, &mut socket);
        if context.is_over() {
            let _ = leave(&socket);
        }
        account.report(flow, Side::Receiver, &socket, true);
    }
}

/// Answers the requests of one connection until the peer closes it.
fn serve(context: &TrialContext<'_>, group: &Group, flow: &Flow, socket: &mut TcpStream) -> io::Result<()> {
    let (request, response) = group.workload.exchange();
    let mut buffer = vec![0; CHUNK];
    let mut unanswered = 0;
    while let Some(result) = until_ready(context, || socket.read(&mut buffer)) {
        let bytes = result? as u64;
        if bytes == 0 {
            return socket.shutdown(Shutdown::Write);
        }
        flow.read(0, bytes);
        unanswered += bytes;
        while unanswered >= request {
            unanswered -= request;
            write(context, flow, socket, response)?;
        }
    }
    Ok(())
}
