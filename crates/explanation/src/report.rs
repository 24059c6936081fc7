//! The explanation of a capture as a document.

use std::net::SocketAddr;

use foundation::Instant;
use serde::Serialize;

use crate::causes::{Cause, Interval, Spent, causes};
use crate::connection::Connection;
use crate::connections::{Connections, Omitted, Others};
use crate::direction::Direction;
use crate::file::CaptureFile;
use crate::multipath::first_subflows;
use crate::path::PathFigures;
use crate::quic::QuicReport;
use crate::tallies::Tallies;
use crate::turns::Turn;

/// A capture: its frames and connections, those with most data first.
#[derive(Debug, Serialize)]
pub struct CaptureReport {
    /// Frames.
    pub frames: u64,
    /// Frames that are no TCP packet.
    pub others: Others,
    /// Why the capture ended before its file did.
    pub ended_early: Option<String>,
    /// Connections; of thousands, those with most data.
    pub connections: Vec<ConnectionReport>,
    /// The other connections.
    pub omitted: Omitted,
    /// QUIC connections, those with most data first.
    pub quic: Vec<QuicReport>,
}

/// A connection.
#[derive(Debug, Serialize)]
pub struct ConnectionReport {
    /// Number in the order of first packets, from 0, as in Wireshark's `tcp.stream`.
    pub stream: usize,
    /// Of Multipath TCP: the stream of the first subflow of the same connection.
    pub multipath: Option<usize>,
    /// Address of the client.
    pub client: SocketAddr,
    /// Address of the server.
    pub server: SocketAddr,
    /// First packet, in seconds since 1970.
    pub start_s: f64,
    /// Time from the first to the last packet.
    pub duration_s: f64,
    /// First and last frame.
    pub frames: (u64, u64),
    /// Number of the interface that captured it, from 0.
    pub interface: u32,
    /// Whether the capture has the handshake.
    pub has_handshake: bool,
    /// Duration of the handshake.
    pub handshake_s: Option<f64>,
    /// Retransmitted SYNs.
    pub repeated_syns: u32,
    /// Whether the capture has the end.
    pub is_closed: bool,
    /// The dialogue of the applications; none if it has more than 2,000 turns.
    pub turns: Option<Vec<Turn>>,
    /// Data of the client, and that of the server.
    pub directions: [DirectionReport; 2],
}

/// The data of one end.
#[derive(Debug, Serialize)]
pub struct DirectionReport {
    /// Bytes sent, without repetitions.
    pub bytes: u64,
    /// Time from the first data to the last event.
    pub duration_s: f64,
    /// Start of the data, since the first packet of the connection.
    pub start_s: f64,
    /// Packets.
    pub packets: u64,
    /// Packets with data.
    pub data_packets: u64,
    /// Retransmissions.
    pub repeated_packets: u64,
    /// Retransmitted bytes.
    pub repeated_bytes: u64,
    /// Retransmissions after losses without a queue.
    pub random_loss_packets: u64,
    /// Retransmissions after losses by a full queue.
    pub overflow_packets: u64,
    /// Retransmissions after losses of bursts that a queue could not hold.
    pub burst_packets: u64,
    /// Retransmissions after losses by a policer.
    pub policed_packets: u64,
    /// Retransmissions that the receiver reports as unnecessary (DSACK).
    pub spurious_packets: u64,
    /// Rate between losses by a policer, in bit/s of payload. It is below the policer's rate if the bucket overflows while the
    /// sender is slow: in 29 captures of `benchmarks/explain_accuracy.py` the median was 10 % below it, and the largest difference 53 %.
    pub policer_bps: Option<f64>,
    /// Median of the flight after a loss in relation to that before it.
    pub reduction: Option<f64>,
    /// Time in seconds that the full queue adds: the median at its losses.
    pub full_queue_s: Option<f64>,
    /// Share of the bytes that were sent directly after an ACK: small if the sender paces its packets.
    pub clocked_share: f64,
    /// Numbers of lost packets among those of the sender, from 1; at most 10,000.
    pub lost: Vec<u64>,
    /// Timeouts and probes of the tail.
    pub timeouts: u64,
    /// Packets that arrived late without a retransmission.
    pub reordered: u64,
    /// Bytes acknowledged but never captured.
    pub unseen_bytes: u64,
    /// Packets with Congestion Experienced.
    pub marked: u64,
    /// Packets above the maximum segment size (segmentation offload).
    pub large: u64,
    /// Counts by Wireshark's definitions.
    pub wireshark: Tallies,
    /// The path.
    pub path: PathFigures,
    /// Time of each cause, longest first.
    pub causes: Vec<Spent>,
    /// Intervals with one main cause each.
    pub intervals: Vec<Interval>,
    /// Slices over time, for charts.
    pub series: Vec<Point>,
}

/// A slice for charts.
#[derive(Debug, Serialize)]
pub struct Point {
    /// Middle of the slice since the first packet.
    pub time_s: f64,
    /// Bytes in flight, at most.
    pub flight: u64,
    /// Receiver's window.
    pub window: u64,
    /// Smallest RTT.
    pub rtt_s: Option<f64>,
    /// Rate of new data at the receiver.
    pub rate_bps: f64,
    /// Retransmissions.
    pub repeated: u32,
}

impl CaptureReport {
    /// Returns the report of a capture that was read.
    #[must_use]
    pub fn of(file: &CaptureFile, found: &Connections) -> Self {
        let first = first_subflows(found.all.iter().map(|one| (one.stream, one.subflow)));
        let mut connections: Vec<ConnectionReport> = found
            .all
            .iter()
            .map(|one| ConnectionReport::of(one, first.get(&one.stream).copied()))
            .collect();
        connections.sort_by_key(|one| std::cmp::Reverse(one.directions[0].bytes + one.directions[1].bytes));
        Self {
            frames: file.frames(),
            others: found.others,
            ended_early: file.ended_early().map(str::to_owned),
            connections,
            omitted: found.omitted,
            quic: found.quic.reports(),
        }
    }
}

impl ConnectionReport {
    fn of(connection: &Connection, multipath: Option<usize>) -> Self {
        let origin = connection.first.0;
        let span = connection.handshake.span();
        let direction = |side: usize| {
            DirectionReport::of(
                &connection.sides[side].direction,
                connection.sides[side].analysis.tallies,
                span,
                origin,
            )
        };
        Self {
            stream: connection.stream,
            multipath,
            client: connection.addresses[0],
            server: connection.addresses[1],
            start_s: origin.as_secs_f64(),
            duration_s: connection.last.0.saturating_since(origin).as_secs_f64(),
            frames: (connection.first.1, connection.last.1),
            interface: connection.interface,
            has_handshake: span.is_some(),
            handshake_s: span.map(|(start, end)| end.saturating_since(start).as_secs_f64()),
            repeated_syns: connection.handshake.repeated,
            is_closed: connection.is_closed,
            turns: connection.turns.all().map(<[Turn]>::to_vec),
            directions: [direction(0), direction(1)],
        }
    }
}

impl DirectionReport {
    fn of(
        direction: &Direction,
        wireshark: Tallies,
        handshake: Option<(Instant, Instant)>,
        origin: Instant,
    ) -> Self {
        let slices = direction.slices();
        let path = PathFigures::of(direction, &slices, origin);
        let found = causes(&slices, &path, handshake, origin);
        let since = |time: Instant| time.saturating_since(origin).as_secs_f64();
        let start = direction.first_data.unwrap_or(origin);
        let end = slices.last().map_or(start, |slice| slice.end);
        let totals = &direction.totals;
        let series = slices
            .iter()
            .map(|slice| Point {
                time_s: (since(slice.start) + since(slice.end)) / 2.0,
                flight: slice.flight,
                window: slice.window,
                rtt_s: slice.rtt.map(|(least, _)| least.as_secs_f64()),
                rate_bps: 8.0 * slice.rate(),
                repeated: slice.repeated,
            })
            .collect();
        Self {
            bytes: totals.bytes,
            duration_s: end.saturating_since(start).as_secs_f64(),
            start_s: since(start),
            packets: totals.packets,
            data_packets: totals.data_packets,
            repeated_packets: totals.repeated_packets,
            repeated_bytes: totals.repeated_bytes,
            timeouts: totals.timeouts,
            reordered: totals.reordered,
            unseen_bytes: totals.unseen_bytes,
            marked: totals.marked,
            large: totals.large,
            wireshark,
            path,
            random_loss_packets: found.lost(Cause::RandomLoss),
            overflow_packets: found.lost(Cause::QueueOverflow),
            burst_packets: found.lost(Cause::Burst),
            policed_packets: found.lost(Cause::Policer),
            spurious_packets: totals.spurious_packets,
            policer_bps: found.policer_bps,
            reduction: found.reduction,
            full_queue_s: found.full_queue_s,
            clocked_share: direction.clocked.0 as f64 / direction.clocked.1.max(1) as f64,
            lost: direction.lost.clone(),
            causes: found.spent,
            intervals: found.intervals,
            series,
        }
    }
}
