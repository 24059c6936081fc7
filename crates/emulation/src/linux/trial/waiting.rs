//! How threads of a trial wait without missing its end.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::time::Duration as StdDuration;

use foundation::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::context::TrialContext;

/// Interval at which a waiting thread checks for the end of the trial.
pub(super) const INTERVAL: StdDuration = StdDuration::from_millis(50);

/// Sleeps until a time; false where the trial is over before.
pub(super) fn sleep_until(context: &TrialContext<'_>, at: Instant) -> bool {
    loop {
        let left = at.saturating_since(context.clock.now());
        if context.is_over() {
            return false;
        }
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(StdDuration::from_nanos(left.as_nanos()).min(INTERVAL));
    }
}

/// Waits until `act` gives something else than "would block", or the trial is over.
pub(super) fn until_ready<T>(
    context: &TrialContext<'_>,
    mut act: impl FnMut() -> std::io::Result<T>,
) -> Option<std::io::Result<T>> {
    loop {
        if context.is_over() {
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

/// Waits until the kernel says that there is room, or something to take, as it wakes a call that blocks. (A write that gave
/// up after a while and tried again would find room sooner, and so change the rhythm of the flow.)
pub(super) fn wait_for(socket: &impl AsFd, what: PollFlags) -> std::io::Result<()> {
    let patience = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(INTERVAL.subsec_nanos()),
    };
    let mut asked = [PollFd::new(socket, what)];
    if poll(&mut asked, Some(&patience))? == 0 {
        return Err(ErrorKind::WouldBlock.into());
    }
    Ok(())
}
