//! Packet schedulers, which select the subflow of each segment.
//!
//! A scheduler is one file with a settings struct that implements [`SchedulerSettings`] and a type that implements
//! [`Scheduler`], and a line in `kinds!` below.

use foundation::extension::Configured;
use foundation::{Duration, Instant, Problem};

use super::kinds::kinds;
use super::segment::PathIndex;

/// View of a usable subflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubflowView {
    /// Number in the connection.
    pub id: u8,
    /// Path.
    pub path: PathIndex,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// Mean deviation of the round-trip time.
    pub rtt_variation: Duration,
    /// Minimum round-trip time; zero before the first sample.
    pub base_rtt: Duration,
    /// Latest round-trip sample; zero before the first.
    pub latest_rtt: Duration,
    /// Congestion window in bytes.
    pub window: u64,
    /// Payload bytes in flight.
    pub in_flight: u64,
    /// Payload bytes assigned to it and not sent.
    pub queued: u64,
    /// Payload bytes of a full segment.
    pub segment: u32,
    /// Whether a full segment would leave at once: the windows and the pacer allow it, and its queue is empty.
    pub room: bool,
    /// Whether either end marked it as a backup.
    pub backup: bool,
    /// Consecutive timeouts without an acknowledgement.
    pub timeouts: u32,
}

/// View of the data to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataView {
    /// Bytes written and not scheduled.
    pub unsent: u64,
    /// Bytes scheduled and not covered by a DATA_ACK.
    pub in_flight: u64,
    /// Free bytes of the peer's receive window (RFC 8684, section 3.3.1).
    pub window: u64,
    /// Whether the segment is a reinjection from a subflow that is not in the list.
    pub reinjection: bool,
}

/// Decision of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Assigns no data until the next acknowledgement, timeout or write.
    Wait,
    /// Assigns the segment to the subflow at this index of the list. Without room there, the segment is queued.
    Take(usize),
    /// Assigns a copy to each subflow whose bit is set (index 0 is the lowest bit).
    Copies(u64),
}

/// Packet scheduler of one connection.
pub trait Scheduler: std::fmt::Debug + Send {
    /// Selects the subflow of the next segment of `data`. Called repeatedly until it returns [`Choice::Wait`] or all
    /// data is assigned. `subflows` lists the 1 to 64 usable subflows in the order of their numbers, with or without
    /// room.
    fn choose(&mut self, now: Instant, data: &DataView, subflows: &[SubflowView]) -> Choice;
}

/// Settings of a kind of scheduler.
pub trait SchedulerSettings: Send + Sync {
    /// Returns the keys that are out of range.
    fn validate(&self) -> Vec<Problem> {
        Vec::new()
    }
    /// Builds the scheduler of one connection.
    fn build(&self) -> Box<dyn Scheduler>;
}

foundation::role!(SchedulerSettings, "scheduler", "fastest.py:Fastest");

impl SchedulerSettings for Configured<dyn SchedulerSettings> {
    fn validate(&self) -> Vec<Problem> {
        Self::validate(self)
    }

    fn build(&self) -> Box<dyn Scheduler> {
        self.settings().build()
    }
}

/// Schedulers that were removed because the full texts of their papers were not available.
const REMOVED: [(&str, &str); 2] = [
    ("delay-aware", "use \"daps\", \"otias\" or \"blest\""),
    ("jitter-aware", "use \"daps\", \"otias\" or \"blest\""),
];

kinds! {
    /// Packet scheduler: a kind such as `"min-rtt"`, or a table with its kind and keys.
    pub enum SchedulerConfig: SchedulerSettings, Box<dyn Scheduler>, "Scheduler", &REMOVED;
    "min-rtt" => MinRtt in min_rtt,
    "round-robin" => RoundRobin in round_robin,
    "ecf" => Ecf in ecf,
    "blest" => Blest in blest,
    "redundant" => Redundant in redundant,
    "daps" => Daps in daps,
    "otias" => Otias in otias,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self::MinRtt(MinRtt::default())
    }
}

/// Returns the subflows to choose from with their indices: backups only if there is no other subflow (RFC 8684,
/// section 3.3.8).
pub fn eligible(subflows: &[SubflowView]) -> impl Iterator<Item = (usize, &SubflowView)> {
    let regular = subflows.iter().any(|subflow| !subflow.backup);
    let places = subflows.iter().enumerate();
    places.filter(move |(_, subflow)| subflow.backup != regular)
}

/// Returns the eligible subflows that have room.
pub fn ready(subflows: &[SubflowView]) -> impl Iterator<Item = (usize, &SubflowView)> {
    eligible(subflows).filter(|(_, subflow)| subflow.room)
}

/// Returns the subflow with the smallest smoothed round-trip time among those with room.
pub fn fastest_ready(subflows: &[SubflowView]) -> Option<(usize, &SubflowView)> {
    ready(subflows).min_by_key(|(_, subflow)| subflow.srtt)
}

/// Returns the subflow with the smallest smoothed round-trip time, with or without room. A subflow after a timeout
/// does not count, since waiting for it is futile.
pub fn fastest(subflows: &[SubflowView]) -> Option<&SubflowView> {
    let responsive = eligible(subflows).filter(|(_, subflow)| subflow.timeouts == 0);
    let (_, fastest) = responsive.min_by_key(|(_, subflow)| subflow.srtt)?;
    Some(fastest)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn subflow(id: u8, srtt_ms: u64, room: bool) -> SubflowView {
        SubflowView {
            id,
            path: PathIndex(id),
            srtt: Duration::from_millis(srtt_ms),
            window: 10_000,
            segment: 1000,
            room,
            ..SubflowView::default()
        }
    }

    #[test]
    fn uses_backups_only_without_other_subflows() {
        let backup = SubflowView {
            backup: true,
            ..subflow(0, 10, true)
        };
        let places = |subflows: &[SubflowView]| ready(subflows).map(|(place, _)| place).collect::<Vec<_>>();
        assert_eq!(places(&[backup, subflow(1, 10, true)]), [1]);
        assert_eq!(places(&[backup, subflow(1, 10, false)]), [] as [usize; 0]);
        assert_eq!(places(&[backup]), [0]);
    }

    #[test]
    fn reads_kinds_as_names_or_tables() {
        let read = |text: &str| serde_json::from_str::<SchedulerConfig>(text);
        assert_eq!(
            read("\"round-robin\"").unwrap(),
            SchedulerConfig::RoundRobin(RoundRobin {})
        );
        assert_eq!(
            read("{\"kind\": \"min-rtt\"}").unwrap(),
            SchedulerConfig::default()
        );
        let error = read("\"min-rt\"").unwrap_err().to_string();
        assert!(
            error.contains("\"min-rt\" is not known: did you mean \"min-rtt\"?"),
            "{error}"
        );
        assert!(read("{\"kind\": \"min-rtt\", \"beta\": 1}").is_err());
        for removed in ["\"delay-aware\"", "{\"kind\": \"jitter-aware\", \"margin\": 2}"] {
            let error = read(removed).unwrap_err().to_string();
            assert!(error.contains("was removed: use \"daps\""), "{error}");
        }
        assert_eq!(
            serde_json::to_string(&SchedulerConfig::default()).unwrap(),
            "\"min-rtt\""
        );
    }
}
