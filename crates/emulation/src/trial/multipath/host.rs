//! Settings and preparation of a host's kernel for MPTCP.

use std::collections::BTreeMap;

use experiment::plan::Group;
use foundation::{Problem, Size};
use kernel::mptcp::{Events, MOST_SUBFLOWS, Manager, PathManager, is_enabled, path_manager, paths};
use network::HostId;
use transport::mptcp::policy::{InKernel, PolicyConfig};
use transport::mptcp::scheduler::{MinRtt, SchedulerConfig};
use transport::mptcp::{JoinAfter, MptcpConfig, ReinjectionTrigger};

use crate::emulation::Emulation;
use crate::error::{Error, system_error};
use crate::sysctl::set;
use crate::trial::kernel_tcp::{ControllerNames, KernelTcp};

/// Translates the settings of a study.
///
/// # Errors
/// The keys that a kernel does not support.
pub(in crate::trial) fn kernel_of(
    config: &MptcpConfig,
    names: &ControllerNames,
) -> Result<KernelTcp, Vec<Problem>> {
    let own = &config.own;
    let unsupported = "not supported by the kernel's MPTCP: leave the key out";
    let refused = [
        (
            "scheduler",
            !matches!(own.scheduler, None | Some(SchedulerConfig::MinRtt(MinRtt { .. }))),
            "the kernel's MPTCP has one scheduler, similar to \"min-rtt\": leave the key out",
        ),
        (
            "congestion",
            config.filled().congestion().build(1460).is_coupled(),
            "Linux does not couple subflows: use a controller of TCP, such as \"cubic\" or \"reno\"",
        ),
        (
            "reinjection",
            own.reinjection == Some(ReinjectionTrigger::Failure),
            unsupported,
        ),
        (
            "join_after",
            own.join_after == Some(JoinAfter::Handshake),
            "with the kernel's MPTCP, subflows join after the first data is acknowledged: leave the key out",
        ),
        ("rejoin", own.rejoin.is_some(), unsupported),
        (
            "opportunistic_retransmission",
            own.opportunistic_retransmission == Some(true),
            unsupported,
        ),
        (
            "shared_window",
            own.shared_window == Some(false),
            "the kernel's MPTCP always shares the window: leave the key out",
        ),
        ("subflows", own.subflows.is_some(), unsupported),
    ];
    let refused = refused.into_iter().filter(|(_, is_refused, _)| *is_refused);
    let mut problems: Vec<Problem> = refused
        .map(|(key, _, message)| Problem::new(key, message))
        .collect();
    problems.extend(Problem::all_within(config.policy().beyond_linux(), "policy"));
    match KernelTcp::of(&config.tcp, names) {
        Ok(kernel) if problems.is_empty() => Ok(KernelTcp {
            multipath: Some(config.policy()),
            // Unset is the kernel's default; older kernels support no other value with MPTCP.
            segment: config.tcp.mss.map_or(0, Size::bytes) as u32,
            ..kernel
        }),
        Ok(_) => Err(problems),
        Err(more) => {
            problems.extend(more);
            Err(problems)
        }
    }
}

/// Prepares the kernels of the hosts that run MPTCP. The caller keeps the result until the trial ends: with a path
/// manager in user space, the kernel accepts a peer's subflows only while there is a listener.
pub(in crate::trial) fn prepare(
    emulation: &Emulation,
    groups: &[Group],
    kernels: &[Option<KernelTcp>],
) -> Result<Vec<Events>, Error> {
    let (mut managers, mut listeners) = (BTreeMap::<HostId, PathManager>::new(), Vec::new());
    for (group, kernel) in groups.iter().zip(kernels) {
        let Some(policy) = kernel.as_ref().and_then(|kernel| kernel.multipath.as_ref()) else {
            continue;
        };
        if is_enabled().is_none() || path_manager().is_err() {
            return Err(Error::Missing {
                what: "the kernel's MPTCP with a path manager in user space".into(),
                remedy: "use Linux 6.5 or newer with CONFIG_MPTCP".into(),
            });
        }
        let manager = match policy {
            PolicyConfig::InKernel(InKernel {}) => PathManager::Kernel,
            _ => PathManager::User,
        };
        for pair in group.pairs.iter() {
            for host in [pair.from, pair.to] {
                if u32::from(emulation.ways(host)) > MOST_SUBFLOWS {
                    let message = format!(
                        "{} paths: the kernel's MPTCP supports at most {MOST_SUBFLOWS}",
                        emulation.ways(host)
                    );
                    return Err(Problem::new("protocol.kind", message).into());
                }
            }
            let before = managers.insert(pair.from, manager);
            if before.is_some_and(|before| before != manager) {
                let message = "\"in-kernel\" and another policy at one host: a kernel has one path manager";
                return Err(Problem::new("protocol.policy", message).into());
            }
            if before.is_none() {
                emulation.in_host(pair.from, || {
                    ready(manager).map(|events| listeners.extend(events))
                })?;
            }
            emulation.in_host(pair.to, || -> Result<(), Error> {
                set("net/mptcp/enabled", "1")?;
                Manager::open()?.set_limits(MOST_SUBFLOWS, MOST_SUBFLOWS)
            })?;
        }
    }
    Ok(listeners)
}

/// Prepares the calling thread's host to open connections.
fn ready(manager: PathManager) -> Result<Option<Events>, Error> {
    set("net/mptcp/enabled", "1")?;
    let orders = Manager::open()?;
    orders.set_limits(MOST_SUBFLOWS, MOST_SUBFLOWS)?;
    match manager {
        PathManager::User => {
            set("net/mptcp/pm_type", "1")?;
            Ok(Some(Events::listen()?))
        }
        PathManager::Kernel => {
            let found = paths().map_err(|error| system_error("read a host's addresses", error))?;
            for path in found {
                orders.add_endpoint(&path)?;
            }
            Ok(None)
        }
    }
}
