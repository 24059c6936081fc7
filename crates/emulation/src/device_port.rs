//! The port of a gateway to a host's kernel.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::device::{Device, LARGEST};

/// Sends packets to a host's kernel and receives those that it sends, one by one.
#[derive(Debug)]
pub struct DevicePort {
    device: Device,
    buffer: Vec<u8>,
    /// Segments that the kernel passed as one packet.
    waiting: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
}

impl DevicePort {
    pub(crate) fn new(device: Device) -> Self {
        Self {
            device,
            buffer: vec![0; LARGEST],
            waiting: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// Delivers a packet to the kernel: an IPv4 header with its checksum, and a payload.
    ///
    /// # Errors
    /// The system's.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        Ok(self.device.write(packet)?)
    }

    /// Reads the next packet into `buffer` and returns its length; `None` if there is none. Longer packets are
    /// truncated.
    ///
    /// # Errors
    /// The system's.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        if self.waiting.is_empty() {
            match self.device.read(&mut self.buffer) {
                Ok(frame) => {
                    let mut packets = frame.packets();
                    while let Some(packets) = &mut packets {
                        let mut packet = self.spare.pop().unwrap_or_default();
                        packet.clear();
                        if !packets.next_into(&mut packet) {
                            self.spare.push(packet);
                            break;
                        }
                        self.waiting.push_back(packet);
                    }
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.waiting.pop_front().map(|packet| {
            let length = packet.len().min(buffer.len());
            buffer[..length].copy_from_slice(&packet[..length]);
            self.spare.push(packet);
            length
        }))
    }
}

/// For `poll(2)`; reads do not block. After a short read, [`receive`](DevicePort::receive) may have more packets.
impl AsFd for DevicePort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
