//! A capture file (pcapng, draft-ietf-opsawg-pcapng) of several hosts: one interface per host, packets from the IP
//! header on, timestamps in nanoseconds.

use std::borrow::Cow;
use std::io::{Error, Result, Write};

use foundation::Instant;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError};

/// Writes packets, in order of time, into a capture file.
pub struct Capture<W: Write> {
    writer: PcapNgWriter<W>,
    snap: Option<u32>,
}

fn to_io(error: PcapError) -> Error {
    match error {
        PcapError::IoError(error) => error,
        error => Error::other(error.to_string()),
    }
}

impl<W: Write> Capture<W> {
    /// Starts a file with one interface per host. `snap` limits the bytes kept of each packet; the full length is recorded.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn new(out: W, hosts: &[String], snap: Option<u32>) -> Result<Self> {
        let mut writer = PcapNgWriter::new(out).map_err(to_io)?;
        for name in hosts {
            let block = InterfaceDescriptionBlock {
                linktype: DataLink::RAW,
                snaplen: snap.unwrap_or(0),
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                    InterfaceDescriptionOption::IfTsResol(9),
                ],
            };
            writer.write_pcapng_block(block).map_err(to_io)?;
        }
        Ok(Self { writer, snap })
    }

    /// Adds a packet, from its IP header on, to the interface of a host.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write(&mut self, at: Instant, host: usize, packet: &[u8]) -> Result<()> {
        let kept = self
            .snap
            .map_or(packet.len(), |snap| packet.len().min(snap as usize));
        let block = EnhancedPacketBlock {
            interface_id: host as u32,
            timestamp: std::time::Duration::from_nanos(at.as_nanos()),
            original_len: packet.len() as u32,
            data: Cow::Borrowed(&packet[..kept]),
            options: Vec::new(),
        };
        self.writer.write_pcapng_block(block).map_err(to_io)?;
        Ok(())
    }
}
