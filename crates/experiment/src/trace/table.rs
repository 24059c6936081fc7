//! The event table of a trial.

use std::collections::{HashMap, HashSet};

use foundation::Instant;
use quic::Datagram;
use quic::wire::{self, Frame, PacketType};
use transport::arq::frame::FrameType;
use transport::tcp::{Ecn, Flags, Segment};

use super::content::{Content, MessageProtocol};
use super::events::{TraceDetail, TraceEvent, TraceEventKind, frame_name, segment_name};
use super::quic_packet::QuicPacket;
use crate::side::Side;

/// A packet of a flow.
#[derive(Clone, Copy, Debug)]
pub struct TracedPacket<'a> {
    /// Packet id.
    pub id: u64,
    /// Bytes on the wire, all headers included.
    pub size: u32,
    /// Flow.
    pub flow: u32,
    /// Destination end of the flow.
    pub to: Side,
    /// Content.
    pub content: &'a Content,
}

/// A connection: flow and subflow.
type Connection = (u32, u8);

/// The state of one direction of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    /// Sequence number of the SYN, or of the first packet.
    initial: u32,
    /// Highest number sent, relative to the SYN.
    highest: u32,
    /// Window scale (RFC 7323).
    scale: u8,
}

/// Records events, in order of time.
#[derive(Debug, Default)]
pub struct EventTable {
    /// The events so far.
    pub events: Vec<TraceEvent>,
    /// The events that it records.
    pub detail: TraceDetail,
    directions: HashMap<(Connection, Side), Direction>,
    /// Ends of the payload sent so far over QUIC, by flow, sender and stream.
    streams: HashMap<(u32, Side, u64), u64>,
    /// Newest packet numbers of QUIC, by flow, sender and packet number space.
    numbers: HashMap<(u32, Side, PacketType, u8), u64>,
    sent_before: HashSet<(u32, Side, u32)>,
    retransmissions: HashSet<u64>,
}

impl EventTable {
    fn direction(&self, flow: Connection, from: Side) -> Direction {
        self.directions.get(&(flow, from)).copied().unwrap_or_default()
    }

    /// Records a packet sent by a host.
    pub fn sent(&mut self, at: Instant, packet: &TracedPacket<'_>) {
        let from = packet.to.other();
        let is_retransmission = match packet.content {
            Content::Arq(frame) => {
                if frame.kind == FrameType::Open {
                    // Both streams start with the number chosen by the opener.
                    for side in [Side::Sender, Side::Receiver] {
                        self.directions
                            .entry(((packet.flow, 0), side))
                            .or_default()
                            .initial = frame.sequence;
                    }
                }
                matches!(frame.kind, FrameType::Data | FrameType::Fin)
                    && !self.sent_before.insert((packet.flow, from, frame.sequence))
            }
            Content::Tcp(segment) => self.track_segment((packet.flow, 0), from, segment),
            Content::Mptcp(segment) => self.track_segment((packet.flow, segment.subflow), from, &segment.tcp),
            Content::Quic(datagram) => self.track_streams(packet.flow, from, datagram),
            Content::Datagram(_) | Content::Message(_) | Content::TooBig { .. } => false,
        };
        if is_retransmission {
            self.retransmissions.insert(packet.id);
        }
        self.note(at, TraceEventKind::Send, packet, None);
    }

    /// Records the expiry of a retransmission timer.
    pub fn timed_out(&mut self, at: Instant, flow: u32, side: Side) {
        self.events
            .push(Self::event(at, flow, side, TraceEventKind::Timeout));
    }

    /// Records a read of an application; `total` counts all bytes it has read.
    pub fn delivered(&mut self, at: Instant, flow: u32, side: Side, total: u64) {
        if !self.detail.includes(TraceEventKind::Deliver, false) {
            return;
        }
        let mut event = Self::event(at, flow, side, TraceEventKind::Deliver);
        event.delivered = Some(total);
        self.events.push(event);
    }

    /// Updates the state of a direction. Returns whether the segment is a retransmission.
    fn track_segment(&mut self, flow: Connection, from: Side, segment: &Segment) -> bool {
        let direction = self.directions.entry((flow, from)).or_default();
        let is_syn = segment.flags.contains(Flags::SYN);
        let is_repeated_syn = is_syn && direction.initial == segment.sequence.0 && direction.highest > 0;
        if is_syn && !is_repeated_syn {
            *direction = Direction {
                initial: segment.sequence.0,
                highest: 0,
                scale: segment.options.window_scale.unwrap_or(0),
            };
        }
        let space = segment.length + u32::from(is_syn) + u32::from(segment.flags.contains(Flags::FIN));
        let end = segment
            .sequence
            .0
            .wrapping_sub(direction.initial)
            .wrapping_add(space);
        let is_retransmission = space > 0 && end <= direction.highest;
        direction.highest = direction.highest.max(end);
        is_retransmission
    }

    /// Updates the state of a direction of QUIC. Returns whether the datagram has payload that was sent before.
    fn track_streams(&mut self, flow: u32, from: Side, datagram: &Datagram) -> bool {
        let mut is_retransmission = false;
        wire::packets(&datagram.bytes, |packet| {
            let space = (flow, from, packet.kind, datagram.path.unwrap_or(0));
            let newest = self.numbers.entry(space).or_default();
            *newest = packet.full_number(*newest + 1);
            packet.frames(|frame| {
                if let Frame::Stream {
                    id, offset, length, ..
                } = frame
                {
                    let highest = self.streams.entry((flow, from, id)).or_default();
                    is_retransmission |= length > 0 && offset < *highest;
                    *highest = (*highest).max(offset + length);
                }
            });
        });
        is_retransmission
    }

    fn event(at: Instant, flow: u32, side: Side, what: TraceEventKind) -> TraceEvent {
        TraceEvent {
            time: at.as_secs_f64(),
            flow,
            host: side.name(),
            what,
            ..TraceEvent::default()
        }
    }

    /// Records another event of a packet; `reason` is the reason of a drop.
    pub fn note(
        &mut self,
        at: Instant,
        what: TraceEventKind,
        packet: &TracedPacket<'_>,
        reason: Option<&'static str>,
    ) {
        let is_retransmission = self.retransmissions.contains(&packet.id);
        if !self.detail.includes(what, is_retransmission) {
            return;
        }
        let (near, far) = (packet.to.other(), packet.to);
        let mut event = Self::event(
            at,
            packet.flow,
            if what == TraceEventKind::Receive {
                far
            } else {
                near
            },
            what,
        );
        event.direction = Some(if far == Side::Receiver {
            "forward"
        } else {
            "reverse"
        });
        event.id = Some(packet.id);
        event.size = Some(packet.size);
        event.retransmission = is_retransmission;
        event.reason = reason;
        match packet.content {
            Content::Arq(frame) => {
                event.frame = Some(frame_name(frame.kind));
                event.length = frame.payload.map(|range| range.length);
                let initial = self.direction((packet.flow, 0), near).initial;
                let counted = |number: u32| number.wrapping_sub(initial);
                // A reset has a reason code instead of a sequence number.
                let is_number = frame.kind != FrameType::Reset;
                event.sequence = Some(if is_number {
                    counted(frame.sequence)
                } else {
                    frame.sequence
                });
                event.acknowledgement = Some(counted(frame.acknowledgement));
                event.window = Some(u64::from(frame.window));
                let sack = frame.sack.as_slice().iter();
                event.sack = sack.map(|&(start, end)| (counted(start), counted(end))).collect();
            }
            Content::Tcp(segment) => self.describe(&mut event, (packet.flow, 0), near, segment),
            Content::Mptcp(segment) => {
                event.subflow = Some(segment.subflow);
                self.describe(&mut event, (packet.flow, segment.subflow), near, &segment.tcp);
            }
            Content::Quic(datagram) => self.describe_quic(&mut event, packet.flow, near, datagram),
            Content::Datagram(datagram) => {
                event.frame = Some("datagram");
                event.length = Some(datagram.length);
            }
            Content::Message(message) => {
                event.frame = Some(match message.protocol {
                    _ if message.offset > 0 => "fragment",
                    MessageProtocol::Udp => "datagram",
                    MessageProtocol::Icmp if message.is_request => "echo-request",
                    MessageProtocol::Icmp => "echo-reply",
                });
                event.length = Some(message.length);
            }
            Content::TooBig { .. } => event.frame = Some("too-big"),
        }
        self.events.push(event);
    }

    fn describe(&self, event: &mut TraceEvent, flow: Connection, from: Side, segment: &Segment) {
        let (own, peer) = (self.direction(flow, from), self.direction(flow, from.other()));
        let is_syn = segment.flags.contains(Flags::SYN);
        event.frame = Some(segment_name(segment));
        event.length = Some(segment.length);
        event.sequence = Some(segment.sequence.0.wrapping_sub(own.initial));
        event.marked = segment.ecn == Ecn::Ce;
        // A window is not scaled in a SYN (RFC 7323, section 2.2).
        event.window = Some(u64::from(segment.window) << if is_syn { 0 } else { own.scale });
        if segment.flags.contains(Flags::ACK) {
            let from_peer = |number: u32| number.wrapping_sub(peer.initial);
            event.acknowledgement = Some(from_peer(segment.acknowledgement.0));
            event.sack = segment
                .options
                .sack
                .as_slice()
                .iter()
                .map(|&(start, end)| (from_peer(start.0), from_peer(end.0)))
                .collect();
        }
    }

    /// Describes a datagram of QUIC: all packets, and the type, number, and offset and length of the payload of the last.
    fn describe_quic(&self, event: &mut TraceEvent, flow: u32, from: Side, datagram: &Datagram) {
        event.length = Some(datagram.data);
        event.marked = datagram.ecn == Ecn::Ce;
        event.subflow = datagram.path;
        wire::packets(&datagram.bytes, |packet| {
            event.frame = Some(packet.kind.name());
            let space = (flow, from, packet.kind, datagram.path.unwrap_or(0));
            let newest = self.numbers.get(&space).copied();
            event.packet_number = newest.map(|newest| packet.full_number(newest + 1));
            let has_number = packet.number_bits > 0;
            let number = event.packet_number.filter(|_| has_number);
            event.packets.push(QuicPacket::of(&packet, number));
            packet.frames(|frame| match frame {
                Frame::Stream { offset, .. } => event.sequence = Some(offset as u32),
                Frame::Ack(ack) if event.acknowledgement.is_none() => {
                    event.acknowledgement = Some(ack.largest as u32);
                }
                _ => {}
            });
        });
    }
}
