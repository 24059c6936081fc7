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

/// The steps of a route: the links, and the host at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

/// All routes in sequence; each ends with its host, so that one look-up returns the next step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    spans: Vec<Span>,
    steps: Vec<Next>,
}

impl Routes {
    /// Adds a route in a network of `known` links and `hosts` hosts. Panics for others, or for more than 255 links.
    pub(crate) fn add_checked(&mut self, links: &[LinkId], to: HostId, known: usize, hosts: u32) -> RouteId {
        assert!(to.0 < hosts, "host {} does not exist", to.0);
        let span = self.add_steps(links, to, known);
        self.spans.push(span);
        RouteId(self.spans.len() as u32 - 1)
    }

    /// Adds other links for a route, which [`change`](Self::change) selects. Panics like [`add_checked`](Self::add_checked).
    pub(crate) fn add_alternative(&mut self, route: RouteId, links: &[LinkId], known: usize) -> Span {
        self.add_steps(links, self.end(route), known)
    }

    /// Returns the host at the end of a route. Panics if the route does not exist.
    pub(crate) fn end(&self, route: RouteId) -> HostId {
        let last = self.span(route).end as usize - 1;
        let Next::Host(to) = self.steps[last] else {
            unreachable!("a route ends with a host");
        };
        to
    }

    fn add_steps(&mut self, links: &[LinkId], to: HostId, known: usize) -> Span {
        assert!(
            links.len() <= usize::from(u8::MAX),
            "a route has at most 255 links"
        );
        for link in links {
            assert!((link.0 as usize) < known, "link {} does not exist", link.0);
        }
        let start = self.steps.len() as u32;
        self.steps.extend(links.iter().map(|&link| Next::Link(link)));
        self.steps.push(Next::Host(to));
        Span {
            start,
            end: self.steps.len() as u32,
        }
    }

    /// Returns the steps of a route. Panics if it does not exist.
    pub(crate) fn span(&self, route: RouteId) -> Span {
        self.spans[route.0 as usize]
    }

    /// Changes the steps of a route. Packets that are inside keep theirs.
    pub(crate) fn change(&mut self, route: RouteId, span: Span) {
        self.spans[route.0 as usize] = span;
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns the index of the step after `hop` links of `route`. Panics if the route or the hop does not exist.
    #[inline]
    pub(crate) fn step(&self, route: RouteId, hop: u8) -> u32 {
        let Span { start, end } = self.spans[route.0 as usize];
        let step = start + u32::from(hop);
        assert!(step < end, "route {} has no hop {hop}", route.0);
        step
    }

    /// Returns the step at an index.
    #[inline]
    pub(crate) fn next(&self, step: u32) -> Next {
        self.steps[step as usize]
    }

    /// Returns the links of a route, in order.
    pub(crate) fn links(&self, route: RouteId) -> impl Iterator<Item = LinkId> + '_ {
        let Span { start, end } = self.span(route);
        self.steps[start as usize..end as usize]
            .iter()
            .map_while(|step| match step {
                Next::Link(link) | Next::LinkAhead(link) => Some(*link),
                Next::Host(_) => None,
            })
    }

    /// Returns all routes.
    pub(crate) fn all(&self) -> impl Iterator<Item = RouteId> + use<> {
        (0..self.spans.len() as u32).map(RouteId)
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
