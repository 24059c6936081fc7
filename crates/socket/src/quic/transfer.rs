//! The two ends of a trial of the world `relay`: one sends a file, the other reads it.

use std::net::SocketAddr;
use std::ops::ControlFlow;

use foundation::Instant;
use quic::{Connection, Event, QuicConfig};
use transport::Statistics;

use super::driver::{Application, Listener, Options, connect};
use crate::clock::Clock;
use crate::error::Error;

/// Sends a file and ends its stream.
struct Sender {
    left: u64,
    has_ended: bool,
}

impl Sender {
    fn write(&mut self, connection: &mut Connection) {
        self.left -= connection.write(self.left);
        if self.left == 0 && !std::mem::replace(&mut self.has_ended, true) {
            connection.finish();
        }
    }
}

impl Application for Sender {
    fn handle(&mut self, now: Instant, event: Event, connection: &mut Connection) {
        match event {
            Event::Connected | Event::Writable => self.write(connection),
            Event::Readable => drop(connection.read_all(now)),
            _ => {}
        }
    }

    fn work(&mut self, _: Instant, _: &mut Connection) -> Result<Instant, String> {
        Ok(Instant::MAX)
    }
}

/// Reads a stream and ends its own after it.
#[derive(Debug, Default)]
struct Receiver {
    bytes: u64,
}

impl Application for Receiver {
    fn handle(&mut self, now: Instant, event: Event, connection: &mut Connection) {
        match event {
            Event::Readable => self.bytes += connection.read_all(now),
            Event::PeerFinished => connection.finish(),
            _ => {}
        }
    }

    fn work(&mut self, _: Instant, _: &mut Connection) -> Result<Instant, String> {
        Ok(Instant::MAX)
    }
}

fn ticking(go_on: &mut dyn FnMut() -> bool) -> impl FnMut() -> ControlFlow<()> {
    || match go_on() {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    }
}

/// Sends `size` bytes to a [`receive`] at `to`. Returns the sender's statistics with a histogram of round-trip times. `go_on` is
/// called about 20 times a second; the transfer stops when it returns false.
///
/// # Errors
/// [`Error`] if the connection cannot be opened, fails, or `go_on` returns false.
pub fn send(
    to: SocketAddr,
    config: &QuicConfig,
    size: u64,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Statistics, Error> {
    if let Some(problem) = config.validate().into_iter().next() {
        return Err(Error::Settings(problem));
    }
    let sender = Sender {
        left: size,
        has_ended: false,
    };
    let options = Options {
        record_round_trips: true,
        ..Options::default()
    };
    let sent = connect(to, config, sender, options, Clock::new(), &mut ticking(go_on));
    let (connection, _) = sent.map_err(|failed| failed.error)?;
    Ok(connection.statistics().clone())
}

/// Listens at `address` and reads one file. Calls `listening` with the bound address. Returns the number of bytes read; stops when
/// `go_on` returns false.
///
/// # Errors
/// [`Error`] if the address is not available, the connection fails, or `go_on` returns false.
pub fn receive(
    address: SocketAddr,
    config: &QuicConfig,
    listening: impl FnOnce(SocketAddr),
    go_on: &mut dyn FnMut() -> bool,
) -> Result<u64, Error> {
    let listener = Listener::bind(address, config)?;
    listening(listener.address());
    let served = listener.serve(
        Receiver::default(),
        Options::default(),
        Clock::new(),
        &mut ticking(go_on),
    );
    let (_, receiver) = served.map_err(|failed| failed.error)?;
    Ok(receiver.bytes)
}
