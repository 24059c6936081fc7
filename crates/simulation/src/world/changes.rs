//! Changes of a running world: links, protocols, controllers, losses on request, and flows that start and stop. Flows
//! that are due start before a change.

use std::sync::Arc;

use experiment::plan::Protocol;
use experiment::schedule::FlowStart;
use foundation::Problem;
use network::topology::changed_link;
use transport::congestion::CongestionConfig;
use transport::tcp::Connection;

use super::{GONE, World};
use crate::body::Side;
use crate::endpoint::Endpoint;
use crate::watch::WorldObserver;

/// Limit of started flows.
const MAX_STARTED: usize = 1024;

impl<W: WorldObserver> World<W> {
    /// Changes one key of a link now. `value` is JSON as in a study; null removes the key.
    ///
    /// # Errors
    /// An unknown link or key, and an invalid value.
    ///
    /// # Panics
    /// For a world without an observer, whose links are fixed.
    pub fn change_link(&mut self, link: &str, key: &str, value: &serde_json::Value) -> Result<(), Problem> {
        let (number, spec) = changed_link(&self.topology, link, key, value)?;
        self.network.change_link(self.now, number, &spec);
        self.topology.set_link(number, spec);
        Ok(())
    }

    /// Acts on the sender's established TCP connection of a flow, which then sends what it may. Returns `None` for a flow
    /// without one.
    pub fn with_connection<R>(&mut self, flow: u32, act: impl FnOnce(&mut Connection) -> R) -> Option<R> {
        let place = *self.places.get(flow as usize).filter(|&&place| place != GONE)?;
        let mut result = None;
        self.with_end(place, Side::Sender, |end, now, network, host| {
            if let Some(connection) = end.established() {
                result = Some(act(connection));
                end.handle_timeout(now, network, host);
            }
        });
        // A route without links delivers immediately.
        self.deliver();
        result
    }

    /// Changes one key of the protocol of a group of flows now: of those that run, and of those that start later. Group 0 has the
    /// measured flows. `value` is JSON as in a study; null removes the key.
    ///
    /// # Errors
    /// A group out of range, an unknown key, an invalid value, and a key that cannot change while flows run ([`Protocol::changed`]).
    pub fn set_protocol(&mut self, group: u32, key: &str, value: &serde_json::Value) -> Result<(), Problem> {
        self.check_group(group)?;
        self.run_until(self.now, None);
        let own = &mut self.groups[group as usize];
        let protocol = own.protocol.changed(key, value)?;
        own.protocol = protocol.clone();
        for place in 0..self.flows.len() as u32 {
            for side in [Side::Sender, Side::Receiver] {
                let flow = self.flows[place as usize].as_ref();
                if flow.is_some_and(|flow| flow.start.group == group) {
                    self.with_end(place, side, |end, now, network, host| {
                        end.reconfigure(now, network, host, (key, &protocol));
                    });
                }
            }
        }
        // A route without links delivers immediately.
        self.deliver();
        Ok(())
    }

    /// Replaces the congestion controller of the measured flows that start later.
    ///
    /// # Errors
    /// If they do not use TCP.
    pub fn set_later_controllers(&mut self, config: &CongestionConfig) -> Result<(), Problem> {
        self.run_until(self.now, None);
        match &mut self.groups[0].protocol {
            Protocol::Tcp(tcp) => Arc::make_mut(tcp).congestion = Some(config.clone()),
            _ => return Err(Problem::new("protocol", "the flows do not use TCP")),
        }
        Ok(())
    }

    /// Requests the loss of a packet by its id; see [`Network::lose`](network::Network::lose).
    ///
    /// # Errors
    /// If the packet is not inside the network.
    ///
    /// # Panics
    /// For a world without an observer, whose links are fixed.
    pub fn lose(&mut self, id: u64) -> Result<(), Problem> {
        match self.network.lose(id) {
            true => Ok(()),
            false => Err(Problem::new("packet", format!("{id} is not on the path"))),
        }
    }

    /// Requests the loss of the next packet that a flow sends towards `to`; towards the receiver, the next one with payload.
    ///
    /// # Errors
    /// If the flow has ended or has not started.
    ///
    /// # Panics
    /// For a world without an observer, whose links are fixed.
    pub fn lose_next(&mut self, flow: u32, to: Side) -> Result<(), Problem> {
        self.run_until(self.now, None);
        self.place(flow)?;
        self.network.lose_next(move |packet| {
            let body = &packet.body;
            body.flow == flow && body.to == to && (to == Side::Sender || body.content.payload() > 0)
        });
        Ok(())
    }

    /// Starts a further flow of a group now, between the hosts of the group's `pair`. Group 0 has the measured flows. `size`
    /// replaces the size of the workload; flows of unlimited data stop after it. Returns the flow's number.
    ///
    /// # Errors
    /// A group or a pair out of range, too many flows, a trial that has ended, and an all-reduce, which has one flow per pair.
    pub fn start_flow(&mut self, group: u32, pair: u32, size: Option<u64>) -> Result<u32, Problem> {
        self.check_group(group)?;
        let pairs = self.groups[group as usize].pairs.len();
        if pair as usize >= pairs {
            let message = format!("{pair} is out of range: 0 to {}", pairs - 1);
            return Err(Problem::new("pair", message));
        }
        if self.is_over() {
            return Err(Problem::new("flow", "the trial has ended"));
        }
        if self.groups[group as usize].steps.is_some() {
            return Err(Problem::new(
                "flow",
                "an all-reduce has one flow per pair of hosts",
            ));
        }
        if self.places.len() >= MAX_STARTED {
            let message = format!("the trial has started {MAX_STARTED} flows, the limit");
            return Err(Problem::new("flow", message));
        }
        self.run_until(self.now, None);
        let number = self.places.len() as u32;
        let own = &mut self.groups[group as usize];
        let size = size.or_else(|| own.next_size(pair));
        if own.is_measured() {
            self.schedule.add_flow();
        }
        self.begin(FlowStart {
            group,
            pair,
            size,
            successors: 0,
        });
        Ok(number)
    }

    /// Ends the stream of a flow's sender after the data in its send buffer.
    ///
    /// # Errors
    /// If the flow has ended or has not started.
    pub fn stop_flow(&mut self, flow: u32) -> Result<(), Problem> {
        self.run_until(self.now, None);
        let place = self.place(flow)?;
        self.with_end(place, Side::Sender, Endpoint::stop);
        // A route without links delivers immediately.
        self.deliver();
        Ok(())
    }

    fn check_group(&self, group: u32) -> Result<(), Problem> {
        let last = self.groups.len() - 1;
        if group as usize <= last {
            return Ok(());
        }
        let message = format!("{group} is out of range: 0 to {last}");
        Err(Problem::new("group", message))
    }

    /// Returns the slot of an active flow.
    fn place(&self, flow: u32) -> Result<u32, Problem> {
        let place = self.places.get(flow as usize).copied();
        place
            .filter(|&place| place != GONE)
            .ok_or_else(|| Problem::new("flow", format!("{flow} has ended or has not started")))
    }
}
