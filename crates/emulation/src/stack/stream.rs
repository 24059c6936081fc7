//! Streams and listeners of a stack.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, MutexGuard, PoisonError};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use foundation::Duration;
use transport::tcp::TcpConfig;

use super::shared::{Shared, State, Status, StreamState};
use stack::{Stack, StreamId};

/// One end of a connection of the project's TCP. Dropping it closes the connection as the end of a process closes a
/// socket: the stack finishes it in the background, and unread data causes a reset.
#[derive(Debug)]
pub struct UserStream {
    shared: Arc<Shared>,
    id: StreamId,
    changed: Arc<Condvar>,
}

/// A listener at a port.
#[derive(Debug)]
pub struct UserListener {
    shared: Arc<Shared>,
    port: u16,
}

/// Waits for a change, at most until a time.
fn wait<'a>(state: MutexGuard<'a, State>, changed: &Condvar, until: StdInstant) -> MutexGuard<'a, State> {
    let waited = changed.wait_timeout(state, until.saturating_duration_since(StdInstant::now()));
    waited.unwrap_or_else(PoisonError::into_inner).0
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
    pub fn accept(&self, timeout: StdDuration) -> io::Result<UserStream> {
        let until = StdInstant::now() + timeout;
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
                });
            }
            if state.has_ended {
                return Err(ErrorKind::NetworkDown.into());
            }
            if StdInstant::now() >= until {
                return Err(ErrorKind::WouldBlock.into());
            }
            state = wait(state, &changed, until);
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
    /// Calls `act` after every change of the stream and after the time that it returned, until it breaks or the network
    /// ends.
    pub fn converse(
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
            state = wait(state, &self.changed, until);
        }
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
