//! What schedulers share that send out of order for the data to arrive in order: a subflow that has room takes the
//! segment that follows those which faster ones, though they have no room now, will have brought by then. Those wait
//! at them.

use super::{Choice, SubflowView, eligible, fastest_ready};

/// Who takes the next segment, where `delay` gives the seconds that a segment takes over a subflow (zero: not known).
pub(super) fn choose(subflows: &[SubflowView], delay: impl Fn(&SubflowView) -> f64) -> Choice {
    // Nothing is laid aside for later before somebody is ready to take what comes after it.
    let Some((place, ready)) = fastest_ready(subflows) else {
        return Choice::Wait;
    };
    let arrives = delay(ready);
    let faster = eligible(subflows).filter(|(_, other)| {
        let rtt = other.srtt.as_secs_f64();
        if other.timeouts > 0 || rtt == 0.0 {
            return false;
        }
        // At a window a round trip: what arrives by then and leaves from now on.
        let brings = other.window as f64 / rtt * (arrives - delay(other));
        ((other.queued + u64::from(other.segment)) as f64) <= brings
    });
    let first = faster.min_by_key(|(_, other)| other.srtt);
    Choice::Take(first.map_or(place, |(other, _)| other))
}
