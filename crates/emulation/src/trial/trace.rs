//! The trace of a trial on real kernels, as in simulation: packets on the network, bytes read by applications, and
//! samples of connections and queues.

use std::collections::HashMap;
use std::io::{Result, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use capture::Capture;
use experiment::Side;
use experiment::plan::{Group, Protocol};
use experiment::trace::capture::CaptureOptions;
use experiment::trace::content::{Datagram, Message, MessageProtocol};
use experiment::trace::{Content, EventTable, Series, TraceEvent, TraceEventKind, TracedPacket};
use foundation::icmp::{Echo, PROTOCOL as ICMP};
use foundation::{Duration, Instant};
use transport::arq::{StreamRange, codec};
use transport::tcp::wire;

use super::flow::Flow;
use crate::packet::IpPacket;
use crate::tap::PacketEvent;

/// IP protocol numbers (RFC 9293, RFC 768).
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Bytes of a UDP header.
const UDP_HEADER: usize = 8;

/// A packet as sent or received at one end of its flow.
#[derive(Debug)]
struct Sighting {
    at: Instant,
    side: Side,
    host: usize,
    packet: Arc<IpPacket>,
}

/// What a trace contains besides packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tracing {
    /// Interval between reads of connections and queues; `None` for no reads.
    pub interval: Option<Duration>,
}

/// The trace of a trial.
#[derive(Debug, Default)]
pub struct Trace {
    /// The events in order of time.
    pub events: Vec<TraceEvent>,
    /// Samples of connections and queues.
    pub series: Option<Series>,
    sightings: Vec<Sighting>,
    hosts: Vec<String>,
}

impl Trace {
    /// Writes a capture of the flows' packets, as sent and received by the hosts.
    ///
    /// # Errors
    /// The writer's errors.
    pub fn write_capture(&self, out: impl Write, extent: CaptureOptions) -> Result<()> {
        let mut capture = Capture::new(out, &self.hosts, extent.snap)?;
        let events = |sighting: &&Sighting| extent.side.is_none_or(|side| side == sighting.side);
        for sighting in self.sightings.iter().filter(events) {
            capture.write(sighting.at, sighting.host, sighting.packet.bytes())?;
        }
        Ok(())
    }

    /// Builds the trace of a trial that started at `start` from the emulation's packet events.
    pub(super) fn of(
        start: Instant,
        events: Vec<PacketEvent>,
        flows: &[Arc<Flow>],
        groups: &[Group],
        hosts: &[String],
        series: Option<Series>,
    ) -> Self {
        let directory = Directory::new(flows, groups);
        let mut table = EventTable::default();
        let mut sightings = Vec::new();
        let mut traced: HashMap<u64, FlowPacket> = HashMap::new();
        for one in events {
            let at = Instant::ZERO + one.at.saturating_since(start);
            if let Some(packet) = one.packet {
                directory.record(&mut traced, at, one.id, packet, one.what);
            }
            let Some(packet) = traced.get(&one.id) else {
                continue;
            };
            let seen = TracedPacket {
                id: one.id,
                size: packet.packet.bytes().len() as u32,
                flow: packet.flow,
                to: packet.to,
                content: &packet.content,
            };
            let side = match one.what {
                TraceEventKind::Send => {
                    table.sent(at, &seen);
                    packet.to.other()
                }
                what => {
                    table.note(at, what, &seen, one.reason.map(network::DropReason::name));
                    packet.to
                }
            };
            if matches!(one.what, TraceEventKind::Send | TraceEventKind::Receive) {
                sightings.push(Sighting {
                    at,
                    side,
                    host: packet.hosts[side as usize],
                    packet: Arc::clone(&packet.packet),
                });
            }
        }
        for flow in flows {
            for note in flow.notes() {
                match note.delivered {
                    Some(total) => table.delivered(note.at, flow.id.number, note.side, total),
                    None => table.timed_out(note.at, flow.id.number, note.side),
                }
            }
        }
        let mut events = table.events;
        events.sort_by(|one, other| one.time.total_cmp(&other.time));
        Self {
            events,
            series,
            sightings,
            hosts: hosts.to_vec(),
        }
    }
}

/// A packet of a flow.
struct FlowPacket {
    flow: u32,
    to: Side,
    /// The hosts of the flow, the opener's first.
    hosts: [usize; 2],
    content: Content,
    packet: Arc<IpPacket>,
}

/// IP protocol and destination of a flow.
type Key = (u8, SocketAddr);

/// Finds the flow of a packet.
struct Directory<'a> {
    /// In order of start: flows may use a port one after the other.
    flows: HashMap<Key, Vec<(&'a Flow, &'a Group)>>,
}

impl<'a> Directory<'a> {
    fn new(flows: &'a [Arc<Flow>], groups: &'a [Group]) -> Self {
        let mut all: HashMap<Key, Vec<(&Flow, &Group)>> = HashMap::new();
        for flow in flows {
            let group = &groups[flow.id.group as usize];
            let protocol = match group.protocol {
                Protocol::Tcp(_) | Protocol::Mptcp(_) => TCP,
                Protocol::Arq(_) | Protocol::Quic(_) | Protocol::Udp(_) => UDP,
                Protocol::Icmp => ICMP,
            };
            if let Some(to) = flow.to() {
                all.entry((protocol, to)).or_default().push((flow, group));
            }
        }
        Self { flows: all }
    }

    /// The flow to an address at a time.
    fn find(&self, at: Instant, protocol: u8, to: SocketAddr) -> Option<(&'a Flow, &'a Group)> {
        let flows = self.flows.get(&(protocol, to))?;
        let begun = flows.iter().rev().find(|(flow, _)| flow.id.opened_at <= at);
        begun.or(flows.first()).copied()
    }

    /// Stores a packet, or its change on the way.
    fn record(
        &self,
        traced: &mut HashMap<u64, FlowPacket>,
        at: Instant,
        id: u64,
        packet: IpPacket,
        what: TraceEventKind,
    ) {
        if let Some(before) = traced.get_mut(&id) {
            // A corrupted packet keeps its content.
            if what == TraceEventKind::Mark
                && let Some(content) = content(&packet, matches!(before.content, Content::Arq(_)))
            {
                before.content = content;
            }
            before.packet = Arc::new(packet);
            return;
        }
        let Some([from, to]) = ends(&packet) else { return };
        let forward = self
            .find(at, packet.protocol(), to)
            .map(|found| (found, Side::Receiver));
        let back = || {
            self.find(at, packet.protocol(), from)
                .map(|found| (found, Side::Sender))
        };
        let Some(((flow, group), side)) = forward.or_else(back) else {
            return;
        };
        let Some(content) = content(&packet, matches!(group.protocol, Protocol::Arq(_))) else {
            return;
        };
        let pair = &group.pairs[flow.id.pair as usize];
        traced.insert(
            id,
            FlowPacket {
                flow: flow.id.number,
                to: side,
                hosts: [pair.from.0 as usize, pair.to.0 as usize],
                content,
                packet: Arc::new(packet),
            },
        );
    }
}

/// Source and destination of a packet with ports, or of an echo message.
fn ends(packet: &IpPacket) -> Option<[SocketAddr; 2]> {
    if packet.protocol() == ICMP {
        return echo(packet).map(|_| [packet.source(), packet.destination()].map(|end| (end, 0).into()));
    }
    if !matches!(packet.protocol(), TCP | UDP) || packet.is_later_fragment() {
        return None;
    }
    let ports: &[u8; 4] = packet.bytes().get(packet.header_len()..)?.first_chunk()?;
    let end =
        |address: Ipv4Addr, port: [u8; 2]| SocketAddr::new(IpAddr::V4(address), u16::from_be_bytes(port));
    Some([
        end(packet.source(), [ports[0], ports[1]]),
        end(packet.destination(), [ports[2], ports[3]]),
    ])
}

/// The echo message in a packet, or in the first fragment (RFC 792).
fn echo(packet: &IpPacket) -> Option<Message> {
    if packet.is_later_fragment() {
        return None;
    }
    let message = packet.bytes().get(packet.header_len()..)?;
    let echo = Echo::read(true, message)?;
    let length = message.len() as u32;
    Some(Message {
        protocol: MessageProtocol::Icmp,
        is_request: !echo.is_reply,
        number: echo.sequence.into(),
        offset: 0,
        length,
        whole: length,
    })
}

/// The content of a complete packet.
fn content(packet: &IpPacket, is_arq: bool) -> Option<Content> {
    if packet.protocol() == TCP {
        return wire::decode(packet.bytes())
            .ok()
            .map(|packet| Content::Tcp(packet.segment));
    }
    if packet.protocol() == ICMP {
        return echo(packet).map(Content::Message);
    }
    let datagram = packet.bytes().get(packet.header_len()..)?;
    let payload = datagram.get(UDP_HEADER..)?;
    if is_arq {
        let frame = codec::decode(payload).ok()?;
        // Only the sender knows the stream offset.
        return Some(Content::Arq(frame.map_payload(|range| StreamRange {
            offset: 0,
            length: range.len() as u32,
        })));
    }
    // The length in the header (RFC 768) counts, because this may be a first fragment.
    let length = u32::from(u16::from_be_bytes([datagram[4], datagram[5]]));
    Some(Content::Datagram(Datagram {
        length: length.saturating_sub(UDP_HEADER as u32),
        sent_at: None,
    }))
}
