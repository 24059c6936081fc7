//! Routes as one flat table: from a route and a hop to the next link, or to the host at its end.

use crate::packet::{HostId, LinkId, RouteId};

/// The next step of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Link(LinkId),
    /// A link, and at once the one after it.
    LinkAhead(LinkId),
    Host(HostId),
}

/// All routes in sequence; each ends with its host, so that one look-up returns the next step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    starts: Vec<u32>,
    steps: Vec<Next>,
}

impl Routes {
    /// Adds a route in a network of `known` links and `hosts` hosts. Panics for others, or for more than 255 links.
    pub(crate) fn add_checked(&mut self, links: &[LinkId], to: HostId, known: usize, hosts: u32) -> RouteId {
        assert!(to.0 < hosts, "host {} does not exist", to.0);
        assert!(
            links.len() <= usize::from(u8::MAX),
            "a route has at most 255 links"
        );
        for link in links {
            assert!((link.0 as usize) < known, "link {} does not exist", link.0);
        }
        let route = RouteId(self.starts.len() as u32);
        self.starts.push(self.steps.len() as u32);
        self.steps.extend(links.iter().map(|&link| Next::Link(link)));
        self.steps.push(Next::Host(to));
        route
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns the index of the step after `hop` links of `route`. Panics if the route or the hop does not exist.
    #[inline]
    pub(crate) fn step(&self, route: RouteId, hop: u8) -> u32 {
        let route = route.0 as usize;
        let step = self.starts[route] + u32::from(hop);
        let end = self
            .starts
            .get(route + 1)
            .map_or(self.steps.len() as u32, |&start| start);
        assert!(step < end, "route {route} has no hop {hop}");
        step
    }

    /// Returns the step at an index.
    #[inline]
    pub(crate) fn next(&self, step: u32) -> Next {
        self.steps[step as usize]
    }

    /// Returns the links of a route, in order.
    pub(crate) fn links(&self, route: RouteId) -> impl Iterator<Item = LinkId> + '_ {
        let start = self.starts[route.0 as usize] as usize;
        self.steps[start..].iter().map_while(|step| match step {
            Next::Link(link) | Next::LinkAhead(link) => Some(*link),
            Next::Host(_) => None,
        })
    }

    /// Returns all routes.
    pub(crate) fn all(&self) -> impl Iterator<Item = RouteId> + use<> {
        (0..self.starts.len() as u32).map(RouteId)
    }

    /// Lets packets join a link as soon as they join the link before it, if `is_ahead` is set for it.
    pub(crate) fn look_ahead(&mut self, is_ahead: &[bool]) {
        for index in 1..self.steps.len() {
            let (Next::Link(before) | Next::LinkAhead(before)) = self.steps[index - 1] else {
                continue;
            };
            if let Next::Link(link) = self.steps[index]
                && is_ahead[link.0 as usize]
            {
                self.steps[index - 1] = Next::LinkAhead(before);
            }
        }
    }
}
