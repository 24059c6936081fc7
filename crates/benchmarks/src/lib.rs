//! The scenarios that the benchmarks of whole simulations share.
//!
//! - A: dumbbell, 10 bulk flows, bottleneck of 100 Mbit/s and 10 ms with 100 packets, access links of 1 Gbit/s and
//!   1 ms, 60 s of virtual time.
//! - B: the same with a bottleneck of 10 Gbit/s and 10,000 packets, access links of 40 Gbit/s, windows of at most 4 MB,
//!   2 s.
//! - C: 1000 flows/s of 100 kB (Poisson) over one link of 1 Gbit/s, round trip 20 ms, 1000 packets, 10 s.
//! - M: 10 MPTCP connections of two subflows with LIA, two bottlenecks of 100 Mbit/s, 60 s.
//! - F: a point of MPTCP-FSFS, figures 5 to 7: 1000 flows/s over ten paths with FSFS, with background flows, 100 s.
//!
//! SACK and delayed ACKs; segments of 1448 bytes in packets of 1500 (F: MSS of 1400 bytes).

/// The allocator of the wheel.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use experiment::TrialSpec;

/// A scenario for one protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scenario {
    /// Letter.
    pub name: &'static str,
    /// Virtual time of a full run, in seconds.
    pub seconds: f64,
    /// Topology, as JSON.
    topology: &'static str,
    /// Workload without `duration`, as JSON without braces.
    workload: &'static str,
    /// Further keys of the trial, as JSON, each followed by a comma.
    other: &'static str,
    protocol: Protocol,
}

/// The protocol of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    /// TCP in each profile, with the receive window given.
    Tcp(&'static str),
    /// As given.
    Fixed(&'static str),
}

/// The profiles of TCP that scenarios run with.
pub const PROFILES: [&str; 3] = ["linux", "rfc", "ns3"];

/// All scenarios.
pub const SCENARIOS: [Scenario; 5] = [
    Scenario {
        name: "A",
        seconds: 60.0,
        topology: r#"{"kind": "dumbbell", "pairs": 10,
            "bottleneck": {"rate": "100Mbit/s", "delay": "10ms", "queue": "100pkt"},
            "access": {"rate": "1Gbit/s", "delay": "1ms", "queue": "1000pkt"},
            "exit": {"rate": "1Gbit/s", "delay": "1ms", "queue": "1000pkt"}}"#,
        workload: r#""kind": "bulk", "start_jitter": "100ms""#,
        other: "",
        protocol: Protocol::Tcp("6MiB"),
    },
    Scenario {
        name: "B",
        seconds: 2.0,
        topology: r#"{"kind": "dumbbell", "pairs": 10,
            "bottleneck": {"rate": "10Gbit/s", "delay": "10ms", "queue": "10000pkt"},
            "access": {"rate": "40Gbit/s", "delay": "1ms", "queue": "10000pkt"},
            "exit": {"rate": "40Gbit/s", "delay": "1ms", "queue": "10000pkt"}}"#,
        workload: r#""kind": "bulk", "start_jitter": "10ms""#,
        other: "",
        protocol: Protocol::Tcp("4MB"),
    },
    Scenario {
        name: "C",
        seconds: 10.0,
        topology: r#"{"kind": "free", "hosts": ["sender", "receiver"],
            "links": [{"from": "sender", "to": "receiver", "rate": "1Gbit/s", "delay": "10ms", "queue": "1000pkt"}]}"#,
        workload: r#""kind": "arrivals", "arrivals": "1000/s", "size": "100kB""#,
        other: "",
        protocol: Protocol::Tcp("6MiB"),
    },
    Scenario {
        name: "M",
        seconds: 60.0,
        topology: r#"{"kind": "multipath", "paths": 2, "path": {"rate": "100Mbit/s", "queue": "100pkt"},
            "delays": "12ms..12ms"}"#,
        workload: r#""kind": "bulk", "flows": 10, "start_jitter": "100ms""#,
        other: "",
        protocol: Protocol::Fixed(r#"{"kind": "mptcp", "congestion": "lia", "mss": "1460B"}"#),
    },
    Scenario {
        name: "F",
        seconds: 100.0,
        topology: r#"{"kind": "multipath", "paths": 10, "path": {"rate": "800Mbit/s", "queue": "100pkt"},
            "delays": "10ms..100ms"}"#,
        workload: r#""kind": "arrivals", "arrivals": "1000/s", "sizes": "campus", "largest": "10MB",
            "classes": ["100kB", "300kB", "800kB"], "warm_up": "0.2s""#,
        other: r#""traffic": [{"name": "ftp", "protocol": {"kind": "tcp", "profile": "ns3", "congestion": "reno",
            "mss": "1400B", "window_scaling": false, "receive_buffer": "65535B"},
            "workload": {"kind": "bulk", "flows": 5, "each_path": true, "start_jitter": "1s"}}],"#,
        protocol: Protocol::Fixed(
            r#"{"kind": "mptcp", "profile": "ns3", "policy": {"kind": "fsfs", "rtt": "latest"}, "mss": "1400B",
            "window_scaling": true, "send_buffer": "800MB", "receive_buffer": "800MB", "quick_acks": true}"#,
        ),
    },
];

impl Scenario {
    /// Returns the scenario of this letter.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        SCENARIOS.into_iter().find(|one| one.name == name)
    }

    /// Returns the profiles it runs with; a single, unnamed one for a fixed protocol.
    #[must_use]
    pub const fn profiles(&self) -> &'static [&'static str] {
        match self.protocol {
            Protocol::Tcp(_) => &PROFILES,
            Protocol::Fixed(_) => &["-"],
        }
    }

    /// Returns the trial of a profile that lasts `seconds` of virtual time.
    ///
    /// # Panics
    /// If the scenario is not a valid trial.
    #[must_use]
    pub fn trial(&self, profile: &str, seconds: f64) -> TrialSpec {
        // ns-3's profile has that simulator's own Reno.
        let congestion = match profile {
            "ns3" => "",
            _ => r#""congestion": "reno","#,
        };
        let protocol = match self.protocol {
            Protocol::Fixed(protocol) => protocol.to_owned(),
            Protocol::Tcp(window) => format!(
                r#"{{"kind": "tcp", "profile": "{profile}", {congestion} "mss": "1460B", "send_buffer": "64MiB",
                "send_autotuning": false, "send_overhead": "0B", "receive_buffer": "{window}",
                "receive_autotuning": false, "receive_overhead": "0B", "initial_receive_window": "{window}"}}"#
            ),
        };
        let (topology, workload, other) = (self.topology, self.workload, self.other);
        let json = format!(
            r#"{{"topology": {topology}, "workload": {{{workload}, "duration": "{seconds}s"}}, {other}
            "protocol": {protocol}, "seed": 1}}"#
        );
        TrialSpec::from_json(&json).unwrap_or_else(|error| panic!("scenario {}: {error}", self.name))
    }
}
