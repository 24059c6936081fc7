//! The protocol machine of a connection: TCP, or multipath TCP.

use foundation::{Duration, Instant};
use transport::Machine as _;
use transport::mptcp::{self, MptcpOption, PathIndex, Signal};
use transport::tcp::{self, Event};

/// A protocol machine. Calls that only TCP supports have no effect on multipath TCP; scripts cannot make them on such sockets.
#[derive(Debug)]
pub enum Machine {
    /// TCP.
    Tcp(Box<tcp::Connection>),
    /// Multipath TCP.
    Multipath(Box<mptcp::Connection>),
}

/// A segment of a machine.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The segment of TCP.
    pub segment: tcp::Segment,
    /// Options of multipath TCP.
    pub option: MptcpOption,
    /// Further option of multipath TCP.
    pub signal: Signal,
    /// Number of the subflow, 0 for TCP.
    pub subflow: u8,
    /// Its path.
    pub path: PathIndex,
    /// Position in the stream of the byte after its payload.
    pub end: u64,
}

macro_rules! both {
    ($self:ident, $connection:ident => $result:expr) => {
        match $self {
            Self::Tcp($connection) => $result,
            Self::Multipath($connection) => $result,
        }
    };
}

impl Machine {
    /// Returns the connection of TCP.
    pub fn tcp(&self) -> Option<&tcp::Connection> {
        match self {
            Self::Tcp(connection) => Some(connection),
            Self::Multipath(_) => None,
        }
    }

    /// Returns the connection of TCP, to change it.
    pub fn tcp_mut(&mut self) -> Option<&mut tcp::Connection> {
        match self {
            Self::Tcp(connection) => Some(connection),
            Self::Multipath(_) => None,
        }
    }

    /// Returns the connection of multipath TCP.
    pub fn multipath(&self) -> Option<&mptcp::Connection> {
        match self {
            Self::Tcp(_) => None,
            Self::Multipath(connection) => Some(connection),
        }
    }

    /// Returns the connection of multipath TCP, to change it.
    pub fn multipath_mut(&mut self) -> Option<&mut mptcp::Connection> {
        match self {
            Self::Tcp(_) => None,
            Self::Multipath(connection) => Some(connection),
        }
    }

    /// Writes `bytes` and returns the bytes accepted.
    pub fn write(&mut self, now: Instant, bytes: u64) -> u64 {
        both!(self, connection => connection.write(now, bytes))
    }

    /// Writes `bytes` that more follow (`MSG_MORE`).
    pub fn write_more(&mut self, now: Instant, bytes: u64) -> u64 {
        match self {
            Self::Tcp(connection) => connection.write_more(now, bytes),
            Self::Multipath(connection) => connection.write(now, bytes),
        }
    }

    /// Ends a record (`MSG_EOR`).
    pub fn end_record(&mut self) {
        if let Self::Tcp(connection) = self {
            connection.end_record();
        }
    }

    /// Returns the bytes to read.
    pub fn readable(&self) -> u64 {
        both!(self, connection => connection.readable())
    }

    /// Reads up to `bytes`.
    pub fn read(&mut self, now: Instant, bytes: u64) {
        both!(self, connection => connection.read(now, bytes));
    }

    /// Returns the free bytes of the send buffer.
    pub fn writable(&self) -> u64 {
        both!(self, connection => connection.writable())
    }

    /// Closes the sending direction.
    pub fn finish(&mut self, now: Instant) {
        both!(self, connection => connection.finish(now));
    }

    /// Closes both directions.
    pub fn close(&mut self, now: Instant) {
        both!(self, connection => connection.close(now));
    }

    /// Resets the connection.
    pub fn abort(&mut self, now: Instant) {
        both!(self, connection => connection.abort(now));
    }

    /// Returns when the next timer is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        both!(self, connection => connection.poll_timeout())
    }

    /// Runs the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        both!(self, connection => connection.handle_timeout(now));
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        both!(self, connection => connection.poll_event())
    }

    /// Returns the next segment.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Sent> {
        match self {
            Self::Tcp(connection) => {
                let outgoing = connection.poll_transmit(now)?;
                Some(Sent {
                    segment: outgoing.segment,
                    option: MptcpOption::None,
                    signal: Signal::None,
                    subflow: 0,
                    path: PathIndex(0),
                    end: outgoing.offset + u64::from(outgoing.segment.length),
                })
            }
            Self::Multipath(connection) => {
                let (path, outgoing) = connection.poll_transmit(now)?;
                let segment = outgoing.segment;
                Some(Sent {
                    segment: segment.tcp,
                    option: segment.option,
                    signal: segment.signal,
                    subflow: segment.subflow,
                    path,
                    end: outgoing.offset + u64::from(segment.tcp.length),
                })
            }
        }
    }

    /// Handles a report that packets above `mtu` bytes do not pass.
    pub fn handle_path_mtu(&mut self, now: Instant, path: PathIndex, mtu: u32) {
        match self {
            Self::Tcp(connection) => connection.handle_path_mtu(now, mtu),
            Self::Multipath(connection) => connection.handle_path_mtu(now, path, mtu),
        }
    }

    /// Returns the acknowledged bytes.
    pub fn acknowledged(&self) -> u64 {
        match self {
            Self::Tcp(connection) => connection.acknowledged(),
            Self::Multipath(connection) => connection.bytes_acknowledged(),
        }
    }

    /// Whether data is unsent or unacknowledged.
    pub fn is_busy(&self) -> bool {
        self.tcp().is_some_and(|connection| {
            let info = connection.info();
            info.unacked > 0 || info.bytes_unsent > 0
        })
    }

    /// Returns the bytes that a SYN could carry now.
    pub fn syn_data_capacity(&self) -> u32 {
        self.tcp().map_or(0, tcp::Connection::syn_data_capacity)
    }

    /// Whether a writer can send the data that a call waits to write.
    pub fn is_established(&self) -> bool {
        match self {
            Self::Tcp(connection) => connection.state() == tcp::State::Established,
            Self::Multipath(connection) => connection.is_established(),
        }
    }

    /// Sets the minimum interval between challenge ACKs.
    pub fn set_challenge_interval(&mut self, interval: Duration) {
        if let Self::Tcp(connection) = self {
            connection.set_challenge_interval(interval);
        }
    }
}
