//! Waiting that ends with the trial.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::time::Duration as StdDuration;

use experiment::plan::Group;
use foundation::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::context::TrialContext;
use super::flow::Flow;

/// Interval at which a waiting thread checks for the end of the trial.
pub(super) const INTERVAL: StdDuration = StdDuration::from_millis(50);

/// Sleeps until a time; returns false if the trial ended before.
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

/// Waits from the response to the next request of a flow; returns false if the trial ended before.
pub(super) fn wait_for_request(
    context: &TrialContext<'_>,
    group: &Group,
    flow: &Flow,
    mut responded_at: Instant,
) -> bool {
    if let Some(barrier) = flow.barrier() {
        if !barrier.wait(|| context.is_over()) {
            return false;
        }
        responded_at = context.clock.now();
    }
    sleep_until(context, responded_at + group.workload.think.unwrap_or_default())
}

/// Repeats `act` until it returns something other than "would block"; `None` once the trial is over.
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

/// Waits until the socket is ready, like a blocking call. (A write with its own retry timer would find room earlier and
/// change the flow's timing.)
pub(super) fn wait_for(socket: &impl AsFd, what: PollFlags) -> std::io::Result<()> {
    let patience = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(INTERVAL.subsec_nanos()),
    };
    let mut polled = [PollFd::new(socket, what)];
    if poll(&mut polled, Some(&patience))? == 0 {
        return Err(ErrorKind::WouldBlock.into());
    }
    Ok(())
}
