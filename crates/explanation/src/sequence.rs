//! The packets of one direction for a time-sequence graph.

use std::net::SocketAddr;

use foundation::Instant;
use serde::Serialize;

use crate::file::{CaptureError, CaptureFile};
use crate::numbering::Numbering;
use crate::packet::{Parsed, TcpPacket, parse};

/// A direction of a connection in a capture.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    /// Sender of the data.
    pub sender: SocketAddr,
    /// Receiver of the data.
    pub receiver: SocketAddr,
    /// First and last frame of the connection.
    pub frames: (u64, u64),
}

/// What a mark of the graph shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkKind {
    /// Data sent for the first time.
    Data,
    /// Data sent again.
    Again,
    /// A cumulative acknowledgement.
    Ack,
    /// A SACK block.
    Sack,
    /// The end of the receiver's window.
    Window,
}

/// A mark of the graph: bytes of the stream from the first one, at a time.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// Seconds since the first packet of the connection.
    pub time_s: f64,
    /// What it shows.
    pub kind: MarkKind,
    /// First byte.
    pub from: u64,
    /// Byte after the last one; for acknowledgements and windows the same.
    pub to: u64,
    /// Frame.
    pub frame: u64,
}

/// Reads the marks of a direction: at most about `most`, of which all repetitions are kept and the others thinned out evenly.
///
/// # Errors
/// If reading fails.
pub fn sequence(file: &mut CaptureFile, chosen: Chosen, most: usize) -> Result<Vec<Mark>, CaptureError> {
    let mut graph = Graph {
        most,
        step: 1,
        ..Graph::default()
    };
    while let Some(frame) = file.next_frame()? {
        if frame.number > chosen.frames.1 {
            break;
        }
        if frame.number < chosen.frames.0 {
            continue;
        }
        if let Parsed::Tcp(packet) = parse(&frame) {
            let ends = (packet.source, packet.destination);
            if ends == (chosen.sender, chosen.receiver) {
                graph.sent(&packet);
            } else if ends == (chosen.receiver, chosen.sender) {
                graph.acknowledged(&packet);
            }
        }
    }
    Ok(graph.marks)
}

#[derive(Default)]
struct Graph {
    marks: Vec<Mark>,
    most: usize,
    /// One of so many packets is kept.
    step: usize,
    seen: usize,
    origin: Option<Instant>,
    numbering: Option<(Numbering, u64)>,
    next: u64,
    scale: u8,
    sender_scales: bool,
}

impl Graph {
    fn time(&mut self, packet: &TcpPacket) -> f64 {
        let origin = *self.origin.get_or_insert(packet.time);
        packet.time.saturating_since(origin).as_secs_f64()
    }

    /// Whether the next packet is kept.
    fn is_kept(&mut self) -> bool {
        self.seen += 1;
        self.seen.is_multiple_of(self.step)
    }

    fn add(&mut self, mark: Mark) {
        self.marks.push(mark);
        if self.marks.len() > self.most {
            // Every second mark goes; repetitions stay, because they are what one looks for.
            let mut place = 0usize;
            self.marks.retain(|mark| {
                place += 1;
                mark.kind == MarkKind::Again || place.is_multiple_of(2)
            });
            self.step *= 2;
            self.most = self.most.max(self.marks.len() + self.marks.len() / 2);
        }
    }

    fn sent(&mut self, packet: &TcpPacket) {
        let time_s = self.time(packet);
        let start = packet.sequence.wrapping_add(u32::from(packet.is_syn));
        let (numbering, first) = self.numbering.get_or_insert_with(|| {
            let numbering = Numbering::starting_with(start);
            (numbering, numbering.unwrapped(start))
        });
        self.sender_scales |= packet.scale.is_some();
        if packet.length == 0 {
            return;
        }
        let from = numbering.advance(start).saturating_sub(*first);
        let to = from + u64::from(packet.length);
        let is_again = from < self.next;
        self.next = self.next.max(to);
        if is_again || self.is_kept() {
            let kind = if is_again { MarkKind::Again } else { MarkKind::Data };
            self.add(Mark {
                time_s,
                kind,
                from,
                to,
                frame: packet.number,
            });
        }
    }

    fn acknowledged(&mut self, packet: &TcpPacket) {
        let time_s = self.time(packet);
        if let Some(scale) = packet.scale {
            self.scale = scale;
        }
        let (Some(number), Some((numbering, first))) = (packet.acknowledgement, self.numbering) else {
            return;
        };
        if !self.is_kept() {
            return;
        }
        let place = |number: u32| numbering.unwrapped(number).saturating_sub(first);
        let scale = if packet.is_syn || !self.sender_scales { 0 } else { self.scale };
        let acked = place(number);
        let edge = acked + (u64::from(packet.window) << scale);
        let marks = [(MarkKind::Ack, acked, acked), (MarkKind::Window, edge, edge)];
        let blocks = packet
            .sack_blocks()
            .iter()
            .map(|&(start, end)| (MarkKind::Sack, place(start), place(end)));
        for (kind, from, to) in marks.into_iter().chain(blocks) {
            self.add(Mark {
                time_s,
                kind,
                from,
                to,
                frame: packet.number,
            });
        }
    }
}
