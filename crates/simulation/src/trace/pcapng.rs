//! The packets of a trial as a capture file (pcapng, draft-ietf-opsawg-pcapng) of two interfaces,
//! the sender's and the receiver's, with real IPv4 and UDP headers and frames as bytes.

use std::borrow::Cow;
use std::convert::Infallible;
use std::io::Write;

use etherparse::PacketBuilder;
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use transport::arq::{Frame, Payload, StreamRange, codec};

use super::recorder::Sighting;
use crate::body::{Content, Side};

// Addresses for documentation (RFC 5737), so that nobody takes them for a real path's.
const SENDER: ([u8; 4], u16) = ([192, 0, 2, 1], 49_152);
const RECEIVER: ([u8; 4], u16) = ([198, 51, 100, 1], 9_000);

/// Writes a capture of `sightings`, which are in order of time.
///
/// # Errors
/// What the writer gives.
pub fn write(out: impl Write, sightings: &[Sighting]) -> std::io::Result<()> {
    let to_io = |error: pcap_file::PcapError| std::io::Error::other(error.to_string());
    let mut writer = PcapNgWriter::new(out).map_err(to_io)?;
    for name in ["sender", "receiver"] {
        let block = InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfTsResol(9),
            ],
        };
        writer.write_pcapng_block(block).map_err(to_io)?;
    }
    for sighting in sightings {
        let Content::Arq(frame) = &sighting.body.content else {
            continue;
        };
        let data = datagram(sighting, frame);
        let block = EnhancedPacketBlock {
            interface_id: match sighting.side {
                Side::Sender => 0,
                Side::Receiver => 1,
            },
            timestamp: std::time::Duration::from_nanos(sighting.at.as_nanos()),
            original_len: data.len() as u32,
            data: Cow::Owned(data),
            options: Vec::new(),
        };
        writer.write_pcapng_block(block).map_err(to_io)?;
    }
    Ok(())
}

/// The bytes of a packet. Payload bytes do not exist in simulation; zeros stand for them.
fn datagram(sighting: &Sighting, frame: &Frame<StreamRange>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(frame.length());
    let Ok(()) = codec::encode(frame, &mut bytes, |payload, room| {
        debug_assert_eq!(payload.length() as usize, room.len());
        Ok::<(), Infallible>(())
    });
    if sighting.body.corrupt && sighting.side == sighting.body.to {
        // Which bit flipped is not known here; the last one fails the frame's checksum like any other.
        if let Some(last) = bytes.last_mut() {
            *last ^= 1;
        }
    }
    let (from, to) = if sighting.is_forward() {
        (SENDER, RECEIVER)
    } else {
        (RECEIVER, SENDER)
    };
    let builder = PacketBuilder::ipv4(from.0, to.0, 64).udp(from.1, to.1);
    let mut packet = Vec::with_capacity(builder.size(bytes.len()));
    builder
        .write(&mut packet, &bytes)
        .expect("a frame fits a datagram, and a vector takes every write");
    packet
}
