//! The keys of `[path]` in study files, and the link specifications they resolve to.

mod outage;
mod path;
mod preset;
mod spec;

pub use outage::{Outage, OutageError};
pub(crate) use path::with_link_keys;
pub use path::{HopConfig, LinkConfig, PathConfig};
pub use preset::{Preset, Subscriber};
pub use spec::{Capacity, LinkSpec, PathSpec};
