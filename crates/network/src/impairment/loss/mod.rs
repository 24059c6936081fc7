//! Loss models: which packets of a link are lost.
//!
//! A packet's fate depends on its number on the link and the link's loss stream alone, not on time or size.
//!
//! A model is one file with a settings struct that implements [`LossModel`] and a struct that implements
//! [`LossProcess`], and a line in `models!` below (beside its `mod`, as for any file).

mod bernoulli;
mod every;
mod gilbert_elliott;
mod ordinal;
mod packets;
mod table;

use foundation::{Generator, Probability, Problem, Streams};

use table::{Form, Key};

/// The settings of a loss model: how a table of it is written, and what it does.
pub(crate) trait LossModel:
    serde::Serialize + serde::de::DeserializeOwned + schemars::JsonSchema
{
    /// The model at work.
    type Process: LossProcess;
    /// Its name.
    const NAME: &'static str;
    /// Whether a table with its only key needs no `model` to tell which one it is.
    const TOLD_BY_KEY: bool;
    /// Its keys, in the order in which they are written.
    const KEYS: &'static [Key];
    /// A table, as an example.
    const EXAMPLE: &'static str;

    /// The share of packets lost in the long run.
    fn mean(&self) -> f64;

    /// What is out of range.
    fn validate(&self) -> Vec<Problem>;

    /// The model at the start of a link. What it draws at random it draws from `stream`.
    fn start(&self, stream: Generator) -> Self::Process;
}

/// A loss model at work.
pub(crate) trait LossProcess {
    /// Whether the next packet is lost. Always as many draws.
    fn next(&mut self) -> bool;
}

/// Declares the models: what a study may say, and what a link does.
macro_rules! models {
    ($($(#[$help:meta])* $file:ident::$name:ident,)+) => {
        $(pub use $file::$name;)+

        /// Which packets a link loses, decided as they reach the link, in their order of arrival.
        #[derive(Clone, Debug, PartialEq)]
        pub enum LossConfig {
            $($(#[$help])* $name($name),)+
        }

        /// How the tables of the models are written.
        const FORMS: &[Form] = &[$(Form::of::<$name>(|value| serde_json::from_value(value).map(LossConfig::$name)),)+];

        impl LossConfig {
            /// The share of packets lost in the long run.
            #[must_use]
            pub fn mean(&self) -> f64 {
                match self {
                    $(Self::$name(model) => model.mean(),)+
                }
            }

            /// What is out of range.
            #[must_use]
            pub fn validate(&self) -> Vec<Problem> {
                match self {
                    $(Self::$name(model) => model.validate(),)+
                }
            }

            /// The name of the model, and its keys with their values.
            fn written(&self) -> (&'static str, serde_json::Result<serde_json::Value>) {
                match self {
                    $(Self::$name(model) => ($name::NAME, serde_json::to_value(model)),)+
                }
            }
        }

        /// The loss model of a link at work.
        #[derive(Clone, Debug)]
        pub(crate) enum Loss {
            $($name(<$name as LossModel>::Process),)+
        }

        impl Loss {
            pub(crate) fn new(config: &LossConfig, streams: Streams) -> Self {
                let stream = streams.stream("loss");
                match config {
                    $(LossConfig::$name(model) => Self::$name(model.start(stream)),)+
                }
            }

            /// Whether the next packet is lost.
            #[inline]
            pub(crate) fn next(&mut self) -> bool {
                match self {
                    $(Self::$name(process) => process.next(),)+
                }
            }
        }
    };
}

models! {
    /// Each packet with the same probability. Written `"2%"`.
    bernoulli::Bernoulli,
    /// Bursts. Written `{ model = "gilbert-elliott", enter_bad = "1%", leave_bad = "25%" }`.
    gilbert_elliott::GilbertElliott,
    /// Every n-th packet. Written `{ every = 50 }`.
    every::Every,
    /// These packets, by their number. Written `{ packets = [3, 7] }`.
    packets::Packets,
}

impl LossConfig {
    /// Each packet with this probability.
    #[must_use]
    pub const fn bernoulli(probability: Probability) -> Self {
        Self::Bernoulli(Bernoulli { probability })
    }

    /// Each model, with the example values of the keys that it needs.
    pub fn examples() -> impl Iterator<Item = Self> {
        FORMS.iter().filter_map(Form::smallest)
    }

    /// Whether it may lose a packet at all.
    pub(crate) fn is_some(&self) -> bool {
        !matches!(self, Self::Bernoulli(model) if model.probability.value() <= 0.0)
    }
}
