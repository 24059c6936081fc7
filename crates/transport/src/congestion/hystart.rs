//! HyStart++ (RFC 9406): exits slow start when the round-trip time grows, before the queue overflows.

use std::borrow::Cow;

use foundation::{Duration, Instant};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::Acknowledgement;

/// Detection of the end of slow start before a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HyStartKind {
    /// None: slow start lasts until a loss.
    Off,
    /// HyStart++ (RFC 9406).
    PlusPlus,
    /// HyStart by round-trip time and ACK trains, as in Linux.
    Classic,
}

impl HyStartKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::PlusPlus => "hystart++",
            Self::Classic => "classic",
        }
    }
}

impl Serialize for HyStartKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for HyStartKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        match &value {
            Value::Bool(false) => return Ok(Self::Off),
            Value::Bool(true) => return Ok(Self::PlusPlus),
            Value::String(name) => {
                for kind in [Self::Off, Self::PlusPlus, Self::Classic] {
                    if kind.name() == name {
                        return Ok(kind);
                    }
                }
            }
            _ => {}
        }
        Err(D::Error::custom(format!(
            "{value} is not one of \"off\", \"hystart++\", \"classic\", true (\"hystart++\"), false (\"off\")"
        )))
    }
}

impl JsonSchema for HyStartKind {
    fn schema_name() -> Cow<'static, str> {
        "HyStart".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "enum": ["off", "hystart++", "classic"] }, { "type": "boolean" }] })
    }
}

// RFC 9406, section 4.3.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_ROUNDS: u32 = 5;
/// Divisor of the growth in conservative slow start.
pub(super) const CSS_GROWTH_DIVISOR: u64 = 4;

/// Phase after an ACK in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HyStartPhase {
    /// No sign of a queue: normal growth.
    SlowStart,
    /// The round-trip time has grown: a quarter of the growth.
    ConservativeSlowStart,
    /// It did not shrink in five rounds: slow start is over.
    Exit,
}

/// State of the first slow start.
#[derive(Clone, Debug, Default)]
pub(super) struct HyStart {
    /// A round ends with the ACK of a packet sent after this time; `None` before the first packet.
    round_started: Option<Instant>,
    last_round_min: Option<Duration>,
    this_round_min: Option<Duration>,
    samples: u32,
    css: Option<Css>,
}

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Css {
    baseline: Duration,
    rounds: u32,
}

impl HyStart {
    /// Returns whether it is in conservative slow start.
    pub(super) const fn is_conservative(&self) -> bool {
        self.css.is_some()
    }

    /// Handles a transmission; the first one starts the first round.
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.round_started.get_or_insert(now);
    }

    /// Handles an ACK in slow start.
    pub(super) fn on_acknowledged(&mut self, ack: &Acknowledgement) -> HyStartPhase {
        if let Some(rtt) = ack.rtt {
            self.this_round_min = Some(self.this_round_min.map_or(rtt, |least| least.min(rtt)));
            self.samples += 1;
        }
        if self.samples >= N_RTT_SAMPLE
            && let Some(this) = self.this_round_min
        {
            match self.css {
                Some(css) if this < css.baseline => self.css = None,
                Some(_) => {}
                None => self.enter_css_if_slower(this),
            }
        }
        if self
            .round_started
            .is_some_and(|started| ack.newest_sent_at > started)
        {
            self.round_started = Some(ack.now);
            self.last_round_min = self.this_round_min.take();
            self.samples = 0;
            if let Some(css) = &mut self.css {
                css.rounds += 1;
                if css.rounds >= CSS_ROUNDS {
                    return HyStartPhase::Exit;
                }
            }
        }
        if self.css.is_some() {
            HyStartPhase::ConservativeSlowStart
        } else {
            HyStartPhase::SlowStart
        }
    }

    fn enter_css_if_slower(&mut self, this: Duration) {
        let Some(last) = self.last_round_min else { return };
        let threshold = (last / MIN_RTT_DIVISOR).max(MIN_RTT_THRESH).min(MAX_RTT_THRESH);
        if this >= last + threshold {
            self.css = Some(Css {
                baseline: this,
                rounds: 0,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::tests::ack;

    /// Simulates rounds of ten ACKs with these round-trip times in ms. Returns the phase after each round.
    fn rounds(rtts: &[u64]) -> Vec<HyStartPhase> {
        let mut hystart = HyStart::default();
        hystart.on_sent(Instant::ZERO);
        let mut now = Instant::ZERO;
        rtts.iter()
            .map(|&millis| {
                let rtt = Duration::from_millis(millis);
                let sent = now;
                let mut phase = HyStartPhase::SlowStart;
                for i in 1..=10 {
                    now = sent + rtt + Duration::from_micros(i);
                    if phase == Exit {
                        continue;
                    }
                    phase = hystart.on_acknowledged(&Acknowledgement {
                        rtt: Some(rtt),
                        newest_sent_at: sent + Duration::from_micros(i),
                        ..ack(now, 1000)
                    });
                }
                // The packets of the next round leave after the first ACK of this one.
                phase
            })
            .collect()
    }

    use HyStartPhase::{ConservativeSlowStart as Css, Exit, SlowStart};

    #[test]
    fn threshold_is_an_eighth_of_rtt_within_4_and_16_ms() {
        // RFC 9406, section 4.2: RttThresh = clamp(MIN_RTT_THRESH, lastRoundMinRTT / 8, MAX_RTT_THRESH).
        assert_eq!(rounds(&[10, 13, 13]), [SlowStart, SlowStart, SlowStart]);
        assert_eq!(rounds(&[10, 14])[1], Css);
        assert_eq!(rounds(&[80, 89])[1], SlowStart);
        assert_eq!(rounds(&[80, 90])[1], Css);
        assert_eq!(rounds(&[400, 415])[1], SlowStart);
        assert_eq!(rounds(&[400, 416])[1], Css);
    }

    #[test]
    fn exits_after_five_conservative_rounds() {
        // CSS_ROUNDS = 5, the first one included (RFC 9406, section 4.3).
        assert_eq!(
            rounds(&[50, 60, 60, 60, 60, 60, 60]),
            [SlowStart, Css, Css, Css, Css, Css, Exit]
        );
    }

    #[test]
    fn reads_names_and_booleans() {
        let read = |text: &str| serde_json::from_str::<HyStartKind>(text).map_err(|error| error.to_string());
        assert_eq!(read("true"), Ok(HyStartKind::PlusPlus));
        assert_eq!(read("false"), Ok(HyStartKind::Off));
        assert_eq!(read("\"classic\""), Ok(HyStartKind::Classic));
        assert!(
            read("\"clasic\"")
                .unwrap_err()
                .contains("not one of \"off\", \"hystart++\", \"classic\"")
        );
    }

    #[test]
    fn resumes_slow_start_when_delay_passes() {
        assert_eq!(rounds(&[50, 60, 60, 51]), [SlowStart, Css, Css, SlowStart]);
    }
}
