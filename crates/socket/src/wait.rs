//! Waiting for sockets and for a point in time.

use std::net::UdpSocket;

use foundation::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Minimizes the timer slack of this thread. By default Linux delays timers by up to 50 µs to save power.
pub fn sharpen_timers() {
    #[cfg(target_os = "linux")]
    {
        // On failure waits are slightly longer; only precision suffers.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    }
}

/// Requests real-time priority for this thread, since an emulated network must run ahead of its hosts. Requires
/// privileges; ignored without them.
pub fn raise_priority() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::setpriority_process(None, -15);
    }
}

/// Waits until `socket` is readable, with `writable` also until it is writable, for at most `timeout`.
pub fn wait(socket: &UdpSocket, writable: bool, timeout: Duration) {
    let mut interest = PollFlags::IN;
    if writable {
        interest |= PollFlags::OUT;
    }
    wait_any(&mut [PollFd::new(socket, interest)], timeout);
}

/// Waits until one of `sockets` is ready, for at most `timeout`.
pub fn wait_any(sockets: &mut [PollFd<'_>], timeout: Duration) {
    let timeout = Timespec {
        tv_sec: (timeout.as_nanos() / 1_000_000_000) as _,
        tv_nsec: (timeout.as_nanos() % 1_000_000_000) as _,
    };
    // A signal ends the wait early; the caller then checks everything again.
    let _ = poll(sockets, Some(&timeout));
}
