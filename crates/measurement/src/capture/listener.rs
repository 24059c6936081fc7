//! The socket that hears frames.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{Domain, Socket, Type};

use super::filter::Filter;
use super::packet::Packet;
use super::{Counts, Direction, Frame};
use crate::system::{self, Control};
use kernel::Error;

/// Bytes of frames that may wait to be read.
const BUFFER: i32 = 8 << 20;

/// What to do where the right is missing.
pub const REMEDY: &str = "capturing takes CAP_NET_RAW: run as root, in an emulated network, or give the right to the Python that \
     runs longfat (setcap cap_net_raw+ep); everything else works without";

/// Hears the frames of one flow in the network namespace of the thread that opened it. The kernel collects and stamps
/// them from then on; nobody needs to read while the flow is busy.
#[derive(Debug)]
pub struct Capture {
    socket: Socket,
    filter: Filter,
    buffer: Box<[u8; super::filter::SNAPPED as usize]>,
    counts: Counts,
}

impl Capture {
    /// Listens on one device, by its name, or on all of them.
    ///
    /// # Errors
    /// [`Error::Permission`] without `CAP_NET_RAW`; [`Error::System`] where there is no such device.
    pub fn open(device: Option<&str>, filter: Filter) -> Result<Self, Error> {
        let what = "capture frames";
        // Without a protocol it hears nothing until it is bound, with the filter in place.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, None)
            .map_err(|error| Error::permission(what, error, REMEDY))?;
        let number = match device {
            None => 0,
            Some(name) => rustix::net::netdevice::name_to_index(&socket, name)
                .map_err(|error| Error::system(format!("find the device {name}"), error))?,
        };
        let set = || -> io::Result<()> {
            socket.set_nonblocking(true)?;
            // The forced size takes CAP_NET_ADMIN; the other is cut to what everybody may have.
            let fd = socket.as_fd();
            if system::set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER).is_err() {
                socket.set_recv_buffer_size(BUFFER as usize)?;
            }
            system::set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
            system::attach_filter(fd, &filter.program())?;
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

    /// Takes what has been heard since, in order, onto the end of `frames`. Does not wait.
    ///
    /// # Errors
    /// [`Error::System`] where the device has gone.
    pub fn take(&mut self, frames: &mut Vec<Frame>) -> Result<(), Error> {
        let mut control = Control::default();
        loop {
            let heard = system::receive(
                self.socket.as_fd(),
                &mut self.buffer[..],
                &mut control,
                libc::MSG_TRUNC,
            );
            let received = match heard {
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
            // A loopback shows each frame twice: when it leaves and when it arrives. It left once.
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

    /// What was heard so far, and what was dropped.
    ///
    /// # Errors
    /// [`Error::System`] where the kernel does not tell.
    pub fn counts(&mut self) -> Result<Counts, Error> {
        // `struct tpacket_stats`: packets and drops since it was last asked for.
        let mut bytes = [0; 8];
        let read = system::option(
            self.socket.as_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            &mut bytes,
        );
        let read = read.map_err(|error| Error::system("ask what a capture dropped", error))?;
        if let Some(&[a, b, c, d]) = read.get(4..8) {
            self.counts.dropped += u64::from(u32::from_ne_bytes([a, b, c, d]));
        }
        Ok(self.counts)
    }

    /// Forgets what has been heard and not taken.
    ///
    /// # Errors
    /// As of [`take`](Self::take).
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

/// Device, kind of hardware and kind of packet out of a `struct sockaddr_ll` (`packet(7)`).
fn link(name: &[u8]) -> Option<(u32, u16, u8)> {
    let device = u32::from_ne_bytes(name.get(4..8)?.try_into().ok()?);
    let hardware = u16::from_ne_bytes(name.get(8..10)?.try_into().ok()?);
    Some((device, hardware, *name.get(10)?))
}
