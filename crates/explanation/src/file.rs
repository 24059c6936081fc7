//! Frames of capture files: pcap and pcapng, plain or compressed with gzip or zstd.

use std::io::{self, BufReader, Chain, Cursor, ErrorKind, Read};

use foundation::Instant;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError, TsResolution};
use thiserror::Error;

type Input = Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Error of reading a capture.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The first bytes are those of no supported format.
    #[error("neither pcap nor pcapng, nor one of them compressed with gzip or zstd")]
    Format,
    /// The file has no bytes.
    #[error("empty file")]
    Empty,
    /// The operating system or the decompression failed.
    #[error("{0}")]
    Read(io::Error),
}

/// A frame of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Number in the file, from 1, as in Wireshark.
    pub number: u64,
    /// Time of the capture since 1970.
    pub time: Instant,
    /// Interface that captured it, from 0.
    pub interface: u32,
    /// Type of the link layer.
    pub link: DataLink,
    /// Captured bytes, from the link layer's header.
    pub data: &'a [u8],
    /// Bytes of the frame on the link, at least the captured ones.
    pub length: u32,
}

/// A capture that is read frame by frame.
pub struct CaptureFile {
    format: Format,
    number: u64,
    /// Why the capture ends before its file does.
    ended_early: Option<String>,
}

enum Format {
    Pcap(PcapReader<Input>),
    PcapNg(PcapNgReader<Input>, Section),
}

impl CaptureFile {
    /// Opens a capture.
    ///
    /// # Errors
    /// If the format is unknown, or reading fails.
    pub fn open(input: impl Read + Send + 'static) -> Result<Self, CaptureError> {
        let (magic, mut input) = peeked(Box::new(input))?;
        input = match magic {
            [0x1f, 0x8b, ..] => unpacked(flate2::read::MultiGzDecoder::new(BufReader::new(input)))?,
            [0x28, 0xb5, 0x2f, 0xfd] => {
                let decoder = ruzstd::decoding::StreamingDecoder::new(BufReader::new(input))
                    .map_err(|error| CaptureError::Read(io::Error::other(error.to_string())))?;
                unpacked(decoder)?
            }
            _ => input,
        };
        let (magic, input) = peeked(Box::new(input))?;
        let format = match magic {
            [0x0a, 0x0d, 0x0d, 0x0a] => {
                Format::PcapNg(PcapNgReader::new(input).map_err(opening)?, Section::default())
            }
            [0xa1, 0xb2, 0xc3 | 0x3c, 0xd4 | 0x4d] | [0xd4 | 0x4d, 0xc3 | 0x3c, 0xb2, 0xa1] => {
                Format::Pcap(PcapReader::new(input).map_err(opening)?)
            }
            _ => return Err(CaptureError::Format),
        };
        Ok(Self {
            format,
            number: 0,
            ended_early: None,
        })
    }

    /// Returns why the capture ended before its file did: the file is cut or corrupt.
    #[must_use]
    pub fn ended_early(&self) -> Option<&str> {
        self.ended_early.as_deref()
    }

    /// Returns the number of the last frame.
    #[must_use]
    pub const fn frames(&self) -> u64 {
        self.number
    }

    /// Returns the next frame; none at the end, which [`ended_early`](Self::ended_early) may explain.
    ///
    /// # Errors
    /// If the operating system or the decompression fails.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, CaptureError> {
        if self.ended_early.is_some() {
            return Ok(None);
        }
        let number = self.number + 1;
        let found = match &mut self.format {
            Format::Pcap(reader) => pcap_frame(reader, number),
            Format::PcapNg(reader, section) => pcapng_frame(reader, section, number),
        };
        match found {
            Ok(frame) => {
                self.number += u64::from(frame.is_some());
                Ok(frame)
            }
            Err(PcapError::IoError(error)) if error.kind() == ErrorKind::UnexpectedEof => {
                self.ended_early = Some(format!("the file is cut after frame {}", self.number));
                Ok(None)
            }
            // Decompression reports corrupt data as an error of input; what was read before is valid.
            Err(PcapError::IoError(error)) => {
                self.ended_early = Some(format!("{error} after frame {}", self.number));
                Ok(None)
            }
            Err(error) => {
                self.ended_early = Some(format!("corrupt after frame {}: {error}", self.number));
                Ok(None)
            }
        }
    }
}

/// Returns the first four bytes of an input, and the whole input.
fn peeked(mut input: Box<dyn Read + Send>) -> Result<([u8; 4], Input), CaptureError> {
    let mut start = Vec::with_capacity(4);
    input
        .by_ref()
        .take(4)
        .read_to_end(&mut start)
        .map_err(CaptureError::Read)?;
    match <[u8; 4]>::try_from(start.as_slice()) {
        Ok(magic) => Ok((magic, Cursor::new(start).chain(input))),
        Err(_) if start.is_empty() => Err(CaptureError::Empty),
        Err(_) => Err(CaptureError::Format),
    }
}

fn unpacked(decoder: impl Read + Send + 'static) -> Result<Input, CaptureError> {
    peeked(Box::new(decoder)).map(|(_, input)| input)
}

fn opening(error: PcapError) -> CaptureError {
    match error {
        PcapError::IoError(error) if error.kind() != ErrorKind::UnexpectedEof => CaptureError::Read(error),
        _ => CaptureError::Format,
    }
}

fn pcap_frame(reader: &mut PcapReader<Input>, number: u64) -> Result<Option<Frame<'_>>, PcapError> {
    let header = reader.header();
    // Fields of foreign files are not validated: some tools write lengths above the snapshot length.
    let Some(packet) = reader.next_raw_packet().transpose()? else {
        return Ok(None);
    };
    let fraction = match header.ts_resolution {
        TsResolution::MicroSecond => u64::from(packet.ts_frac) * 1000,
        TsResolution::NanoSecond => u64::from(packet.ts_frac),
    };
    let std::borrow::Cow::Borrowed(data) = packet.data else {
        return Ok(None);
    };
    Ok(Some(Frame {
        number,
        time: Instant::from_nanos(u64::from(packet.ts_sec) * NANOS_PER_SECOND + fraction),
        interface: 0,
        link: header.datalink,
        data,
        length: packet.orig_len.max(packet.incl_len),
    }))
}

/// Interfaces of a pcapng section, and the bytes of the last frame.
#[derive(Default)]
struct Section {
    interfaces: Vec<Interface>,
    data: Vec<u8>,
    /// Time of the last frame, which one without a time takes.
    last: u64,
}

#[derive(Clone, Copy)]
struct Interface {
    link: DataLink,
    ticks_per_second: u64,
    /// Seconds to add to its times.
    offset: u64,
}

impl Interface {
    fn nanos(self, ticks: u64) -> u64 {
        let nanos = u128::from(ticks) * u128::from(NANOS_PER_SECOND) / u128::from(self.ticks_per_second);
        let offset = u128::from(self.offset) * u128::from(NANOS_PER_SECOND);
        (nanos + offset).min(u128::from(u64::MAX)) as u64
    }
}

fn pcapng_frame<'a>(
    reader: &mut PcapNgReader<Input>,
    section: &'a mut Section,
    number: u64,
) -> Result<Option<Frame<'a>>, PcapError> {
    loop {
        let Some(block) = reader.next_block().transpose()? else {
            return Ok(None);
        };
        let (interface, ticks, data, length) = match block {
            Block::EnhancedPacket(packet) => (
                packet.interface_id as usize,
                // The library reads ticks of any resolution as nanoseconds.
                Some(packet.timestamp.as_nanos() as u64),
                packet.data,
                packet.original_len,
            ),
            Block::Packet(packet) => (
                usize::from(packet.interface_id),
                Some(packet.timestamp),
                packet.data,
                packet.original_len,
            ),
            Block::SimplePacket(packet) => (0, None, packet.data, packet.original_len),
            Block::SectionHeader(_) => {
                section.interfaces.clear();
                continue;
            }
            Block::InterfaceDescription(one) => {
                section.interfaces.push(Interface {
                    link: one.linktype,
                    ticks_per_second: ticks_per_second(&one.options),
                    offset: offset(&one.options),
                });
                continue;
            }
            _ => continue,
        };
        let place = interface as u32;
        let Some(interface) = section.interfaces.get(interface).copied() else {
            return Err(PcapError::InvalidField(
                "a packet of an interface without description",
            ));
        };
        if let Some(ticks) = ticks {
            section.last = interface.nanos(ticks);
        }
        section.data.clear();
        section.data.extend_from_slice(&data);
        // A simple packet has the padding of its block.
        section.data.truncate(if ticks.is_none() {
            length as usize
        } else {
            usize::MAX
        });
        return Ok(Some(Frame {
            number,
            time: Instant::from_nanos(section.last),
            interface: place,
            link: interface.link,
            data: &section.data,
            length: length.max(section.data.len() as u32),
        }));
    }
}

/// Returns the seconds of the option `if_tsoffset`.
fn offset(options: &[InterfaceDescriptionOption<'_>]) -> u64 {
    let found = options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfTsOffset(seconds) => Some(*seconds),
        _ => None,
    });
    found.unwrap_or(0)
}

/// Returns the ticks per second of an interface: microseconds without the option `if_tsresol`.
fn ticks_per_second(options: &[InterfaceDescriptionOption<'_>]) -> u64 {
    let exponent = options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfTsResol(exponent) => Some(*exponent),
        _ => None,
    });
    match exponent {
        Some(exponent) if exponent & 0x80 != 0 => 1 << (exponent & 0x7f).min(62),
        Some(exponent) => 10u64.pow(u32::from(exponent.min(19))),
        None => 1_000_000,
    }
}
