//! How a flow begins: a socket at the host that it goes to, and a thread at either end.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use experiment::plan::{Group, Protocol};
use experiment::trace::content::MessageProtocol;
use experiment::workload::WorkloadKind;
use network::HostId;

use super::flow::{Flow, Identity, Keeping, locked};
use super::schedule::Trial;
use super::tcp::Setting;
use super::{arq, messages, multipath, own, tcp, udp};
use crate::linux::namespace::Namespace;

/// Which ways a flow takes.
pub(super) struct Beginning {
    /// The place of its way among those of the pair, where it uses one.
    pub way: u8,
    /// What is beside it, where it may use several.
    pub multipath: Option<multipath::Beginning>,
}

/// Whether one pair of threads carries all requests of a flow, also where each has a connection of its own: what is to be
/// measured in microseconds must not wait for threads to begin.
pub(super) fn asks_in_turn(group: &Group) -> bool {
    let is_kernels = matches!(&group.protocol, Protocol::Tcp(config) if !own::is_asked_for(config));
    group.has_messages() || (is_kernels && group.workload.kind == WorkloadKind::RequestResponse)
}

impl<'e> Trial<'e> {
    /// Chooses the ways of the next flow of a group.
    pub(super) fn choose(
        &self,
        setting: &Setting<'_>,
        groups: &mut [Group],
        group: u32,
        pair: u32,
        size: Option<u64>,
    ) -> Beginning {
        let account = self.account_of[group as usize][pair as usize];
        let group = &mut groups[group as usize];
        let multipath = multipath::begin(setting, self.emulation, group, pair, account, size);
        let pairs = Arc::clone(&group.pairs);
        let way = group.choose_way(
            &pairs[pair as usize],
            &mut locked(setting.accounts)[account as usize],
        );
        Beginning { way, multipath }
    }

    /// Begins a flow of a group; `launch` runs what its ends do at their hosts.
    #[expect(
        clippy::too_many_arguments,
        reason = "what a flow is, and what its threads go by"
    )]
    pub(super) fn begin<'scope>(
        &mut self,
        group: &'scope Group,
        setting: &'scope Setting<'scope>,
        number: u32,
        pair: u32,
        size: Option<u64>,
        beginning: Beginning,
        launch: &mut dyn FnMut(&'scope Namespace, Box<dyn FnOnce() + Send + 'scope>),
    ) -> Arc<Flow>
    where
        'e: 'scope,
    {
        let way = &group.pairs[pair as usize];
        let number_of_way = way.ways[usize::from(beginning.way)].number;
        let id = Identity {
            number: self.flows.len() as u32,
            group: number,
            pair,
            size,
            way: match &beginning.multipath {
                Some(several) => several.first_way(),
                None => number_of_way,
            },
            opened_at: self.clock.now(),
        };
        let keeping = Keeping {
            round_trips: group.records_rtt,
            notes: self.traces,
        };
        let flow = Arc::new(Flow::new(id, self.clock, keeping));
        self.flows.push(Arc::clone(&flow));
        let emulation = self.emulation;
        // What goes to an address of a way takes it.
        let address = emulation.way_address(way.to, number_of_way);
        let near = emulation.way_address(way.from, number_of_way);
        if beginning.multipath.is_none() {
            flow.takes_way(number_of_way);
        }
        let mut launch = |host: HostId, act| launch(emulation.namespace(host), act);
        let (here, there) = (Arc::clone(&flow), Arc::clone(&flow));
        let listening = match &group.protocol {
            Protocol::Tcp(config) if own::is_asked_for(config) => own::listen(setting.stacks, way.to, config)
                .and_then(|listener| {
                    let to = listener.local_addr();
                    let stack = setting.stacks.get(&way.from);
                    let stack = stack.ok_or(std::io::ErrorKind::NotConnected)?;
                    launch(
                        way.to,
                        Box::new(move || own::accept(setting, group, &there, listener)),
                    );
                    launch(
                        way.from,
                        Box::new(move || own::open(setting, group, &here, config, stack, to)),
                    );
                    Ok(to)
                }),
            Protocol::Tcp(_) => emulation
                .in_host(way.to, || setting.listen(address))
                .and_then(|listener| {
                    let to = listener.local_addr()?;
                    launch(
                        way.to,
                        Box::new(move || tcp::accept(setting, group, &there, &listener)),
                    );
                    launch(
                        way.from,
                        Box::new(move || tcp::open(setting, group, &here, near, to)),
                    );
                    Ok(to)
                }),
            Protocol::Mptcp(_) => {
                emulation
                    .in_host(way.to, || setting.listen(address))
                    .and_then(|listener| {
                        let to = listener.local_addr()?;
                        let multipath = beginning.multipath.ok_or(std::io::ErrorKind::InvalidInput)?;
                        launch(
                            way.to,
                            Box::new(move || tcp::accept(setting, group, &there, &listener)),
                        );
                        launch(
                            way.from,
                            Box::new(move || multipath::open(setting, group, &here, to, multipath)),
                        );
                        Ok(to)
                    })
            }
            Protocol::Udp(_) if group.has_messages() => emulation
                .in_host(way.to, || UdpSocket::bind((address, 0)))
                .and_then(|socket| {
                    let to = socket.local_addr()?;
                    launch(
                        way.to,
                        Box::new(move || messages::answer(setting, group, &there, &socket)),
                    );
                    launch(
                        way.from,
                        Box::new(move || {
                            messages::ask(setting, group, &here, MessageProtocol::Udp, near, to)
                        }),
                    );
                    Ok(to)
                }),
            Protocol::Icmp => {
                let to = (address, 0).into();
                launch(
                    way.from,
                    Box::new(move || messages::ask(setting, group, &here, MessageProtocol::Icmp, near, to)),
                );
                Ok(to)
            }
            &Protocol::Udp(datagram) => emulation
                .in_host(way.to, || UdpSocket::bind((address, 0)))
                .and_then(|socket| {
                    let to = socket.local_addr()?;
                    launch(way.to, Box::new(move || udp::sink(setting, &there, &socket)));
                    launch(
                        way.from,
                        Box::new(move || udp::source(setting, group, &here, datagram, to)),
                    );
                    Ok(to)
                }),
            Protocol::Arq(config) => emulation
                .in_host(way.to, || arq::listen(address, config))
                .map(|server| {
                    let to = server.address();
                    launch(
                        way.to,
                        Box::new(move || arq::serve(setting, group, &there, server)),
                    );
                    launch(
                        way.from,
                        Box::new(move || arq::open(setting, group, &here, config, to)),
                    );
                    to
                })
                .map_err(std::io::Error::other),
        };
        match listening {
            Ok(to) => flow.goes_to(to),
            Err(error) => {
                flow.fail(error.to_string());
                flow.over.store(true, Ordering::Relaxed);
            }
        }
        flow
    }
}
