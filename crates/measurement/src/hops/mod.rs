//! Round trips to each router on the way to a host, for packets of many sizes.
//!
//! A packet with a time to live of k ends at the k-th router, which says so by an ICMP message (time exceeded; RFC 792,
//! RFC 4443). So its round trip is that of the first k links, as `traceroute` and `pathchar` (Jacobson, 1997) use it.
//! What such round trips say of each link is inferred elsewhere.
//!
//! All probes of one flow have the same addresses and ports, so that routers that balance by flow send them the same
//! way (Augustin et al., Avoiding traceroute anomalies with Paris traceroute, IMC 2006).

mod answer;
mod flight;
mod message;
#[cfg(target_os = "linux")]
mod prober;

use std::net::IpAddr;

use foundation::Duration;
use serde::{Deserialize, Serialize};

pub use answer::{Answer, Kind};
pub use flight::{Flight, Lost, MOST_SLOTS, Sent};
pub use message::{LEAST_PAYLOAD, Probe as Message};
#[cfg(target_os = "linux")]
pub use prober::Prober;

/// What probes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// UDP to a port that nobody listens at: the host answers that it is closed.
    Udp,
    /// ICMP echo requests: the host answers with as many bytes.
    Icmp,
}

/// Where probes go and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The host.
    pub to: IpAddr,
    /// What probes are.
    pub protocol: Protocol,
    /// The port of UDP probes; with a window above 1 those that follow it too.
    pub port: u16,
    /// The least time between two probes.
    pub interval: Duration,
    /// What is not answered for so long is lost.
    pub timeout: Duration,
    /// How many may be on their way at a time.
    pub window: usize,
}

/// What one probe is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Time to live: the router that it ends at.
    pub ttl: u8,
    /// Bytes with the IP header.
    pub size: u16,
}

/// What became of one probe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Told {
    /// What was sent.
    #[serde(flatten)]
    pub asked: Asked,
    /// The answer; `None` where there was none in time.
    pub answer: Option<Answer>,
    /// From before it was sent to when the answer was taken, in seconds, by this process's clock.
    pub application_s: Option<f64>,
    /// The same by the kernel's stamps at the device: without this host's protocol stack.
    pub kernel_s: Option<f64>,
}
