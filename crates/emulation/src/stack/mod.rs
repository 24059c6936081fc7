//! The project's TCP at an emulated host: a [`Stack`] on wall time, shared by a thread for each stream.

mod driver;
mod gateway;
mod shared;
mod stream;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use foundation::{Instant, Streams};
use rustix::event::{EventfdFlags, eventfd};
use socket::clock::Clock;
use transport::tcp::TcpConfig;

pub use self::gateway::HostGateway;
pub use self::shared::StreamState;
use self::shared::{Shared, State};
use self::stream::open;
pub use self::stream::{UserListener, UserStream};
use super::port::Port;
use stack::{Counters, Stack, StreamId};

/// The stack's local ports: those outside Linux's range (`ip_local_port_range`), so that both can share a host.
pub(crate) const PORTS: std::ops::RangeInclusive<u16> = 10_000..=32_767;

/// The project's TCP at a host. Dropping it closes its streams and listeners.
#[derive(Debug)]
pub struct UserStack {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl UserStack {
    /// Starts a stack with this address on a port.
    ///
    /// # Errors
    /// The system's.
    pub fn start(port: Port, address: Ipv4Addr, clock: Clock, secret: Streams) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                stack: Stack::new(secret, PORTS),
                packet: Vec::new(),
                is_blocked: false,
                has_ended: false,
                sleeps_until: Instant::MAX,
                streams: BTreeMap::new(),
                backlogs: BTreeMap::new(),
            }),
            clock,
            port,
            address,
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            stop: AtomicBool::new(false),
        });
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("stack".into())
            .spawn(move || driver::run(&own))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.shared.address
    }

    /// Its packet counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.shared.lock().stack.counters()
    }

    /// The number of connections, including those in TIME-WAIT.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.lock().stack.len()
    }

    /// Listens at a port; 0 means any free port.
    ///
    /// # Errors
    /// `AddrInUse` if the port is in use, or no port is free.
    pub fn listen(&self, port: u16, config: Arc<TcpConfig>) -> io::Result<UserListener> {
        let mut state = self.shared.lock();
        let port = match port {
            0 => state.stack.listen_anywhere(config),
            port => state.stack.listen(port, config).then_some(port),
        };
        let port = port.ok_or(io::ErrorKind::AddrInUse)?;
        state.backlogs.insert(port, Default::default());
        Ok(UserListener::new(Arc::clone(&self.shared), port))
    }

    /// Opens a connection without waiting; `prepare` gets its stream before the first packet leaves. With `fast_open` or
    /// `ttcp`, data that it writes may leave with the SYN.
    ///
    /// # Errors
    /// `AddrInUse` if no port is free.
    pub fn open(
        &self,
        to: SocketAddr,
        config: &TcpConfig,
        prepare: impl FnOnce(&mut Stack, StreamId),
    ) -> io::Result<UserStream> {
        open(&self.shared, to, config, prepare)
    }
}

impl Drop for UserStack {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
