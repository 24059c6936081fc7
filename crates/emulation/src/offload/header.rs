//! The header of each packet of a TUN device with segmentation offload (Virtual I/O Device (VIRTIO) 1.2, section
//! 5.1.6; `linux/virtio_net.h`).

/// Bytes of the header.
pub const LENGTH: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const TCP: u8 = 1;
const TCP_V6: u8 = 4;
const UDP: u8 = 5;
/// The first segment has the TCP flag CWR.
const ECN: u8 = 0x80;

/// Properties of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Where the checksum is incomplete.
    pub checksum: Option<PartialChecksum>,
    /// How the packet divides into segments, if it has several.
    pub segmentation: Option<Segmentation>,
}

/// A checksum that is only the sum of the pseudo-header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialChecksum {
    /// The first byte that it covers.
    pub start: u16,
    /// Its place after the start.
    pub offset: u16,
}

/// Segments of equal size; the last one may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segmentation {
    /// The transport protocol.
    pub kind: SegmentKind,
    /// Bytes of all headers.
    pub headers: u16,
    /// Payload of a segment in bytes.
    pub size: u16,
}

/// The transport protocol of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// TCP, with the flag CWR or without.
    Tcp {
        /// Whether the first segment has the flag.
        has_cwr: bool,
        /// Over IPv6 rather than IPv4.
        is_ipv6: bool,
    },
    /// Datagrams of UDP.
    Udp,
}

impl Header {
    /// Reads a header; `None` for a kind of segments that was not requested from the kernel.
    #[must_use]
    pub fn read(bytes: [u8; LENGTH]) -> Option<Self> {
        let field = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let kind = match bytes[1] & !ECN {
            0 => None,
            kind @ (TCP | TCP_V6) => Some(SegmentKind::Tcp {
                has_cwr: bytes[1] & ECN != 0,
                is_ipv6: kind == TCP_V6,
            }),
            UDP => Some(SegmentKind::Udp),
            _ => return None,
        };
        Some(Self {
            checksum: (bytes[0] & NEEDS_CHECKSUM != 0).then(|| PartialChecksum {
                start: field(6),
                offset: field(8),
            }),
            segmentation: kind.map(|kind| Segmentation {
                kind,
                headers: field(2),
                size: field(4),
            }),
        })
    }

    /// Returns its bytes, in the machine's byte order.
    #[must_use]
    pub fn bytes(self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let mut put = |at: usize, value: u16| bytes[at..at + 2].copy_from_slice(&value.to_ne_bytes());
        if let Some(checksum) = self.checksum {
            put(6, checksum.start);
            put(8, checksum.offset);
        }
        if let Some(segmentation) = self.segmentation {
            put(2, segmentation.headers);
            put(4, segmentation.size);
        }
        bytes[0] = if self.checksum.is_some() {
            NEEDS_CHECKSUM
        } else {
            0
        };
        bytes[1] = match self.segmentation.map(|segmentation| segmentation.kind) {
            None => 0,
            Some(SegmentKind::Tcp { has_cwr, is_ipv6 }) => {
                let kind = if is_ipv6 { TCP_V6 } else { TCP };
                kind | if has_cwr { ECN } else { 0 }
            }
            Some(SegmentKind::Udp) => UDP,
        };
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_packet_has_a_header_of_zeros() {
        assert_eq!(Header::default().bytes(), [0; LENGTH]);
        assert_eq!(Header::read([0; LENGTH]), Some(Header::default()));
    }

    #[test]
    fn reads_what_it_writes() {
        for kind in [
            SegmentKind::Tcp {
                has_cwr: false,
                is_ipv6: false,
            },
            SegmentKind::Tcp {
                has_cwr: true,
                is_ipv6: false,
            },
            SegmentKind::Tcp {
                has_cwr: true,
                is_ipv6: true,
            },
            SegmentKind::Udp,
        ] {
            let header = Header {
                checksum: Some(PartialChecksum {
                    start: 20,
                    offset: 16,
                }),
                segmentation: Some(Segmentation {
                    kind,
                    headers: 52,
                    size: 1448,
                }),
            };
            assert_eq!(Header::read(header.bytes()), Some(header));
        }
    }

    #[test]
    fn other_kinds_of_segments_are_unknown() {
        // 3: UDP fragments.
        for kind in [2, 3, 6, 0x83] {
            assert_eq!(Header::read([0, kind, 0, 0, 0, 0, 0, 0, 0, 0]), None);
        }
    }
}
