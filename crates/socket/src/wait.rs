//! Waiting for sockets and for a point in time.

use std::net::UdpSocket;

use foundation::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Asks the system to wake this thread no later than it must: to the nanosecond, where timers are
/// otherwise put off by 50 µs to save power.
pub fn sharpen_timers() {
    #[cfg(target_os = "linux")]
    {
        // Refused, waits are a little longer: nothing depends on it but precision.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    }
}

/// Asks the system to prefer this thread to others, as an emulated network must run ahead of the hosts
/// around it. Only a privileged process is granted that.
pub fn raise_priority() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::setpriority_process(None, -15);
    }
}

/// Waits until `socket` can be read, with `writable` also until it can be written, at most `timeout`.
pub fn wait(socket: &UdpSocket, writable: bool, timeout: Duration) {
    let mut interest = PollFlags::IN;
    if writable {
        interest |= PollFlags::OUT;
    }
    wait_any(&mut [PollFd::new(socket, interest)], timeout);
}

/// Waits until one of `sockets` is ready, at most `timeout`.
pub fn wait_any(sockets: &mut [PollFd<'_>], timeout: Duration) {
    let timeout = Timespec {
        tv_sec: (timeout.as_nanos() / 1_000_000_000) as _,
        tv_nsec: (timeout.as_nanos() % 1_000_000_000) as _,
    };
    // A signal ends the wait early, which does no harm: the caller looks at everything anew.
    let _ = poll(sockets, Some(&timeout));
}
