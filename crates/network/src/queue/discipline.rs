//! Disciplines that choose which packet is sent next, or drop packets that already wait.

use foundation::{Instant, Problem, Streams};

use crate::cargo::Ticket;
use crate::impairment::Lag;
use crate::link::Count;
use crate::packet::RouteId;

/// A packet that waits in a queue, without what it carries.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// When it joined the queue.
    pub since: Instant,
    /// The route that it takes.
    pub route: RouteId,
    pub(crate) ticket: Ticket,
    pub(crate) lag: Lag,
}

impl Waiting {
    /// Bytes on the wire, all headers included.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.ticket.size
    }
}

/// A queue that holds the packets which wait for a link, and decides at each moment which is next.
///
/// The link calls `enqueue` when a packet arrives and `dequeue` when it can send; the packet that is
/// being sent stands in the queue no longer. Packets that are to be dropped go into `dropped`.
pub trait Discipline {
    /// A packet arrives, while the link is busy sending `sending` (one packet, or nothing).
    fn enqueue(&mut self, now: Instant, arriving: Waiting, sending: Count, dropped: &mut Vec<Waiting>);

    /// The link can send: the next packet; `None` where none is left.
    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Waiting>) -> Option<Waiting>;

    /// What waits now.
    fn waiting(&self) -> Count;
}

/// The settings of a discipline.
pub trait DisciplineConfig {
    /// What is out of range.
    fn validate(&self) -> Vec<Problem>;

    /// The discipline with these settings. What it draws at random it draws from `streams`.
    fn build(&self, streams: Streams) -> Box<dyn Discipline + Send>;
}
