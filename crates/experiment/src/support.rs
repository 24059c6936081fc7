//! What a world supports. Loading a study and every executor apply this one rule.

use foundation::Problem;
use network::{Capacity, LinkSpec};
use quic::{MigrationTarget, QuicConfig};
use transport::mptcp::policy::PathChoice;
use transport::tcp::StackKind;

use crate::plan::{Group, Plan, place};
use crate::protocol::ProtocolConfig;
use crate::spec::{NetworkConfig, SpecError, TrialSpec};
use crate::workload::{WorkloadConfig, WorkloadKind};

/// A kind of world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorldKind {
    /// Virtual time.
    Sim,
    /// Network namespaces on wall time.
    Netns,
    /// UDP sockets and a relay on wall time.
    Relay,
}

impl WorldKind {
    /// All worlds.
    pub const ALL: [Self; 3] = [Self::Sim, Self::Netns, Self::Relay];

    /// Returns the name in studies.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Netns => "netns",
            Self::Relay => "relay",
        }
    }

    /// Returns the world of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|world| world.name() == name)
    }
}

/// Returns the parts of a trial that a world does not support, without its requirements of the machine.
#[must_use]
pub fn unsupported(world: WorldKind, spec: &TrialSpec) -> Vec<Problem> {
    let mut problems = settings(world, spec);
    // A network with mistakes has no plan; they are reported where it is checked.
    if world == WorldKind::Sim
        && protocols(spec).any(|(_, protocol, workload)| is_endless(protocol, workload))
        && has_timeless_link(spec)
        && let Ok(plan) = Plan::of(spec)
    {
        problems.extend(timeless_flows(spec, &plan));
    }
    problems
}

/// Returns the settings of a trial that a world does not support.
fn settings(world: WorldKind, spec: &TrialSpec) -> Vec<Problem> {
    match world {
        WorldKind::Sim => beyond_simulation(spec),
        WorldKind::Netns => beyond_kernels(spec),
        WorldKind::Relay => beyond_relay(spec).into_iter().collect(),
    }
}

/// Rejects a trial with settings that a world does not support.
///
/// # Errors
/// [`SpecError::Invalid`] with all problems.
pub fn refuse(world: WorldKind, spec: &TrialSpec) -> Result<(), SpecError> {
    none_of(settings(world, spec))
}

fn none_of(problems: Vec<Problem>) -> Result<(), SpecError> {
    match problems.is_empty() {
        true => Ok(()),
        false => Err(SpecError::Invalid(problems)),
    }
}

/// Rejects flows that send without a limit over a path that takes no time: virtual time would never advance.
///
/// # Errors
/// [`SpecError::Invalid`] with the links of the first such flow.
pub fn refuse_timeless(spec: &TrialSpec, plan: &Plan) -> Result<(), SpecError> {
    none_of(timeless_flows(spec, plan))
}

/// Returns the protocol of the measured flows and of each traffic, with its key and workload.
fn protocols(spec: &TrialSpec) -> impl Iterator<Item = (String, &ProtocolConfig, &WorkloadConfig)> {
    let own = (place(0, "protocol"), &spec.protocol, &spec.workload);
    let traffic = (1..).zip(&spec.traffic);
    let traffic = traffic.map(|(number, one)| (place(number, "protocol"), &one.protocol, &one.workload));
    std::iter::once(own).chain(traffic)
}

fn is_loopback(spec: &TrialSpec) -> bool {
    matches!(&spec.network, NetworkConfig::Topology(topology) if topology.kind() == "loopback")
}

/// The kernel's TCP is not simulated, and the kind loopback has no network to simulate: all times would be zero.
fn beyond_simulation(spec: &TrialSpec) -> Vec<Problem> {
    let uses_kernel = |protocol: &ProtocolConfig| matches!(protocol, ProtocolConfig::Tcp(config) if config.stack == Some(StackKind::Kernel));
    let mut problems: Vec<Problem> = protocols(spec)
        .filter(|(_, protocol, _)| uses_kernel(protocol))
        .map(|(key, ..)| {
            let message = "\"kernel\" requires the world netns: allowed in sim: longfat";
            Problem::new("stack", message).within(&key)
        })
        .collect();
    problems.extend(absent_quic(spec, quic::AVAILABLE));
    problems.extend(lonely_tickets(spec));
    problems.extend(translated_paths(spec));
    problems.extend(moves_in_place(spec));
    if is_loopback(spec) {
        let message = "\"loopback\" requires the world netns: it has no network to simulate";
        problems.push(Problem::new("topology.kind", message));
    }
    problems
}

/// Longfat's TCP in world netns has only the address of the first path, and no loopback device.
fn beyond_kernels(spec: &TrialSpec) -> Vec<Problem> {
    let limit = |protocol: &ProtocolConfig, workload: &WorkloadConfig| {
        let ProtocolConfig::Tcp(config) = protocol else {
            return None;
        };
        let chooses = config.path.unwrap_or(PathChoice::First) != PathChoice::First;
        match config.stack {
            Some(StackKind::Longfat) if is_loopback(spec) => {
                Some("\"longfat\" has no loopback interface: allowed on this topology: kernel")
            }
            Some(StackKind::Longfat) if chooses || workload.each_path == Some(true) => {
                Some("\"longfat\" uses only the first path: leave out path and each_path")
            }
            _ => None,
        }
    };
    let stacks = protocols(spec).filter_map(|(key, protocol, workload)| {
        Some(Problem::new("stack", limit(protocol, workload)?).within(&key))
    });
    let problems = stacks.chain(beyond_real_quic(spec)).chain(priorities(spec));
    let problems = problems.chain(rewritten_addresses(spec));
    problems.chain(simulated_workloads(spec)).collect()
}

/// Returns the protocols that are QUIC, with their keys.
fn flows_of_quic(spec: &TrialSpec) -> impl Iterator<Item = (String, &QuicConfig)> {
    protocols(spec).filter_map(|(key, protocol, _)| match protocol {
        ProtocolConfig::Quic(config) => Some((key, config)),
        _ => None,
    })
}

/// Returns a problem if a translator changes addresses, which those of emulated worlds do not rewrite.
fn rewritten_addresses(spec: &TrialSpec) -> Option<Problem> {
    let topology = spec.topology().ok()?;
    let mut translators = topology.links().iter().filter_map(|link| link.spec.nat.as_ref());
    translators.any(|nat| nat.new_address).then(|| {
        let message = "true requires the world sim: translators of other worlds rewrite no packets";
        Problem::new("nat.new_address", message).within("path")
    })
}

/// Returns a problem if a translator changes the addresses by which QUIC knows its paths.
fn translated_paths(spec: &TrialSpec) -> Option<Problem> {
    let (key, _) = flows_of_quic(spec).find(|(_, config)| config.is_multipath())?;
    let topology = spec.topology().ok()?;
    let mut translators = topology.links().iter().filter_map(|link| link.spec.nat.as_ref());
    translators.any(|nat| !nat.rebind.is_empty()).then(|| {
        let message = "true needs paths that keep their addresses: remove multipath, or rebind of nat";
        Problem::new("multipath", message).within(&key)
    })
}

/// Returns a problem if clients move, and a translator hides their addresses or there is no other path.
fn moves_in_place(spec: &TrialSpec) -> Option<Problem> {
    let (key, config) = flows_of_quic(spec).find(|(_, config)| config.migrate.is_some())?;
    let topology = spec.topology().ok()?;
    if topology.links().iter().any(|link| link.spec.nat.is_some()) {
        let message =
            "needs a network without translators: remove nat, whose rebind has this effect for the server";
        return Some(Problem::new("migrate", message).within(&key));
    }
    let is_single = matches!(spec.network, NetworkConfig::Path(_));
    let message = "\"path\" needs several paths between the hosts: set a topology, such as \"multipath\"";
    let is_missing = is_single && config.changes_path();
    is_missing.then(|| Problem::new("migrate_to", message).within(&key))
}

/// Returns a problem for each client that moves to a new address on its path, which hosts of real worlds do not have.
fn simulated_moves(spec: &TrialSpec) -> impl Iterator<Item = Problem> {
    let moving = flows_of_quic(spec).filter(|(_, config)| {
        config.migrate.is_some() && config.migrate_to.unwrap_or_default() == MigrationTarget::Address
    });
    moving.map(|(key, _)| {
        let message = "\"address\" requires the world sim: in other worlds a host has one address per path, so set \"port\" or \"path\"";
        Problem::new("migrate_to", message).within(&key)
    })
}

/// Returns a problem if no later connection can use the ticket of the first one.
fn lonely_tickets(spec: &TrialSpec) -> Option<Problem> {
    let early = protocols(spec).filter_map(|(key, protocol, workload)| match protocol {
        ProtocolConfig::Quic(config) if config.zero_rtt == Some(true) => Some((key, workload)),
        _ => None,
    });
    let early: Vec<_> = early.collect();
    let several = |(_, workload): &(String, &WorkloadConfig)| {
        let reconnects = workload.reconnect == Some(true) && workload.requests.unwrap_or(1) > 1;
        workload.kind == WorkloadKind::Arrivals || workload.flows() > 1 || reconnects
    };
    match &*early {
        [only] if !several(only) => {
            let message = "true has no effect on a single connection: remove it, or set flows, or requests with reconnect";
            Some(Problem::new("zero_rtt", message).within(&only.0))
        }
        _ => None,
    }
}

/// Returns a problem for each protocol that is QUIC, if this build lacks the part of it that the world needs.
fn absent_quic(spec: &TrialSpec, is_available: bool) -> impl Iterator<Item = Problem> {
    let quic = flows_of_quic(spec).filter(move |_| !is_available);
    quic.map(|(key, _)| {
        let message = "\"quic\" is not part of this build: build longfat with the feature quic";
        Problem::new("kind", message).within(&key)
    })
}

/// Returns the settings of QUIC that real sockets with TLS do not support.
fn beyond_real_quic(spec: &TrialSpec) -> impl Iterator<Item = Problem> {
    let least = quic::SMALLEST_REAL_CHAIN;
    let small = flows_of_quic(spec).filter(move |(_, config)| config.certificate_chain() < least);
    let small = small.map(move |(key, config)| {
        let message = format!(
            "\"{}B\" is smaller than a certificate: allowed in netns and relay: \"{least}B\" to \"12kB\"",
            config.certificate_chain()
        );
        Problem::new("certificate_chain", message).within(&key)
    });
    absent_quic(spec, quic::HAS_TLS)
        .chain(small)
        .chain(lonely_tickets(spec))
        .chain(simulated_moves(spec))
}

/// Returns the workloads with the numbers of their tables.
fn workloads(spec: &TrialSpec) -> impl Iterator<Item = (usize, &WorkloadConfig)> {
    (0..).zip(std::iter::once(&spec.workload).chain(spec.traffic.iter().map(|one| &one.workload)))
}

/// Returns a problem for each workload with a priority.
fn priorities(spec: &TrialSpec) -> impl Iterator<Item = Problem> {
    let urgent = workloads(spec).filter(|(_, workload)| workload.priority.is_some());
    urgent.map(|(number, _)| {
        let message = "requires the world sim: sockets of the world netns have no priority";
        Problem::new("priority", message).within(&place(number, "workload"))
    })
}

/// Returns a problem for each workload that only the simulator has. Of the kernel's and the project's sockets, those of QUIC have
/// streams.
fn simulated_workloads(spec: &TrialSpec) -> impl Iterator<Item = Problem> {
    (0..)
        .zip(protocols(spec))
        .filter_map(|(number, (_, protocol, workload))| {
            let has_streams = matches!(protocol, ProtocolConfig::Quic(_));
            let (key, message) = match workload.kind {
                WorkloadKind::AllReduce => ("kind", "\"all-reduce\" requires the world sim"),
                _ if has_streams => return None,
                WorkloadKind::Frames => ("kind", "\"frames\" requires the world sim, or QUIC"),
                WorkloadKind::WebPage => ("kind", "\"web-page\" requires the world sim, or QUIC"),
                _ if workload.streams.is_some() => ("streams", "requires the world sim, or QUIC"),
                _ => return None,
            };
            Some(Problem::new(key, message).within(&place(number, "workload")))
        })
}

/// The relay carries one file over one link by an ARQ protocol or by QUIC.
fn beyond_relay(spec: &TrialSpec) -> Option<Problem> {
    let NetworkConfig::Path(path) = &spec.network else {
        return Some(Problem::new("topology", "the relay supports a [path] only"));
    };
    if path.hops.is_some() {
        return Some(Problem::new(
            "path.hops",
            "the relay supports a path of one link only",
        ));
    }
    if !matches!(spec.protocol, ProtocolConfig::Arq(_) | ProtocolConfig::Quic(_)) {
        let message = format!(
            "the relay supports ARQ protocols and QUIC only, not {}",
            family(&spec.protocol)
        );
        return Some(Problem::new("protocol.kind", message));
    }
    if let Some((key, _)) = flows_of_quic(spec).find(|(_, config)| config.is_multipath()) {
        let message = "true requires several paths: allowed in sim and netns";
        return Some(Problem::new("multipath", message).within(&key));
    }
    if let Some(problem) = beyond_real_quic(spec).chain(rewritten_addresses(spec)).next() {
        return Some(problem);
    }
    if !spec.traffic.is_empty() {
        return Some(Problem::new("traffic", "the relay supports no [[traffic]]"));
    }
    if spec.workload.kind != WorkloadKind::File {
        let message = format!(
            "the relay supports files only, not {:?}",
            spec.workload.kind.name()
        );
        return Some(Problem::new("workload.kind", message));
    }
    let given = spec.workload.given();
    let key = given
        .keys()
        .find(|key| !["kind", "size"].contains(&key.as_str()))?;
    let message = "the relay sends one file immediately: remove this key";
    Some(Problem::new(format!("workload.{key}"), message))
}

/// Returns the family of a protocol.
const fn family(protocol: &ProtocolConfig) -> &'static str {
    match protocol {
        ProtocolConfig::Tcp(_) => "TCP",
        ProtocolConfig::Mptcp(_) => "Multipath TCP",
        ProtocolConfig::Arq(_) => "ARQ",
        ProtocolConfig::Quic(_) => "QUIC",
        ProtocolConfig::Udp(_) => "UDP",
        ProtocolConfig::Icmp(_) => "ICMP",
    }
}

/// Returns whether flows send data without a limit of rate and size.
const fn is_endless(protocol: &ProtocolConfig, workload: &WorkloadConfig) -> bool {
    let answers = !matches!(protocol, ProtocolConfig::Udp(_) | ProtocolConfig::Icmp(_));
    answers && matches!(workload.kind, WorkloadKind::Bulk | WorkloadKind::OnOff) && workload.rate.is_none()
}

/// Returns a problem for each kind of flows that send endless data over a path whose round trip takes no time.
fn timeless_flows(spec: &TrialSpec, plan: &Plan) -> Vec<Problem> {
    let network = match &spec.network {
        NetworkConfig::Path(_) => "path",
        NetworkConfig::Topology(_) => "topology",
    };
    protocols(spec)
        .zip(&plan.groups)
        .filter(|((_, protocol, workload), _)| is_endless(protocol, workload))
        .filter_map(|(_, group)| timeless_links(plan, group))
        .map(|links| {
            let message = format!(
                "time never advances in sim for unlimited data over links without rate and delay ({links}): set a rate or a delay"
            );
            Problem::new(network, message)
        })
        .take(1)
        .collect()
}

/// Returns whether a packet crosses a link without rate and delay in no time.
fn takes_no_time(link: &LinkSpec) -> bool {
    matches!(link.capacity, Capacity::Unlimited) && link.delay.is_zero() && link.jitter.is_none()
}

/// Returns whether a network has a link that takes no time. Most have none, and then need no plan.
fn has_timeless_link(spec: &TrialSpec) -> bool {
    let topology = spec.topology();
    topology.is_ok_and(|topology| topology.links().iter().any(|link| takes_no_time(&link.spec)))
}

/// Returns the names of the links of the first path of a group whose round trip takes no time.
fn timeless_links(plan: &Plan, group: &Group) -> Option<String> {
    let links = plan.topology.links();
    let most = if group.chooses_ways() { usize::MAX } else { 1 };
    let mut ways = group.pairs.iter().flat_map(|pair| pair.ways.iter().take(most));
    let way = ways.find(|way| {
        let mut round_trip = way.links.iter().chain(&way.reverse_links);
        round_trip.all(|link| takes_no_time(&links[link.0 as usize].spec))
    })?;
    let names = way.links.iter().map(|link| links[link.0 as usize].name.as_str());
    Some(names.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PROTOCOLS: [&str; 7] = [
        "tcp",
        "mptcp",
        "udp",
        "icmp",
        "stop-and-wait",
        "go-back-n",
        "selective-repeat",
    ];

    fn spec(network: (&str, serde_json::Value), protocol: &str) -> TrialSpec {
        let workload = match protocol {
            "udp" => json!({"kind": "bulk", "rate": "1Mbit/s", "duration": "1s"}),
            "icmp" => json!({"kind": "request-response", "requests": 1, "response_size": "100B"}),
            _ => json!({"kind": "file", "size": "10kB"}),
        };
        let mut spec = json!({"protocol": {"kind": protocol}, "workload": workload, "seed": 1});
        spec[network.0] = network.1;
        TrialSpec::from_json(&spec.to_string()).unwrap()
    }

    #[test]
    fn relay_carries_files_of_arq_only() {
        for protocol in PROTOCOLS {
            let spec = spec(("path", json!({"delay": "1ms"})), protocol);
            let refused = unsupported(WorldKind::Relay, &spec);
            let is_arq = matches!(spec.protocol, ProtocolConfig::Arq(_));
            assert_eq!(refused.is_empty(), is_arq, "{protocol}: {refused:?}");
            // The executor has the same rule.
            assert_eq!(spec.transfer().is_ok(), is_arq, "{protocol}");
            assert_eq!(unsupported(WorldKind::Sim, &spec), [], "{protocol}");
            assert_eq!(unsupported(WorldKind::Netns, &spec), [], "{protocol}");
        }
    }

    #[test]
    fn each_world_names_the_key() {
        let key = |world, text: serde_json::Value| {
            let spec = TrialSpec::from_json(&text.to_string()).unwrap();
            unsupported(world, &spec)
                .first()
                .map(|problem| problem.key.clone())
        };
        let file = json!({"kind": "file", "size": "10kB"});
        let arq = json!({"kind": "go-back-n"});
        let hops =
            json!({"path": {"hops": [{"delay": "1ms"}, {}]}, "protocol": arq, "workload": file, "seed": 1});
        assert_eq!(key(WorldKind::Relay, hops).as_deref(), Some("path.hops"));
        let start =
            json!({"protocol": arq, "workload": {"kind": "file", "size": "10kB", "start": "1s"}, "seed": 1});
        assert_eq!(key(WorldKind::Relay, start).as_deref(), Some("workload.start"));
        let quic = json!({"protocol": {"kind": "quic"}, "workload": file, "seed": 1});
        for world in WorldKind::ALL {
            let available = if world == WorldKind::Sim {
                quic::AVAILABLE
            } else {
                quic::HAS_TLS
            };
            assert_eq!(key(world, quic.clone()).is_none(), available, "{world:?}");
        }
        let chain =
            json!({"protocol": {"kind": "quic", "certificate_chain": "100B"}, "workload": file, "seed": 1});
        if quic::HAS_TLS {
            let found = key(WorldKind::Relay, chain);
            assert_eq!(found.as_deref(), Some("protocol.certificate_chain"));
        }
        let early = |workload| json!({"protocol": {"kind": "quic", "zero_rtt": true}, "workload": workload, "seed": 1});
        if quic::AVAILABLE {
            let found = key(WorldKind::Sim, early(file.clone()));
            assert_eq!(found.as_deref(), Some("protocol.zero_rtt"));
            let found = key(WorldKind::Relay, early(file.clone()));
            assert_eq!(found.as_deref(), Some("protocol.zero_rtt"));
            let one = json!({"kind": "request-response", "requests": 1, "reconnect": true});
            assert!(key(WorldKind::Sim, early(one)).is_some());
            let two = json!({"kind": "request-response", "requests": 2, "reconnect": true});
            assert_eq!(key(WorldKind::Sim, early(two.clone())), None);
            assert_eq!(key(WorldKind::Netns, early(two)).is_none(), quic::HAS_TLS);
            let flows = json!({"kind": "file", "size": "10kB", "flows": 2, "stagger": "1s"});
            assert_eq!(key(WorldKind::Sim, early(flows)), None);
        }
        let nat = json!({"rebind": ["1s"], "new_address": true});
        if quic::AVAILABLE {
            let several = json!({"kind": "quic", "multipath": true});
            let several = json!({"path": {"nat": nat}, "protocol": several, "workload": file, "seed": 1});
            let found = key(WorldKind::Sim, several);
            assert_eq!(found.as_deref(), Some("protocol.multipath"));
        }
        let nat = json!({"path": {"nat": nat}, "protocol": arq, "workload": file, "seed": 1});
        for world in [WorldKind::Netns, WorldKind::Relay] {
            let found = key(world, nat.clone());
            assert_eq!(found.as_deref(), Some("path.nat.new_address"), "{world:?}");
        }
        let kernel = json!({"protocol": {"kind": "tcp", "stack": "kernel"}, "workload": file, "seed": 1});
        assert_eq!(
            key(WorldKind::Sim, kernel.clone()).as_deref(),
            Some("protocol.stack")
        );
        assert_eq!(key(WorldKind::Netns, kernel), None);
        let all_reduce = json!({"kind": "all-reduce", "size": "10kB"});
        let all_reduce = json!({"protocol": {"kind": "tcp"}, "workload": all_reduce, "seed": 1});
        assert_eq!(
            key(WorldKind::Netns, all_reduce.clone()).as_deref(),
            Some("workload.kind")
        );
        assert_eq!(key(WorldKind::Sim, all_reduce), None);
        let loopback = json!({"topology": {"kind": "loopback"}, "protocol": {"kind": "tcp", "stack": "longfat"}, "workload": file, "seed": 1});
        assert_eq!(
            key(WorldKind::Sim, loopback.clone()).as_deref(),
            Some("topology.kind")
        );
        assert_eq!(key(WorldKind::Netns, loopback).as_deref(), Some("protocol.stack"));
    }
}
