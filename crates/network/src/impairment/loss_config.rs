//! How loss is written in a study: `"2%"`, or a table for each of the other models.

use foundation::{Probability, Problem};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::config::text_or_table::{self, TextOrTable};

/// Which packets a link loses, decided as they reach the link, in their order of arrival.
#[derive(Clone, Debug, PartialEq)]
pub enum LossConfig {
    /// Each packet with this probability, independent of all others. Written `"2%"`.
    Bernoulli {
        /// Probability of loss.
        probability: Probability,
    },
    /// Bursts, from a chain with a good and a bad state that steps once a packet
    /// (Gilbert, BSTJ 39, 1960; Elliott, BSTJ 42, 1963). Written
    /// `{ model = "gilbert-elliott", enter_bad = "1%", leave_bad = "25%" }`.
    ///
    /// The share of time in the bad state is `enter_bad / (enter_bad + leave_bad)`, and a stay there lasts
    /// `1 / leave_bad` packets on average. With the defaults these are the mean loss and the mean burst.
    GilbertElliott {
        /// Probability of going from the good to the bad state, a packet.
        enter_bad: Probability,
        /// Probability of going from the bad to the good state, a packet.
        leave_bad: Probability,
        /// Probability of loss in the good state.
        loss_good: Probability,
        /// Probability of loss in the bad state.
        loss_bad: Probability,
    },
    /// Every n-th packet. Written `{ every = 50 }`.
    Every {
        /// The n.
        every: u64,
    },
    /// These packets, by their number on the link, counted from 1. Written `{ packets = [3, 7] }`.
    Packets {
        /// The numbers, in any order.
        packets: Vec<u64>,
    },
}

impl LossConfig {
    /// Each packet with this probability.
    #[must_use]
    pub const fn bernoulli(probability: Probability) -> Self {
        Self::Bernoulli { probability }
    }

    /// The share of packets lost in the long run.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Self::Bernoulli { probability } => probability.value(),
            Self::GilbertElliott {
                enter_bad,
                leave_bad,
                loss_good,
                loss_bad,
            } => {
                let bad = enter_bad.value() / (enter_bad.value() + leave_bad.value());
                bad * loss_bad.value() + (1.0 - bad) * loss_good.value()
            }
            Self::Every { every } => 1.0 / *every as f64,
            Self::Packets { .. } => 0.0,
        }
    }

    /// What is out of range.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        match self {
            Self::Bernoulli { .. } => {}
            Self::GilbertElliott {
                enter_bad, leave_bad, ..
            } => {
                for (key, value) in [("enter_bad", enter_bad), ("leave_bad", leave_bad)] {
                    if value.value() <= 0.0 {
                        problems.push(Problem::new(
                            key,
                            "\"0%\" is out of range: above 0% (the chain would never change its state)",
                        ));
                    }
                }
            }
            Self::Every { every } => {
                if *every == 0 {
                    problems.push(Problem::new("every", "0 is out of range: at least 1"));
                }
            }
            Self::Packets { packets } => {
                if packets.contains(&0) {
                    problems.push(Problem::new(
                        "packets",
                        "0 is out of range: packets are counted from 1",
                    ));
                }
            }
        }
        problems
    }
}

/// Every key of every table; which of them belong together is checked afterwards, with a clear message.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    model: Option<String>,
    probability: Option<Probability>,
    enter_bad: Option<Probability>,
    leave_bad: Option<Probability>,
    loss_good: Option<Probability>,
    loss_bad: Option<Probability>,
    every: Option<Ordinal>,
    packets: Option<Vec<Ordinal>>,
}

/// A packet's number, or a number of packets: whole and at least 1.
struct Ordinal(u64);

impl<'de> Deserialize<'de> for Ordinal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Ordinal;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a whole number of at least 1")
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Ordinal, E> {
                if number == 0 {
                    return Err(E::invalid_value(serde::de::Unexpected::Unsigned(0), &self));
                }
                Ok(Ordinal(number))
            }
        }
        deserializer.deserialize_u64(Visitor)
    }
}

impl Table {
    /// The keys that were given, `model` aside.
    fn given(&self) -> impl Iterator<Item = &'static str> + use<> {
        [
            ("probability", self.probability.is_some()),
            ("enter_bad", self.enter_bad.is_some()),
            ("leave_bad", self.leave_bad.is_some()),
            ("loss_good", self.loss_good.is_some()),
            ("loss_bad", self.loss_bad.is_some()),
            ("every", self.every.is_some()),
            ("packets", self.packets.is_some()),
        ]
        .into_iter()
        .filter_map(|(key, given)| given.then_some(key))
    }

    fn only(&self, model: &str, allowed: &[&str]) -> Result<(), String> {
        match self.given().find(|key| !allowed.contains(key)) {
            None => Ok(()),
            Some(key) => Err(format!(
                "{key:?} does not belong to the loss model {model:?}, which has the keys {}",
                allowed.join(", ")
            )),
        }
    }
}

/// A key that the model cannot do without.
fn needed<T>(value: Option<T>, model: &str, key: &str, example: &str) -> Result<T, String> {
    value.ok_or_else(|| format!("the loss model {model:?} needs {key}, e.g. {key} = {example}"))
}

/// 100 %.
fn certain() -> Probability {
    Probability::new(1.0).unwrap_or_default()
}

const MODELS: [&str; 4] = ["bernoulli", "gilbert-elliott", "every", "packets"];

impl TextOrTable for LossConfig {
    const EXPECTED: &'static str = "a probability with its unit such as \"2%\", or one of the tables \
        { model = \"gilbert-elliott\", enter_bad = \"1%\", leave_bad = \"25%\" }, { every = 50 } and { packets = [3, 7] }";
    type Table = Table;

    fn from_text(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(probability) => Ok(Self::Bernoulli { probability }),
            // A word is more likely a model's name than a mistyped percentage.
            Err(_) if text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                Err(format!("{text:?} is not a loss: expected {}", Self::EXPECTED))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn from_table(table: Table) -> Result<Self, String> {
        let model = match (&table.model, &table.every, &table.packets) {
            (Some(model), _, _) => model.as_str(),
            (None, Some(_), _) => "every",
            (None, None, Some(_)) => "packets",
            (None, None, None) => return Err(format!("a loss table names its model: {}", MODELS.join(", "))),
        };
        match model {
            "bernoulli" => {
                table.only(model, &["probability"])?;
                let probability = needed(table.probability, model, "probability", "\"2%\"")?;
                Ok(Self::Bernoulli { probability })
            }
            "gilbert-elliott" => {
                table.only(model, &["enter_bad", "leave_bad", "loss_good", "loss_bad"])?;
                Ok(Self::GilbertElliott {
                    enter_bad: needed(table.enter_bad, model, "enter_bad", "\"1%\"")?,
                    leave_bad: needed(table.leave_bad, model, "leave_bad", "\"25%\"")?,
                    loss_good: table.loss_good.unwrap_or_default(),
                    loss_bad: table.loss_bad.unwrap_or_else(certain),
                })
            }
            "every" => {
                table.only(model, &["every"])?;
                let every = needed(table.every, model, "every", "50")?;
                Ok(Self::Every { every: every.0 })
            }
            "packets" => {
                table.only(model, &["packets"])?;
                let packets = needed(table.packets, model, "packets", "[3, 7]")?;
                let packets = packets.into_iter().map(|packet| packet.0).collect();
                Ok(Self::Packets { packets })
            }
            other => Err(format!(
                "unknown loss model {other:?}: one of {}{}",
                MODELS.join(", "),
                foundation::quantity::nearest(other, MODELS)
                    .map_or(String::new(), |near| format!("; did you mean {near:?}?"))
            )),
        }
    }
}

impl<'de> Deserialize<'de> for LossConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text_or_table::deserialize(deserializer)
    }
}

impl Serialize for LossConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = match self {
            Self::Bernoulli { probability } => return probability.serialize(serializer),
            _ => serializer.serialize_map(None)?,
        };
        match self {
            Self::Bernoulli { .. } => {}
            Self::GilbertElliott {
                enter_bad,
                leave_bad,
                loss_good,
                loss_bad,
            } => {
                map.serialize_entry("model", "gilbert-elliott")?;
                map.serialize_entry("enter_bad", enter_bad)?;
                map.serialize_entry("leave_bad", leave_bad)?;
                map.serialize_entry("loss_good", loss_good)?;
                map.serialize_entry("loss_bad", loss_bad)?;
            }
            Self::Every { every } => map.serialize_entry("every", every)?,
            Self::Packets { packets } => map.serialize_entry("packets", packets)?,
        }
        map.end()
    }
}

impl JsonSchema for LossConfig {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Loss".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let probability = generator.subschema_for::<Probability>();
        let count = || json_schema!({ "type": "integer", "minimum": 1 });
        let mut every = count();
        every.insert(
            "description".into(),
            "Lose each packet whose number is a multiple of this; at least 1".into(),
        );
        let table = |title: &str, help: &str, required: &[&str], properties: serde_json::Value| {
            json_schema!({
                "title": title,
                "description": help,
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            })
        };
        let described = |help: &str| {
            let mut schema = probability.clone();
            schema.insert("description".into(), help.into());
            schema
        };
        json_schema!({
            "description": "Which packets are lost: a probability, or a table that names a model",
            "oneOf": [
                probability,
                table(
                    "bernoulli",
                    "Each packet with this probability, independent of all others",
                    &["model", "probability"],
                    serde_json::json!({
                        "model": { "const": "bernoulli" },
                        "probability": described("Probability of loss"),
                    }),
                ),
                table(
                    "gilbert-elliott",
                    "Bursts: a good and a bad state that change with these probabilities a packet. The bad state \
                     takes enter_bad / (enter_bad + leave_bad) of all packets and lasts 1 / leave_bad packets",
                    &["model", "enter_bad", "leave_bad"],
                    serde_json::json!({
                        "model": { "const": "gilbert-elliott" },
                        "enter_bad": described("Probability of going from the good to the bad state, a packet; above 0%"),
                        "leave_bad": described("Probability of going from the bad to the good state, a packet; above 0%"),
                        "loss_good": described("Probability of loss in the good state; default 0%"),
                        "loss_bad": described("Probability of loss in the bad state; default 100%"),
                    }),
                ),
                table(
                    "every",
                    "Every n-th packet",
                    &["every"],
                    serde_json::json!({ "model": { "const": "every" }, "every": every }),
                ),
                table(
                    "packets",
                    "These packets, by their number on the link, counted from 1",
                    &["packets"],
                    serde_json::json!({
                        "model": { "const": "packets" },
                        "packets": { "type": "array", "items": count(), "description": "Numbers of the packets that are lost, the first is 1" },
                    }),
                ),
            ],
        })
    }
}
