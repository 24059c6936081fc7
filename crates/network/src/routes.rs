//! Routes as one flat table: from a route and a hop to the next link, or to the host at its end.

use crate::packet::{HostId, LinkId, RouteId};

/// Where a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Link(LinkId),
    Host(HostId),
}

/// All routes behind one another; each ends with its host, so that one look-up answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    starts: Vec<u32>,
    steps: Vec<Next>,
}

impl Routes {
    /// Adds a route in a network of so many links and hosts. Panics for others, or for more than 255 links.
    pub(crate) fn add_checked(&mut self, links: &[LinkId], to: HostId, known: usize, hosts: u32) -> RouteId {
        assert!(to.0 < hosts, "there is no host {}", to.0);
        assert!(
            links.len() <= usize::from(u8::MAX),
            "a route has at most 255 links"
        );
        for link in links {
            assert!((link.0 as usize) < known, "there is no link {}", link.0);
        }
        self.add(links, to)
    }

    fn add(&mut self, links: &[LinkId], to: HostId) -> RouteId {
        let route = RouteId(self.starts.len() as u32);
        self.starts.push(self.steps.len() as u32);
        self.steps.extend(links.iter().map(|&link| Next::Link(link)));
        self.steps.push(Next::Host(to));
        route
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// The place of the step after `hop` links of `route`. Panics for a route or a hop that there is not.
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

    /// Where a packet at this place goes next.
    #[inline]
    pub(crate) fn next(&self, step: u32) -> Next {
        self.steps[step as usize]
    }

    /// The links of a route, in order.
    pub(crate) fn links(&self, route: RouteId) -> impl Iterator<Item = LinkId> + '_ {
        let start = self.starts[route.0 as usize] as usize;
        self.steps[start..].iter().map_while(|step| match step {
            Next::Link(link) => Some(*link),
            Next::Host(_) => None,
        })
    }
}
