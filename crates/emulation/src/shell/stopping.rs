//! The end of a command, by itself or on request.

use std::process::{Child, ExitStatus};
use std::time::Instant;

use foundation::Duration;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process};

use crate::error::Error;

/// A request to stop a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopRequest {
    /// SIGINT, which a command in the same process group has received as well.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// Interval between looks for a request.
const INTERVAL: Duration = Duration::from_millis(100);
/// How long remaining commands have after the end of the command, and after a request.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
const PATIENCE_ON_REQUEST: std::time::Duration = std::time::Duration::from_millis(1500);
/// Signals to a command that must stop, and how many intervals after the request. Interactive shells ignore SIGTERM.
const TERMINATION: [(u32, Signal); 3] = [(0, Signal::TERM), (3, Signal::HUP), (10, Signal::KILL)];
const INTERRUPTION: [(u32, Signal); 4] = [
    (0, Signal::INT),
    (5, Signal::TERM),
    (7, Signal::HUP),
    (10, Signal::KILL),
];

/// Watches for a request to stop.
pub(super) struct Stopping<'a> {
    source: &'a mut dyn FnMut() -> Option<StopRequest>,
    request: Option<(StopRequest, Instant)>,
}

impl<'a> Stopping<'a> {
    pub(super) fn new(source: &'a mut dyn FnMut() -> Option<StopRequest>) -> Self {
        Self {
            source,
            request: None,
        }
    }

    /// The first request and its time.
    pub(super) fn request(&mut self) -> Option<(StopRequest, Instant)> {
        // Later requests are taken, too, so that they are not left to the caller.
        let next = (self.source)().map(|request| (request, Instant::now()));
        self.request = self.request.or(next);
        self.request
    }

    /// Waits until the command exits, and stops it on request or once `failed` returns an error, which becomes the
    /// result. `has_terminal`: whether the command has a process group of its own.
    pub(super) fn wait(
        &mut self,
        child: &mut Child,
        has_terminal: bool,
        failed: &mut dyn FnMut() -> Option<std::io::Error>,
    ) -> Result<ExitStatus, Error> {
        let system = |what: &str| {
            let what = what.to_owned();
            move |source| Error::System { what, source }
        };
        let process = Pid::from_child(child);
        let handle = rustix::process::pidfd_open(process, PidfdFlags::empty())
            .map_err(|error| system("wait for the command")(error.into()))?;
        let (mut rounds, mut failure) = (0, None);
        while child
            .try_wait()
            .map_err(system("wait for the command"))?
            .is_none()
        {
            socket::wait::wait_any(&mut [PollFd::new(&handle, PollFlags::IN)], INTERVAL);
            failure = failure.or_else(&mut *failed);
            let signals = match (&failure, self.request()) {
                (None, None) => continue,
                (None, Some((StopRequest::Interrupt, _))) => &INTERRUPTION[..],
                _ => &TERMINATION[..],
            };
            for &(_, signal) in signals.iter().filter(|(when, _)| *when == rounds) {
                // A command in the group of this process has received Ctrl-C itself.
                if signal != Signal::INT || has_terminal {
                    // It may have exited meanwhile.
                    let _ = kill_process(process, signal);
                }
            }
            rounds += 1;
        }
        let status = child.wait().map_err(system("wait for the command"))?;
        match failure {
            None => Ok(status),
            Some(error) => Err(system("carry the command's packets")(error)),
        }
    }

    /// How long remaining commands have from now on: less once there is a request.
    pub(super) fn patience(&mut self) -> impl FnMut() -> Duration + use<'_, 'a> {
        let start = Instant::now();
        move || {
            let span = self.request().map_or(PATIENCE, |(_, at)| {
                (at + PATIENCE_ON_REQUEST).saturating_duration_since(start)
            });
            Duration::from_nanos(span.as_nanos() as u64)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn stops_the_command_when_the_gateway_fails() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let mut failed = || Some(std::io::Error::other("its thread has panicked: a bug"));
        let error = Stopping::new(&mut || None)
            .wait(&mut child, false, &mut failed)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "cannot carry the command's packets: its thread has panicked: a bug"
        );
        assert!(child.try_wait().unwrap().is_some());
    }

    #[test]
    fn returns_the_status_of_a_command() {
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let status = Stopping::new(&mut || None)
            .wait(&mut child, false, &mut || None)
            .unwrap();
        assert_eq!(status.code(), Some(3));
    }
}
