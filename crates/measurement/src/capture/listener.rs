//! The capture socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{Domain, SockFilter, Socket, Type};

use super::filter::Filter;
use super::packet::Packet;
use super::{Counts, Direction, Frame};
use crate::system::{self, Control};
use kernel::Error;

/// Bytes of frames that may wait to be read.
const BUFFER: i32 = 8 << 20;

/// Remedy for a missing privilege.
pub const REMEDY: &str = "capturing needs CAP_NET_RAW: run as root, in an emulated network, or grant it to the Python that \
     runs longfat (setcap cap_net_raw+ep); everything else works without";

/// Captures the frames of one flow in the network namespace of the thread that opened it. The kernel buffers and
/// stamps them, so nothing has to be read while the flow is active.
#[derive(Debug)]
pub struct Capture {
    socket: Socket,
    filter: Filter,
    buffer: Box<[u8; super::filter::SNAPPED as usize]>,
    counts: Counts,
}

impl Capture {
    /// Opens a capture on the named device, or on all devices.
    ///
    /// # Errors
    /// [`Error::Permission`] without `CAP_NET_RAW`; [`Error::System`] if there is no such device.
    pub fn open(device: Option<&str>, filter: Filter) -> Result<Self, Error> {
        let what = "capture frames";
        // Without a protocol the socket captures nothing until it is bound, when the filter is in place.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, None)
            .map_err(|error| Error::permission(what, error, REMEDY))?;
        let number = match device {
            None => 0,
            Some(name) => rustix::net::netdevice::name_to_index(&socket, name)
                .map_err(|error| Error::system(format!("find the device {name}"), error))?,
        };
        let set = || -> io::Result<()> {
            socket.set_nonblocking(true)?;
            // Forcing the size takes CAP_NET_ADMIN; the plain option is limited by a system-wide maximum.
            let fd = socket.as_fd();
            if kernel::set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER).is_err() {
                socket.set_recv_buffer_size(BUFFER as usize)?;
            }
            kernel::set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
            let instruction = |(code, yes, no, operand)| SockFilter::new(code, yes, no, operand);
            let program: Vec<SockFilter> = filter.program().into_iter().map(instruction).collect();
            socket.attach_filter(&program)?;
            system::bind_packet(fd, number)
        };
        set().map_err(|error| Error::system(what, error))?;
        Ok(Self {
            socket,
            filter,
            buffer: Box::new([0; super::filter::SNAPPED as usize]),
            counts: Counts::default(),
        })
    }

    /// Appends the frames captured since the last call to `frames`, in order. Does not wait.
    ///
    /// # Errors
    /// [`Error::System`] if the device has disappeared.
    pub fn take(&mut self, frames: &mut Vec<Frame>) -> Result<(), Error> {
        let mut control = Control::default();
        loop {
            let result = system::receive(
                self.socket.as_fd(),
                &mut self.buffer[..],
                &mut control,
                libc::MSG_TRUNC,
            );
            let received = match result {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::system("capture frames", error)),
            };
            let stamp = received
                .messages(&control)
                .find(|message| (message.level, message.kind) == (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS))
                .and_then(|message| system::stamp_at(message.data, 0));
            let length = received.length.min(self.buffer.len());
            let Some((device, hardware, kind)) = link(received.name()) else {
                continue;
            };
            let Some(packet) = Packet::parse(&self.buffer[..length]) else {
                continue;
            };
            let (Some(stamp), Some(direction)) = (stamp, self.filter.direction(&packet)) else {
                continue;
            };
            let is_outgoing = kind == libc::PACKET_OUTGOING;
            // Loopback shows each frame twice, when it leaves and when it arrives. Count it once.
            let counts = match hardware == libc::ARPHRD_LOOPBACK {
                true => is_outgoing,
                false => is_outgoing == (direction == Direction::Out),
            };
            if counts {
                self.counts.frames += 1;
                frames.push(Frame {
                    stamp,
                    direction,
                    device,
                    packet,
                });
            }
        }
    }

    /// Returns the numbers of captured and dropped frames so far.
    ///
    /// # Errors
    /// [`Error::System`] if the kernel does not report them.
    pub fn counts(&mut self) -> Result<Counts, Error> {
        // `struct tpacket_stats`: packets and drops since it was last read.
        let mut statistics = [0_u32; 2];
        // SAFETY: an array of integers.
        unsafe {
            kernel::read_option(
                &self.socket,
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                &mut statistics,
            )
        }
        .map_err(|error| Error::system("read the counters of a capture", error))?;
        self.counts.dropped += u64::from(statistics[1]);
        Ok(self.counts)
    }

    /// Discards the frames that were captured and not taken.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn discard(&mut self) -> Result<(), Error> {
        let mut frames = Vec::new();
        self.take(&mut frames)
    }
}

impl AsFd for Capture {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Parses device, hardware type and packet type out of a `struct sockaddr_ll` (`packet(7)`).
fn link(name: &[u8]) -> Option<(u32, u16, u8)> {
    let device = u32::from_ne_bytes(name.get(4..8)?.try_into().ok()?);
    let hardware = u16::from_ne_bytes(name.get(8..10)?.try_into().ok()?);
    Some((device, hardware, *name.get(10)?))
}
