//! Congestion control: the congestion window and the pacing rate of a connection.
//!
//! A [`Controller`] receives events and provides a window and, if it paces, a rate. It has no access to the connection. The
//! events carry everything that published controllers need: bytes, round-trip samples, delivery-rate samples, losses and
//! the bytes in flight.

mod arithmetic;
mod balia;
mod bbr;
mod bbr1;
pub mod config;
mod controller;
mod coupled;
mod cubic;
mod cubic_linux;
pub mod delivery_rate;
mod fixed;
mod full_pipe;
mod hystart;
mod hystart_classic;
mod lia;
mod loss_based;
mod olia;
pub mod pacer;
mod registration;
mod registry;
mod reno;
mod round_filter;
mod rules;
mod settings;
mod siblings;
#[cfg(test)]
mod tests;
mod vegas;
mod weighting;
mod westwood;
mod wvegas;

pub use balia::{Balia, BaliaSettings};
pub use bbr::{BbrSettings, BbrTolerantSettings};
pub use bbr1::Bbr1Settings;
pub use config::CongestionConfig;
pub use controller::{Acknowledgement, Controller, Loss, RateSample};
pub use coupled::{CoupledGains, CoupledSettings, Coupling};
pub use cubic::CubicSettings;
pub use delivery_rate::{Estimator, Snapshot};
pub use fixed::FixedSettings;
pub use hystart::HyStartKind;
pub use lia::{LiaSettings, alpha as lia_alpha};
pub use olia::{Olia, OliaSettings};
pub use pacer::Pacer;
pub use registration::{ParsedSettings, Registration};
pub use registry::{Registry, Resolver, SEPARATOR, install_resolver};
pub use reno::RenoSettings;
pub use rules::{Rules, StackRules};
pub use settings::{ConnectionContext, ControllerSettings};
pub use siblings::{Sibling, Siblings};
pub use vegas::{VegasRules, VegasSettings};
pub use weighting::WvegasDrain;
pub use westwood::WestwoodSettings;
pub use wvegas::WvegasSettings;
