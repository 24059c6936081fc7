//! Blocking streams and listeners of a stack.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, MutexGuard, PoisonError};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use foundation::Duration;
use transport::tcp::{Connection, Error as TcpError, TcpConfig};

use super::shared::{Shared, State, Status, StreamState};
use stack::{Stack, StreamId};

/// One end of a connection of the project's TCP. Dropping it closes the connection as the end of a process closes a
/// socket: the stack finishes it in the background, and unread data causes a reset.
#[derive(Debug)]
pub struct UserStream {
    shared: Arc<Shared>,
    id: StreamId,
    changed: Arc<Condvar>,
    /// Timeout of reads and writes.
    timeout: Option<StdDuration>,
}

/// A listener at a port.
#[derive(Debug)]
pub struct UserListener {
    shared: Arc<Shared>,
    port: u16,
}

fn error_of(failure: TcpError) -> io::Error {
    let kind = match failure {
        TcpError::Refused => ErrorKind::ConnectionRefused,
        TcpError::Reset => ErrorKind::ConnectionReset,
        TcpError::TimedOut => ErrorKind::TimedOut,
    };
    io::Error::new(kind, failure)
}

/// Waits for a change; returns false once `until` has passed.
fn wait<'a>(
    state: MutexGuard<'a, State>,
    changed: &Condvar,
    until: Option<StdInstant>,
) -> (MutexGuard<'a, State>, bool) {
    let Some(until) = until else {
        return (changed.wait(state).unwrap_or_else(PoisonError::into_inner), true);
    };
    let left = until.saturating_duration_since(StdInstant::now());
    if left.is_zero() {
        return (state, false);
    }
    let waited = changed.wait_timeout(state, left);
    (waited.unwrap_or_else(PoisonError::into_inner).0, true)
}

pub(super) fn open(
    shared: &Arc<Shared>,
    to: SocketAddr,
    config: &TcpConfig,
    prepare: impl FnOnce(&mut Stack, StreamId),
) -> io::Result<UserStream> {
    let mut state = shared.lock();
    let id = state
        .stack
        .connect(shared.clock.now(), shared.own_address(), to, config);
    let id = id.ok_or(ErrorKind::AddrInUse)?;
    prepare(&mut state.stack, id);
    let status = Status::default();
    let stream = UserStream {
        shared: Arc::clone(shared),
        id,
        changed: Arc::clone(&status.changed),
        timeout: None,
    };
    state.streams.insert(id, status);
    shared.flush(&mut state);
    Ok(stream)
}

impl UserListener {
    pub(super) const fn new(shared: Arc<Shared>, port: u16) -> Self {
        Self { shared, port }
    }

    /// Its address and port.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        SocketAddr::new(self.shared.own_address(), self.port)
    }

    /// Waits for the next connection, at most `timeout`.
    ///
    /// # Errors
    /// `WouldBlock` after the timeout, `NetworkDown` once the network has ended.
    pub fn accept(&self, timeout: Option<StdDuration>) -> io::Result<UserStream> {
        let until = timeout.map(|timeout| StdInstant::now() + timeout);
        let mut state = self.shared.lock();
        loop {
            let (changed, waiting) = state
                .backlogs
                .get_mut(&self.port)
                .ok_or(ErrorKind::NotConnected)?;
            let changed = Arc::clone(changed);
            if let Some(id) = waiting.pop_front() {
                let status = state.streams.entry(id).or_default();
                return Ok(UserStream {
                    shared: Arc::clone(&self.shared),
                    id,
                    changed: Arc::clone(&status.changed),
                    timeout: None,
                });
            }
            if state.has_ended {
                return Err(ErrorKind::NetworkDown.into());
            }
            let (again, more) = wait(state, &changed, until);
            if !more {
                return Err(ErrorKind::WouldBlock.into());
            }
            state = again;
        }
    }
}

impl Drop for UserListener {
    fn drop(&mut self) {
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        state.stack.stop_listening(self.port);
        let (_, waiting) = state.backlogs.remove(&self.port).unwrap_or_default();
        for id in waiting {
            state.streams.remove(&id);
            state.stack.abort(now, id);
            state.stack.release(now, id);
        }
        self.shared.flush(&mut state);
    }
}

impl UserStream {
    /// The local address and port.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        let state = self.shared.lock();
        state.stack.endpoints(self.id).map(|endpoints| endpoints.source)
    }

    /// The peer's address and port.
    #[must_use]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        let state = self.shared.lock();
        state
            .stack
            .endpoints(self.id)
            .map(|endpoints| endpoints.destination)
    }

    /// Sets the timeout of reads and writes, which then fail with `WouldBlock`; default none.
    pub const fn set_timeout(&mut self, timeout: Option<StdDuration>) {
        self.timeout = timeout;
    }

    /// Calls `look` with the connection.
    pub fn look<T>(&self, look: impl FnOnce(&Connection) -> T) -> Option<T> {
        self.shared.lock().stack.connection(self.id).map(look)
    }

    /// Calls `change` with the connection, for example to change its settings.
    pub fn touch<T>(&self, change: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        let mut state = self.shared.lock();
        let result = state.stack.touch(self.id, change);
        self.shared.flush(&mut state);
        result
    }

    /// Closes the sending direction, like `shutdown(SHUT_WR)`.
    pub fn finish(&self) {
        let mut state = self.shared.lock();
        state.stack.finish(self.shared.clock.now(), self.id);
        self.shared.flush(&mut state);
    }

    /// Writes as many bytes as there is room for, and closes the sending direction if that is all of them: the FIN may
    /// leave with the data. Returns their number.
    pub fn write_last(&self, bytes: &[u8]) -> usize {
        let mut state = self.shared.lock();
        let now = self.shared.clock.now();
        let count = state.stack.write(now, self.id, bytes);
        if count == bytes.len() {
            state.stack.finish(now, self.id);
        }
        self.shared.flush(&mut state);
        count
    }

    /// Aborts the connection with a reset.
    pub fn abort(&self) {
        let mut state = self.shared.lock();
        state.stack.abort(self.shared.clock.now(), self.id);
        self.shared.flush(&mut state);
    }

    pub(super) fn wait_until_connected(&self) -> io::Result<()> {
        self.wait_for(|state| {
            let status = state.streams.get(&self.id)?;
            match status.state.failure {
                Some(failure) => Some(Err(error_of(failure))),
                None => status.is_connected.then_some(Ok(())),
            }
        })
    }

    /// Calls `act` after every change of the stream and after the time that it returned, until it breaks or the network
    /// ends.
    pub(crate) fn converse(
        &self,
        mut act: impl FnMut(&mut Stack, StreamId, StreamState) -> ControlFlow<(), Duration>,
    ) {
        let mut state = self.shared.lock();
        while let Some(status) = state.streams.get(&self.id).filter(|_| !state.has_ended) {
            let stream = status.state;
            let next = act(&mut state.stack, self.id, stream);
            self.shared.flush(&mut state);
            let ControlFlow::Continue(span) = next else {
                return;
            };
            let until = StdInstant::now() + StdDuration::from_nanos(span.as_nanos());
            state = wait(state, &self.changed, Some(until)).0;
        }
    }

    /// Repeats `act` after every change until it returns a result, within the timeout.
    fn wait_for<T>(&self, mut act: impl FnMut(&mut State) -> Option<io::Result<T>>) -> io::Result<T> {
        let until = self.timeout.map(|timeout| StdInstant::now() + timeout);
        let mut state = self.shared.lock();
        loop {
            let done = act(&mut state);
            if let Some(result) = done {
                self.shared.flush(&mut state);
                return result;
            }
            if state.has_ended {
                return Err(ErrorKind::NetworkDown.into());
            }
            let (again, more) = wait(state, &self.changed, until);
            if !more {
                return Err(ErrorKind::WouldBlock.into());
            }
            state = again;
        }
    }
}

impl Read for &UserStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        self.wait_for(|state| {
            let count = state.stack.read(self.shared.clock.now(), self.id, buffer);
            let status = state.streams.get(&self.id)?;
            match status.state {
                _ if count > 0 => Some(Ok(count)),
                state if state.peer_has_finished => Some(Ok(0)),
                state if state.is_closed => Some(Err(match state.failure {
                    Some(failure) => error_of(failure),
                    None => ErrorKind::ConnectionAborted.into(),
                })),
                _ => None,
            }
        })
    }
}

impl Write for &UserStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        self.wait_for(|state| {
            let count = state.stack.write(self.shared.clock.now(), self.id, bytes);
            if count > 0 {
                return Some(Ok(count));
            }
            let may_write = state.stack.connection(self.id).is_some_and(Connection::may_write);
            let failure = state
                .streams
                .get(&self.id)
                .and_then(|status| status.state.failure);
            match (may_write, failure) {
                (true, _) => None,
                (false, Some(failure)) => Some(Err(error_of(failure))),
                (false, None) => Some(Err(ErrorKind::BrokenPipe.into())),
            }
        })
    }

    /// Does nothing: the protocol decides when data leaves.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for UserStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&mut &*self).read(buffer)
    }
}

impl Write for UserStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&mut &*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for UserStream {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.streams.remove(&self.id);
        state.stack.release(self.shared.clock.now(), self.id);
        self.shared.flush(&mut state);
    }
}
