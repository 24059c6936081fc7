//! `[path]` and its `reverse` table: keys, validation, and conversion to link specifications.

use std::sync::Arc;

use foundation::{Duration, Probability, Problem, Rate, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{Capacity, LinkSpec, Outage, PathSpec, Preset, Subscriber};
use crate::impairment::{JitterConfig, LossConfig, ReorderConfig};
use crate::medium::{CellConfig, WifiConfig};
use crate::nat::NatConfig;
use crate::queue::{QueueConfig, QueuedLink};
use crate::trace::{DeliveryTrace, TraceStart};

/// Declares a table with the keys of a link, preceded by other keys if any.
macro_rules! with_link_keys {
    (
        $(#[$attribute:meta])*
        pub struct $table:ident { $($(#[$help:meta])* pub $key:ident: Option<$value:ty>,)* }
    ) => {
        foundation::omit_unset! {
            #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
            #[serde(deny_unknown_fields)]
            $(#[$attribute])*
            pub struct $table {
                $(
                    $(#[$help])*
                    pub $key: Option<$value>,
                )*
                /// Rate, e.g. "100Mbit/s"; default: unlimited. Excludes trace, cell and wifi.
                pub rate: Option<Rate>,
                /// Recorded rate: a file in mahimahi format (each line is the millisecond of an opportunity to send 1500 bytes); default: none. Excludes rate, cell and wifi.
                pub trace: Option<String>,
                /// Time of the trace at which the trial starts, e.g. "12s", or "random": drawn in each trial, the same part of all traces; default "0s". Requires trace or cell.
                pub trace_start: Option<TraceStart>,
                /// Cell of a mobile network: a table with the recorded rates of its users and a scheduler; default: none. Excludes rate, trace and wifi.
                pub cell: Option<CellConfig>,
                /// Wi-Fi channel that both directions share: a table with its rate and the limits of aggregation; default: none. Excludes rate, trace and cell.
                pub wifi: Option<WifiConfig>,
                /// One-way propagation delay, e.g. "20ms", from "0s" to 1 h; default "0s". Serialization at the rate adds to it.
                pub delay: Option<Duration>,
                /// Delay variation: a spread such as "5ms" (uniform around the delay, packets stay in order) or a table; default: none.
                pub jitter: Option<JitterConfig>,
                /// Packet loss before the queue: a probability such as "2%", or a table with the kind of loss model; default: none.
                pub loss: Option<LossConfig>,
                /// Reordering: { probability = "1%", delay = "5ms" } delays some packets so that later ones overtake them; default: none.
                pub reorder: Option<ReorderConfig>,
                /// Probability of packet duplication, e.g. "0.1%"; default "0%".
                pub duplicate: Option<Probability>,
                /// Probability of a bit error in a packet, e.g. "0.1%"; default "0%".
                pub corrupt: Option<Probability>,
                /// Queue in front of the link: a drop-tail limit such as "100pkt" or "64KiB", a kind such as "codel", or a table; default "1000pkt".
                pub queue: Option<QueueConfig>,
                /// Maximum packet size including all headers, e.g. "1500B", from "68B" to "64KiB"; default: unlimited.
                pub mtu: Option<Size>,
                /// Times in which the link is down, since the start of the trial, e.g. ["5s..7s", "12s..13s"]; default: none. It drops the packets that wait or arrive.
                pub down: Option<Vec<Outage>>,
                /// Network address translator of both directions: a table with its timeout and its times of rebinding; default: none. Excluded in reverse.
                pub nat: Option<NatConfig>,
            }
        }

        impl $table {
            /// Returns the keys of the link alone.
            #[must_use]
            pub fn link_keys(&self) -> LinkConfig {
                LinkConfig {
                    rate: self.rate,
                    trace: self.trace.clone(),
                    trace_start: self.trace_start,
                    cell: self.cell.clone(),
                    wifi: self.wifi.clone(),
                    delay: self.delay,
                    jitter: self.jitter,
                    loss: self.loss.clone(),
                    reorder: self.reorder,
                    duplicate: self.duplicate,
                    corrupt: self.corrupt,
                    queue: self.queue.clone(),
                    mtu: self.mtu,
                    down: self.down.clone(),
                    nat: self.nat.clone(),
                }
            }
        }
    };
}

pub(crate) use with_link_keys;

with_link_keys! {
    /// One direction of a path. All keys are optional.
    #[serde(expecting = "a table of a link's keys such as { rate = \"1Mbit/s\", delay = \"5ms\" }")]
    #[schemars(rename = "Link")]
    pub struct LinkConfig {}
}

with_link_keys! {
    /// The path between two hosts. Its keys apply to both directions unless `reverse` overrides them.
    #[serde(expecting = "a table of a path's keys such as { rate = \"1Mbit/s\", delay = \"5ms\" }")]
    #[schemars(rename = "Path")]
    pub struct PathConfig {
        /// Preset with typical values, which other keys override; default: none.
        pub preset: Option<Preset>,
        /// End of the subscriber of an asymmetric preset: "far" (forward is the download) or "near" (forward is the upload); default "far".
        pub subscriber: Option<Subscriber>,
        /// Keys of the direction from host 1 to host 0 that differ; default: none.
        pub reverse: Option<LinkConfig>,
        /// Links in series with routers r1, r2, … between them: a list of 1 to 64 tables such as { rate = "10Mbit/s", delay = "2ms" }; default: one link. Excludes all other keys.
        pub hops: Option<Vec<HopConfig>>,
    }
}

with_link_keys! {
    /// One link of a path with several. Its keys apply to both directions unless `reverse` overrides them.
    #[serde(expecting = "a table of a link's keys such as { rate = \"1Mbit/s\", delay = \"5ms\" }")]
    #[schemars(rename = "Hop")]
    pub struct HopConfig {
        /// Preset with typical values, which other keys override; default: none.
        pub preset: Option<Preset>,
        /// End of the subscriber of an asymmetric preset: "far" (forward is the download) or "near" (forward is the upload); default "far".
        pub subscriber: Option<Subscriber>,
        /// Keys of the reverse direction that differ; default: none.
        pub reverse: Option<LinkConfig>,
    }
}

impl HopConfig {
    /// Returns the link as a path.
    #[must_use]
    pub fn path(&self) -> PathConfig {
        PathConfig {
            preset: self.preset,
            subscriber: self.subscriber,
            reverse: self.reverse.clone(),
            ..PathConfig::symmetric(self.link_keys())
        }
    }
}

/// Limit of links in a path: the default time to live of IP (RFC 1700).
const MAX_HOPS: usize = 64;

/// Limit of the delay: a signal takes up to 22 minutes to Mars.
const MAX_DELAY: Duration = Duration::from_secs(3600);
/// The minimum MTU of IPv4 (RFC 791, section 3.2) and the largest of any interface.
const MTU: std::ops::RangeInclusive<u64> = 68..=65_536;

impl LinkConfig {
    /// Returns these keys with missing ones taken from `other`; likewise for the limit of a queue.
    pub(super) fn or(&self, other: &Self) -> Self {
        // The kinds of capacity exclude each other, so they are inherited together.
        let capacity = if self.capacity_keys().is_empty() {
            other
        } else {
            self
        };
        Self {
            rate: capacity.rate,
            trace: capacity.trace.clone(),
            // A direction with another trace inherits the start, one with a rate does not.
            trace_start: self
                .trace_start
                .or(other.trace_start.filter(|_| capacity.has_trace())),
            cell: capacity.cell.clone(),
            wifi: capacity.wifi.clone(),
            delay: self.delay.or(other.delay),
            jitter: self.jitter.or(other.jitter),
            loss: self.loss.as_ref().or(other.loss.as_ref()).cloned(),
            reorder: self.reorder.or(other.reorder),
            duplicate: self.duplicate.or(other.duplicate),
            corrupt: self.corrupt.or(other.corrupt),
            queue: match (&self.queue, &other.queue) {
                (Some(own), Some(other)) => Some(own.clone().or_limit_of(other)),
                (own, other) => own.as_ref().or(other.as_ref()).cloned(),
            },
            mtu: self.mtu.or(other.mtu),
            down: self.down.as_ref().or(other.down.as_ref()).cloned(),
            nat: self.nat.as_ref().or(other.nat.as_ref()).cloned(),
        }
    }

    /// Returns the keys in use that state a capacity.
    fn capacity_keys(&self) -> Vec<&'static str> {
        let keys = [
            ("cell", self.cell.is_some()),
            ("wifi", self.wifi.is_some()),
            ("trace", self.trace.is_some()),
            ("rate", self.rate.is_some()),
        ];
        let used = keys.into_iter().filter(|(_, is_used)| *is_used);
        used.map(|(key, _)| key).collect()
    }

    /// Returns whether recorded rates limit the link.
    const fn has_trace(&self) -> bool {
        self.trace.is_some() || self.cell.is_some()
    }

    /// Returns all values out of range.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut add = |key: &str, found: Vec<Problem>| {
            problems.extend(found.into_iter().map(|problem| problem.within(key)));
        };
        let wrong = |message: String| vec![Problem::new("", message)];
        let delay = self.delay.unwrap_or_default();
        if let [key, other, ..] = self.capacity_keys()[..] {
            add(
                key,
                wrong(format!(
                    "{key} and {other} exclude each other: remove one of them"
                )),
            );
        }
        if self.trace_start.is_some() && !self.has_trace() {
            let message = "requires trace or cell: set one of them, or remove trace_start";
            add("trace_start", wrong(message.to_owned()));
        }
        if let Some(cell) = &self.cell {
            add("cell", cell.validate());
        }
        if let Some(wifi) = &self.wifi {
            add("wifi", wifi.validate());
        }
        if delay > MAX_DELAY {
            add(
                "delay",
                wrong(format!("\"{delay}\" is out of range: 0 to \"{MAX_DELAY}\"")),
            );
        }
        if let Some(jitter) = &self.jitter {
            add("jitter", jitter.validate(delay));
        }
        if let Some(loss) = &self.loss {
            add("loss", loss.validate());
        }
        if let Some(reorder) = &self.reorder {
            add("reorder", reorder.validate());
        }
        if let Some(queue) = &self.queue {
            add("queue", queue.validate());
        }
        if let Some(mtu) = self.mtu
            && !MTU.contains(&mtu.bytes())
        {
            add(
                "mtu",
                wrong(format!("\"{mtu}\" is out of range: \"68B\" to \"64KiB\"")),
            );
        }
        if let Some(down) = &self.down {
            add("down", Outage::validate(down));
        }
        if let Some(nat) = &self.nat {
            add("nat", nat.validate());
        }
        problems
    }

    /// Returns the keys that describe a link. A recorded rate and a shared medium are lost, since the specification has no file
    /// names and no other users.
    #[must_use]
    pub fn of(spec: &LinkSpec) -> Self {
        Self {
            rate: match spec.capacity {
                Capacity::Rate(rate) => Some(rate),
                _ => None,
            },
            trace: None,
            trace_start: None,
            cell: None,
            wifi: None,
            delay: Some(spec.delay),
            jitter: spec.jitter,
            loss: spec.loss.clone(),
            reorder: spec.reorder,
            duplicate: spec.duplicate,
            corrupt: spec.corrupt,
            queue: Some(spec.queue.clone()),
            mtu: spec.mtu.map(|mtu| Size::from_bytes(u64::from(mtu))),
            down: (!spec.down.is_empty()).then(|| spec.down.clone()),
            nat: None,
        }
    }

    /// Converts the keys to a link specification. `load` returns the content of a trace file or an error.
    ///
    /// # Errors
    /// All values out of range, and a trace that cannot be loaded or parsed.
    pub fn resolve(
        &self,
        load: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<LinkSpec, Vec<Problem>> {
        let problems = self.validate();
        if !problems.is_empty() {
            return Err(problems);
        }
        let capacity = self.capacity(load).map_err(|problem| vec![problem])?;
        self.resolve_valid(capacity)
    }

    /// Converts the keys to a link specification with this capacity instead of their own.
    ///
    /// # Errors
    /// All values out of range.
    pub(crate) fn resolve_with(&self, capacity: Capacity) -> Result<LinkSpec, Vec<Problem>> {
        let problems = self.validate();
        if !problems.is_empty() {
            return Err(problems);
        }
        self.resolve_valid(capacity)
    }

    fn resolve_valid(&self, capacity: Capacity) -> Result<LinkSpec, Vec<Problem>> {
        let mtu = self.mtu.map(|mtu| mtu.bytes() as u32);
        let queue = self.queue.clone().unwrap_or_default().with_limit();
        let rate = capacity.mean_rate();
        let problems = queue.validate_on(&QueuedLink { rate, mtu });
        if !problems.is_empty() {
            return Err(Problem::all_within(problems, "queue"));
        }
        Ok(LinkSpec {
            capacity,
            delay: self.delay.unwrap_or_default(),
            jitter: self.jitter,
            loss: self.loss.clone(),
            reorder: self.reorder,
            duplicate: self.duplicate,
            corrupt: self.corrupt,
            queue,
            mtu,
            down: self.down.clone().unwrap_or_default(),
            nat: self.nat.as_ref().map(|nat| nat.resolve(nat.is_near_inside())),
        })
    }
}

impl LinkConfig {
    fn capacity(&self, load: &mut dyn FnMut(&str) -> Result<String, String>) -> Result<Capacity, Problem> {
        let start = self.trace_start.unwrap_or(TraceStart::At(Duration::ZERO));
        Ok(if let Some(file) = &self.trace {
            Capacity::Trace(Arc::new(read_trace("trace", file, load)?.starting(start)))
        } else if let Some(cell) = &self.cell {
            let mut read = |file: &str| Ok(read_trace("cell.traces", file, load)?.starting(start));
            Capacity::Cell(Arc::new(cell.resolve(&mut read)?))
        } else if let Some(wifi) = &self.wifi {
            Capacity::Wifi(wifi.resolve())
        } else {
            self.rate.map_or(Capacity::Unlimited, Capacity::Rate)
        })
    }
}

fn read_trace(
    key: &str,
    file: &str,
    load: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<DeliveryTrace, Problem> {
    let problem = |reason: String| Problem::new(key, format!("{file:?}: {reason}"));
    let text = load(file).map_err(problem)?;
    DeliveryTrace::parse(&text).map_err(|error| problem(error.to_string()))
}

impl PathConfig {
    /// Returns the path with these keys in both directions.
    #[must_use]
    pub fn symmetric(link: LinkConfig) -> Self {
        Self {
            preset: None,
            subscriber: None,
            rate: link.rate,
            trace: link.trace,
            trace_start: link.trace_start,
            cell: link.cell,
            wifi: link.wifi,
            delay: link.delay,
            jitter: link.jitter,
            loss: link.loss,
            reorder: link.reorder,
            duplicate: link.duplicate,
            corrupt: link.corrupt,
            queue: link.queue,
            mtu: link.mtu,
            down: link.down,
            nat: link.nat,
            reverse: None,
            hops: None,
        }
    }

    /// Returns the keys of each direction. `reverse` overrides the path's keys, which override the preset.
    #[must_use]
    pub fn directions(&self) -> (LinkConfig, LinkConfig) {
        let subscriber = self.subscriber.unwrap_or_default();
        let (preset_forward, preset_reverse) = self
            .preset
            .map(|preset| preset.directions(subscriber))
            .unwrap_or_default();
        let own = self.link_keys();
        let reverse = self.reverse.clone().unwrap_or_default();
        let mut back = reverse.or(&own).or(&preset_reverse);
        // The ends of a path are those of the forward direction.
        back.cell = back.cell.map(CellConfig::reversed);
        back.nat = back.nat.map(NatConfig::reversed);
        (own.or(&preset_forward), back)
    }

    /// Returns all values out of range.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        // Any valid trace suffices to validate the other keys.
        self.links(&mut |_| Ok("1".into())).err().unwrap_or_default()
    }

    /// Converts the keys to the two directions of one link. `load` returns the content of a trace file or an error.
    ///
    /// # Errors
    /// All values out of range, a trace that cannot be loaded or parsed, and `hops`.
    pub fn resolve(
        &self,
        load: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<PathSpec, Vec<Problem>> {
        if self.hops.is_some() {
            let message = "only one link is possible here: remove hops";
            return Err(vec![Problem::new("hops", message)]);
        }
        if self.subscriber.is_some() && self.preset.is_none() {
            let message = "requires preset: set preset, or write the keys of each direction";
            return Err(vec![Problem::new("subscriber", message)]);
        }
        if self.reverse.as_ref().is_some_and(|reverse| reverse.nat.is_some()) {
            let message = "a translator has both directions: set nat next to reverse";
            return Err(vec![Problem::new("reverse.nat", message)]);
        }
        let (forward, reverse) = self.directions();
        match (forward.resolve(load), reverse.resolve(load)) {
            (Ok(forward), Ok(reverse)) => Ok(PathSpec { forward, reverse }),
            (forward, reverse) => Err(both_directions(
                forward.err().unwrap_or_default(),
                reverse.err().unwrap_or_default(),
            )),
        }
    }

    /// Converts the keys to all links of the path in order, each with both directions.
    ///
    /// # Errors
    /// All values out of range, a trace that cannot be loaded or parsed, and other keys next to `hops`.
    pub fn links(
        &self,
        load: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Vec<PathSpec>, Vec<Problem>> {
        let Some(hops) = &self.hops else {
            return Ok(vec![self.resolve(load)?]);
        };
        let mut problems = Vec::new();
        let alone = Self {
            hops: self.hops.clone(),
            ..Self::default()
        };
        if *self != alone && !hops.is_empty() {
            problems.extend(self.keys_next_to_hops(hops.len()));
        }
        if !(1..=MAX_HOPS).contains(&hops.len()) {
            let message = format!("{} links are out of range: 1 to {MAX_HOPS}", hops.len());
            problems.push(Problem::new("hops", message));
        }
        let mut links = Vec::with_capacity(hops.len());
        for (number, hop) in hops.iter().enumerate() {
            match hop.path().resolve(load) {
                Ok(link) => links.push(link),
                Err(found) => {
                    let place = format!("hops.{}", number + 1);
                    problems.extend(found.into_iter().map(|problem| problem.within(&place)));
                }
            }
        }
        if problems.is_empty() {
            Ok(links)
        } else {
            Err(problems)
        }
    }

    /// Returns a problem for each key next to `hops`, with the key of the first link.
    fn keys_next_to_hops(&self, count: usize) -> Vec<Problem> {
        // A path serializes to a table of the keys that are set.
        let Ok(serde_json::Value::Object(keys)) = serde_json::to_value(self) else {
            return Vec::new();
        };
        let mut problems = Vec::new();
        for (key, value) in keys.iter().filter(|(key, _)| *key != "hops") {
            let inner = value.as_object().filter(|_| key == "reverse");
            let names = inner.map_or_else(
                || vec![key.clone()],
                |keys| keys.keys().map(|inner| format!("{key}.{inner}")).collect(),
            );
            problems.extend(names.into_iter().map(|name| {
                let message = format!(
                    "cannot be set next to hops: set it for each link, e.g. path.hops.1.{name} (links 1 to {count})"
                );
                Problem::new(name, message)
            }));
        }
        problems
    }

    /// Returns the keys of each direction of each link.
    #[must_use]
    pub fn directions_of_links(&self) -> Vec<(LinkConfig, LinkConfig)> {
        match &self.hops {
            None => vec![self.directions()],
            Some(hops) => hops.iter().map(|hop| hop.path().directions()).collect(),
        }
    }
}

/// Merges the problems of both directions. A problem of both directions concerns the path's own key and appears once.
fn both_directions(forward: Vec<Problem>, reverse: Vec<Problem>) -> Vec<Problem> {
    let reverse: Vec<Problem> = reverse
        .into_iter()
        .filter(|problem| !forward.contains(problem))
        .map(|problem| problem.within("reverse"))
        .collect();
    forward.into_iter().chain(reverse).collect()
}
