//! The thread of a gateway between a host's kernel and the network.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use foundation::{Duration, Instant, Streams};
use network::HostId;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use socket::clock::Clock;
use socket::wait;
use transport::tcp::TcpConfig;

use crate::device_port::DevicePort;
use crate::emulation::Emulation;
use crate::port::Port;
use stack::{Gateway, Side};

/// Packets read from one side before replies are sent.
const BATCH: usize = 32;
/// Bytes of the largest IPv4 packet.
const LARGEST: usize = 65_536;
/// The longest sleep.
const LONGEST: Duration = Duration::from_secs(1);

/// Carries all connections of a host over the project's TCP instead of the kernel's, until it is dropped. Programs at
/// the host keep using sockets.
#[derive(Debug)]
pub struct HostGateway {
    stop: Arc<(AtomicBool, OwnedFd)>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl HostGateway {
    /// Starts a gateway at a host.
    ///
    /// # Errors
    /// `Unsupported` for a host with several ways, and the system's.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn start(
        emulation: &Emulation,
        host: HostId,
        config: Arc<TcpConfig>,
        secret: Streams,
    ) -> io::Result<Self> {
        let (network, kernel) = emulation.interpose(host)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let stop = Arc::new((AtomicBool::new(false), wake));
        let mut driver = Driver {
            gateway: Gateway::new(config, secret),
            kernel,
            network,
            clock: emulation.clock(),
            blocked: [None, None],
            spare: Vec::new(),
            stop: Arc::clone(&stop),
        };
        Self::run(stop, move || driver.run())
    }

    fn run(
        stop: Arc<(AtomicBool, OwnedFd)>,
        drive: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let thread = std::thread::Builder::new().name("gateway".into()).spawn(drive)?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }

    /// Returns, once, the error that stopped the gateway: the system's, or the message of its thread's panic. `None`
    /// while it runs.
    pub fn failure(&mut self) -> Option<io::Error> {
        let ended = self.thread.take_if(|thread| thread.is_finished())?;
        Some(match ended.join() {
            Ok(Ok(())) => io::ErrorKind::BrokenPipe.into(),
            Ok(Err(error)) => error,
            Err(panic) => {
                let message = panic.downcast_ref::<String>().map(String::as_str);
                let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
                let line = message.and_then(|message| message.lines().next());
                io::Error::other(format!(
                    "its thread has panicked: {}",
                    line.unwrap_or("no reason")
                ))
            }
        })
    }
}

impl Drop for HostGateway {
    fn drop(&mut self) {
        self.stop.0.store(true, Ordering::Relaxed);
        let _ = rustix::io::write(&self.stop.1, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Driver {
    gateway: Gateway,
    kernel: DevicePort,
    network: Port,
    clock: Clock,
    /// The next packet of a side whose port was full, by side.
    blocked: [Option<Vec<u8>>; 2],
    spare: Vec<u8>,
    stop: Arc<(AtomicBool, OwnedFd)>,
}

impl Driver {
    fn run(&mut self) -> io::Result<()> {
        wait::sharpen_timers();
        // A kernel's stack runs before programs, too.
        wait::raise_priority();
        let mut buffer = vec![0; LARGEST];
        while !self.stop.0.load(Ordering::Relaxed) {
            let mut is_behind = false;
            for side in Side::ALL {
                is_behind |= self.receive(side, &mut buffer)?;
            }
            self.gateway.handle_timeout(self.clock.now());
            for side in Side::ALL {
                self.send(side)?;
            }
            if is_behind {
                continue;
            }
            let until = self.gateway.poll_timeout().unwrap_or(Instant::MAX);
            let span = until.saturating_since(self.clock.now()).min(LONGEST);
            let interest = |side: Side| match self.blocked[side as usize] {
                Some(_) => PollFlags::IN | PollFlags::OUT,
                None => PollFlags::IN,
            };
            wait::wait_any(
                &mut [
                    PollFd::new(&self.kernel, interest(Side::Kernel)),
                    PollFd::new(&self.network, interest(Side::Network)),
                    PollFd::new(&self.stop.1, PollFlags::IN),
                ],
                span,
            );
        }
        Ok(())
    }

    /// Reads up to [`BATCH`] packets from a side; returns whether there may be more.
    fn receive(&mut self, side: Side, buffer: &mut [u8]) -> io::Result<bool> {
        for _ in 0..BATCH {
            let received = match side {
                Side::Kernel => self.kernel.receive(buffer)?,
                Side::Network => self.network.receive(buffer)?,
            };
            let Some(length) = received else {
                return Ok(false);
            };
            self.gateway
                .handle_packet(self.clock.now(), side, &buffer[..length]);
        }
        Ok(true)
    }

    fn send(&mut self, side: Side) -> io::Result<()> {
        loop {
            let mut packet = match self.blocked[side as usize].take() {
                Some(packet) => packet,
                None => {
                    let mut packet = std::mem::take(&mut self.spare);
                    if !self.gateway.poll_transmit(self.clock.now(), side, &mut packet) {
                        self.spare = packet;
                        return Ok(());
                    }
                    packet
                }
            };
            let sent = match side {
                Side::Kernel => self.kernel.send(&packet),
                Side::Network => self.network.send(&packet),
            };
            match sent {
                Ok(()) => {
                    packet.clear();
                    self.spare = packet;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked[side as usize] = Some(packet);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    self.blocked[side as usize] = Some(packet);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gateway(drive: impl FnOnce() -> io::Result<()> + Send + 'static) -> HostGateway {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        HostGateway::run(Arc::new((AtomicBool::new(false), wake)), drive).unwrap()
    }

    fn failure(mut gateway: HostGateway) -> String {
        loop {
            if let Some(error) = gateway.failure() {
                assert!(gateway.failure().is_none(), "the error is returned once");
                return error.to_string();
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn failure_returns_the_threads_error() {
        let panicked = gateway(|| panic!("a number is {}", 1));
        assert_eq!(failure(panicked), "its thread has panicked: a number is 1");
        let failed = gateway(|| Err(io::Error::other("no port")));
        assert_eq!(failure(failed), "no port");
        let (go_on, waits) = std::sync::mpsc::channel::<()>();
        let mut runs = gateway(move || {
            let _ = waits.recv();
            Ok(())
        });
        assert!(runs.failure().is_none());
        drop(go_on);
    }
}
