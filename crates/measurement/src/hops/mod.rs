//! Round trips to each router on the path to a host, for packets of many sizes.
//!
//! A packet with a time to live of k expires at the k-th router, which reports it by an ICMP message (time exceeded;
//! RFC 792, RFC 4443). Its round trip covers the first k links; `traceroute` and `pathchar` (Jacobson, 1997) use the
//! same principle. The Python package infers the links' properties from these round trips.
//!
//! All probes of one flow have the same addresses and ports, so that routers that balance by flow use the same path
//! (Augustin et al., Avoiding traceroute anomalies with Paris traceroute, IMC 2006).

mod answer;
mod flight;
mod message;
mod prober;

use std::net::IpAddr;

use foundation::Duration;
use serde::{Deserialize, Serialize};

pub use answer::{Answer, AnswerKind};
pub use flight::{Flight, LostProbe, MOST_SLOTS, SentProbe};
pub use message::{LEAST_PAYLOAD, Probe as Message};
pub use prober::Prober;

/// Type of the probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// UDP to a closed port: the host replies with ICMP port unreachable.
    Udp,
    /// ICMP echo requests: the host replies with the same number of bytes.
    Icmp,
}

/// Options of a prober.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The destination.
    pub to: IpAddr,
    /// Type of the probes.
    pub protocol: Protocol,
    /// Destination port of UDP probes; with a window above 1 also the ports after it.
    pub port: u16,
    /// Minimum time between two probes.
    pub interval: Duration,
    /// A probe without an answer for this long is lost.
    pub timeout: Duration,
    /// Maximum number of probes in flight.
    pub window: usize,
}

/// Parameters of one probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeSpec {
    /// Time to live, which selects the router that answers.
    pub ttl: u8,
    /// Length with the IP header.
    pub size: u16,
}

/// Result of one probe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ProbeResult {
    /// Its parameters.
    #[serde(flatten)]
    pub spec: ProbeSpec,
    /// The answer; `None` if none arrived in time.
    pub answer: Option<Answer>,
    /// Round trip by this process's clock, in seconds.
    pub application_s: Option<f64>,
    /// Round trip by the kernel's stamps at the device, in seconds: without this host's protocol stack.
    pub kernel_s: Option<f64>,
}
