//! Switches: the nodes without hosts, and the buffers that the queues of their outgoing links share.

use super::draft::Draft;
use super::{Topology, TopologyLink};
use crate::builder::NetworkBuilder;
use crate::packet::LinkId;
use crate::queue::{QueueConfig, SharedBuffer};

const KEY: &str = "shared_buffer";

impl Draft<'_> {
    /// Gives each switch a buffer for the queues of its outgoing links. All nodes, hosts and links have been added.
    pub(super) fn share_buffers(&mut self, buffer: Option<SharedBuffer>) {
        let Some(buffer) = buffer else {
            return;
        };
        let problems = buffer.validate().into_iter();
        self.problems.extend(problems.map(|problem| problem.within(KEY)));
        if !self.problems.is_empty() {
            return;
        }
        let links: Vec<LinkId> = self.topology.switches().flatten().copied().collect();
        if links.is_empty() {
            let message = "requires a switch: each node of this topology has a host";
            return self.problem(KEY, message);
        }
        // Many links have equal specifications, so one problem suffices.
        for link in links {
            let link = &self.topology.links()[link.0 as usize];
            if let Some(problem) = buffer.problem_of(&link.spec) {
                let message = format!("the link {:?} {problem}", link.name);
                return self.problem(KEY, message);
            }
        }
        self.topology.shared_buffer = Some(buffer);
    }
}

impl Topology {
    /// Returns the queue of a link. In a shared buffer, its limit is at most the largest share of the buffer.
    ///
    /// # Panics
    /// If the link does not exist.
    #[must_use]
    pub fn longest_queue(&self, link: LinkId) -> QueueConfig {
        let TopologyLink { spec, from, .. } = &self.links[link.0 as usize];
        match self.shared_buffer {
            Some(buffer) if !self.host_nodes.contains(from) => buffer.longest(spec),
            _ => spec.queue.clone(),
        }
    }

    /// Returns the outgoing links of each switch.
    fn switches(&self) -> impl Iterator<Item = &[LinkId]> {
        let mut has_host = vec![false; self.nodes.len()];
        for node in &self.host_nodes {
            has_host[node.0 as usize] = true;
        }
        let switches = self.nodes.iter().zip(has_host).filter(|(_, has_host)| !has_host);
        switches.map(|(node, _)| node.links.as_slice())
    }

    /// Puts the queues of each switch into a buffer.
    pub(super) fn share_buffers(&self, builder: &mut NetworkBuilder) {
        if let Some(buffer) = self.shared_buffer {
            self.switches()
                .for_each(|links| builder.share_buffer(buffer, links));
        }
    }
}
