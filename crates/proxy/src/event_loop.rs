//! The relay on wall time: one thread that waits for sockets and timers.

use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};

use ::socket::clock::Clock;
use ::socket::spin::{Pause, SpinBudget, SpinLimits};
use ::socket::system_error::plain;
use ::socket::wait;
use capture::CaptureWriter;
use foundation::{Duration, Instant};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket as OsSocket, Type};
use stack::Key;

use crate::lanes::HOSTS;
use crate::negotiation::{Mode, Negotiation};
use crate::options::{Listener, RelayOptions};
use crate::proxy::{Greeting, Proxy, Request};
use crate::report::Report;
use crate::target::Target;
use crate::udp_sockets::{UDP, UdpSockets};
use crate::visitors::{NEGOTIATING, Visitors};

/// How often the caller can stop the relay, at least.
const TICK: Duration = Duration::from_millis(50);
/// How long no connection is accepted after the system has refused one, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Events per look.
const EVENTS: usize = 256;
/// Connections accepted per look, so that others continue.
const ACCEPTED: usize = 64;
const BACKLOG: i32 = 4096;
/// Requested size of the receive buffers of the system's sockets, which the kernel doubles. Bytes in them are invisible to TCP on the path, so a
/// large buffer would hide backpressure.
const RECEIVE_BUFFER: usize = 256 * 1024;
/// Highest bit of the tokens of listeners.
const LISTENER: u64 = 1 << 63;
/// Files of a connection: one socket at each end.
const FILES_PER_CONNECTION: u64 = 2;
/// Files that are not connections: standard streams, listeners, epoll, and those of the program around the relay.
const OTHER_FILES: u64 = 64;
/// Files of a relay with one connection.
const LEAST_FILES: u64 = OTHER_FILES + FILES_PER_CONNECTION;
/// Enough for 32,000 connections.
const MOST_FILES: u64 = 65_536;
/// Token of the eventfd that wakes the thread.
const WAKE: u64 = u64::MAX;
/// The thread sleeps under load, because the programs at both ends need the processor.
const LIMITS: SpinLimits = SpinLimits {
    awake_when_busy: false,
    ..SpinLimits::SHARED
};

/// Why a relay cannot start or has stopped.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The address to listen at is not available.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The limit of open files leaves none for a connection.
    #[error(
        "the limit of {0} open files allows no connection: raise it to at least {LEAST_FILES} (ulimit -n)"
    )]
    FewFiles(u64),
    /// The system provides no event queue.
    #[error("cannot wait for connections: {0}")]
    Wait(#[from] io::Error),
}

/// A function for the relay's thread to run between two looks.
type Job = Box<dyn FnOnce(&mut EventLoop, Instant) + Send>;

/// A connection to a running relay, for other threads.
#[derive(Clone)]
pub struct Handle {
    jobs: Sender<Job>,
    wake: Arc<OwnedFd>,
}

impl Handle {
    fn send(&self, job: Job) {
        // A relay that has ended needs no jobs.
        if self.jobs.send(job).is_ok() {
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
    }

    /// Calls a function with the machine in the relay's thread and waits for its result; `None` once the relay has ended.
    pub fn call<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Proxy<TcpStream>, Instant) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, result) = sync_channel(1);
        self.send(Box::new(move |relay, now| {
            // The caller waits.
            let _ = answer.send(act(&mut relay.proxy, now));
        }));
        result.recv().ok()
    }
}

/// A relay with its listening sockets.
pub struct Relay {
    inner: EventLoop,
    jobs: Receiver<Job>,
    addresses: Vec<SocketAddr>,
}

impl Relay {
    /// Opens the listening sockets.
    ///
    /// # Errors
    /// [`RelayError::Listen`] if an address is not available, [`RelayError::FewFiles`] if the limit of open files allows no
    /// connection.
    pub fn bind(options: RelayOptions) -> Result<Self, RelayError> {
        let most_files = allow_many_files();
        if most_files < LEAST_FILES {
            return Err(RelayError::FewFiles(most_files));
        }
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?;
        let mut listeners = Vec::new();
        let mut addresses = Vec::new();
        for (index, listener) in options.listeners.into_iter().enumerate() {
            let address = listener.listen;
            let failed = |source| RelayError::Listen { address, source };
            let socket = listen(address).map_err(failed)?;
            addresses.push(socket.local_addr().map_err(failed)?);
            let token = EventData::new_u64(LISTENER | index as u64);
            epoll::add(&epoll, &socket, token, EventFlags::IN).map_err(io::Error::from)?;
            listeners.push((socket, listener));
        }
        let mut udp = UdpSockets::default();
        for listener in options.udp {
            let address = listener.listen;
            let opened = udp.listen(&epoll, listener);
            addresses.push(opened.map_err(|source| RelayError::Listen { address, source })?);
        }
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE), EventFlags::IN).map_err(io::Error::from)?;
        let (sender, jobs) = channel();
        let inner = EventLoop {
            proxy: Proxy::new(options.proxy),
            clock: Clock::new(),
            epoll,
            listeners,
            udp,
            attempts: HashMap::new(),
            visitors: Visitors::default(),
            lookups: HashMap::new(),
            most_files,
            paused_until: None,
            handle: Handle {
                jobs: sender,
                wake: Arc::new(wake),
            },
        };
        Ok(Self {
            inner,
            jobs,
            addresses,
        })
    }

    /// Returns the addresses of clients' ends in the order of the options, those for UDP last.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns a handle for other threads.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.inner.handle.clone()
    }

    /// Writes the packets of the path to a file (pcapng), with an interface for each end. The file is complete once the relay has ended and
    /// [`CaptureWriter::finish`] has returned.
    ///
    /// # Errors
    /// The system's, for a file that cannot be created.
    pub fn capture(&mut self, file: &Path) -> io::Result<CaptureWriter> {
        let (writer, tap) = CaptureWriter::create(file, &HOSTS.map(String::from), self.inner.clock.now())?;
        self.inner.proxy.capture(tap);
        Ok(writer)
    }

    /// Relays until `tick` breaks; `tick` is called about 20 times a second with the machine. Then all connections are reset, so
    /// that no program takes the end of the relay for the end of its peer's stream.
    ///
    /// # Errors
    /// [`RelayError::Wait`] if the system fails.
    pub fn run(
        mut self,
        tick: &mut dyn FnMut(&mut Proxy<TcpStream>) -> ControlFlow<()>,
    ) -> Result<Report, RelayError> {
        wait::sharpen_timers();
        wait::raise_priority();
        self.inner.run(&self.jobs, tick)?;
        let now = self.inner.advance();
        let report = self.inner.proxy.report();
        self.inner.proxy.reset_all(now);
        Ok(report)
    }
}

/// Raises the limit of open files to the highest that needs no privileges, but to at most [`MOST_FILES`]; returns the limit.
fn allow_many_files() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(MOST_FILES, |most| most.min(MOST_FILES));
    if limit.current.is_some_and(|current| current < most) {
        // On failure fewer connections are possible at a time; the others wait.
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(most),
                ..limit
            },
        );
    }
    getrlimit(Resource::Nofile).current.unwrap_or(MOST_FILES)
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = OsSocket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    // Accepted sockets inherit it.
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Starts a connection without waiting for it.
fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = OsSocket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address.into()) {
        Err(error) if error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => Err(error),
        _ => Ok(socket.into()),
    }
}

/// A connection to a target that is being opened.
struct Attempt {
    socket: TcpStream,
    /// Further addresses of the target's name.
    others: VecDeque<SocketAddr>,
}

struct EventLoop {
    proxy: Proxy<TcpStream>,
    clock: Clock,
    epoll: OwnedFd,
    listeners: Vec<(TcpListener, Listener)>,
    udp: UdpSockets,
    attempts: HashMap<Key, Attempt>,
    visitors: Visitors,
    /// Ends whose target is being resolved, by target.
    lookups: HashMap<(String, u16), Vec<Key>>,
    /// Limit of open files.
    most_files: u64,
    /// Accepts no connections until then.
    paused_until: Option<Instant>,
    handle: Handle,
}

impl EventLoop {
    fn run(
        &mut self,
        jobs: &Receiver<Job>,
        tick: &mut dyn FnMut(&mut Proxy<TcpStream>) -> ControlFlow<()>,
    ) -> Result<(), RelayError> {
        let mut budget = SpinBudget::new(LIMITS);
        let mut events = Vec::with_capacity(EVENTS);
        let mut next_tick = Instant::ZERO;
        loop {
            self.look(&mut events)?;
            // Bytes that have arrived since the last look enter the path now, after what was due before.
            self.advance();
            for event in &events {
                self.handle_event(event, jobs);
            }
            let now = self.advance();
            budget.count(now, events.len() as u64);
            while let Some(request) = self.proxy.poll_request() {
                self.start(request);
            }
            while let Some(socket) = self.proxy.poll_refused() {
                self.visitors.add(now, &self.epoll, socket, None);
            }
            self.send_datagrams(now);
            if self.paused_until.is_some_and(|until| until <= now) {
                self.paused_until = None;
                self.watch_listeners(EventFlags::IN)?;
            }
            if now >= next_tick {
                next_tick = now + TICK;
                self.visitors.forget(now);
                self.udp.forget(now, &mut self.proxy);
                if tick(&mut self.proxy).is_break() {
                    return Ok(());
                }
            }
            let now = self.clock.now();
            // More events may have arrived meanwhile.
            if !events.is_empty() || self.proxy.poll_timeout().is_some_and(|due| due <= now) {
                continue;
            }
            match budget.pause(now, self.proxy.poll_timeout(), next_tick.saturating_since(now)) {
                Pause::Spin => {}
                Pause::Sleep(span) => wait::wait_any(&mut [PollFd::new(&self.epoll, PollFlags::IN)], span),
            }
        }
    }

    /// Processes what is due by now, and returns the time.
    fn advance(&mut self) -> Instant {
        let now = self.clock.now();
        self.proxy.catch_up(now);
        now
    }

    /// Takes the events of sockets without waiting.
    fn look(&self, events: &mut Vec<epoll::Event>) -> io::Result<()> {
        events.clear();
        let none = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&none)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn handle_event(&mut self, event: &epoll::Event, jobs: &Receiver<Job>) {
        let token = event.data.u64();
        match token {
            WAKE => self.run_jobs(jobs),
            _ if token & UDP == UDP => {
                let (now, is_full) = (self.advance(), self.is_full());
                self.udp
                    .receive(now, token, &self.epoll, is_full, &mut self.proxy);
            }
            _ if token & LISTENER != 0 => self.accept((token & !LISTENER) as usize),
            _ if token & NEGOTIATING != 0 => {
                if let Some((socket, target, greeting, early)) = self.visitors.read(self.clock.now(), token) {
                    self.admit(socket, target, Some(greeting), &early);
                }
            }
            _ => {
                let key = Key::from_number(token);
                let flags = event.flags;
                if self.attempts.contains_key(&key) {
                    self.finish_attempt(key);
                } else if flags.contains(EventFlags::ERR) {
                    let now = self.advance();
                    self.proxy.socket_reset(now, key);
                } else {
                    let readable = flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP);
                    let writable = flags.intersects(EventFlags::OUT | EventFlags::HUP);
                    self.proxy.ready(key, readable, writable);
                }
            }
        }
    }

    /// Sends datagrams of UDP that have crossed the path.
    fn send_datagrams(&mut self, now: Instant) {
        while let Some((direction, client, bytes)) = self.proxy.poll_datagram() {
            if !self.udp.send(now, direction, client, &bytes) {
                self.proxy.count_dropped_datagram();
            }
        }
    }

    fn run_jobs(&mut self, jobs: &Receiver<Job>) {
        // The read resets the counter. It fails if there is nothing to reset.
        let _ = rustix::io::read(&self.handle.wake, &mut [0_u8; 8]);
        while let Ok(job) = jobs.try_recv() {
            let now = self.advance();
            job(self, now);
        }
    }

    /// Whether the limit of open files allows no further connection. Clients then wait to be accepted.
    fn is_full(&self) -> bool {
        let connections = (self.proxy.open() + self.visitors.len()) as u64;
        FILES_PER_CONNECTION * connections + self.udp.len() as u64 + LEAST_FILES > self.most_files
    }

    /// Accepts no connections for a moment.
    fn pause_accepting(&mut self) {
        self.paused_until = Some(self.clock.now() + ACCEPT_PAUSE);
        // If this fails, the loop only looks more often than necessary.
        let _ = self.watch_listeners(EventFlags::empty());
    }

    fn accept(&mut self, index: usize) {
        for _ in 0..ACCEPTED {
            if self.is_full() {
                return self.pause_accepting();
            }
            match self.listeners[index].0.accept() {
                Ok((socket, _)) => {
                    // Without these options the connection works, but less well.
                    let _ = socket.set_nonblocking(true);
                    let _ = socket.set_nodelay(true);
                    match self.listeners[index].1.mode.clone() {
                        Mode::Fixed(target) => self.admit(socket, target, None, &[]),
                        Mode::Socks5 => self.negotiate(socket, Negotiation::new(true)),
                        Mode::HttpConnect => self.negotiate(socket, Negotiation::new(false)),
                    }
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return,
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                    _ => return self.pause_accepting(),
                },
            }
        }
    }

    fn watch_listeners(&self, flags: EventFlags) -> io::Result<()> {
        for (index, (socket, _)) in self.listeners.iter().enumerate() {
            let token = EventData::new_u64(LISTENER | index as u64);
            epoll::modify(&self.epoll, socket, token, flags)?;
        }
        Ok(())
    }

    fn admit(&mut self, socket: TcpStream, target: Target, greeting: Option<Greeting>, early: &[u8]) {
        let now = self.advance();
        if let Some(key) = self.proxy.accept(now, socket, target, greeting) {
            self.proxy.send_early(now, key, early);
            self.watch(key);
        }
    }

    fn negotiate(&mut self, socket: TcpStream, negotiation: Negotiation) {
        let now = self.clock.now();
        self.visitors.add(now, &self.epoll, socket, Some(negotiation));
    }

    /// Reports changes of an end's socket, each once. A closed socket leaves the queue by itself.
    fn watch(&mut self, key: Key) {
        let Some(socket) = self.proxy.socket(key) else {
            return;
        };
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let token = EventData::new_u64(key.number());
        let watched = match epoll::add(&self.epoll, socket, token, flags) {
            // It was watched while it was connecting.
            Err(Errno::EXIST) => epoll::modify(&self.epoll, socket, token, flags),
            other => other,
        };
        if watched.is_err() {
            let now = self.advance();
            self.proxy.socket_reset(now, key);
        }
    }

    /// Starts the connection of a request.
    fn start(&mut self, request: Request) {
        match request.target {
            Target::Address(address) => self.attempt(request.key, [address].into()),
            Target::Name(host, port) => self.resolve(request.key, host, port),
        }
    }

    /// Resolves a name on a thread, since the system's resolver blocks: on one for all connections to the target that wait.
    fn resolve(&mut self, key: Key, host: String, port: u16) {
        let name = (host, port);
        if let Some(waiting) = self.lookups.get_mut(&name) {
            waiting.push(key);
            return;
        }
        self.lookups.insert(name.clone(), vec![key]);
        let handle = self.handle.clone();
        let target = name.clone();
        let lookup = move || {
            let found = (target.0.as_str(), target.1).to_socket_addrs();
            let found = found.map(Iterator::collect).map_err(|error| plain(&error));
            handle.send(Box::new(move |relay, _| relay.resolved(&target, &found)));
        };
        let spawned = std::thread::Builder::new().name("resolver".into()).spawn(lookup);
        if let Err(error) = spawned {
            self.resolved(&name, &Err(plain(&error)));
        }
    }

    /// Connects all ends that wait for the addresses of a target.
    fn resolved(&mut self, target: &(String, u16), found: &Result<VecDeque<SocketAddr>, String>) {
        for key in self.lookups.remove(target).unwrap_or_default() {
            match found {
                Ok(addresses) if !addresses.is_empty() => self.attempt(key, addresses.clone()),
                Ok(_) => self.fail(key, "the name has no address".into()),
                Err(reason) => self.fail(key, reason.clone()),
            }
        }
    }

    fn attempt(&mut self, key: Key, mut addresses: VecDeque<SocketAddr>) {
        let mut last = String::from("no address");
        while let Some(address) = addresses.pop_front() {
            match connect(address) {
                Ok(socket) => {
                    let _ = socket.set_nodelay(true);
                    let token = EventData::new_u64(key.number());
                    if let Err(error) = epoll::add(&self.epoll, &socket, token, EventFlags::OUT) {
                        last = plain(&io::Error::from(error));
                        continue;
                    }
                    let others = addresses;
                    self.attempts.insert(key, Attempt { socket, others });
                    return;
                }
                Err(error) => last = plain(&error),
            }
        }
        self.fail(key, last);
    }

    fn finish_attempt(&mut self, key: Key) {
        let Some(Attempt { socket, others }) = self.attempts.remove(&key) else {
            return;
        };
        let failure = match socket.take_error() {
            Ok(None) => None,
            Ok(Some(error)) | Err(error) => Some(error),
        };
        match failure {
            None => {
                let now = self.advance();
                if let Some(key) = self.proxy.connected(now, key, Ok(socket)) {
                    self.watch(key);
                }
            }
            Some(_) if !others.is_empty() => self.attempt(key, others),
            Some(error) => self.fail(key, plain(&error)),
        }
    }

    fn fail(&mut self, key: Key, reason: String) {
        let now = self.advance();
        self.proxy.connected(now, key, Err(reason));
    }
}
