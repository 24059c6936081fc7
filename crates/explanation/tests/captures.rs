//! Bytes of capture files and of packets.

use etherparse::PacketBuilder;

/// Addresses of the client and the server.
pub const HOSTS: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];

/// Byte order of a file.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    Little,
    Big,
}

impl Order {
    pub fn u16(self, value: u16) -> [u8; 2] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    pub fn u32(self, value: u32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }
}

/// Fields of a TCP packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Sender: 0 or 1.
    pub from: usize,
    pub sequence: u32,
    pub acknowledgement: Option<u32>,
    pub is_syn: bool,
    pub is_push: bool,
    pub length: usize,
}

impl Packet {
    pub fn data(sequence: u32, length: usize) -> Self {
        Self {
            from: 0,
            sequence,
            acknowledgement: Some(1),
            is_syn: false,
            is_push: false,
            length,
        }
    }

    pub fn ack(acknowledgement: u32) -> Self {
        Self {
            from: 1,
            sequence: 1,
            acknowledgement: Some(acknowledgement),
            is_syn: false,
            is_push: false,
            length: 0,
        }
    }

    /// Returns the packet from its IP header.
    pub fn ip(&self) -> Vec<u8> {
        let ports = [1000, 80];
        let to = 1 - self.from;
        let mut tcp = PacketBuilder::ipv4(HOSTS[self.from], HOSTS[to], 64).tcp(
            ports[self.from],
            ports[to],
            self.sequence,
            60_000,
        );
        if self.is_syn {
            tcp = tcp.syn();
        }
        if self.is_push {
            tcp = tcp.psh();
        }
        if let Some(number) = self.acknowledgement {
            tcp = tcp.ack(number);
        }
        let mut bytes = Vec::new();
        tcp.write(&mut bytes, &vec![7; self.length]).expect("packet");
        bytes
    }

    /// Returns the packet in an Ethernet frame.
    pub fn ethernet(&self) -> Vec<u8> {
        link(&[0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 8, 0], &self.ip())
    }
}

/// Returns a packet behind a header of a link.
pub fn link(header: &[u8], packet: &[u8]) -> Vec<u8> {
    [header, packet].concat()
}

/// Returns a pcap file; times are seconds and fractions, `cut` is the snapshot length.
pub fn pcap(order: Order, is_nanos: bool, link: u32, frames: &[(u32, u32, Vec<u8>)], cut: usize) -> Vec<u8> {
    let magic = if is_nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut bytes = order.u32(magic).to_vec();
    bytes.extend(order.u16(2));
    bytes.extend(order.u16(4));
    for field in [0, 0, 65535, link] {
        bytes.extend(order.u32(field));
    }
    for (seconds, fraction, data) in frames {
        let kept = data.len().min(cut);
        for field in [*seconds, *fraction, kept as u32, data.len() as u32] {
            bytes.extend(order.u32(field));
        }
        bytes.extend(&data[..kept]);
    }
    bytes
}

/// Returns a block of a pcapng file.
pub fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = order.u32(body.len() as u32 + 12);
    [&order.u32(kind)[..], &length, &body, &length].concat()
}

/// Returns the start of a section.
pub fn section(order: Order) -> Vec<u8> {
    let mut body = order.u32(0x1a2b_3c4d).to_vec();
    body.extend(order.u16(1));
    body.extend(order.u16(0));
    body.extend([0xff; 8]);
    block(order, 0x0a0d_0d0a, &body)
}

/// Returns an interface with options, each a number and its value.
pub fn interface(order: Order, link: u16, options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = order.u16(link).to_vec();
    body.extend(order.u16(0));
    body.extend(order.u32(0));
    for (code, value) in options {
        body.extend(order.u16(*code));
        body.extend(order.u16(value.len() as u16));
        body.extend_from_slice(value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    if !options.is_empty() {
        body.extend([0; 4]);
    }
    block(order, 1, &body)
}

/// Returns a frame of an interface with its time in ticks.
pub fn enhanced(order: Order, interface: u32, ticks: u64, data: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for field in [
        interface,
        (ticks >> 32) as u32,
        ticks as u32,
        data.len() as u32,
        data.len() as u32,
    ] {
        body.extend(order.u32(field));
    }
    body.extend_from_slice(data);
    block(order, 6, &body)
}
