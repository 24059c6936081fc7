//! Cut-through: entering two links with one event.
//!
//! The arrival time at the end of a drop-tail link without impairments is known when a packet joins its queue. If the next
//! link of the route is fed by this link alone, nothing else can join that link before the packet does, so the packet joins
//! it at once, with its future arrival time. The event in between is omitted. Because ties in time are broken by times and
//! links alone ([`DueTime`](crate::calendar::DueTime)), all packets arrive in the same order and at the same times.

use crate::config::{Capacity, LinkSpec};
use crate::packet::LinkId;
use crate::queue::QueueConfig;
use crate::routes::Routes;

/// What feeds a link.
#[derive(Clone, Copy, PartialEq)]
enum Feeder {
    Nothing,
    Link(LinkId),
    /// A host, or several links.
    Other,
}

/// Returns for each link whether packets may join it ahead of time. The counters of the links in `exact` are read while
/// packets are inside, so packets join those on time. In a shared buffer, a queue depends on others.
pub(crate) fn links_ahead<'a>(
    routes: &Routes,
    specs: impl Iterator<Item = &'a LinkSpec>,
    exact: &[LinkId],
    is_shared: impl Fn(LinkId) -> bool,
) -> Vec<bool> {
    let specs: Vec<&LinkSpec> = specs.collect();
    let mut feeders = vec![Feeder::Nothing; specs.len()];
    for route in routes.all() {
        let mut before = Feeder::Other;
        for link in routes.links(route) {
            let feeder = &mut feeders[link.0 as usize];
            if *feeder == Feeder::Nothing || *feeder == before {
                *feeder = before;
            } else {
                *feeder = Feeder::Other;
            }
            before = Feeder::Link(link);
        }
    }
    let mut ahead: Vec<bool> = (0..)
        .map(LinkId)
        .zip(feeders.iter().zip(&specs))
        .map(|(link, (feeder, spec))| {
            let Feeder::Link(feeder) = *feeder else {
                return false;
            };
            !is_shared(feeder)
                && !is_shared(link)
                && is_predictable(specs[feeder.0 as usize])
                && is_predictable(spec)
                && spec.mtu.is_none()
                && takes_time(spec)
        })
        .collect();
    for link in exact {
        ahead[link.0 as usize] = false;
    }
    ahead
}

/// Returns whether the arrival time of a packet is known when it joins the link.
fn is_predictable(spec: &LinkSpec) -> bool {
    let has_impairment = spec.loss.as_ref().is_some_and(|loss| loss.is_some())
        || spec.corrupt.is_some()
        || spec.duplicate.is_some()
        || spec.jitter.is_some()
        || spec.reorder.is_some()
        || spec.nat.is_some();
    matches!(spec.queue, QueueConfig::DropTail(_)) && !has_impairment && !spec.capacity.is_shared()
}

/// Returns whether every packet leaves the link later than it joins; otherwise its arrival could precede, within the same
/// nanosecond, an event that caused it.
fn takes_time(spec: &LinkSpec) -> bool {
    !spec.delay.is_zero() || matches!(spec.capacity, Capacity::Rate(_))
}
