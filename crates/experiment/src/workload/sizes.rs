//! The key `sizes`: the kind of a flow size distribution.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The distribution of the sizes of arriving flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sizes {
    /// Constant: `size`.
    #[default]
    Fixed,
    /// Exponential with mean `size`.
    Exponential,
    /// Bounded Pareto between `size` (default "12214B") and `largest` (default "100MB") with `shape`; with the defaults, 99 % are below 800 KB.
    BoundedPareto,
    /// TCP flows of a campus network: a mixture of lognormals (Jurkiewicz et al. 2021); mean 25.7 KB with largest = "10MB".
    Campus,
    /// Web search in a data centre (Alizadeh et al. 2010, figure 4): mean 1.7 MB.
    WebSearch,
    /// Data mining in a data centre (Greenberg et al. 2009): mean 7.5 MB; half of the flows have one packet.
    DataMining,
    /// The CSV file `sizes_file`.
    Table,
}

impl Sizes {
    /// Returns the name in study files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Exponential => "exponential",
            Self::BoundedPareto => "bounded-pareto",
            Self::Campus => "campus",
            Self::WebSearch => "web-search",
            Self::DataMining => "data-mining",
            Self::Table => "table",
        }
    }

    /// Returns whether it reads the key `size`.
    #[must_use]
    pub const fn takes_size(self) -> bool {
        matches!(self, Self::Fixed | Self::Exponential | Self::BoundedPareto)
    }
}

/// Minimum of the bounded Pareto distribution in bytes. With this minimum, maximum and shape, 99 % of the flows are at most
/// 800 KB, after Ye et al. 2018 ("99 % of flows are short, sizes about Pareto").
pub const PARETO_MIN: u64 = 12_214;
/// Maximum of the bounded Pareto distribution in bytes.
pub const PARETO_MAX: u64 = 100_000_000;
/// Shape of the bounded Pareto distribution.
pub const PARETO_SHAPE: f64 = 1.1;
