//! The project's TCP at a host of an emulated network: a [`Stack`] on wall time, and blocking
//! streams like those of the standard library.

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
use transport::tcp::{HostMemory, TcpConfig};

pub use self::gateway::HostGateway;
pub(crate) use self::shared::StreamState;
use self::shared::{Shared, State};
use self::stream::open;
pub use self::stream::{UserListener, UserStream};
use super::port::Port;
use stack::{Counters, Stack, StreamId};

/// Ports that a stack takes for itself: those that Linux does not (`ip_local_port_range`), so that both can be at one host.
pub(crate) const PORTS: std::ops::RangeInclusive<u16> = 10_000..=32_767;

/// The project's TCP at a host. It ends when it is dropped with all of its streams and listeners.
#[derive(Debug)]
pub struct UserStack {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl UserStack {
    /// The project's TCP with this address on a port.
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

    /// What it has done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.shared.lock().stack.counters()
    }

    /// Connections, those that linger in TIME-WAIT included.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.lock().stack.len()
    }

    /// Listens at a port; 0 is one that is free.
    ///
    /// # Errors
    /// `AddrInUse` where somebody listens already, or no port is free.
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

    /// Connects, and waits until the connection stands.
    ///
    /// # Errors
    /// `ConnectionRefused`, `TimedOut`, and `AddrInUse` where no port is free.
    pub fn connect(&self, to: SocketAddr, config: &TcpConfig) -> io::Result<UserStream> {
        let stream = self.open(to, config, |_, _| {})?;
        stream.wait_until_connected()?;
        Ok(stream)
    }

    /// Opens a connection and writes the beginning of the stream, which with `fast_open` or `ttcp` may leave with the SYN; and
    /// with `ends` the stream's end behind it, which leaves with `ttcp` likewise. It does not wait for the connection: reading
    /// does. Gives how many bytes there was room for; the end is left out where those are not all.
    ///
    /// # Errors
    /// `AddrInUse` where no port is free.
    pub fn connect_sending(
        &self,
        to: SocketAddr,
        config: &TcpConfig,
        bytes: &[u8],
        ends: bool,
    ) -> io::Result<(UserStream, usize)> {
        let now = self.shared.clock.now();
        let mut written = 0;
        let stream = self.open(to, config, |stack, id| {
            written = stack.write(now, id, bytes);
            if ends && written == bytes.len() {
                stack.finish(now, id);
            }
        })?;
        Ok((stream, written))
    }

    /// Lets `change` have what the stack remembers of other hosts, for connections with `fast_open` or `ttcp`.
    pub fn with_memory<T>(&self, change: impl FnOnce(&mut HostMemory) -> T) -> T {
        change(self.shared.lock().stack.memory())
    }

    /// Opens a connection without waiting for it; `prepare` has its stream before the first packet leaves.
    pub(crate) fn open(
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
