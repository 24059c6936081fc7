//! Metrics of real-time frames.

use super::TrialOutcome;
use crate::censored::Censored;
use crate::workload::WorkloadKind;

impl TrialOutcome<'_> {
    /// Sets the metrics of the frames that were sent in the measured time, and whose deadline is in it, too.
    pub(super) fn set_frames(&self, set: &mut impl FnMut(&str, Option<f64>)) {
        if self.kind() != WorkloadKind::Frames {
            return;
        }
        let deadline = self.groups[0].workload.deadline();
        let frames = self.own().flat_map(|flow| &flow.frames);
        let due = frames.filter(|frame| frame.sent_at >= self.from && frame.sent_at + deadline <= self.until);
        let delays: Vec<Option<f64>> = due
            .map(|frame| Some((frame.arrived_at? - frame.sent_at).as_secs_f64()))
            .collect();
        let arrived: Vec<f64> = delays.iter().copied().flatten().collect();
        let in_time = arrived.iter().filter(|&&delay| delay <= deadline.as_secs_f64());
        let (count, in_time) = (delays.len(), in_time.count());
        let missing = count - arrived.len();
        set("frames_sent", Some(count as f64));
        set("frames_arrived", Some(arrived.len() as f64));
        set("frames_missing", Some(missing as f64));
        set(
            "frame_in_time_share",
            (count > 0).then(|| in_time as f64 / count as f64),
        );
        // A frame that has not arrived by the end of the trial is slower than all others.
        let delays = Censored::new(arrived, missing as u64);
        set("frame_delay_p50_s", delays.quantile(0.5));
        set("frame_delay_p95_s", delays.quantile(0.95));
        set("frame_delay_p99_s", delays.quantile(0.99));
    }
}
