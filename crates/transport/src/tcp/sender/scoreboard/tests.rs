//! The scoreboard compared with a model that scans all segments.

use proptest::prelude::*;

use super::*;
use foundation::Instant;

const SEGMENT: u64 = 100;

#[derive(Clone, Debug)]
enum Step {
    Send { count: u64, length: u32 },
    Acknowledge { share: u64 },
    Sack { from: u64, length: u64 },
    Lose { share: u64 },
    Resend,
    Count { threshold: u64 },
    ForgetLosses,
    ForgetSacks,
    Resegment { length: u32, share: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u64..8, 1_u32..101).prop_map(|(count, length)| Step::Send { count, length }),
        3 => (0_u64..1000).prop_map(|share| Step::Acknowledge { share }),
        6 => (0_u64..1000, 1_u64..400).prop_map(|(from, length)| Step::Sack { from, length }),
        3 => (0_u64..1000).prop_map(|share| Step::Lose { share }),
        4 => Just(Step::Resend),
        2 => (1_u64..4).prop_map(|threshold| Step::Count { threshold }),
        1 => Just(Step::ForgetLosses),
        1 => Just(Step::ForgetSacks),
        1 => (10_u32..100, 0_u64..1200).prop_map(|(length, share)| Step::Resegment { length, share }),
    ]
}

struct Model {
    scoreboard: Scoreboard,
    next: u64,
    una: u64,
    now: u64,
}

impl Model {
    fn at(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    fn position(&self, share: u64) -> u64 {
        self.una + (self.next - self.una) * share / 1000
    }

    fn records(&self) -> Vec<SentSegment> {
        self.scoreboard.records.iter().collect()
    }

    fn play(&mut self, step: &Step) {
        self.now += 1;
        match *step {
            Step::Send { count, length } => {
                for _ in 0..count {
                    self.scoreboard.push(SentSegment {
                        start: self.next,
                        sent_at: self.at(),
                        snapshot: Default::default(),
                        length,
                        marks: Marks::default(),
                    });
                    self.next += u64::from(length);
                }
            }
            Step::Acknowledge { share } => {
                let to = self.position(share);
                while let Some(record) = self.scoreboard.pop_acknowledged(to) {
                    assert!(record.end() <= to);
                }
                self.scoreboard.trim_front(to);
                self.una = to;
            }
            Step::Sack { from, length } => {
                let from = self.position(from);
                let to = (from + length).min(self.next);
                let before = self.scoreboard.sacked().packets;
                let mut marked = 0;
                self.scoreboard.sack(from, to, |_, _, _| marked += 1);
                assert_eq!(self.scoreboard.sacked().packets, before + marked);
            }
            Step::Lose { share } => {
                let number = self.scoreboard.number_at(self.position(share));
                self.scoreboard.mark_lost(number);
            }
            Step::Resend => {
                let now = self.at();
                if let Some(number) = self.scoreboard.next_waiting() {
                    assert!(self.scoreboard.retransmit(number, now).is_some());
                }
            }
            Step::Count { threshold } => {
                let plain = self.lost_by_count(threshold);
                self.scoreboard.mark_lost_by_count(threshold, |_| {});
                for (index, lost) in plain.into_iter().enumerate() {
                    let record = *self.scoreboard.records.get(index).unwrap();
                    assert!(!lost || record.marks.has(Marks::LOST), "{index} is lost by count");
                }
            }
            Step::ForgetLosses => self.scoreboard.clear_losses(),
            Step::ForgetSacks => self.scoreboard.clear_sacks(),
            Step::Resegment { length, share } => {
                let edge = self.una + (self.next - self.una) * share / 1000;
                self.scoreboard.resegment(length, edge);
                for record in self.records().iter().filter(|r| !r.marks.has(Marks::SACKED)) {
                    assert!(record.length <= length);
                    let end = record.start + u64::from(record.length);
                    assert!(record.start >= edge || end <= edge, "crosses {edge}");
                }
            }
        }
    }

    /// `IsLost` of RFC 6675, by a scan of all segments. Segments below the counting cursor were evaluated earlier,
    /// and may have been retransmitted or delivered since.
    fn lost_by_count(&self, threshold: u64) -> Vec<bool> {
        let records = self.records();
        let counted = self.scoreboard.counted - self.scoreboard.base;
        (0..records.len())
            .map(|index| {
                let above = records[index + 1..]
                    .iter()
                    .filter(|r| r.marks.has(Marks::SACKED))
                    .count();
                index as u64 >= counted
                    && above as u64 >= threshold
                    && !records[index].marks.has(Marks::SACKED)
            })
            .collect()
    }

    fn check(&mut self) {
        let records = self.records();
        let sum = |keep: &dyn Fn(&SentSegment) -> bool| {
            let mut tally = Tally::default();
            records.iter().filter(|r| keep(r)).for_each(|r| tally.add(r));
            tally.amount()
        };
        assert_eq!(self.scoreboard.out(), sum(&|_| true));
        assert_eq!(self.scoreboard.sacked(), sum(&|r| r.marks.has(Marks::SACKED)));
        assert_eq!(self.scoreboard.lost(), sum(&|r| r.marks.has(Marks::LOST)));
        assert_eq!(
            self.scoreboard.retransmitted(),
            sum(&|r| r.marks.has(Marks::RETRANSMITTED))
        );
        let mut position = self.una;
        for record in &records {
            assert_eq!(record.start, position, "contiguous");
            position = record.end();
            let marks = record.marks;
            assert!(
                !(marks.has(Marks::SACKED) && (marks.has(Marks::LOST) || marks.has(Marks::RETRANSMITTED)))
            );
        }
        assert_eq!(position, self.next);
        let waits = |r: &SentSegment| r.marks.has(Marks::LOST) && !r.marks.has(Marks::RETRANSMITTED);
        let first = records
            .iter()
            .position(waits)
            .map(|index| self.scoreboard.base + index as u64);
        assert_eq!(self.scoreboard.next_waiting(), first);
        // The earliest transmission that is neither delivered nor lost.
        let open = |r: &&SentSegment| !r.marks.has(Marks::SACKED) && !waits(r);
        let oldest = records.iter().filter(open).map(|r| r.sent_at).min();
        let found = self
            .scoreboard
            .oldest_undecided()
            .and_then(|number| self.scoreboard.get(number));
        assert_eq!(found.map(|r| r.sent_at), oldest);
        for share in [0, 333, 999] {
            let position = self.position(share);
            let plain = records
                .iter()
                .position(|r| r.end() > position)
                .unwrap_or(records.len());
            assert_eq!(
                self.scoreboard.number_at(position),
                self.scoreboard.base + plain as u64
            );
        }
    }
}

proptest! {
    #[test]
    fn counters_and_finds_agree_with_a_plain_scan(steps in prop::collection::vec(step(), 1..80)) {
        let mut model = Model { scoreboard: Scoreboard::default(), next: 1, una: 1, now: 1 };
        for step in &steps {
            model.play(step);
            model.check();
        }
    }
}

#[test]
fn three_sacked_segments_above_are_a_loss() {
    // RFC 6675, section 4, IsLost with DupThresh 3: segments 0 and 4 of ten are missing.
    let mut scoreboard = Scoreboard::default();
    for index in 0..10 {
        scoreboard.push(SentSegment {
            start: 1 + index * SEGMENT,
            sent_at: Instant::ZERO,
            snapshot: Default::default(),
            length: SEGMENT as u32,
            marks: Marks::default(),
        });
    }
    let mut lost = Vec::new();
    for (from, to) in [(1, 4), (5, 6), (6, 7), (7, 8)] {
        scoreboard.sack(1 + from * SEGMENT, 1 + to * SEGMENT, |_, _, _| {});
        scoreboard.mark_lost_by_count(3, |record| lost.push((record.start - 1) / SEGMENT));
    }
    assert_eq!(lost, [0, 4]);
    assert_eq!(
        (scoreboard.next_waiting(), scoreboard.pipe_bytes()),
        (Some(0), 2 * SEGMENT)
    );
}
