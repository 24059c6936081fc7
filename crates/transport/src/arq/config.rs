//! The settings of ARQ protocols in `[[protocols]]`.

use std::fmt;
use std::str::FromStr;

use foundation::quantity::nearest;
use foundation::{Duration, Problem, QuantityError, Size, omit_unset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::ArqProtocol;
use super::frame::{MAX_PAYLOAD, Parameters};
use crate::congestion::config::CongestionConfig;

/// A send window: a number of packets, or `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Maximum number of unacknowledged packets.
    Packets(u32),
    /// The congestion controller's window.
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
                "{text:?} is not a window: use a number of packets from 1 to {MAX_WINDOW}, or \"auto\""
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
    /// From measured round-trip times (RFC 6298), with exponential back-off.
    Adaptive,
    /// Always this duration.
    Fixed(Duration),
}

impl Timeout {
    /// Returns the fixed time; `None` if it is adaptive.
    pub(super) const fn fixed(self) -> Option<Duration> {
        match self {
            Self::Adaptive => None,
            Self::Fixed(fixed) => Some(fixed),
        }
    }
}

impl FromStr for Timeout {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text == "adaptive" {
            return Ok(Self::Adaptive);
        }
        match text.parse() {
            Ok(Duration::ZERO) => Err(QuantityError::new(format!(
                "{text:?} is not a timeout: it must be positive"
            ))),
            Ok(fixed) => Ok(Self::Fixed(fixed)),
            Err(error) => Err(QuantityError::new(match nearest(text, ["adaptive"]) {
                Some(_) => format!("{text:?} is not a timeout; did you mean \"adaptive\"?"),
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

omit_unset! {
    /// The settings of an ARQ protocol.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct ArqConfig {
        /// The protocol: stop-and-wait, go-back-n or selective-repeat.
        pub kind: ArqProtocol,
        /// Maximum number of unacknowledged packets, or "auto" for the congestion controller's window. Default: 1 for stop-and-wait, else "auto".
        pub window: Option<Window>,
        /// Largest payload of a packet. Default: "1024B".
        #[serde(default = "defaults::mss")]
        pub mss: Size,
        /// Retransmission timeout: "adaptive" (RFC 6298) or a fixed time such as "200ms". Default: "adaptive".
        #[serde(default = "defaults::rto")]
        pub rto: Timeout,
        /// Lower limit of an adaptive timeout. Default: "20ms".
        #[serde(default = "defaults::min_rto")]
        pub min_rto: Duration,
        /// Go-Back-N: treat three duplicate ACKs as a loss, without waiting for the timeout. Default: false.
        pub fast_retransmit: Option<bool>,
        /// Selective repeat: treat three later packets that arrived as a loss, without waiting for the timeout. Default: true with an "auto" window, else false.
        pub gap_retransmit: Option<bool>,
        /// Selective repeat: retransmit a packet when no ACK has arrived for two RTTs, before the timeout (RFC 8985, section 7). Default: false.
        pub tail_probe: Option<bool>,
        /// The congestion controller of an "auto" window. Default: "bbr-tolerant", which sustains its rate under random loss.
        pub congestion: Option<CongestionConfig>,
        /// Number of in-order packets per ACK. Default: 1.
        #[serde(default = "defaults::acknowledge_every")]
        #[schemars(range(min = 1))]
        pub acknowledge_every: u16,
        /// How long an ACK may be delayed, at most "1s". Default: "1ms".
        #[serde(default = "defaults::acknowledge_delay")]
        pub acknowledge_delay: Duration,
        /// Receive buffer in packets. Default: 65536.
        #[serde(default = "defaults::receive_buffer")]
        #[schemars(range(min = 1, max = MAX_WINDOW))]
        pub receive_buffer: u32,
        /// How long the peer may be silent before the connection fails. Default: "30s".
        #[serde(default = "defaults::give_up")]
        pub give_up: Duration,
        /// How long the peer may be silent before a keep-alive probe. Default: "10s".
        #[serde(default = "defaults::keep_alive")]
        pub keep_alive: Duration,
    }
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
    /// Keys that running connections take over ([`Connection::reconfigure`](super::Connection::reconfigure)).
    pub const LIVE_KEYS: [&'static str; 5] = [
        "window",
        "rto",
        "min_rto",
        "acknowledge_every",
        "acknowledge_delay",
    ];

    /// Returns why connections with these settings cannot take over others in which a key of [`LIVE_KEYS`](Self::LIVE_KEYS)
    /// differs.
    #[must_use]
    pub fn obstacle_to(&self, next: &Self) -> Option<Problem> {
        let is_auto = |config: &Self| config.window() == Window::Auto;
        (is_auto(self) != is_auto(next)).then(|| {
            let message = "cannot change between a number of packets and \"auto\" while flows run";
            Problem::new("window", message)
        })
    }

    /// Returns the default settings of a protocol.
    #[must_use]
    pub const fn new(kind: ArqProtocol) -> Self {
        Self {
            kind,
            window: None,
            mss: defaults::mss(),
            rto: defaults::rto(),
            min_rto: defaults::min_rto(),
            fast_retransmit: None,
            gap_retransmit: None,
            tail_probe: None,
            congestion: None,
            acknowledge_every: defaults::acknowledge_every(),
            acknowledge_delay: defaults::acknowledge_delay(),
            receive_buffer: defaults::receive_buffer(),
            give_up: defaults::give_up(),
            keep_alive: defaults::keep_alive(),
        }
    }

    /// Returns settings for file transfer on a shared path: selective repeat, `auto` window under a paced controller,
    /// large packets that fit an MTU of 1500 bytes with a tunnel header, few ACKs, and Linux's minimum timeout. The
    /// controller detects losses by gaps, and on a busy machine threads wake up so late that a shorter timeout would
    /// be spurious.
    #[must_use]
    pub fn for_files() -> Self {
        Self {
            mss: Size::from_bytes(1400),
            acknowledge_every: 16,
            min_rto: Duration::from_millis(200),
            tail_probe: Some(true),
            congestion: Some(CongestionConfig::for_files()),
            ..Self::new(ArqProtocol::SelectiveRepeat)
        }
    }

    /// Returns the window, with its default.
    #[must_use]
    pub fn window(&self) -> Window {
        self.window.unwrap_or(match self.kind {
            ArqProtocol::StopAndWait => Window::Packets(1),
            _ => Window::Auto,
        })
    }

    /// Returns the congestion controller of an `auto` window.
    #[must_use]
    pub fn congestion(&self) -> CongestionConfig {
        self.congestion.clone().unwrap_or_default()
    }

    /// Returns all problems of these settings.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut wrong = |key: &str, message: String| problems.push(Problem::new(key, message));
        if self.kind == ArqProtocol::StopAndWait && self.window() != Window::Packets(1) {
            wrong("window", "the window of stop-and-wait is 1 packet".to_owned());
        }
        if !(1..=u64::from(MAX_PAYLOAD)).contains(&self.mss.bytes()) {
            wrong(
                "mss",
                format!("{} is out of range: 1B to {MAX_PAYLOAD}B", self.mss),
            );
        }
        if self.fast_retransmit.is_some() && self.kind != ArqProtocol::GoBackN {
            wrong("fast_retransmit", "only go-back-n has it".to_owned());
        }
        if self.gap_retransmit.is_some() && self.kind != ArqProtocol::SelectiveRepeat {
            wrong("gap_retransmit", "only selective-repeat has it".to_owned());
        }
        if self.tail_probe.is_some() && self.kind != ArqProtocol::SelectiveRepeat {
            wrong("tail_probe", "only selective-repeat has it".to_owned());
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

    /// Returns the parameters that the opener proposes.
    #[must_use]
    pub fn parameters(&self) -> Parameters {
        Parameters {
            protocol: self.kind as u8,
            segment_size: u16::try_from(self.mss.bytes().min(u64::from(MAX_PAYLOAD))).unwrap_or(u16::MAX),
            acknowledge_every: self.acknowledge_every,
            acknowledge_delay: u16::try_from(self.acknowledge_delay.as_micros() / 100).unwrap_or(u16::MAX),
        }
    }

    /// Returns these settings with the opener's proposal applied.
    #[must_use]
    pub fn adopting(&self, proposed: Parameters) -> Self {
        let kind = ArqProtocol::from_code(proposed.protocol).unwrap_or(self.kind);
        Self {
            kind,
            // Keys of a different protocol do not carry over.
            window: self.window.filter(|_| kind == self.kind),
            fast_retransmit: self.fast_retransmit.filter(|_| kind == self.kind),
            gap_retransmit: self.gap_retransmit.filter(|_| kind == self.kind),
            tail_probe: self.tail_probe.filter(|_| kind == self.kind),
            mss: Size::from_bytes(u64::from(proposed.segment_size)),
            acknowledge_every: proposed.acknowledge_every,
            acknowledge_delay: Duration::from_micros(u64::from(proposed.acknowledge_delay) * 100),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_for_files_are_valid_and_serializable() {
        let files = ArqConfig::for_files();
        assert_eq!(files.validate(), []);
        let text = serde_json::to_string(&files).unwrap();
        assert_eq!(serde_json::from_str::<ArqConfig>(&text).unwrap(), files);
    }
}
