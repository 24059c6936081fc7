//! A trial on real kernels: hosts are namespaces, links are the network on wall time, and the study's flows use the
//! kernel's sockets. The record is the same as in simulation.

mod application;
mod arq;
mod barrier;
mod context;
mod exchange;
mod flow;
mod info;
mod kernel_tcp;
mod messages;
mod multipath;
mod pace;
mod packet_counts;
#[cfg(feature = "quic")]
mod quic;
mod request_capture;
mod requests;
mod run;
mod sockets;
mod start;
mod tcp;
mod trace;
mod udp;
mod user_tcp;
mod waiting;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use experiment::ideal;
use experiment::metrics::TrialOutcome;
use experiment::plan::{Group, Plan, Protocol, place};
use experiment::support::{WorldKind, refuse};
use experiment::{SpecError, TrialRecord, TrialSpec};
use foundation::Problem;
use network::HostId;

use crate::drops::HostDrops;
use crate::emulation::Emulation;
use crate::error::Error;
use crate::options::EmulationOptions;
use context::{TrialClock, TrialContext};
pub use kernel_tcp::ControllerNames;
use kernel_tcp::KernelTcp;
use run::{Shared, Trial};
use start::shares_threads;
pub use trace::{Trace, Tracing};

/// The largest MTU of a device, in bytes.
const MOST_MTU: u32 = 65_535;

/// The reason why there is no record.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The specification is invalid, or not supported on real kernels.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// This system cannot emulate the network.
    #[error(transparent)]
    Emulation(#[from] Error),
    /// The caller cancelled the run.
    #[error("cancelled")]
    Cancelled,
}

/// Runs a trial. `names` maps controllers that were registered for this run to their kernel names; `cancel` is polled.
///
/// # Errors
/// [`TrialError`]; a failed transfer is part of the record instead.
pub fn run(
    spec: &TrialSpec,
    names: &ControllerNames,
    cancel: Option<&AtomicBool>,
) -> Result<TrialRecord, TrialError> {
    run_with(spec, names, cancel, None).map(|(record, _)| record)
}

/// Checks, without running it, that a trial's hosts exist and that this kernel supports its settings. `names` as in
/// [`run`].
///
/// # Errors
/// [`TrialError::Spec`] names the key and the allowed values.
pub fn check(spec: &TrialSpec, names: &ControllerNames) -> Result<(), TrialError> {
    refuse(WorldKind::Netns, spec)?;
    let plan = Plan::of(spec)?;
    let kernels = kernels(&plan.groups, names)?;
    let missing = kernels.iter().enumerate().find_map(|(number, kernel)| {
        let name = &kernel.as_ref()?.congestion;
        let problem = Problem::new("congestion", sockets::no_controller(name));
        (!sockets::is_listed(name)).then(|| problem.within(&place(number, "protocol")))
    });
    match missing {
        Some(problem) => Err(SpecError::Invalid(vec![problem]).into()),
        None => Ok(()),
    }
}

/// Runs a trial and returns its record and its trace. All packets are kept in memory.
///
/// # Errors
/// As [`run`].
pub fn run_traced(
    spec: &TrialSpec,
    names: &ControllerNames,
    cancel: Option<&AtomicBool>,
    tracing: Tracing,
) -> Result<(TrialRecord, Trace), TrialError> {
    run_with(spec, names, cancel, Some(tracing))
}

fn run_with(
    spec: &TrialSpec,
    names: &ControllerNames,
    cancel: Option<&AtomicBool>,
    tracing: Option<Tracing>,
) -> Result<(TrialRecord, Trace), TrialError> {
    refuse(WorldKind::Netns, spec)?;
    let plan = Plan::of(spec)?;
    let kernels = kernels(&plan.groups, names)?;
    let mut options = EmulationOptions::new(plan.topology.clone(), spec.streams().component("network"));
    // Hosts send segments one by one, as in simulation.
    options.offload = false;
    // Datagrams above the path's MTU leave in fragments, as in simulation.
    let messages = plan.groups.iter().filter(|group| group.has_messages());
    if let Some(mtu) = messages.map(|group| group.mtu).min() {
        options.mtu = mtu.min(MOST_MTU);
    }
    let emulation = Emulation::start(options)?;
    for (group, kernel) in plan.groups.iter().zip(&kernels) {
        let hosts: BTreeSet<HostId> = group.pairs.iter().flat_map(|pair| [pair.from, pair.to]).collect();
        for host in hosts {
            for (name, value) in kernel.iter().flat_map(|kernel| &kernel.sysctls) {
                emulation.in_host(host, || crate::sysctl::set(name, value))?;
            }
        }
    }
    let _listeners = multipath::prepare(&emulation, &plan.groups, &kernels)?;
    let (accounts, account_of) = experiment::accounts::accounts(&plan.groups);
    let accounts = Mutex::new(accounts);
    let counts = packet_counts::is_configured(&plan.groups);
    if tracing.is_some() {
        emulation.record_packets();
    }
    if counts {
        emulation.count_segments();
    }
    let stacks =
        user_tcp::attach(&emulation, &plan.groups, spec.streams().component("stacks")).map_err(|source| {
            Error::System {
                what: "attach a stack to a host".into(),
                source,
            }
        })?;
    #[cfg(feature = "quic")]
    let sessions = quic::HostSessions::default();
    let stop = AtomicBool::new(false);
    let mut groups = plan.groups;
    for group in groups.iter_mut().filter(|group| shares_threads(group)) {
        group.successors = 0;
    }
    let clock = TrialClock::start(emulation.clock());
    let start = clock.start;
    emulation.with_network(move |network, _| network.restart_outages(start));
    let mut trial = Trial::new(&emulation, clock, spec, &plan.topology, tracing);
    trial.account_of = account_of;
    let fallback = KernelTcp::of(&transport::tcp::TcpConfig::default(), names).map_err(SpecError::Invalid)?;
    let contexts: Vec<TrialContext<'_>> = kernels
        .iter()
        .map(|kernel| TrialContext {
            clock,
            kernel: kernel.as_ref().unwrap_or(&fallback),
            stacks: &stacks,
            accounts: &accounts,
            #[cfg(feature = "quic")]
            sessions: &sessions,
            stop: &stop,
        })
        .collect();
    let fixed = groups.clone();
    let cancelled = std::thread::scope(|scope| {
        let shared = Shared {
            scope,
            groups: &fixed,
            contexts: &contexts,
        };
        let cancelled = trial.run(shared, &mut groups, spec, cancel);
        if counts {
            std::thread::sleep(packet_counts::GRACE);
            packet_counts::assign(&emulation.take_counts(), &trial.flows);
        }
        stop.store(true, Ordering::Relaxed);
        cancelled
    });
    if cancelled {
        return Err(TrialError::Cancelled);
    }
    let mut outcomes: Vec<_> = trial.flows.iter().map(|flow| flow.outcome()).collect();
    ideal::set(&mut outcomes, &groups, &plan.topology);
    let lateness = emulation.report().late;
    let host_drops = emulation.host_drops()?.into_iter().map(HostDrops::total).sum();
    let measured = TrialOutcome {
        topology: &plan.topology,
        groups: &groups,
        flows: &outcomes,
        windows: trial.goodput.windows(),
        links: &trial.links,
        marked: trial.marked,
        lateness: Some(&lateness),
        epoch: clock.start,
        host_drops: Some(host_drops),
        from: trial.measured_from,
        until: trial.ended_at,
    };
    let record = TrialRecord::of(&measured, None);
    let series = trial.sampling.as_ref().map(|sampling| sampling.series().clone());
    let hosts = plan.topology.hosts();
    let trace = Trace::of(
        clock.start,
        emulation.take_packets(),
        &trial.flows,
        &groups,
        hosts,
        series,
    );
    Ok((record, trace))
}

/// The kernel TCP settings of each group; `None` for other protocols and for the project's TCP.
fn kernels(groups: &[Group], names: &ControllerNames) -> Result<Vec<Option<KernelTcp>>, SpecError> {
    let of = |(number, group): (usize, &Group)| {
        let within = |problems| SpecError::within(problems, &place(number, "protocol"));
        match &group.protocol {
            Protocol::Tcp(config) if user_tcp::is_configured(config) => Ok(None),
            Protocol::Tcp(config) => KernelTcp::of(config, names).map(Some).map_err(within),
            Protocol::Mptcp(setup) => multipath::kernel_of(setup.config(), names)
                .map(Some)
                .map_err(within),
            Protocol::Arq(_) | Protocol::Quic(_) | Protocol::Udp(_) | Protocol::Icmp => Ok(None),
        }
    };
    groups.iter().enumerate().map(of).collect()
}
