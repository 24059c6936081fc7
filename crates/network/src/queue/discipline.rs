//! Disciplines that choose which packet is sent next, or drop or mark packets that wait.

use foundation::{Instant, Problem, Rate, Streams};

use crate::cargo::Ticket;
use crate::impairment::Lag;
use crate::link::Count;
use crate::packet::RouteId;
use crate::queue::limit::{QueueLimit, USUAL};

/// A packet that waits in a queue, without what it carries.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// When it joined the queue.
    pub since: Instant,
    /// The route that it takes.
    pub route: RouteId,
    /// Which of the flows on its route it belongs to ([`Body::flow`](crate::Body::flow)).
    pub flow: u64,
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

/// What the link is doing as a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The packet that is being sent, if any.
    pub sending: Count,
    /// When it will have been sent; in the past, when the last one had been, and the link fell idle if none waited.
    pub free: Instant,
}

/// Takes what a discipline decides of a packet.
pub trait Verdicts {
    /// The packet is dropped.
    fn drop(&mut self, packet: Waiting);

    /// Marks a packet as having met congestion, if its ends can tell a mark from a loss (RFC 3168), and says
    /// whether they can. A packet that is not marked is to be dropped instead.
    fn mark(&mut self, packet: &Waiting) -> bool;
}

/// A queue that holds the packets which wait for a link, and decides at each moment which is next.
///
/// The link calls `enqueue` when a packet arrives and `dequeue` when it can send; the packet that is
/// being sent stands in the queue no longer. Times do not fall from call to call.
pub trait Discipline {
    /// A packet arrives. It is kept, or given to `verdicts` as dropped; others may be, too.
    fn enqueue(&mut self, now: Instant, arriving: Waiting, line: &Line, verdicts: &mut dyn Verdicts);

    /// The link can send: the next packet; `None` where none is left.
    fn dequeue(&mut self, now: Instant, verdicts: &mut dyn Verdicts) -> Option<Waiting>;

    /// What waits now.
    fn waiting(&self) -> Count;
}

/// What a discipline may know of its link.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The link's rate, on average where it is a recorded one; `None` where the link is infinitely fast.
    pub rate: Option<Rate>,
    /// Where the discipline draws what it draws at random.
    pub streams: Streams,
}

/// The settings of a discipline.
pub trait DisciplineConfig {
    /// How much it holds where no limit is given.
    const LIMIT: QueueLimit = USUAL;

    /// What is out of range.
    fn validate(&self) -> Vec<Problem>;

    /// The discipline with these settings, in front of the link at `place`.
    fn build(&self, place: &Place) -> Box<dyn Discipline + Send>;
}
