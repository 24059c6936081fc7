//! Packet schedulers: which subflow takes the next segment.
//!
//! A scheduler is one file with a struct of settings that implements [`SchedulerSettings`] and a struct that implements
//! [`Scheduler`], and a line in `kinds!` below (beside its `mod`).

mod blest;
mod daps;
mod delay_aware;
mod ecf;
mod in_order;
mod jitter_aware;
mod min_rtt;
mod otias;
mod redundant;
mod round_robin;

use foundation::{Duration, Instant, Problem};

use super::kinds::kinds;
use super::segment::PathIndex;

/// A subflow over which data may be sent, as schedulers see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubflowView {
    /// Its number in the connection.
    pub id: u8,
    /// Its path.
    pub path: PathIndex,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// Mean deviation of the round-trip time.
    pub rtt_variation: Duration,
    /// Least round-trip time; zero before the first sample.
    pub base_rtt: Duration,
    /// The latest round-trip sample; zero before the first.
    pub latest_rtt: Duration,
    /// Congestion window in bytes.
    pub window: u64,
    /// Payload bytes in flight.
    pub in_flight: u64,
    /// Payload bytes that were given to it and have not left.
    pub queued: u64,
    /// Payload bytes of a full segment.
    pub segment: u32,
    /// Whether a full segment would leave at once: windows and pacer have room, and nothing waits.
    pub room: bool,
    /// Whether it is to be used only where no other can be.
    pub backup: bool,
    /// Timeouts since something on it was last acknowledged.
    pub timeouts: u32,
}

/// The data that is to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataView {
    /// Bytes written that no subflow has been given.
    pub unsent: u64,
    /// Bytes given to subflows of which no DATA_ACK has been seen.
    pub in_flight: u64,
    /// The peer's window beyond what is in flight (RFC 8684, section 3.3.1).
    pub window: u64,
    /// Whether the segment was sent before, on a subflow that is not among those to choose from.
    pub reinjection: bool,
}

/// What a scheduler says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Nothing is given to any subflow until something changes: an acknowledgement, a timeout, new data.
    Wait,
    /// The subflow at this place of the list takes the segment. Where it has no room the segment waits there.
    Take(usize),
    /// A copy for each subflow whose place of the list is set here (place 0 in the lowest bit).
    Copies(u64),
}

/// Which subflow takes the next segment.
pub trait Scheduler: std::fmt::Debug + Send {
    /// Says who takes the next segment of `data`. Asked again and again until it says to wait, or nothing is left.
    /// `subflows`, at least one, are all over which data may be sent, with or without room, in the order of their
    /// numbers; at most 64.
    fn choose(&mut self, now: Instant, data: &DataView, subflows: &[SubflowView]) -> Choice;
}

/// The settings of a kind of scheduler.
pub trait SchedulerSettings {
    /// What is out of range, by key; empty where all is well.
    fn validate(&self) -> Vec<Problem> {
        Vec::new()
    }
    /// The scheduler of one connection.
    fn build(&self) -> Box<dyn Scheduler>;
}

kinds! {
    /// Which subflow takes the next segment: a kind such as `"min-rtt"`, or a table with its kind and keys.
    SchedulerConfig, Table, SchedulerSettings, Box<dyn Scheduler>, "Scheduler";
    /// The subflow of the least smoothed round-trip time that has room.
    "min-rtt" => min_rtt::MinRtt,
    /// The subflows in turn, those without room left out.
    "round-robin" => round_robin::RoundRobin,
    /// Waits for the fastest subflow where the rest of the data completes sooner that way (ECF, CoNEXT 2017).
    "ecf" => ecf::Ecf,
    /// Waits for the fastest subflow where the window would otherwise shut before it (BLEST, IFIP Networking 2016).
    "blest" => blest::Blest,
    /// A copy of every segment for every subflow.
    "redundant" => redundant::Redundant,
    /// Slower subflows take segments from so far ahead that all arrive in order (Sarwar et al., WAINA 2013).
    "delay-aware" => delay_aware::DelayAware,
    /// Lays down for a whole period who takes which segment, such that they arrive in order (DAPS, ICC 2014).
    "daps" => daps::Daps,
    /// Each segment goes to the subflow over which it will arrive first, there to wait (OTIAS, WAINA 2014).
    "otias" => otias::Otias,
    /// As delay-aware, with delays that allow for jitter (JAPS, WCNC 2016).
    "jitter-aware" => jitter_aware::JitterAware,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self::MinRtt(MinRtt::default())
    }
}

/// Those that may be used, with their places: backups only where no other subflow is there at all
/// (RFC 8684, section 3.3.8).
pub fn eligible(subflows: &[SubflowView]) -> impl Iterator<Item = (usize, &SubflowView)> {
    let regular = subflows.iter().any(|subflow| !subflow.backup);
    let places = subflows.iter().enumerate();
    places.filter(move |(_, subflow)| subflow.backup != regular)
}

/// Those of them that have room.
pub fn ready(subflows: &[SubflowView]) -> impl Iterator<Item = (usize, &SubflowView)> {
    eligible(subflows).filter(|(_, subflow)| subflow.room)
}

/// The one of the least smoothed round-trip time among those that have room.
pub fn fastest_ready(subflows: &[SubflowView]) -> Option<(usize, &SubflowView)> {
    ready(subflows).min_by_key(|(_, subflow)| subflow.srtt)
}

/// The one of the least smoothed round-trip time, with room or without, of those that answer: it is no use to wait for
/// one whose timer ran out.
pub fn fastest(subflows: &[SubflowView]) -> Option<&SubflowView> {
    let answering = eligible(subflows).filter(|(_, subflow)| subflow.timeouts == 0);
    let (_, fastest) = answering.min_by_key(|(_, subflow)| subflow.srtt)?;
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
    fn backups_are_used_where_there_is_nothing_else() {
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
    fn kinds_are_words_or_tables() {
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
        assert!(error.contains("unknown variant `min-rt`"), "{error}");
        assert!(read("{\"kind\": \"min-rtt\", \"beta\": 1}").is_err());
        assert_eq!(
            serde_json::to_string(&SchedulerConfig::default()).unwrap(),
            "\"min-rtt\""
        );
    }
}
