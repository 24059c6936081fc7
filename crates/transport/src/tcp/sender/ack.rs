//! Processing of an acknowledgement.

use foundation::{Duration, Instant};

use super::Sender;
use super::scoreboard::{Amount, Run};
use super::sent_segment::{Marks, SentSegment};
use crate::congestion::{Acknowledgement, Loss, Snapshot};
use crate::statistics::Statistics;
use crate::tcp::accurate_ecn::{AccurateEcn, ByteCounters, Delivery};
use crate::tcp::state::CongestionState;

/// Fields of a segment that acknowledge this direction.
#[derive(Clone, Copy, Debug)]
pub struct AckInfo<'a> {
    /// Acknowledged position.
    pub acknowledgement: u64,
    /// Position of the segment in the peer's stream.
    pub sequence: u64,
    /// Window in bytes.
    pub window: u64,
    /// SACK blocks as positions, in the order of the header.
    pub sack: &'a [(u64, u64)],
    /// Congestion echo (ECE).
    pub ece: bool,
    /// Report of marks, with accurate feedback.
    pub marks: Option<MarkReport>,
    /// Echoed timestamp.
    pub echo: Option<u32>,
    /// The segment carries data or a FIN and thus is no duplicate ACK.
    pub carries: bool,
}

/// Report of marks in an acknowledgement (RFC 9768).
#[derive(Clone, Copy, Debug)]
pub struct MarkReport {
    /// ACE field.
    pub ace: u8,
    /// AccECN option.
    pub counters: Option<ByteCounters>,
    /// Its timestamp is newer than that of the last segment in order, so that it cannot have been overtaken.
    pub is_newer: bool,
    /// It acknowledges a SYN, so that its ACE field is no counter.
    pub acknowledges_syn: bool,
}

/// Validity of an acknowledgement (RFC 9293 section 3.10.7.4; RFC 5961, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckValidity {
    /// Valid; `advanced`: the cumulative acknowledgement moved.
    Valid { advanced: bool },
    /// It acknowledges unsent data.
    Unsent,
    /// It is more than the largest window below SND.UNA.
    TooOld,
}

/// Losses detected together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    pub bytes: u64,
    pub packets: u64,
    /// Send time and snapshot of the newest of them.
    pub newest: Option<(Instant, Snapshot)>,
}

impl Losses {
    pub fn add(&mut self, record: &SentSegment) {
        self.bytes += u64::from(record.length);
        self.packets += 1;
        if self.newest.is_none_or(|(at, _)| at <= record.sent_at) {
            self.newest = Some((record.sent_at, record.snapshot));
        }
    }
}

/// Effects of one ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckSummary {
    /// Cumulative acknowledgement before it, and whether it moved.
    pub prior_una: u64,
    pub advanced: bool,
    /// It carries data, changes the window or acknowledges data.
    pub not_duplicate: bool,
    pub data_acked: bool,
    pub newly_sacked: bool,
    pub dsack: bool,
    /// It reports marks, and how many segments and bytes were marked, as far as it says.
    pub ece: bool,
    pub marked: u64,
    pub marked_bytes: u64,
    /// Retransmitted data was acknowledged.
    pub retransmitted_acked: bool,
    /// Data sent before the timeout and never retransmitted was acknowledged (F-RTO).
    pub original_acked: bool,
    /// The retransmission timer restarts.
    pub set_timer: bool,
    /// 1 for a duplicate ACK (RFC 5681, section 2).
    pub duplicates: u64,
    pub delivered: u64,
    pub delivered_bytes: u64,
    pub prior_in_flight: u64,
    pub losses: Losses,
    /// Latest send time among the newly delivered segments.
    pub newest_sent: Instant,
    /// Send times of the first and last newly acknowledged segment without retransmission.
    pub first_acked: Option<Instant>,
    pub last_acked: Option<Instant>,
    pub first_sacked: Option<Instant>,
    pub last_sacked: Option<Instant>,
    pub echo: Option<u32>,
    /// Bytes delivered when the newest segment that this ACK acknowledges was sent.
    pub prior_delivered: Option<u64>,
}

impl Sender {
    /// Processes an acknowledgement. `accurate`: the state of accurate ECN feedback, if it is in use.
    pub fn on_ack(
        &mut self,
        now: Instant,
        info: &AckInfo<'_>,
        accurate: Option<&mut AccurateEcn>,
        statistics: &mut Statistics,
    ) -> AckValidity {
        let acknowledged = info.acknowledgement;
        if acknowledged > self.next {
            return AckValidity::Unsent;
        }
        // RFC 5961, section 5.2: SND.UNA - MAX.SND.WND <= SEG.ACK.
        if acknowledged + self.peer.largest < self.una {
            return AckValidity::TooOld;
        }
        self.start_external_event();
        let mut summary = AckSummary {
            prior_una: self.una,
            advanced: acknowledged > self.una,
            not_duplicate: info.carries,
            ece: info.ece && self.negotiated.ecn,
            prior_in_flight: self.pipe_bytes(),
            echo: info.echo,
            ..AckSummary::default()
        };
        let old = acknowledged < self.una;
        if !old {
            self.update_window(info, &mut summary);
        }
        // Blocks of this ACK above a segment that it acknowledges cumulatively do not indicate reordering.
        let highest = self.scoreboard.highest_sacked();
        if !info.sack.is_empty() && self.negotiated.sack {
            self.process_sack(now, info, &mut summary);
        }
        if summary.advanced {
            self.advance(now, acknowledged, highest, &mut summary, statistics);
        }
        if let (Some(accurate), Some(report)) = (accurate, &info.marks) {
            self.read_marks(accurate, report, &mut summary);
        } else if summary.ece {
            (summary.marked, summary.marked_bytes) = (summary.delivered, summary.delivered_bytes);
        }
        self.sample_round_trip(now, &summary, statistics);
        if self.is_rack() {
            self.rack
                .on_dsack(summary.dsack, summary.prior_delivered, self.estimator.delivered());
        }
        self.resolve_tail_probe(now, &summary);
        let dubious = !summary.data_acked && !summary.not_duplicate
            || summary.newly_sacked
            || summary.ece
            || summary.dsack
            || self.state != CongestionState::Open;
        if dubious && (!self.scoreboard.is_empty() || summary.data_acked || summary.dsack || summary.ece) {
            // RFC 5681, section 2: a duplicate ACK neither acknowledges nor carries data nor changes the window.
            if !summary.advanced && !summary.not_duplicate && !self.scoreboard.is_empty() {
                summary.duplicates = 1;
            }
            self.process_dubious_ack(now, &mut summary, statistics);
        }
        if summary.set_timer && !self.is_reordering_timer() {
            self.set_timer(now);
        }
        if self.scoreboard.is_empty() {
            self.check_probe_timer(now);
        }
        self.report_to_controller(now, &summary);
        AckValidity::Valid {
            advanced: summary.advanced,
        }
    }

    /// Reads a report of marks.
    #[cold]
    fn read_marks(&self, accurate: &mut AccurateEcn, report: &MarkReport, summary: &mut AckSummary) {
        let delivery = Delivery {
            packets: summary.delivered,
            bytes: summary.delivered_bytes,
            segment: self.segment,
            is_exact: self.negotiated.sack
                || matches!(self.state, CongestionState::Open | CongestionState::Cwr),
            progresses: summary.advanced || summary.newly_sacked,
            sent: self.next,
        };
        let new = accurate.delivered.on_ack(report, &delivery);
        summary.ece = new.packets > 0;
        (summary.marked, summary.marked_bytes) = (new.packets, new.bytes);
    }

    /// Whether an acknowledgement without SACK blocks and congestion echo, in a segment with data, changes nothing but the
    /// position of the window's advertisement: nothing is in flight, and the window is the same.
    #[inline]
    pub fn is_unaffected_by_ack(&self, acknowledged: u64, window: u64) -> bool {
        acknowledged == self.una
            && window == self.peer.window
            && self.scoreboard.is_empty()
            && self.timeout.timer.is_none()
            && self.tail_probe.is_none()
    }

    /// Processes an acknowledgement by which the sender [is unaffected](Self::is_unaffected_by_ack), in a segment at
    /// position `sequence`.
    #[inline]
    pub fn on_repeated_ack(&mut self, sequence: u64) {
        self.start_external_event();
        self.peer.from = self.peer.from.max(sequence);
    }

    /// Ends the burst and the state that lasts until the next acknowledgement.
    #[inline]
    const fn start_external_event(&mut self) {
        self.burst.segments = 0;
        self.due.window_probes = 0;
        self.writes.more_to_come = false;
    }

    /// RFC 9293, section 3.10.7.4: the newest segment sets the window.
    fn update_window(&mut self, info: &AckInfo<'_>, summary: &mut AckSummary) {
        let newer = info.acknowledgement > self.una
            || info.sequence > self.peer.from
            || (info.sequence == self.peer.from && info.window > self.peer.window);
        if !newer {
            return;
        }
        self.peer.from = info.sequence;
        if info.window != self.peer.window {
            summary.not_duplicate = true;
            self.peer.window = info.window;
            self.peer.largest = self.peer.largest.max(info.window);
        }
    }

    /// Processes the SACK blocks (RFC 2018, section 5; RFC 2883, section 4).
    #[inline(never)]
    fn process_sack(&mut self, now: Instant, info: &AckInfo<'_>, summary: &mut AckSummary) {
        let mut blocks = info.sack;
        if let Some(duplicate) = duplicate_block(blocks, info.acknowledgement) {
            blocks = &blocks[1..];
            summary.dsack = true;
            self.on_duplicate(duplicate, summary.prior_una);
        }
        let mut lowest_reordered = u64::MAX;
        // Sorted by position, so that only a hole below an earlier arrival indicates reordering.
        let mut sorted = [(0, 0); 4];
        let count = blocks.len().min(4);
        sorted[..count].copy_from_slice(&blocks[..count]);
        sorted[..count].sort_unstable();
        for &(start, end) in &sorted[..count] {
            if end <= self.una || start >= end || end > self.next {
                continue;
            }
            let Self {
                scoreboard,
                estimator,
                rack,
                rtt,
                recovery_point,
                ..
            } = self;
            let least = rtt.minimum();
            scoreboard.sack(
                start.max(info.acknowledgement.max(summary.prior_una)),
                end,
                |record, before, highest| {
                    summary.newly_sacked = true;
                    deliver(now, record, Amount::of(record), summary, estimator);
                    if !before.has(Marks::EVER_RETRANSMITTED) {
                        if record.start < highest {
                            lowest_reordered = lowest_reordered.min(record.start);
                        }
                        if record.end() <= *recovery_point {
                            summary.original_acked = true;
                        }
                        summary.first_sacked = Some(
                            summary
                                .first_sacked
                                .map_or(record.sent_at, |t| t.min(record.sent_at)),
                        );
                        summary.last_sacked = Some(
                            summary
                                .last_sacked
                                .map_or(record.sent_at, |t| t.max(record.sent_at)),
                        );
                    }
                    rack.on_delivered(now, record, before, least);
                },
            );
        }
        if summary.newly_sacked
            && let (Some(oldest), Some(front)) = (summary.first_sacked, self.scoreboard.front())
            && oldest < front.sent_at
        {
            // Restart only for segments sent before the first one's last transmission.
            summary.set_timer = true;
        }
        if lowest_reordered != u64::MAX && (self.state != CongestionState::Loss || self.undo.is_some()) {
            self.on_reordering(lowest_reordered, self.scoreboard.highest_sacked());
        }
    }

    /// Advances the cumulative acknowledgement. `highest`: highest position selectively acknowledged before.
    #[inline]
    fn advance(
        &mut self,
        now: Instant,
        acknowledged: u64,
        highest: u64,
        summary: &mut AckSummary,
        statistics: &mut Statistics,
    ) {
        let least = self.rtt.minimum();
        let recovery_point = self.recovery_point;
        let mut lowest = u64::MAX;
        let mut acked = 0;
        loop {
            if let Some(Run { first, last, amount }) = self.scoreboard.run(acknowledged) {
                acked += amount.packets;
                deliver(now, last, amount, summary, &mut self.estimator);
                summary.first_acked.get_or_insert(first.sent_at);
                summary.last_acked = Some(last.sent_at);
                lowest = lowest.min(first.start);
                summary.original_acked |= first.end() <= recovery_point;
                if self.negotiated.sack {
                    self.rack.on_delivered(now, last, last.marks, least);
                }
                self.scoreboard.pop_run(amount);
            }
            let Some(record) = self.scoreboard.pop_acknowledged(acknowledged) else {
                break;
            };
            acked += 1;
            let retransmitted = record.marks.has(Marks::EVER_RETRANSMITTED);
            summary.retransmitted_acked |= retransmitted;
            if record.marks.has(Marks::SACKED) {
                continue;
            }
            deliver(now, &record, Amount::of(&record), summary, &mut self.estimator);
            if !retransmitted {
                summary.first_acked.get_or_insert(record.sent_at);
                summary.last_acked = Some(record.sent_at);
                lowest = lowest.min(record.start);
                summary.original_acked |= record.end() <= recovery_point;
            }
            if self.negotiated.sack {
                self.rack.on_delivered(now, &record, record.marks, least);
            }
        }
        summary.data_acked = acked > 0;
        let partly = self.scoreboard.front().is_some_and(|r| r.start < acknowledged);
        self.scoreboard.trim_front(acknowledged);
        summary.set_timer |= summary.data_acked || partly;
        summary.not_duplicate |= summary.data_acked;
        // `window` is relative to `una`.
        self.una = acknowledged;
        self.timeout.stalled_since = now;
        self.timeout.consecutive = 0;
        statistics.bytes_acknowledged = acknowledged.min(self.writes.end).saturating_sub(1);
        statistics.last_acknowledged_at = Some(now);
        if lowest < highest {
            self.on_reordering(lowest, highest);
        }
        if !self.negotiated.sack {
            // Without SACK, an advance over retransmitted data may be the effect of the retransmission alone.
            summary.original_acked &= !summary.retransmitted_acked;
            // The cumulative ACK also covers segments that earlier duplicate ACKs counted as delivered.
            let new = acked - self.duplicates.min(acked);
            summary.delivered = new.max(u64::from(acked > 0));
            summary.delivered_bytes = summary
                .delivered_bytes
                .min(summary.delivered * u64::from(self.segment));
            self.duplicates = (self.duplicates + 1).saturating_sub(acked.max(1));
            if self.scoreboard.is_empty() {
                self.duplicates = 0;
            }
        }
    }

    /// Samples the round trip of segments without retransmission (RFC 6298, section 3), or by timestamps (RFC 7323,
    /// section 4.1).
    fn sample_round_trip(&mut self, now: Instant, summary: &AckSummary, statistics: &mut Statistics) {
        let sample = match (summary.first_acked, summary.first_sacked) {
            (Some(sent), _) if !summary.retransmitted_acked => Some(now - sent),
            (_, Some(sent)) => Some(now - sent),
            _ => match summary.echo {
                Some(echo) if summary.data_acked && echo != 0 => {
                    let ticks = self.clock(now).wrapping_sub(echo);
                    (ticks < 1 << 24).then(|| Duration::from_millis(u64::from(ticks.max(1))))
                }
                _ => None,
            },
        };
        let Some(sample) = sample else { return };
        self.sample_rtt(now, sample, statistics);
    }

    /// Adds an RTT sample and resets the back-off.
    pub fn sample_rtt(&mut self, now: Instant, sample: Duration, statistics: &mut Statistics) {
        let round_ended = self.una > self.rtt_round;
        if round_ended {
            self.rtt_round = self.next;
        }
        self.rtt.sample_in_round(now, sample, round_ended);
        self.timeout.backoff = 0;
        statistics.record_rtt(sample);
    }

    /// Reports delivered data to the controller and updates a reduction in progress.
    #[inline]
    fn report_to_controller(&mut self, now: Instant, summary: &AckSummary) {
        if summary.delivered == 0 && summary.delivered_bytes == 0 {
            return;
        }
        self.totals.delivered += summary.delivered;
        self.totals.marked += summary.marked as u32;
        let reducing = matches!(self.state, CongestionState::Cwr | CongestionState::Recovery);
        // On a path that reorders, data that arrives out of order also grows the window.
        let forward = summary.data_acked
            || (u64::from(self.reordering.extent) > super::DUPLICATE_THRESHOLD && summary.newly_sacked);
        let rate_sample = self
            .estimator
            .finish_ack(self.rtt.minimum().unwrap_or(Duration::ZERO));
        let in_flight = self.pipe();
        let newest = summary
            .last_acked
            .filter(|_| !summary.retransmitted_acked)
            .max(summary.last_sacked);
        let ack = Acknowledgement {
            now,
            bytes: summary.delivered_bytes,
            marked_bytes: summary.marked_bytes,
            rtt: newest.map(|sent| now - sent),
            newest_sent_at: summary.newest_sent,
            smoothed_rtt: self.rtt.smoothed(),
            bytes_in_flight: self.pipe_bytes(),
            delivered: self.estimator.delivered(),
            rate_sample,
            window_limited: self.is_window_limited(),
            in_recovery: reducing || !forward,
        };
        self.controller.on_acknowledged(&ack);
        if reducing && let Some(prr) = &mut self.prr {
            let target = self.controller.packets();
            let safe =
                self.state == CongestionState::Recovery && summary.advanced && summary.losses.packets == 0;
            prr.on_acknowledged(summary.delivered, in_flight, target, safe);
        }
    }

    /// Reports losses to the controller. `in_recovery`: the window was already reduced for them.
    pub(super) fn report_losses(
        &mut self,
        now: Instant,
        losses: &Losses,
        prior_in_flight: u64,
        in_recovery: bool,
    ) {
        self.estimator.on_lost(losses.bytes);
        self.totals.lost += losses.packets as u32;
        let (newest_sent_at, snapshot) = losses.newest.unwrap_or((now, Snapshot::default()));
        let loss = Loss {
            now,
            bytes: losses.bytes,
            newest_sent_at,
            prior_in_flight,
            bytes_in_flight: self.pipe_bytes(),
            in_flight_at_send: snapshot.in_flight(),
            lost_since_send: self.estimator.lost_since(&snapshot),
            application_limited: snapshot.application_limited(),
            in_recovery,
        };
        self.controller.on_lost(&loss);
    }

    /// Raises the expected reordering to `segments`.
    pub fn expect_reordering(&mut self, segments: u64) {
        self.reordering.events += 1;
        self.reordering.extent = self.reordering.extent.max(segments as u32);
    }

    /// Updates the expected reordering, in segments as Linux measures it.
    pub(super) fn on_reordering(&mut self, low: u64, highest: u64) {
        if low >= highest {
            return;
        }
        self.reordering.events += 1;
        if self.parameters.is_linux() {
            let packets = (highest - low).div_ceil(u64::from(self.segment));
            self.reordering.extent = self.reordering.extent.max(packets.min(300) as u32);
        }
    }
}

/// Records the delivery of `amount`, whose newest segment is `record`.
#[inline]
fn deliver(
    now: Instant,
    record: &SentSegment,
    amount: Amount,
    summary: &mut AckSummary,
    estimator: &mut crate::congestion::Estimator,
) {
    estimator.on_packet_acknowledged(now, &record.snapshot, amount.bytes, record.sent_at);
    summary.delivered += amount.packets;
    summary.delivered_bytes += amount.bytes;
    if record.sent_at >= summary.newest_sent {
        summary.newest_sent = record.sent_at;
        summary.prior_delivered = Some(record.snapshot.delivered());
    }
}

/// Returns the DSACK block: the first block, if it is below the cumulative acknowledgement or within the second block
/// (RFC 2883, section 4.2).
fn duplicate_block(blocks: &[(u64, u64)], acknowledged: u64) -> Option<(u64, u64)> {
    let &(start, end) = blocks.first()?;
    let below = start < acknowledged;
    let within = blocks.get(1).is_some_and(|&(s, e)| s <= start && end <= e);
    (below || within).then_some((start, end))
}
