//! The vocabulary of `[[protocols]]`: the ARQ protocols and their keys.

use std::fmt;
use std::str::FromStr;

use foundation::quantity::nearest;
use foundation::{Duration, Problem, QuantityError, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::discipline::AnyDiscipline;
use super::frame::{MAX_PAYLOAD, Parameters};
use super::go_back_n::GoBackN;
use super::selective_repeat::SelectiveRepeat;
use super::stop_and_wait::StopAndWait;
use crate::congestion::config::CongestionConfig;

/// The protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One packet at a time; the next leaves when its ACK has come.
    StopAndWait,
    /// A window of packets, cumulative ACKs, a receiver without buffer: after a loss the whole window is sent again.
    GoBackN,
    /// A window of packets, selective ACKs, a receiver that buffers: only what is missing is sent again.
    SelectiveRepeat,
}

impl Kind {
    /// The protocol's number in a set-up frame.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::StopAndWait => 1,
            Self::GoBackN => 2,
            Self::SelectiveRepeat => 3,
        }
    }

    /// The protocol of a number.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::StopAndWait,
            2 => Self::GoBackN,
            3 => Self::SelectiveRepeat,
            _ => return None,
        })
    }
}

/// A send window: a number of packets, or `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// At most so many packets not yet acknowledged.
    Packets(u32),
    /// As much as the congestion controller allows.
    Auto,
}

const MAX_WINDOW: u32 = 1 << 20;

impl Serialize for Window {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Packets(packets) => serializer.serialize_u32(*packets),
            Self::Auto => serializer.serialize_str("auto"),
        }
    }
}

impl<'de> Deserialize<'de> for Window {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Window;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a number of packets from 1 to {MAX_WINDOW}, or \"auto\"")
            }
            fn visit_u64<E: serde::de::Error>(self, packets: u64) -> Result<Window, E> {
                match u32::try_from(packets) {
                    Ok(packets @ 1..=MAX_WINDOW) => Ok(Window::Packets(packets)),
                    _ => Err(E::custom(format!(
                        "{packets} is out of range: 1 to {MAX_WINDOW} packets"
                    ))),
                }
            }
            fn visit_i64<E: serde::de::Error>(self, packets: i64) -> Result<Window, E> {
                self.visit_u64(u64::try_from(packets).unwrap_or(0))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Window, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl FromStr for Window {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let number = text.strip_suffix("pkt").unwrap_or(text).trim();
        match number.parse() {
            Ok(packets @ 1..=MAX_WINDOW) => Ok(Self::Packets(packets)),
            _ if text == "auto" => Ok(Self::Auto),
            _ => Err(QuantityError::new(format!(
                "{text:?} is no window: a number of packets from 1 to {MAX_WINDOW}, or \"auto\""
            ))),
        }
    }
}

impl JsonSchema for Window {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Window".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "a number of packets, or \"auto\"",
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": MAX_WINDOW},
                {"type": "string", "pattern": "^([0-9]+ ?pkt|auto)$"},
            ],
        })
    }
}

/// A retransmission timeout: adaptive, or fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// From the measured round-trip times (RFC 6298), doubled after each expiry.
    Adaptive,
    /// Always this long.
    Fixed(Duration),
}

impl FromStr for Timeout {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text == "adaptive" {
            return Ok(Self::Adaptive);
        }
        match text.parse() {
            Ok(Duration::ZERO) => Err(QuantityError::new(format!(
                "{text:?} is no timeout: it must be above 0"
            ))),
            Ok(fixed) => Ok(Self::Fixed(fixed)),
            Err(error) => Err(QuantityError::new(match nearest(text, ["adaptive"]) {
                Some(_) => format!("{text:?} is no timeout; did you mean \"adaptive\"?"),
                None => format!("{error}; or \"adaptive\""),
            })),
        }
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adaptive => f.write_str("adaptive"),
            Self::Fixed(fixed) => fixed.fmt(f),
        }
    }
}

foundation::impl_text_quantity!(
    Timeout,
    "Timeout",
    "\"adaptive\" (RFC 6298), or a fixed time with its unit",
    r"^(adaptive|[0-9]+(\.[0-9]+)? ?(ns|us|µs|μs|ms|s|min))$",
    ["adaptive", "200ms"]
);

/// One ARQ protocol and its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArqConfig {
    /// The protocol: stop-and-wait, go-back-n or selective-repeat.
    pub kind: Kind,
    /// Packets that may be unacknowledged, or "auto": as many as the congestion controller allows. Default: 1 for stop-and-wait, else "auto".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// Largest payload of a packet. Default: "1024B".
    #[serde(default = "defaults::mss")]
    pub mss: Size,
    /// Retransmission timeout: "adaptive" (RFC 6298) or a fixed time such as "200ms". Default: "adaptive".
    #[serde(default = "defaults::rto")]
    pub rto: Timeout,
    /// The least that an adaptive timeout may be. Default: "20ms".
    #[serde(default = "defaults::min_rto")]
    pub min_rto: Duration,
    /// Go-Back-N: take three duplicate ACKs for a loss, without waiting for the timeout. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_retransmit: Option<bool>,
    /// Selective repeat: take three later packets that arrived for a loss, without waiting for the timeout. Default: true with an "auto" window, else false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_retransmit: Option<bool>,
    /// The congestion controller of an "auto" window. Default: "bbr-tolerant", which sustains its rate under random loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<CongestionConfig>,
    /// Send one ACK for so many packets that arrive in order. Default: 1.
    #[serde(default = "defaults::acknowledge_every")]
    #[schemars(range(min = 1))]
    pub acknowledge_every: u16,
    /// How long an ACK may wait for more packets, at most "1s". Default: "1ms".
    #[serde(default = "defaults::acknowledge_delay")]
    pub acknowledge_delay: Duration,
    /// Packets that a receiver has room for. Default: 65536.
    #[serde(default = "defaults::receive_buffer")]
    #[schemars(range(min = 1, max = MAX_WINDOW))]
    pub receive_buffer: u32,
    /// Without a word from the peer for so long, the connection is given up. Default: "30s".
    #[serde(default = "defaults::give_up")]
    pub give_up: Duration,
    /// After so long without a word from the peer, ask whether it is there. Default: "10s".
    #[serde(default = "defaults::keep_alive")]
    pub keep_alive: Duration,
}

mod defaults {
    use super::{Duration, Size, Timeout};

    pub(super) const fn mss() -> Size {
        Size::from_bytes(1024)
    }
    pub(super) const fn rto() -> Timeout {
        Timeout::Adaptive
    }
    pub(super) const fn min_rto() -> Duration {
        Duration::from_millis(20)
    }
    pub(super) const fn acknowledge_every() -> u16 {
        1
    }
    pub(super) const fn acknowledge_delay() -> Duration {
        Duration::from_millis(1)
    }
    pub(super) const fn receive_buffer() -> u32 {
        65_536
    }
    pub(super) const fn give_up() -> Duration {
        Duration::from_secs(30)
    }
    pub(super) const fn keep_alive() -> Duration {
        Duration::from_secs(10)
    }
}

impl ArqConfig {
    /// This protocol with the default of every other key.
    #[must_use]
    pub const fn new(kind: Kind) -> Self {
        Self {
            kind,
            window: None,
            mss: defaults::mss(),
            rto: defaults::rto(),
            min_rto: defaults::min_rto(),
            fast_retransmit: None,
            gap_retransmit: None,
            congestion: None,
            acknowledge_every: defaults::acknowledge_every(),
            acknowledge_delay: defaults::acknowledge_delay(),
            receive_buffer: defaults::receive_buffer(),
            give_up: defaults::give_up(),
            keep_alive: defaults::keep_alive(),
        }
    }

    /// The settings for moving files over a path that others use too: selective repeat, `auto`
    /// window under a paced controller, large packets that still pass a path of 1500 bytes with room for a tunnel's header,
    /// few ACKs, and Linux's floor of the timeout: gaps reveal losses, and on a busy machine processes
    /// are woken so late that a shorter timer fires in vain.
    #[must_use]
    pub fn for_files() -> Self {
        Self {
            mss: Size::from_bytes(1400),
            acknowledge_every: 16,
            min_rto: Duration::from_millis(200),
            congestion: Some(CongestionConfig::for_files()),
            ..Self::new(Kind::SelectiveRepeat)
        }
    }

    /// The window, with its default.
    #[must_use]
    pub fn window(&self) -> Window {
        self.window.unwrap_or(match self.kind {
            Kind::StopAndWait => Window::Packets(1),
            _ => Window::Auto,
        })
    }

    /// The congestion controller of an `auto` window.
    #[must_use]
    pub fn congestion(&self) -> CongestionConfig {
        self.congestion.clone().unwrap_or_default()
    }

    /// Everything that is wrong with these settings.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut wrong = |key: &str, message: String| problems.push(Problem::new(key, message));
        if self.kind == Kind::StopAndWait && self.window() != Window::Packets(1) {
            wrong("window", "the window of stop-and-wait is 1 packet".to_owned());
        }
        if !(1..=u64::from(MAX_PAYLOAD)).contains(&self.mss.bytes()) {
            wrong(
                "mss",
                format!("{} is out of range: 1B to {MAX_PAYLOAD}B", self.mss),
            );
        }
        if self.fast_retransmit.is_some() && self.kind != Kind::GoBackN {
            wrong("fast_retransmit", "only go-back-n has it".to_owned());
        }
        if self.gap_retransmit.is_some() && self.kind != Kind::SelectiveRepeat {
            wrong("gap_retransmit", "only selective-repeat has it".to_owned());
        }
        if self.congestion.is_some() && self.window() != Window::Auto {
            wrong(
                "congestion",
                "a fixed window has no congestion controller: it needs window = \"auto\"".to_owned(),
            );
        }
        if self.acknowledge_every == 0 {
            wrong(
                "acknowledge_every",
                "0 is out of range: 1 to 65535 packets".to_owned(),
            );
        }
        if self.acknowledge_delay > Duration::from_secs(1) {
            wrong(
                "acknowledge_delay",
                format!("{} is out of range: at most 1s", self.acknowledge_delay),
            );
        }
        if !(1..=MAX_WINDOW).contains(&self.receive_buffer) {
            wrong(
                "receive_buffer",
                format!(
                    "{} is out of range: 1 to {MAX_WINDOW} packets",
                    self.receive_buffer
                ),
            );
        }
        if self.keep_alive.is_zero() {
            wrong("keep_alive", "it must be above 0".to_owned());
        }
        if self.give_up <= self.keep_alive {
            wrong(
                "give_up",
                format!(
                    "{} is too short: it must exceed keep_alive = {}",
                    self.give_up, self.keep_alive
                ),
            );
        }
        if let Some(congestion) = &self.congestion {
            problems.extend(congestion.validate().into_iter().map(|p| p.within("congestion")));
        }
        problems
    }

    /// What the opener proposes to its peer.
    #[must_use]
    pub fn parameters(&self) -> Parameters {
        Parameters {
            protocol: self.kind.code(),
            segment_size: u16::try_from(self.mss.bytes().min(u64::from(MAX_PAYLOAD))).unwrap_or(u16::MAX),
            acknowledge_every: self.acknowledge_every,
            acknowledge_delay: u16::try_from(self.acknowledge_delay.as_micros() / 100).unwrap_or(u16::MAX),
        }
    }

    /// These settings with what the opener proposed in the place of one's own.
    #[must_use]
    pub fn adopting(&self, proposed: Parameters) -> Self {
        let kind = Kind::from_code(proposed.protocol).unwrap_or(self.kind);
        Self {
            kind,
            // What only another protocol has does not carry over.
            window: self.window.filter(|_| kind == self.kind),
            fast_retransmit: self.fast_retransmit.filter(|_| kind == self.kind),
            gap_retransmit: self.gap_retransmit.filter(|_| kind == self.kind),
            mss: Size::from_bytes(u64::from(proposed.segment_size)),
            acknowledge_every: proposed.acknowledge_every,
            acknowledge_delay: Duration::from_micros(u64::from(proposed.acknowledge_delay) * 100),
            ..self.clone()
        }
    }

    pub(super) fn discipline(&self) -> AnyDiscipline {
        match self.kind {
            Kind::StopAndWait => AnyDiscipline::StopAndWait(StopAndWait),
            Kind::GoBackN => AnyDiscipline::GoBackN(GoBackN::new(self.fast_retransmit.unwrap_or(false))),
            Kind::SelectiveRepeat => {
                let gaps = self.gap_retransmit.unwrap_or(self.window() == Window::Auto);
                AnyDiscipline::SelectiveRepeat(SelectiveRepeat::new(gaps))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_for_files_are_sound_and_can_be_written_and_read() {
        let files = ArqConfig::for_files();
        assert_eq!(files.validate(), []);
        let text = serde_json::to_string(&files).unwrap();
        assert_eq!(serde_json::from_str::<ArqConfig>(&text).unwrap(), files);
    }
}
