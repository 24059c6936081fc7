//! Limits of real-time frames.

use foundation::{Duration, Problem, Size};

use super::WorkloadConfig;

/// Limit of the size of a frame in bytes.
const MAX_SIZE: u64 = 10_000_000;
/// Limits of frames per second.
const RATES: std::ops::RangeInclusive<f64> = 0.1..=100_000.0;
/// Limit of frames of a flow.
const MAX_FRAMES: f64 = 1e6;

impl WorkloadConfig {
    /// Checks the keys of frames.
    pub(super) fn check_frames(&self, problems: &mut Vec<Problem>) {
        let size = self.size.map_or(1, Size::bytes);
        if size > MAX_SIZE {
            let message = format!("\"{size}B\" is out of range: a frame has at most {MAX_SIZE}B");
            problems.push(Problem::new("size", message));
        }
        let rate = self.frame_rate();
        let allowed = "\"0.1/s\" to \"100000/s\"";
        let shown = format_args!("\"{rate}/s\"");
        problems.extend(Problem::range(
            "frame_rate",
            shown,
            RATES.contains(&rate),
            allowed,
        ));
        let frames = self.duration.map_or(0.0, Duration::as_secs_f64) * rate;
        if frames > MAX_FRAMES {
            let message = format!("{frames} frames in all are out of range: at most {MAX_FRAMES}");
            problems.push(Problem::new("duration", message));
        }
        let deadline = self.deadline();
        let (least, most) = (Duration::from_millis(1), Duration::from_secs(60));
        let valid = (least..=most).contains(&deadline);
        let shown = format_args!("\"{deadline}\"");
        problems.extend(Problem::range("deadline", shown, valid, "\"1ms\" to \"60s\""));
        let measured = self
            .duration
            .map(|duration| duration.saturating_sub(self.warm_up.unwrap_or_default()));
        if let Some(measured) = measured.filter(|&measured| valid && measured <= deadline) {
            let message = format!(
                "\"{deadline}\" leaves no frame to measure: it must be shorter than the measured time, {measured}"
            );
            problems.push(Problem::new("deadline", message));
        }
    }
}
