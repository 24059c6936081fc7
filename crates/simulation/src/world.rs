//! The event loop on virtual time: a clock, two hosts, and the network between them.

use std::sync::atomic::{AtomicBool, Ordering};

use foundation::{Instant, Streams};
use network::{FORWARD, HostId, Network, NetworkBuilder, Observer, PathSpec, REVERSE};
use rand::Rng;
use transport::arq::{ArqConfig, Connection, StreamRange};

use crate::body::SimulatedFrame;
use crate::host::{Host, Role};

/// Learns what happens in a world. Every method does nothing unless it is written; an unused watcher
/// (`()`) is compiled away.
pub trait Watch: Observer<SimulatedFrame> {
    /// A retransmission timer ran out.
    #[inline]
    fn timed_out(&mut self, at: Instant, host: Role) {
        let _ = (at, host);
    }

    /// The application read a piece of the stream.
    #[inline]
    fn delivered(&mut self, at: Instant, host: Role, range: StreamRange) {
        let _ = (at, host, range);
    }

    /// The connection has done all that it wanted to do now.
    #[inline]
    fn settled(&mut self, at: Instant, host: Role, connection: &Connection<StreamRange>) {
        let _ = (at, host, connection);
    }
}

/// What a host sees of the world: the time, and the network.
pub struct Port<'a, W> {
    /// The time.
    pub now: Instant,
    /// The network.
    pub network: &'a mut Network<SimulatedFrame, W>,
}

/// How a run ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// The caller wished so.
    #[error("cancelled")]
    Cancelled,
    /// Nothing is left that could happen, and the transfer is not done.
    #[error("the transfer came to a halt")]
    Stalled,
}

/// Two hosts and a network.
pub struct World<W: Watch = ()> {
    now: Instant,
    network: Network<SimulatedFrame, W>,
    sender: Host,
    receiver: Host,
    id: u32,
    first: u32,
}

/// Steps between two looks at the wish to cancel.
const STEPS_A_LOOK: u32 = 4096;

impl<W: Watch> World<W> {
    /// A sender and a receiver that run `protocol`, with `paths` behind one another between them.
    #[must_use]
    pub fn new(paths: &[PathSpec], protocol: &ArqConfig, streams: Streams, watch: W) -> Self {
        let network = NetworkBuilder::chain(paths, streams.component("network")).build_observed(watch);
        let mut random = streams.stream("hosts");
        let mut secret = || {
            let mut bytes = [0; 32];
            random.fill_bytes(&mut bytes);
            bytes
        };
        let sender = Host::new(Role::Sender, FORWARD, protocol.clone(), secret());
        let receiver = Host::new(Role::Receiver, REVERSE, protocol.clone(), secret());
        Self {
            now: Instant::ZERO,
            network,
            sender,
            receiver,
            id: random.next_u32(),
            first: 0,
        }
    }

    /// Sends `bytes` from one host to the other, until all is acknowledged and both streams have
    /// ended, or the connection has failed.
    ///
    /// # Errors
    /// [`Stop`] if the run ended in another way.
    pub fn transfer(&mut self, bytes: u64, cancel: Option<&AtomicBool>) -> Result<(), Stop> {
        let mut port = Port {
            now: self.now,
            network: &mut self.network,
        };
        self.sender.send(&mut port, self.id, self.first, bytes);
        let mut steps = 0_u32;
        while !self.sender.is_finished() && self.sender.failure().is_none() {
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(STEPS_A_LOOK) && cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
                return Err(Stop::Cancelled);
            }
            if !self.step() {
                return Err(Stop::Stalled);
            }
        }
        Ok(())
    }

    /// Moves to the next thing that happens. Gives whether there was one.
    #[inline]
    fn step(&mut self) -> bool {
        let network_at = self.network.poll_timeout().unwrap_or(Instant::MAX);
        let next = network_at.min(self.sender.timeout()).min(self.receiver.timeout());
        if next == Instant::MAX {
            return false;
        }
        self.now = self.now.max(next);
        // Packets before timers: an ACK that arrives in the same nanosecond still counts.
        if network_at <= self.now {
            self.network.handle_timeout(self.now);
            while let Some((HostId(host), packet)) = self.network.poll_delivery() {
                let mut port = Port {
                    now: self.now,
                    network: &mut self.network,
                };
                let host = if host == 0 {
                    &mut self.sender
                } else {
                    &mut self.receiver
                };
                host.handle_packet(&mut port, packet);
            }
        }
        for host in [&mut self.sender, &mut self.receiver] {
            if host.timeout() <= self.now {
                let mut port = Port {
                    now: self.now,
                    network: &mut self.network,
                };
                host.handle_timeout(&mut port);
            }
        }
        true
    }

    /// The virtual time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Host 0.
    #[must_use]
    pub const fn sender(&self) -> &Host {
        &self.sender
    }

    /// Host 1.
    #[must_use]
    pub const fn receiver(&self) -> &Host {
        &self.receiver
    }

    /// The network, with what its links counted.
    #[must_use]
    pub const fn network(&self) -> &Network<SimulatedFrame, W> {
        &self.network
    }

    /// The network, to take what its watcher saw.
    pub const fn network_mut(&mut self) -> &mut Network<SimulatedFrame, W> {
        &mut self.network
    }
}
