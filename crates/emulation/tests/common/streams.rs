//! Blocking streams over the project's TCP at a host, like those of the standard library.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;
use std::time::Duration as StdDuration;

use ::stack::{Counters, Stack, StreamId};
use emulation::{Clock, Emulation, StreamState, UserListener, UserStack, UserStream};
use foundation::{Duration, Instant, Streams};
use network::HostId;
use transport::tcp::{Connection, Error, State, TcpConfig};

/// How often a stream is looked at without a change.
const INTERVAL: Duration = Duration::from_millis(50);

pub struct HostStack {
    inner: UserStack,
    clock: Clock,
}

impl HostStack {
    /// The project's TCP at a host, with the ports `share` or instead of the kernel.
    pub fn attach(emulation: &Emulation, host: HostId, share: Option<RangeInclusive<u16>>) -> Self {
        let port = emulation.attach(host, share).unwrap();
        let (address, clock) = (emulation.host_address(host), emulation.clock());
        let secret = Streams::new(7, u64::from(host.0));
        Self {
            inner: UserStack::start(port, address, clock, secret).unwrap(),
            clock,
        }
    }

    pub fn counters(&self) -> Counters {
        self.inner.counters()
    }

    pub fn listen(&self, port: u16, config: Arc<TcpConfig>) -> io::Result<Listener> {
        let inner = self.inner.listen(port, config)?;
        Ok(Listener {
            inner,
            clock: self.clock,
        })
    }

    fn open(&self, to: SocketAddr, config: &TcpConfig, prepare: impl FnOnce(&mut Stack, StreamId)) -> Stream {
        let inner = self.inner.open(to, config, prepare).unwrap();
        Stream {
            inner,
            clock: self.clock,
        }
    }

    /// Opens a connection and waits until it is established.
    pub fn connect(&self, to: SocketAddr, config: &TcpConfig) -> io::Result<Stream> {
        let stream = self.open(to, config, |_, _| {});
        stream.wait_for(|stack, id, state, _| match state.failure {
            Some(failure) => Some(Err(error_of(failure))),
            None => (stack.connection(id)?.state() != State::SynSent).then_some(Ok(())),
        })?;
        Ok(stream)
    }

    /// Opens a connection, writes all bytes and closes the sending direction before the SYN leaves.
    pub fn connect_sending(&self, to: SocketAddr, config: &TcpConfig, bytes: &[u8]) -> Stream {
        let now = self.clock.now();
        self.open(to, config, |stack, id| {
            assert_eq!(stack.write(now, id, bytes), bytes.len());
            stack.finish(now, id);
        })
    }
}

pub struct Listener {
    inner: UserListener,
    clock: Clock,
}

impl Listener {
    pub fn local_addr(&self) -> SocketAddr {
        self.inner.local_addr()
    }

    /// Waits for the next connection.
    pub fn accept(&self) -> io::Result<Stream> {
        let inner = self.inner.accept(StdDuration::from_secs(60))?;
        Ok(Stream {
            inner,
            clock: self.clock,
        })
    }
}

pub struct Stream {
    inner: UserStream,
    clock: Clock,
}

fn error_of(failure: Error) -> io::Error {
    let kind = match failure {
        Error::Refused => ErrorKind::ConnectionRefused,
        Error::Reset => ErrorKind::ConnectionReset,
        Error::TimedOut => ErrorKind::TimedOut,
    };
    io::Error::new(kind, failure)
}

impl Stream {
    /// Repeats `act` after every change until it returns a result.
    fn wait_for<T>(
        &self,
        mut act: impl FnMut(&mut Stack, StreamId, StreamState, Instant) -> Option<io::Result<T>>,
    ) -> io::Result<T> {
        let mut result = None;
        self.inner.converse(|stack, id, state| {
            result = act(stack, id, state, self.clock.now());
            match result {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(INTERVAL),
            }
        });
        result.unwrap_or_else(|| Err(ErrorKind::NetworkDown.into()))
    }

    fn once<T>(&self, act: impl FnOnce(&mut Stack, StreamId, Instant) -> T) -> T {
        let mut act = Some(act);
        let result = self.wait_for(|stack, id, _, now| act.take().map(|act| Ok(act(stack, id, now))));
        result.unwrap()
    }

    /// Returns a property of the connection.
    pub fn look<T>(&self, look: impl FnOnce(&Connection) -> T) -> T {
        self.once(|stack, id, _| look(stack.connection(id).unwrap()))
    }

    /// Closes the sending direction.
    pub fn finish(&self) {
        self.once(|stack, id, now| stack.finish(now, id));
    }

    /// Writes all bytes and closes the sending direction: the FIN may leave with the data.
    pub fn write_last(&self, bytes: &[u8]) {
        self.once(|stack, id, now| {
            assert_eq!(stack.write(now, id, bytes), bytes.len());
            stack.finish(now, id);
        });
    }

    /// Aborts the connection with a reset.
    pub fn abort(&self) {
        self.once(|stack, id, now| stack.abort(now, id));
    }
}

impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait_for(|stack, id, state, now| {
            let count = stack.read(now, id, buffer);
            match state.failure {
                _ if count > 0 || state.peer_has_finished => Some(Ok(count)),
                Some(failure) => Some(Err(error_of(failure))),
                None => state.is_closed.then(|| Err(ErrorKind::ConnectionAborted.into())),
            }
        })
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait_for(|stack, id, _, now| {
            let count = stack.write(now, id, bytes);
            match stack.connection(id).is_some_and(Connection::may_write) {
                _ if count > 0 => Some(Ok(count)),
                true => None,
                false => Some(Err(ErrorKind::BrokenPipe.into())),
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&mut &*self).read(buffer)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&mut &*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
