//! Selection of a flow's packets, as a function and as a program for the kernel.

use std::net::IpAddr;

use super::Direction;
use super::packet::{Packet, Transport};

/// A protocol above IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// ICMP or ICMPv6 echo, depending on the addresses.
    Echo,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    const fn number(self, is_v4: bool) -> u8 {
        match self {
            Self::Echo if is_v4 => 1,
            Self::Echo => 58,
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }
}

/// A flow: the packets of one protocol between two ends, both ways, with all their fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The transport protocol.
    pub protocol: Protocol,
    /// The near end's address.
    pub near: IpAddr,
    /// The far end's address, of the same family.
    pub far: IpAddr,
    /// The near end's port, or the identifier of its echo requests; `None` for any.
    pub near_port: Option<u16>,
    /// The far end's port; `None` for any. Echo messages have none.
    pub far_port: Option<u16>,
}

/// An instruction of classic BPF: code, jump if true, jump if false, operand.
pub type Instruction = (u16, u8, u8, u32);

// `linux/bpf_common.h` and `linux/filter.h`.
const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_HALF_AT_X: u16 = 0x48;
const LOAD_BYTE_AT_X: u16 = 0x50;
const HEADER_LENGTH_TO_X: u16 = 0xb1;
const NUMBER_TO_X: u16 = 0x01;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// Captured bytes of each frame, enough for all headers.
pub(super) const SNAPPED: u32 = 192;

/// One step of a branch of the program; if it fails, the next branch is tried.
#[derive(Clone, Copy)]
enum Step {
    Do(u16, u32),
    Equal(u32),
    AnyBit(u32),
    NoBit(u32),
}

impl Filter {
    /// Returns the packet's direction if it belongs to the flow. Later fragments carry no ports, so all of them with
    /// the flow's protocol and addresses belong to it.
    #[must_use]
    pub fn direction(&self, packet: &Packet) -> Option<Direction> {
        if packet.protocol != self.protocol.number(self.near.is_ipv4()) {
            return None;
        }
        let (near, far) = (self.near_port, self.far_port);
        let is = |wanted: Option<u16>, port: u16| wanted.is_none_or(|wanted| wanted == port);
        let (out, back) = match packet.transport {
            Transport::Tcp {
                source, destination, ..
            }
            | Transport::Udp {
                source, destination, ..
            } => (
                is(near, source) && is(far, destination),
                is(near, destination) && is(far, source),
            ),
            Transport::Echo {
                request, identifier, ..
            } => (request && is(near, identifier), !request && is(near, identifier)),
            Transport::Other => (packet.is_fragment, packet.is_fragment),
        };
        let ends = (packet.source, packet.destination);
        if out && ends == (self.near, self.far) {
            Some(Direction::Out)
        } else if back && ends == (self.far, self.near) {
            Some(Direction::In)
        } else {
            None
        }
    }

    /// Returns a program for packets that start with their IP header. It accepts what [`direction`](Self::direction)
    /// accepts, plus all IPv6 packets with extension headers between the two addresses.
    #[must_use]
    pub fn program(&self) -> Vec<Instruction> {
        let mut ways = Vec::new();
        for out in [true, false] {
            let (from, to) = if out {
                (self.near, self.far)
            } else {
                (self.far, self.near)
            };
            let (source, destination) = match out {
                true => (self.near_port, self.far_port),
                false => (self.far_port, self.near_port),
            };
            match (from, to) {
                (IpAddr::V4(from), IpAddr::V4(to)) => {
                    let mut start = vec![Step::Do(LOAD_BYTE, 9)];
                    start.push(Step::Equal(self.protocol.number(true).into()));
                    start.extend([Step::Do(LOAD_WORD, 12), Step::Equal(from.to_bits())]);
                    start.extend([Step::Do(LOAD_WORD, 16), Step::Equal(to.to_bits())]);
                    start.push(Step::Do(LOAD_HALF, 6));
                    let mut whole = start.clone();
                    whole.extend([Step::NoBit(0x1fff), Step::Do(HEADER_LENGTH_TO_X, 0)]);
                    whole.extend(self.above(out, source, destination));
                    let mut later = start;
                    later.push(Step::AnyBit(0x1fff));
                    ways.extend([whole, later]);
                }
                (IpAddr::V6(from), IpAddr::V6(to)) => {
                    let mut start = Vec::new();
                    for (address, at) in [(from, 8), (to, 24)] {
                        for (place, part) in address.octets().chunks(4).enumerate() {
                            start.push(Step::Do(LOAD_WORD, at + place as u32 * 4));
                            start.push(Step::Equal(u32::from_be_bytes([
                                part[0], part[1], part[2], part[3],
                            ])));
                        }
                    }
                    start.push(Step::Do(LOAD_BYTE, 6));
                    let mut plain = start.clone();
                    plain.push(Step::Equal(self.protocol.number(false).into()));
                    plain.push(Step::Do(NUMBER_TO_X, 40));
                    plain.extend(self.above(out, source, destination));
                    ways.push(plain);
                    for extension in [0, 43, 44, 60] {
                        let mut extended = start.clone();
                        extended.push(Step::Equal(extension));
                        ways.push(extended);
                    }
                }
                _ => {}
            }
        }
        assemble(&ways)
    }

    /// Returns the checks of the transport header, which X points to.
    fn above(&self, out: bool, source: Option<u16>, destination: Option<u16>) -> Vec<Step> {
        let half = |at, value: u16| [Step::Do(LOAD_HALF_AT_X, at), Step::Equal(value.into())];
        if self.protocol != Protocol::Echo {
            let ports = [(0, source), (2, destination)];
            let ports = ports.into_iter().filter_map(|(at, port)| Some(half(at, port?)));
            return ports.flatten().collect();
        }
        let kind = match (self.near.is_ipv4(), out) {
            (true, true) => 8,
            (true, false) => 0,
            (false, true) => 128,
            (false, false) => 129,
        };
        let mut steps = vec![Step::Do(LOAD_BYTE_AT_X, 0), Step::Equal(kind)];
        steps.extend(
            self.near_port
                .into_iter()
                .flat_map(|identifier| half(4, identifier)),
        );
        steps
    }
}

/// Each branch ends by accepting the packet; a failed step jumps to the next branch; after the last the packet is
/// dropped.
fn assemble(ways: &[Vec<Step>]) -> Vec<Instruction> {
    let mut program = Vec::new();
    for way in ways {
        for (place, &step) in way.iter().enumerate() {
            // Skips the rest of this branch and its end.
            let away = (way.len() - place) as u8;
            program.push(match step {
                Step::Do(code, operand) => (code, 0, 0, operand),
                Step::Equal(value) => (JUMP_IF_EQUAL, 0, away, value),
                Step::AnyBit(bits) => (JUMP_IF_ANY_BIT, 0, away, bits),
                Step::NoBit(bits) => (JUMP_IF_ANY_BIT, away, 0, bits),
            });
        }
        program.push((RETURN, 0, 0, SNAPPED));
    }
    program.push((RETURN, 0, 0, 0));
    program
}

#[cfg(test)]
mod tests {
    use super::super::packet::tests::{v4, v6};
    use super::*;
    use proptest::prelude::*;

    /// Runs a program like the kernel (`linux/filter.h`); a load beyond the packet drops it.
    fn takes(program: &[Instruction], packet: &[u8]) -> bool {
        let (mut a, mut x, mut at) = (0_u32, 0_usize, 0);
        let load = |from: usize, count: usize| -> Option<u32> {
            let bytes = packet.get(from..from + count)?;
            Some(bytes.iter().fold(0, |value, &byte| value << 8 | u32::from(byte)))
        };
        loop {
            let (code, yes, no, k) = program[at];
            at += 1;
            let loaded = match code {
                LOAD_WORD => load(k as usize, 4),
                LOAD_HALF => load(k as usize, 2),
                LOAD_BYTE => load(k as usize, 1),
                LOAD_HALF_AT_X => load(x + k as usize, 2),
                LOAD_BYTE_AT_X => load(x + k as usize, 1),
                HEADER_LENGTH_TO_X => {
                    x = usize::from(packet[k as usize] & 0xf) * 4;
                    Some(a)
                }
                NUMBER_TO_X => {
                    x = k as usize;
                    Some(a)
                }
                JUMP_IF_EQUAL => {
                    at += usize::from(if a == k { yes } else { no });
                    Some(a)
                }
                JUMP_IF_ANY_BIT => {
                    at += usize::from(if a & k != 0 { yes } else { no });
                    Some(a)
                }
                RETURN => return k > 0,
                other => panic!("{other:#x}"),
            };
            let Some(loaded) = loaded else { return false };
            a = loaded;
        }
    }

    fn filter(protocol: Protocol, v6: bool, near_port: Option<u16>, far_port: Option<u16>) -> Filter {
        let address = |last: u8| -> IpAddr { if v6 { [last; 16].into() } else { [last; 4].into() } };
        Filter {
            protocol,
            near: address(1),
            far: address(2),
            near_port,
            far_port,
        }
    }

    #[test]
    fn accepts_both_directions_and_later_fragments() {
        let filter = filter(Protocol::Udp, false, Some(5), Some(6));
        let program = filter.program();
        let cases = [
            (v4(17, ([1; 4], 5), ([2; 4], 6), 0), Some(Direction::Out)),
            (v4(17, ([2; 4], 6), ([1; 4], 5), 0), Some(Direction::In)),
            (v4(17, ([2; 4], 6), ([1; 4], 5), 0x2000), Some(Direction::In)),
            (v4(17, ([1; 4], 0), ([2; 4], 0), 0x2010), Some(Direction::Out)),
            (v4(17, ([2; 4], 5), ([1; 4], 6), 0), None),
            (v4(6, ([1; 4], 5), ([2; 4], 6), 0), None),
            (v4(17, ([1; 4], 5), ([3; 4], 6), 0), None),
        ];
        for (bytes, expected) in cases {
            let packet = Packet::parse(&bytes).unwrap();
            assert_eq!(filter.direction(&packet), expected, "{packet:?}");
            assert_eq!(takes(&program, &bytes), expected.is_some(), "{packet:?}");
        }
    }

    proptest! {
        /// The kernel's program accepts exactly what the function accepts.
        #[test]
        fn program_and_function_agree(
            ends in (1..4_u8, 1..4_u8), ports in (4..8_u16, 4..8_u16), number in prop::sample::select(vec![1_u8, 6, 17]),
            protocol in prop::sample::select(vec![Protocol::Echo, Protocol::Tcp, Protocol::Udp]),
            wanted in (prop::option::of(4..8_u16), prop::option::of(4..8_u16)), place in prop::sample::select(vec![0_u16, 0x2000, 0x4000, 3]),
            kind in prop::sample::select(vec![0_u8, 3, 8]),
        ) {
            let filter = filter(protocol, false, wanted.0, wanted.1);
            let mut bytes = v4(number, ([ends.0; 4], ports.0), ([ends.1; 4], ports.1), place);
            if number == 1 {
                bytes[20] = kind;
                bytes[24..26].copy_from_slice(&ports.0.to_be_bytes());
            }
            let packet = Packet::parse(&bytes).unwrap();
            // The program rejects a first fragment of other ICMP; the function would treat it as a later one.
            prop_assume!(!(number == 1 && place == 0x2000 && kind == 3));
            prop_assert_eq!(takes(&filter.program(), &bytes), filter.direction(&packet).is_some());
        }

        #[test]
        fn the_same_for_ipv6(
            ends in (1..4_u8, 1..4_u8), ports in (4..7_u16, 4..7_u16), wanted in (prop::option::of(4..7_u16), prop::option::of(4..7_u16)),
        ) {
            let filter = filter(Protocol::Udp, true, wanted.0, wanted.1);
            let bytes = v6(([ends.0; 16], ports.0), ([ends.1; 16], ports.1), None);
            let packet = Packet::parse(&bytes).unwrap();
            prop_assert_eq!(takes(&filter.program(), &bytes), filter.direction(&packet).is_some());
            let extended = v6(([ends.0; 16], ports.0), ([ends.1; 16], ports.1), Some(1));
            let packet = Packet::parse(&extended).unwrap();
            // After an extension header, the program accepts all packets of the addresses, and the function decides.
            prop_assert!(filter.direction(&packet).is_none() || takes(&filter.program(), &extended));
        }
    }

    #[test]
    fn no_jump_is_too_far() {
        for v6 in [false, true] {
            let program = filter(Protocol::Tcp, v6, Some(1), Some(2)).program();
            for (at, &(_, yes, no, _)) in program.iter().enumerate() {
                assert!(at + usize::from(yes.max(no)) < program.len());
            }
        }
    }
}
