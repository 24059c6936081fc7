//! The thread that moves packets between a port and a stack and runs the stack's timers.

use std::io;
use std::sync::atomic::Ordering;

use foundation::{Duration, Instant};
use rustix::event::{PollFd, PollFlags};
use socket::wait;

use super::shared::{Shared, State};
use stack::Arrival;

/// Packets read before replies are sent.
const BATCH: usize = 32;
/// Bytes of the largest IPv4 packet.
const LARGEST: usize = 65_536;
/// The longest sleep.
const LONGEST: Duration = Duration::from_secs(1);

/// Releases all waiting threads when this thread ends, even by a panic.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.lock().end();
    }
}

/// Runs until the stack is dropped or the network has ended.
pub(super) fn run(shared: &Shared) {
    let _ending = Ending(shared);
    wait::sharpen_timers();
    // A kernel's stack runs before programs, too.
    wait::raise_priority();
    let mut buffer = vec![0; LARGEST];
    while !shared.stop.load(Ordering::Relaxed) {
        let mut state = shared.lock();
        // The read resets the counter. It fails if there is nothing to reset.
        let _ = rustix::io::read(&shared.wake, &mut [0_u8; 8]);
        let received = receive(shared, &mut state, &mut buffer);
        let now = shared.clock.now();
        state.stack.handle_timeout(now);
        state.sleeps_until = Instant::ZERO;
        shared.send(&mut state);
        state.dispatch_events();
        let Ok(count) = received else {
            return;
        };
        if state.has_ended {
            return;
        }
        if count == BATCH {
            continue;
        }
        let until = state.stack.poll_timeout().unwrap_or(Instant::MAX);
        state.sleeps_until = until;
        let mut interest = PollFlags::IN;
        if state.is_blocked {
            interest |= PollFlags::OUT;
        }
        drop(state);
        let span = until.saturating_since(shared.clock.now()).min(LONGEST);
        wait::wait_any(
            &mut [
                PollFd::new(&shared.port, interest),
                PollFd::new(&shared.wake, PollFlags::IN),
            ],
            span,
        );
    }
}

/// Reads up to [`BATCH`] packets; returns their number.
fn receive(shared: &Shared, state: &mut State, buffer: &mut [u8]) -> io::Result<usize> {
    for count in 0..BATCH {
        let Some(length) = shared.port.receive(buffer)? else {
            return Ok(count);
        };
        let packet = &buffer[..length];
        match state.stack.handle_packet(shared.clock.now(), packet) {
            Arrival::Unmatched(unmatched) => state.stack.refuse(&unmatched),
            Arrival::Other => {
                state.stack.answer_ping(packet);
            }
            Arrival::Handled | Arrival::Malformed => {}
        }
    }
    Ok(BATCH)
}
