//! A path manager in user space: one policy for all connections that a network namespace opens.
//!
//! An application can register a connection before it connects ([`control`]): it gets the source address to use and can
//! state how many bytes it will send. The path manager learns of all other connections from the kernel's events, and takes
//! the bytes sent so far as their size. RTTs are those of the host's subflows, read from the kernel; a path without an RTT
//! is tried first.

mod access;
mod announcements;
mod connection;
mod connections;
mod control;
mod notification;
mod options;
mod peer;

use std::io;
use std::time::Duration as StdDuration;

use foundation::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::events::Events;
use super::manager::Manager;
use super::paths::paths;
use super::sysctl::{PathManager, is_enabled, path_manager, set_path_manager};
use crate::error::{self, Error};
use connections::Connections;
use control::Listener;
pub use control::{NAME, Reply, Request};
pub use notification::Notification;
pub use options::Options;

/// Longest sleep without a connection: the delay until it sees a request to stop.
const IDLE_INTERVAL: StdDuration = StdDuration::from_millis(200);
/// Longest sleep with connections, and with connections that may open a further subflow.
const ACTIVE_INTERVAL: StdDuration = StdDuration::from_millis(100);
const JOIN_INTERVAL: StdDuration = StdDuration::from_millis(5);

/// Runs until `proceed`, which it calls several times a second, returns false; then restores the sysctl. `notify` receives
/// its events.
///
/// # Errors
/// [`Error::Option`] for a policy that is out of range or that Linux cannot apply, [`Error::Permission`] without
/// `CAP_NET_ADMIN`, [`Error::Missing`] if the kernel has no MPTCP with a path manager in user space or the sysctl selects
/// another one; [`Error::System`] if another path manager uses the name.
pub fn run(
    options: &Options,
    proceed: &mut dyn FnMut() -> bool,
    notify: &mut dyn FnMut(Notification),
) -> Result<(), Error> {
    let policy = &options.policy;
    let mut problems = policy.validate().into_iter().chain(policy.beyond_linux());
    if let Some(problem) = problems.next() {
        return Err(problem.within("policy").into());
    }
    if is_enabled() == Some(false) {
        return Err(Error::Missing {
            what: "MPTCP in this network namespace".into(),
            remedy: "enable it: sysctl net.mptcp.enabled=1".into(),
        });
    }
    if !options.set_sysctl && path_manager()? == PathManager::Kernel {
        return Err(Error::Missing {
            what: "the setting for a path manager in user space".into(),
            remedy: "pass --set-sysctl, or set it: sysctl net.mptcp.pm_type=1".into(),
        });
    }
    let (events, manager) = (Events::listen()?, Manager::open()?);
    let mut listener = Listener::bind(&options.name)?;
    let restore = set_path_manager(PathManager::User)?;
    let failed = |what: &'static str| move |error: io::Error| error::mptcp(what, error);
    let found = paths().map_err(failed("read the host's addresses"))?;
    notify(Notification::Ready {
        policy: policy.kind().into(),
        paths: found.iter().map(|path| path.address).collect(),
        set_sysctl: restore.has_changed(),
    });
    let start = std::time::Instant::now();
    let now = || Instant::from_nanos(start.elapsed().as_nanos() as u64);
    let mut connections = Connections::new(options, found);
    while proceed() {
        match events.next() {
            Ok(received) => {
                for event in received {
                    connections.handle_event(now(), event, &manager, notify);
                }
            }
            // Events were lost; the sockets' state replaces them.
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
            Err(error) => return Err(error::mptcp("receive MPTCP events", error)),
        }
        listener.serve(std::time::Instant::now(), |request| {
            connections.answer(now(), request, notify)
        });
        connections
            .update_paths(now(), &manager, notify)
            .map_err(failed("read the host's addresses"))?;
        connections
            .advance(now(), &manager, notify)
            .map_err(failed("read the host's sockets"))?;
        let interval = match connections.is_waiting() {
            Some(true) => JOIN_INTERVAL,
            Some(false) => ACTIVE_INTERVAL,
            None => IDLE_INTERVAL,
        };
        sleep(&events, &listener, interval).map_err(failed("wait for events"))?;
    }
    drop(restore);
    Ok(())
}

fn sleep(events: &Events, listener: &Listener, longest: StdDuration) -> io::Result<()> {
    let mut sources = vec![PollFd::new(events, PollFlags::IN)];
    sources.extend(listener.sources());
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(longest.subsec_nanos()),
    };
    match poll(&mut sources, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
