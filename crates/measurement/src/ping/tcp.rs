//! Round trips of new connections: from the SYN to its answer.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;

use foundation::{Duration, Instant};
use kernel::TcpInfo;
use socket::clock::Clock;
use socket::wait::sharpen_timers;
use socket2::{Domain, Socket, Type};

use super::plan::{Plan, Schedule, State};
use super::{Answer, Method, Options, Progress, Report, Sample};
use crate::Stamp;
use kernel::Error;

const LOOK: Duration = Duration::from_millis(50);

/// Opens one connection after the other. `connect(2)` blocks inside the kernel, which is faster than any poll.
pub fn run(options: &Options, progress: &Progress) -> Result<Report, Error> {
    sharpen_timers();
    let clock = Clock::new();
    let schedule = Schedule {
        window: 1,
        ..options.schedule.clone()
    };
    let mut plan = Plan::new(clock.now(), schedule);
    let mut samples: Vec<Sample> = Vec::with_capacity(plan.total() as usize);
    while !plan.is_finished() && !progress.is_stopped() {
        let now = clock.now();
        let Some(probe) = plan.poll_send(now) else {
            let due = plan.poll_timeout().unwrap_or(now + LOOK);
            std::thread::sleep((due - now).min(LOOK).into());
            plan.handle_timeout(clock.now());
            continue;
        };
        let socket = socket(options).map_err(|error| Error::system("make a TCP socket", error))?;
        let to = options.to.into();
        let mut sample = Sample::new(0, Stamp::now());
        let begun = clock.now();
        let connected = progress.blocking(socket.as_fd(), || socket.connect(&to));
        let ended = clock.now();
        if connected.is_err() && progress.is_stopped() {
            break;
        }
        plan.sent(begun);
        progress.sent.fetch_add(1, Relaxed);
        match answer(&socket, connected) {
            Ok(Some(answer)) => {
                let took = ended - begun;
                plan.handle_answer(ended, probe.number);
                (sample.application, sample.answer) = (Some(took), Some(answer));
                if answer == Answer::Reply {
                    sample.kernel = TcpInfo::of_socket(&socket)
                        .ok()
                        .and_then(|info| info.handshake_rtt());
                }
                progress.answered.fetch_add(1, Relaxed);
                progress.last.store(took.as_nanos(), Relaxed);
            }
            Ok(None) => plan.handle_timeout(begun + options.schedule.timeout + Duration::from_nanos(1)),
            Err(error) => {
                sample.error = error.raw_os_error();
                plan.handle_failure(probe.number);
            }
        }
        samples.push(sample);
    }
    for (sample, state) in samples.iter_mut().zip(plan.states()) {
        sample.state = state;
    }
    samples.retain(|sample| sample.state != State::Waiting);
    Ok(Report {
        method: Method::Tcp,
        samples,
        strangers: 0,
        took: clock.now() - Instant::ZERO,
        note: None,
    })
}

/// Interprets the result of `connect(2)`; `None` for a timeout.
fn answer(socket: &Socket, connected: io::Result<()>) -> io::Result<Option<Answer>> {
    let Err(error) = connected else {
        let answer = if is_connected_to_itself(socket)? {
            Answer::Closed
        } else {
            Answer::Reply
        };
        return Ok(Some(answer));
    };
    match error.raw_os_error() {
        Some(libc::ECONNREFUSED) => Ok(Some(Answer::Closed)),
        // The connection timed out (`socket(7)`, `SO_SNDTIMEO`).
        Some(libc::EINPROGRESS | libc::EAGAIN | libc::ETIMEDOUT | libc::EINTR) => Ok(None),
        _ => Err(error),
    }
}

/// Returns whether the kernel chose the destination as the source port, so that the SYN met its own
/// socket (simultaneous open, RFC 9293 section 3.5). This happens on closed ephemeral ports of the own host.
fn is_connected_to_itself(socket: &Socket) -> io::Result<bool> {
    Ok(socket.local_addr()?.as_socket() == socket.peer_addr()?.as_socket())
}

fn socket(options: &Options) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(options.to),
        Type::STREAM,
        Some(socket2::Protocol::TCP),
    )?;
    // At least a microsecond, because zero means no timeout.
    let timeout =
        std::time::Duration::from(options.schedule.timeout).max(std::time::Duration::from_micros(1));
    socket.set_write_timeout(Some(timeout))?;
    // Closing with a reset leaves no TIME-WAIT state at either end.
    socket.set_linger(Some(std::time::Duration::ZERO))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn a_connection_to_itself_means_a_closed_port() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        socket.bind(&any.into()).unwrap();
        let own = socket.local_addr().unwrap();
        let connected = socket.connect(&own);
        assert_eq!(answer(&socket, connected).unwrap(), Some(Answer::Closed));
    }
}
