//! A host's TUN device: reading returns what the host's kernel sent, writing delivers packets to it.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, read, write, writev};

use super::offload::header::{self, Header};
use super::offload::merge::{MergeLimits, Run};
use super::offload::split::Packets;

/// Bytes of the largest read: an IPv4 packet and the device's header.
pub const LARGEST: usize = 65_535 + header::LENGTH;

/// A TUN device.
#[derive(Debug)]
pub struct Device {
    descriptor: OwnedFd,
    offload: Option<Offload>,
}

/// Properties of a device with segmentation offload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offload {
    /// Whether the kernel divides large packets of UDP datagrams.
    pub datagrams: bool,
}

/// One packet, or several segments as one, from a host.
#[derive(Debug)]
pub struct Frame<'a> {
    header: Option<Header>,
    bytes: &'a mut [u8],
}

impl<'a> Frame<'a> {
    /// Its packets; `None` for segments that cannot be split.
    pub fn packets(self) -> Option<Packets<'a>> {
        Packets::of(self.header?, self.bytes)
    }
}

impl Device {
    /// A device from its non-blocking descriptor. `offload`: whether its packets have headers.
    pub const fn new(descriptor: OwnedFd, offload: Option<Offload>) -> Self {
        Self { descriptor, offload }
    }

    /// Duplicates the descriptor.
    pub fn try_clone(&self) -> std::io::Result<Self> {
        Ok(Self {
            descriptor: self.descriptor.try_clone()?,
            offload: self.offload,
        })
    }

    /// Whether the host may pass several segments as one packet.
    pub const fn has_offload(&self) -> bool {
        self.offload.is_some()
    }

    /// What it accepts in one write, if hosts pass at most `bytes` at a time.
    pub fn merge_limits(&self, bytes: usize) -> MergeLimits {
        self.offload
            .map_or_else(MergeLimits::default, |offload| MergeLimits {
                bytes,
                datagrams: offload.datagrams,
            })
    }

    /// Reads into a buffer of [`LARGEST`] bytes.
    ///
    /// # Errors
    /// `AGAIN` if there is nothing to read, and the system's.
    pub fn read<'b>(&self, buffer: &'b mut [u8]) -> Result<Frame<'b>, Errno> {
        let length = read(&self.descriptor, &mut *buffer)?;
        let bytes = &mut buffer[..length];
        if self.offload.is_none() {
            let header = Some(Header::default());
            return Ok(Frame { header, bytes });
        }
        let (header, bytes) = bytes.split_first_chunk_mut().ok_or(Errno::IO)?;
        Ok(Frame {
            header: Header::read(*header),
            bytes,
        })
    }

    /// Writes one packet.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&self, packet: &[u8]) -> Result<(), Errno> {
        if self.offload.is_none() {
            return write(&self.descriptor, packet).map(drop);
        }
        let header = Header::default().bytes();
        writev(&self.descriptor, &[IoSlice::new(&header), IoSlice::new(packet)]).map(drop)
    }

    /// Writes packets, as one if there are several. `headers` is scratch space.
    ///
    /// # Errors
    /// The system's.
    pub fn write_run(&self, run: &Run, headers: &mut Vec<u8>) -> Result<(), Errno> {
        let Some(header) = run.join(headers) else {
            return run
                .packets()
                .iter()
                .try_for_each(|packet| self.write(packet.bytes()));
        };
        let header = header.bytes();
        let mut parts = Vec::with_capacity(2 + run.packets().len());
        parts.extend([IoSlice::new(&header), IoSlice::new(headers)]);
        parts.extend(run.payloads().map(IoSlice::new));
        writev(&self.descriptor, &parts).map(drop)
    }

    /// Discards what the host's kernel has sent.
    pub fn discard(&self, buffer: &mut [u8]) {
        while read(&self.descriptor, &mut *buffer).is_ok() {}
    }
}

/// For `epoll(7)`; reads and writes do not block.
impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
