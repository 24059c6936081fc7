//! The words of a study's `[path]`: links as a person writes them, and as the network is built from them.

pub(crate) mod text_or_table;

mod path;
mod preset;
mod spec;

pub(crate) use path::with_link_keys;
pub use path::{HopConfig, LinkConfig, PathConfig};
pub use preset::{Preset, Subscriber};
pub use spec::{Capacity, LinkSpec, PathSpec};
