//! Send times of a source with a constant rate.

use experiment::plan::Group;
use experiment::random::exponential;
use experiment::workload::WorkloadKind;
use foundation::{Duration, Instant};

/// An iterator over the send times of a source with a constant rate, including pauses.
pub(super) struct Pace {
    next: Instant,
    gap: Duration,
    stop_at: Instant,
    pauses: Option<(Duration, Duration, foundation::Generator, Instant)>,
}

impl Pace {
    pub(super) fn of(group: &Group, flow: u32, now: Instant, gap: Duration) -> Self {
        let second = Duration::from_secs(1);
        let workload = &group.workload;
        let pauses = (workload.kind == WorkloadKind::OnOff).then(|| {
            let (on, off) = (workload.on.unwrap_or(second), workload.off.unwrap_or(second));
            // The random stream of simulation, so that sources in both worlds pause at the same times.
            let mut random = group.streams.stream(&format!("pauses/{flow}"));
            let until = now + exponential(&mut random, on);
            (on, off, random, until)
        });
        Self {
            next: now,
            gap,
            stop_at: group.stop_at(),
            pauses,
        }
    }
}

impl Iterator for Pace {
    type Item = Instant;

    fn next(&mut self) -> Option<Instant> {
        if let Some((on, off, random, until)) = &mut self.pauses {
            while self.next >= *until {
                self.next = *until + exponential(random, *off);
                *until = self.next + exponential(random, *on);
            }
        }
        let at = self.next;
        self.next += self.gap;
        (at < self.stop_at).then_some(at)
    }
}
