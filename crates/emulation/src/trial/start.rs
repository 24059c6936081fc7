//! Starts a flow: a socket at the host that it goes to, and a thread at either end.

use std::net::UdpSocket;
use std::sync::Arc;
use std::thread::{Scope, ScopedJoinHandle};

use experiment::plan::{Group, Protocol};
use experiment::trace::content::MessageProtocol;
use experiment::workload::WorkloadKind;
use network::HostId;

use super::context::TrialContext;
use super::flow::{Flow, locked};
#[cfg(feature = "quic")]
use super::quic;
use super::{arq, messages, multipath, sockets, tcp, udp, user_tcp};
use crate::emulation::Emulation;

/// The ways of a flow.
pub(super) struct WayChoice {
    /// Index of its way among those of the pair.
    pub index: u8,
    /// The paths of an MPTCP connection.
    pub multipath: Option<multipath::MultipathStart>,
    /// The paths of a connection of QUIC with several.
    #[cfg(feature = "quic")]
    pub quic: Option<quic::PathStart>,
}

impl WayChoice {
    /// Returns whether the flow uses several ways at once.
    const fn is_multipath(&self) -> bool {
        #[cfg(feature = "quic")]
        if self.quic.is_some() {
            return true;
        }
        self.multipath.is_some()
    }

    /// The number of the way on which the flow opens.
    pub(super) fn first_way(&self, group: &Group, pair: u32) -> u8 {
        #[cfg(feature = "quic")]
        if let Some(several) = &self.quic {
            return several.first_way();
        }
        match &self.multipath {
            Some(several) => several.first_way(),
            None => group.pairs[pair as usize].ways[usize::from(self.index)].number,
        }
    }
}

/// Whether one pair of threads carries all requests of a flow, even with a connection for each: starting threads would take
/// longer than a request.
pub(super) fn shares_threads(group: &Group) -> bool {
    let is_kernels = matches!(&group.protocol, Protocol::Tcp(config) if !user_tcp::is_configured(config));
    group.has_messages() || (is_kernels && group.workload.kind == WorkloadKind::RequestResponse)
}

/// Chooses the ways of a group's next flow.
pub(super) fn choose_ways(
    context: &TrialContext<'_>,
    emulation: &Emulation,
    group: &mut Group,
    pair: u32,
    account: u32,
    size: Option<u64>,
) -> WayChoice {
    let multipath = multipath::choose(context, emulation, group, pair, account, size);
    #[cfg(feature = "quic")]
    let several = quic::choose(context, emulation, group, pair, account, size);
    let pairs = Arc::clone(&group.pairs);
    let index = group.choose_way(
        &pairs[pair as usize],
        &mut locked(context.accounts)[account as usize],
    );
    WayChoice {
        index,
        multipath,
        #[cfg(feature = "quic")]
        quic: several,
    }
}

/// Starts threads at hosts.
pub(super) struct Launcher<'scope, 'env, 'a> {
    pub scope: &'scope Scope<'scope, 'env>,
    pub emulation: &'scope Emulation,
    pub threads: &'a mut Vec<ScopedJoinHandle<'scope, ()>>,
}

impl<'scope> Launcher<'scope, '_, '_> {
    /// Runs a function at a host.
    fn launch(&mut self, host: HostId, act: impl FnOnce() + Send + 'scope) {
        let namespace = self.emulation.namespace(host);
        self.threads
            .push(self.scope.spawn(move || drop(namespace.run(act))));
    }
}

/// Starts a flow of a group.
pub(super) fn start<'scope>(
    mut launcher: Launcher<'scope, '_, '_>,
    context: &'scope TrialContext<'scope>,
    group: &'scope Group,
    flow: &Arc<Flow>,
    choice: WayChoice,
) {
    let emulation = launcher.emulation;
    let way = &group.pairs[flow.id.pair as usize];
    let number = way.ways[usize::from(choice.index)].number;
    // The route to a way's address is the way.
    let address = emulation.way_address(way.to, number);
    let near = emulation.way_address(way.from, number);
    if !choice.is_multipath() {
        flow.add_way(number);
    }
    let (here, there) = (Arc::clone(flow), Arc::clone(flow));
    let listening = match &group.protocol {
        Protocol::Tcp(config) if user_tcp::is_configured(config) => {
            user_tcp::listen(context.stacks, way.to, config).and_then(|listener| {
                let to = listener.local_addr();
                let stack = context.stacks.get(&way.from);
                let stack = stack.ok_or(std::io::ErrorKind::NotConnected)?;
                launcher.launch(way.to, move || user_tcp::accept(context, group, &there, listener));
                launcher.launch(way.from, move || {
                    user_tcp::open(context, group, &here, config, stack, to)
                });
                Ok(to)
            })
        }
        Protocol::Tcp(_) | Protocol::Mptcp(_) => emulation
            .in_host(way.to, || sockets::listen(context.kernel, address))
            .and_then(|listener| {
                let to = listener.local_addr()?;
                launcher.launch(way.to, move || tcp::accept(context, group, &there, &listener));
                launcher.launch(way.from, move || match choice.multipath {
                    Some(start) => multipath::open(context, group, &here, to, start),
                    None => tcp::open(context, group, &here, near, to),
                });
                Ok(to)
            }),
        Protocol::Udp(_) if group.has_messages() => emulation
            .in_host(way.to, || UdpSocket::bind((address, 0)))
            .and_then(|socket| {
                let to = socket.local_addr()?;
                launcher.launch(way.to, move || messages::answer(context, group, &there, &socket));
                launcher.launch(way.from, move || {
                    messages::send(context, group, &here, MessageProtocol::Udp, near, to)
                });
                Ok(to)
            }),
        Protocol::Icmp => {
            let to = (address, 0).into();
            launcher.launch(way.from, move || {
                messages::send(context, group, &here, MessageProtocol::Icmp, near, to)
            });
            Ok(to)
        }
        &Protocol::Udp(datagram) => emulation
            .in_host(way.to, || UdpSocket::bind((address, 0)))
            .and_then(|socket| {
                let to = socket.local_addr()?;
                launcher.launch(way.to, move || udp::sink(context, &there, &socket));
                launcher.launch(way.from, move || udp::source(context, group, &here, datagram, to));
                Ok(to)
            }),
        #[cfg(not(feature = "quic"))]
        Protocol::Quic(_) => Err(std::io::ErrorKind::Unsupported.into()),
        #[cfg(feature = "quic")]
        Protocol::Quic(config) => {
            quic::Start::both(context, emulation, group, config, flow, choice.quic.as_ref())
                .and_then(|[near, far]| {
                    let listener = emulation.in_host(way.to, || quic::listen(address, &far))?;
                    let to = listener.address();
                    let paths = choice.quic.as_ref().map(quic::PathStart::server);
                    launcher.launch(way.to, move || {
                        quic::serve(context, &there, listener, far, paths);
                    });
                    launcher.launch(way.from, move || {
                        quic::open(context, &here, near, choice.quic, to);
                    });
                    Ok(to)
                })
                .map_err(std::io::Error::other)
        }
        Protocol::Arq(config) => emulation
            .in_host(way.to, || arq::listen(address, config))
            .map(|server| {
                let to = server.address();
                launcher.launch(way.to, move || arq::serve(context, group, &there, server));
                launcher.launch(way.from, move || arq::open(context, group, &here, config, to));
                to
            })
            .map_err(std::io::Error::other),
    };
    match listening {
        Ok(to) => flow.set_destination(to),
        Err(error) => {
            flow.fail(error.to_string());
            flow.end();
        }
    }
}
