//! A path manager in user space: one policy for all connections that begin in a network namespace.
//!
//! Applications that ask it before they connect ([`talk`]) are told from which address, and may say how much they will send;
//! of all others it learns from the kernel's events, and their size is what they have sent so far. Round-trip times are
//! those of the host's own subflows, read from the kernel; a path of which nothing is known yet is tried first.

mod access;
mod connection;
mod connections;
mod peer;
mod served;
mod talk;

use std::io;
use std::net::IpAddr;
use std::time::Duration as StdDuration;

use foundation::{Generator, Instant, Streams};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use transport::mptcp::policy::PolicyConfig;

use super::settings::{PathManager, path_manager, set_path_manager};
use super::{Events, Manager, paths};
use crate::error::Error;
use connections::Connections;
use talk::Listener;
pub use talk::{NAME, Reply, Request};

/// What a path manager is to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which paths connections use.
    pub policy: PolicyConfig,
    /// The name, among the namespace's abstract Unix sockets, at which applications ask; usually [`NAME`].
    pub name: String,
    /// Whether `net.mptcp.pm_type` may be set to user space for as long as it runs. Else it must be so already.
    pub set_sysctl: bool,
    /// Whether it looks after the connections of applications that have asked alone.
    pub asked_only: bool,
    /// Whether peers that connect to this host are told of its other addresses (ADD_ADDR, RFC 8684, section 3.4.1).
    pub announce: bool,
    /// From where the policy draws.
    pub seed: u64,
}

/// What it tells as it happens.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Told {
    /// It is ready.
    Ready {
        /// The addresses of the host's paths.
        paths: Vec<IpAddr>,
        /// Whether it has changed `net.mptcp.pm_type`.
        set_sysctl: bool,
    },
    /// A connection has begun.
    Opened {
        /// Its token.
        token: u32,
        /// The peer.
        to: IpAddr,
        /// The bytes that it will send; null where nobody said.
        size: Option<u64>,
        /// The address of its first subflow.
        from: IpAddr,
    },
    /// A further subflow was ordered.
    Joined {
        /// The token of the connection.
        token: u32,
        /// Its address.
        from: IpAddr,
    },
    /// The peer of a connection that it has opened was told of a further address of this host.
    Announced {
        /// The token of the connection.
        token: u32,
        /// The address.
        address: IpAddr,
    },
    /// A connection has left an address that is gone.
    Left {
        /// The token of the connection.
        token: u32,
        /// The address of this host.
        from: IpAddr,
    },
    /// The kernel refused an order.
    Refused {
        /// The token of the connection.
        token: u32,
        /// Why.
        reason: String,
    },
    /// A connection is over.
    Closed {
        /// Its token.
        token: u32,
        /// Bytes that were acknowledged on each path, as last seen.
        bytes: Vec<(IpAddr, u64)>,
    },
}

/// How long it sleeps at most: so long it may take until it sees that it is to stop.
const LOOK: StdDuration = StdDuration::from_millis(200);
/// How often it looks at connections, and at those that wait for a further subflow.
const WATCH: StdDuration = StdDuration::from_millis(100);
const WAIT: StdDuration = StdDuration::from_millis(5);

/// Runs until `go_on`, which is asked several times a second, says no; `tell` hears what happens. The sysctl that it has set
/// is then as before.
///
/// # Errors
/// [`Error::Option`] for a policy that is out of range or beyond what Linux can be told, [`Error::Permission`] without `CAP_NET_ADMIN`, [`Error::Missing`] where the kernel has no MPTCP with a path manager in user
/// space, and where that is not chosen; [`Error::System`] where another one runs under the same name.
pub fn run(
    options: &Options,
    go_on: &mut dyn FnMut() -> bool,
    tell: &mut dyn FnMut(Told),
) -> Result<(), Error> {
    let policy = &options.policy;
    let mut problems = policy.validate().into_iter().chain(policy.beyond_linux());
    if let Some(problem) = problems.next() {
        return Err(Error::Option(problem.within("policy")));
    }
    if super::is_enabled() == Some(false) {
        return Err(Error::Missing {
            what: "MPTCP in this network namespace".into(),
            remedy: "switch it on: sysctl net.mptcp.enabled=1".into(),
        });
    }
    if !options.set_sysctl && path_manager()? == PathManager::Kernel {
        return Err(Error::Missing {
            what: "the choice of a path manager in user space".into(),
            remedy: "let it be set while this runs (--set-sysctl), or set it: sysctl net.mptcp.pm_type=1"
                .into(),
        });
    }
    let (events, manager) = (Events::listen()?, Manager::open()?);
    let mut listener = Listener::bind(&options.name)?;
    let restore = set_path_manager(PathManager::User)?;
    let wrong = |error: io::Error| Error::of("look at the host's addresses", error);
    let found = paths().map_err(wrong)?;
    tell(Told::Ready {
        paths: found.iter().map(|path| path.address).collect(),
        set_sysctl: restore.has_changed(),
    });
    let began = std::time::Instant::now();
    let now = || Instant::from_nanos(began.elapsed().as_nanos() as u64);
    let mut connections = Connections::new(options, found);
    while go_on() {
        match events.next() {
            Ok(happened) => {
                for event in happened {
                    connections.hear(now(), event, &manager, tell);
                }
            }
            // Some were lost: what is seen of connections makes up for it.
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
            Err(error) => return Err(Error::of("listen to MPTCP's events", error)),
        }
        listener.serve(std::time::Instant::now(), |request| {
            connections.answer(now(), request, tell)
        });
        connections.look_at_paths(now(), &manager, tell).map_err(wrong)?;
        connections
            .advance(now(), &manager, tell)
            .map_err(|error| Error::of("look at the host's sockets", error))?;
        let span = match connections.waiting() {
            Some(true) => WAIT,
            Some(false) => WATCH,
            None => LOOK,
        };
        sleep(&events, &listener, span).map_err(|error| Error::of("wait", error))?;
    }
    drop(restore);
    Ok(())
}

fn sleep(events: &Events, listener: &Listener, span: StdDuration) -> io::Result<()> {
    let mut sources = vec![PollFd::new(events, PollFlags::IN)];
    sources.extend(listener.sources());
    let span = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(span.subsec_nanos()),
    };
    match poll(&mut sources, Some(&span)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Where the policy of the connection with this number draws from.
fn draws(seed: u64, number: u64) -> Generator {
    Streams::new(seed, 0).stream(&format!("paths/{number}"))
}
