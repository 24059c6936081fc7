//! A capture file (pcapng, draft-ietf-opsawg-pcapng) of several hosts: one interface each, packets with
//! their IP headers, time in nanoseconds.

use std::borrow::Cow;
use std::io::{Error, Result, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use foundation::Instant;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError};
use transport::tcp::wire::Endpoints;

/// Addresses for documentation (RFC 5737), so that nobody takes them for a real path's.
const DOCUMENTATION: [[u8; 3]; 3] = [[192, 0, 2], [198, 51, 100], [203, 0, 113]];
/// Hosts that a network of 256 addresses has room for.
const HOSTS_A_NETWORK: usize = 254;
/// The first port that no service owns (RFC 6335, section 6), and how many there are.
const DYNAMIC_PORTS: (u16, u32) = (49_152, 16_384);
/// The port of the first service.
const SERVICE_PORT: u16 = 5_001;

/// Gives each host an address and each flow a pair of ports.
///
/// Addresses are IPv4 where the documentation ranges have room for all hosts, else IPv6 (RFC 3849); packets
/// are then 20 bytes longer in the capture than they were in the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPlan {
    hosts: usize,
}

impl AddressPlan {
    /// A plan for so many hosts.
    #[must_use]
    pub const fn new(hosts: usize) -> Self {
        Self { hosts }
    }

    /// The address of the host with this number, counted from 0.
    #[must_use]
    pub fn host(&self, number: usize) -> IpAddr {
        if self.hosts <= DOCUMENTATION.len() * HOSTS_A_NETWORK {
            let [a, b, c] = DOCUMENTATION[number / HOSTS_A_NETWORK];
            return Ipv4Addr::new(a, b, c, (number % HOSTS_A_NETWORK) as u8 + 1).into();
        }
        let [a, b, c, d] = (number as u32 + 1).to_be_bytes();
        let words = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, words[0], words[1]).into()
    }

    /// Addresses and ports of the packets of a flow that `from` opened to `to`, in that direction.
    ///
    /// No two flows have the same, until 2^30 flows have begun.
    #[must_use]
    pub fn flow(&self, flow: u32, from: usize, to: usize) -> Endpoints {
        let (first, count) = DYNAMIC_PORTS;
        let service = SERVICE_PORT.wrapping_add((flow / count) as u16);
        Endpoints {
            source: SocketAddr::new(self.host(from), first + (flow % count) as u16),
            destination: SocketAddr::new(self.host(to), service),
        }
    }
}

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
    /// Begins a file with one interface for each host. With `snap` only so many bytes of each packet are
    /// kept; its full length is told beside them.
    ///
    /// # Errors
    /// What the writer gives.
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

    /// Adds a packet, from its IP header on, as the host with this number saw it.
    ///
    /// # Errors
    /// What the writer gives.
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
