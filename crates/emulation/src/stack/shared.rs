//! State that the thread of a stack and its streams share.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use foundation::Instant;
use socket::clock::Clock;
use stack::{ConnectionEvent, Event, Stack, StreamId};
use transport::tcp::Error as TcpError;

use crate::port::Port;

/// State that the thread of a stack and its streams share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    pub(super) clock: Clock,
    pub(super) port: Port,
    pub(super) address: Ipv4Addr,
    /// Wakes the thread.
    pub(super) wake: OwnedFd,
    pub(super) stop: AtomicBool,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) stack: Stack,
    /// The next packet, if the port was full.
    pub(super) packet: Vec<u8>,
    pub(super) is_blocked: bool,
    /// Whether the network has ended.
    pub(super) has_ended: bool,
    /// The end of the thread's sleep.
    pub(super) sleeps_until: Instant,
    pub(super) streams: BTreeMap<StreamId, Status>,
    /// Connections to accept, by port.
    pub(super) backlogs: BTreeMap<u16, (Arc<Condvar>, VecDeque<StreamId>)>,
}

/// A stream and the condition variable of its waiters.
#[derive(Debug, Default)]
pub(super) struct Status {
    pub(super) changed: Arc<Condvar>,
    pub(super) state: StreamState,
}

/// The state of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamState {
    /// Whether the peer has closed its direction.
    pub peer_has_finished: bool,
    /// Whether both directions are closed and acknowledged.
    pub has_finished: bool,
    /// Whether the connection is closed, or has failed.
    pub is_closed: bool,
    /// Why it has failed.
    pub failure: Option<TcpError>,
}

impl Shared {
    /// A panic is reported elsewhere; the state stays usable.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wake(&self) {
        // A full counter wakes the thread too.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    pub(super) const fn own_address(&self) -> IpAddr {
        IpAddr::V4(self.address)
    }

    /// Sends packets, dispatches events, and wakes the thread if a timer is due before its sleep ends.
    pub(super) fn flush(&self, state: &mut State) {
        self.send(state);
        state.dispatch_events();
        if state.is_blocked
            || state
                .stack
                .poll_timeout()
                .is_some_and(|at| at < state.sleeps_until)
        {
            state.sleeps_until = Instant::ZERO;
            self.wake();
        }
    }

    pub(super) fn send(&self, state: &mut State) {
        loop {
            if !state.is_blocked && !state.stack.poll_transmit(self.clock.now(), &mut state.packet) {
                return;
            }
            match self.port.send(&state.packet) {
                Ok(()) => state.is_blocked = false,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    state.is_blocked = true;
                    return;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    state.is_blocked = false;
                    state.end();
                    return;
                }
            }
        }
    }
}

impl State {
    /// Passes the stack's events to waiting threads.
    pub(super) fn dispatch_events(&mut self) {
        while let Some(event) = self.stack.poll_event() {
            match event {
                Event::Accepted { stream, port } => {
                    self.streams.insert(stream, Status::default());
                    if let Some((changed, waiting)) = self.backlogs.get_mut(&port) {
                        waiting.push_back(stream);
                        changed.notify_one();
                    }
                }
                Event::Connection(stream, event) => {
                    let Some(status) = self.streams.get_mut(&stream) else {
                        continue;
                    };
                    match event {
                        ConnectionEvent::PeerFinished => status.state.peer_has_finished = true,
                        ConnectionEvent::Closed => status.state.is_closed = true,
                        ConnectionEvent::Failed(error) => {
                            status.state.failure = Some(error);
                            status.state.is_closed = true;
                        }
                        ConnectionEvent::Finished => status.state.has_finished = true,
                        ConnectionEvent::Connected
                        | ConnectionEvent::Readable
                        | ConnectionEvent::Writable => {}
                    }
                    status.changed.notify_all();
                }
            }
        }
    }

    /// Releases all waiting threads after the network's end.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
        for status in self.streams.values() {
            status.changed.notify_all();
        }
        for (changed, _) in self.backlogs.values() {
            changed.notify_all();
        }
    }
}
