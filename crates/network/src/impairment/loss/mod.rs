//! Loss models: which packets of a link are lost.
//!
//! The result for a packet depends only on its number on the link and the link's loss stream, not on time or size.
//!
//! A model is one file with a settings struct that implements [`LossModel`] and a struct that implements [`LossProcess`]; it
//! has a line in `models!` below.

use std::borrow::Cow;

use foundation::kinds::{KIND, Written};
use foundation::{Generator, Probability, Problem, Streams, kinds};
use schemars::{Schema, json_schema};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// The settings of a loss model.
pub(crate) trait LossModel {
    /// The state on a link.
    type Process: LossProcess
    where
        Self: Sized;

    /// Returns the share of packets lost in the long run.
    fn mean(&self) -> f64;

    /// Returns all values out of range.
    fn validate(&self) -> Vec<Problem>;

    /// Returns the state at the start of a link.
    fn start(&self, stream: Generator) -> Self::Process
    where
        Self: Sized;
}

/// The state of a loss model on a link.
pub(crate) trait LossProcess {
    /// Returns whether the next packet is lost. Always takes the same number of draws.
    fn next(&mut self) -> bool;
}

/// Declares the models as kinds of [`LossConfig`], and the dispatch to their processes.
macro_rules! models {
    ($($name:literal => $model:ident in $file:ident,)+) => {
        kinds! {
            /// Which packets a link loses, decided in the order of their arrival at the link.
            #[serde(remote = "Self", tag = "kind")]
            #[schemars(rename = "Loss", transform = add_text_form)]
            pub enum LossConfig: LossModel { $($name => $model in $file,)+ }
        }

        /// The loss model of a link. An enum, since it runs for every packet.
        #[derive(Clone, Debug)]
        pub(crate) enum Loss {
            $($model(<$model as LossModel>::Process),)+
        }

        impl Loss {
            pub(crate) fn new(config: &LossConfig, streams: Streams) -> Self {
                let stream = streams.stream("loss");
                match config { $(LossConfig::$model(model) => Self::$model(model.start(stream)),)+ }
            }

            /// Returns whether the next packet is lost.
            #[inline]
            pub(crate) fn next(&mut self) -> bool {
                match self { $(Self::$model(process) => process.next(),)+ }
            }
        }
    };
}

models! {
    "bernoulli" => Bernoulli in bernoulli,
    "gilbert-elliott" => GilbertElliott in gilbert_elliott,
    "every" => Every in every,
    "packets" => Packets in packets,
}

impl LossConfig {
    /// Returns independent loss with this probability.
    #[must_use]
    pub const fn bernoulli(probability: Probability) -> Self {
        Self::Bernoulli(Bernoulli { probability })
    }

    /// Returns the share of packets lost in the long run.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.settings().mean()
    }

    /// Returns all values out of range.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        self.settings().validate()
    }

    /// Returns whether the model can lose packets.
    pub(crate) fn is_some(&self) -> bool {
        !matches!(self, Self::Bernoulli(model) if model.probability.value() <= 0.0)
    }
}

impl Written for LossConfig {
    fn expected() -> Cow<'static, str> {
        "a probability with its unit such as \"2%\", or one of the tables \
         { kind = \"bernoulli\", probability = \"2%\" }, { kind = \"gilbert-elliott\", enter_bad = \"1%\", leave_bad = \"25%\" }, { kind = \"every\", every = 50 } and \
         { kind = \"packets\", packets = [3, 7] }"
            .into()
    }

    fn from_text(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(probability) => Ok(Self::bernoulli(probability)),
            // A name is more likely a kind than a mistyped percentage.
            Err(_) if text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                Err(format!("{text:?} is not a loss: expected {}", Self::expected()))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// In older studies the kind is named `model`, and is optional for `every` and `packets`.
    fn from_table(mut table: Map<String, Value>) -> Result<Self, Problem> {
        if !table.contains_key(KIND) {
            let unnamed = ["every", "packets"]
                .into_iter()
                .find(|key| table.contains_key(*key));
            if let Some(kind) = table.remove("model").or(unnamed.map(Value::from)) {
                table.insert(KIND.to_owned(), kind);
            }
        }
        kinds::from_table(table)
    }
}

impl Serialize for LossConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bernoulli(model) => model.probability.serialize(serializer),
            _ => Self::serialize(self, serializer),
        }
    }
}

/// Adds a probability to the schema of the tables.
fn add_text_form(tables: &mut Schema) {
    *tables = json_schema!({
        "description": "Packet loss: a probability, or a table with the kind of loss model",
        "anyOf": [{ "$ref": "#/$defs/Probability" }, tables],
    });
}
