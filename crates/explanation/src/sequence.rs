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
    /// Interface that captured it.
    pub interface: u32,
}

/// What a mark of the graph shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkKind {
    /// Data sent for the first time.
    Data,
    /// Retransmitted data.
    Again,
    /// A cumulative acknowledgement.
    Ack,
    /// A SACK block.
    Sack,
    /// The end of the receiver's window.
    Window,
}

const KINDS: usize = 5;

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
        if let Parsed::Tcp(packet) = parse(&frame)
            && packet.interface == chosen.interface
        {
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
    /// Every n-th packet of a kind is kept.
    step: usize,
    seen: [usize; KINDS],
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

    /// Whether the next packet of a kind is kept: each kind is thinned out by itself, so that none disappears.
    fn is_kept(&mut self, kind: MarkKind) -> bool {
        let seen = &mut self.seen[kind as usize];
        *seen += 1;
        seen.is_multiple_of(self.step)
    }

    fn add(&mut self, mark: Mark) {
        self.marks.push(mark);
        if self.marks.len() > self.most {
            // Every second mark of a kind goes; repetitions stay, because they are what one looks for.
            let mut places = [0usize; KINDS];
            self.marks.retain(|mark| {
                let place = &mut places[mark.kind as usize];
                *place += 1;
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
        if is_again || self.is_kept(MarkKind::Data) {
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
        if !self.is_kept(MarkKind::Ack) {
            return;
        }
        let place = |number: u32| numbering.unwrapped(number).saturating_sub(first);
        let scale = if packet.is_syn || !self.sender_scales {
            0
        } else {
            self.scale
        };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_transfer_keeps_marks_of_every_kind_evenly() {
        let mut graph = Graph {
            most: 1000,
            step: 1,
            ..Graph::default()
        };
        for number in 0..50_000u64 {
            let is_again = number % 1000 == 0;
            let data = if is_again { MarkKind::Again } else { MarkKind::Data };
            for kinds in [vec![data], vec![MarkKind::Ack, MarkKind::Window]] {
                if kinds[0] == MarkKind::Again || graph.is_kept(kinds[0]) {
                    for kind in kinds {
                        graph.add(Mark {
                            time_s: number as f64,
                            kind,
                            from: number,
                            to: number,
                            frame: number,
                        });
                    }
                }
            }
        }
        assert!(graph.marks.len() <= 1100, "{}", graph.marks.len());
        let times = |kind| {
            graph
                .marks
                .iter()
                .filter(move |mark| mark.kind == kind)
                .map(|mark| mark.time_s)
        };
        assert_eq!(times(MarkKind::Again).count(), 50);
        for kind in [MarkKind::Data, MarkKind::Ack] {
            let found: Vec<f64> = times(kind).collect();
            assert!(found.len() > 100, "{kind:?}: {}", found.len());
            let longest = found.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
            assert!(longest < 2000.0, "{kind:?}: {longest}");
        }
    }
}
