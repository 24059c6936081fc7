//! Congestion control: the congestion window and the pacing rate of a connection.
//!
//! A [`Controller`] receives events and provides a window and, if it paces, a rate. It has no access to the connection. The
//! events carry everything that published controllers need: bytes, round-trip samples, delivery-rate samples, losses and
//! the bytes in flight.

mod arithmetic;
mod classic_queue;
pub mod config;
mod controller;
mod coupled;
mod cubic_linux;
pub mod delivery_rate;
mod full_pipe;
mod hystart;
mod hystart_classic;
mod loss_based;
mod pacer;
mod registry;
mod round_filter;
mod rules;
mod settings;
mod siblings;
#[cfg(test)]
pub(crate) mod tests;
mod weighting;

pub use balia::Balia;
pub use bbr::MarkResponse;
pub use config::CongestionConfig;
pub use controller::{Acknowledgement, Controller, Loss, Outputs, RateSample};
pub use coupled::{CoupledGains, CoupledSettings, Coupling};
pub use delivery_rate::{Estimator, Snapshot};
pub use hystart::HyStartKind;
pub use lia::alpha as lia_alpha;
pub use olia::Olia;
pub use pacer::{Bursts, Pacer};
pub use prague::RttScaling;
pub use registry::{Registration, Registry};
pub use rules::{Rules, StackRules};
pub use settings::{ConnectionContext, ControllerSettings, MarkUse};
pub use siblings::{Sibling, Siblings};
pub use vegas::VegasRules;
pub use weighting::WvegasDrain;

registry::controllers! {
    bbr {
        "bbr" => BbrSettings: "model of bandwidth and minimum round-trip time (BBRv3)",
        "bbr-tolerant" => BbrTolerantSettings: "BBRv3 with an estimate of the path's random loss"
    }
    bbr1 { "bbr1" => Bbr1Settings: "model of the path that ignores loss (BBRv1, 2016)" }
    cubic { "cubic" => CubicSettings: "loss-based, cubic growth (RFC 9438)" }
    reno { "reno" => RenoSettings: "loss-based, additive increase (RFC 5681)" }
    vegas { "vegas" => VegasSettings: "delay-based, alpha to beta packets queued (1995)" }
    westwood { "westwood" => WestwoodSettings: "Reno, resumes at the measured bandwidth (Westwood+)" }
    copa { "copa" => CopaSettings: "delay-based, 1 / delta packets queued, competes with TCP (Copa, 2018)" }
    vivace { "vivace" => VivaceSettings: "online learning: follows the gradient of a utility of rate, delay and loss (PCC Vivace, 2018)" }
    ledbat { "ledbat++" => LedbatSettings: "background traffic, 60 ms of queue, yields to others (LEDBAT++)" }
    dctcp { "dctcp" => DctcpSettings: "reduces by the share of marked bytes, for data centres (RFC 8257)" }
    prague { "prague" => PragueSettings: "scalable, for the low-latency queues of L4S (TCP Prague)" }
    lia { "lia" => LiaSettings: "coupled subflows that grow as one flow (RFC 6356)" }
    olia { "olia" => OliaSettings: "coupled subflows that leave congested paths (OLIA)" }
    balia { "balia" => BaliaSettings: "coupled subflows, friendly and responsive (BALIA)" }
    wvegas { "wvegas" => WvegasSettings: "delay-based, subflows share the packets queued (2012)" }
    fixed { "fixed" => FixedSettings: "a constant window: no congestion control" }
}
