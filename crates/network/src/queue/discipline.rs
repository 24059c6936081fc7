//! The interface of queue disciplines other than drop-tail.

use std::sync::Arc;

use foundation::{Duration, Ecn, Instant, Problem, Rate, Streams};

use crate::impairment::Lag;
use crate::link::Count;
use crate::packet::{HostId, RouteId, TcpAck};
use crate::packet_store::Ticket;
use crate::queue::limit::{DEFAULT_LIMIT, QueueLimit};

/// A packet in a queue, without its body.
#[derive(Clone, Copy, Debug)]
pub struct QueuedPacket {
    /// Time of joining the queue.
    pub since: Instant,
    /// Route.
    pub route: RouteId,
    /// Flow number on that route ([`Body::flow`](crate::Body::flow)).
    pub flow: u64,
    pub(crate) ticket: Ticket,
    pub(crate) lag: Lag,
}

impl QueuedPacket {
    /// Returns the bytes on the wire, all headers included.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.ticket.size
    }
}

/// The state of the transmitter when a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmitter {
    /// The packet in transmission, if any.
    pub sending: Count,
    /// End of the current transmission, or of the last one if the transmitter is idle.
    pub free: Instant,
}

/// Actions of a discipline on packets.
pub trait QueueActions {
    /// Drops a packet.
    fn drop(&mut self, packet: QueuedPacket);

    /// Returns the ECN code point of a packet.
    fn ecn(&self, packet: &QueuedPacket) -> Ecn;

    /// Returns the priority of a packet, from 0 to 7; the highest is the most urgent.
    fn priority(&self, packet: &QueuedPacket) -> u8;

    /// Returns the acknowledgement of a TCP segment with ACK and without SYN; `None` for other packets.
    fn acknowledgement(&self, packet: &QueuedPacket) -> Option<TcpAck>;

    /// Marks a packet with ECN CE (RFC 3168). Returns whether it is ECN-capable; if not, the discipline must drop it
    /// instead.
    fn mark(&mut self, packet: &QueuedPacket) -> bool;

    /// Returns when the transmission of a packet ends if it starts now; `None` if the packet leaves the queue without
    /// transmission.
    fn transmission_end(&self, packet: &QueuedPacket) -> Option<Instant>;
}

/// A queue discipline: stores the packets that wait for a link and selects the next one.
///
/// The link calls `enqueue` when a packet arrives and `dequeue` when it can send. The packet in transmission is no longer
/// in the queue. Times do not decrease between calls.
pub trait Discipline {
    /// Stores an arriving packet, or drops it or other packets through `actions`.
    fn enqueue(
        &mut self,
        now: Instant,
        arriving: QueuedPacket,
        transmitter: &Transmitter,
        actions: &mut dyn QueueActions,
    );

    /// Returns the next packet to send; `None` if the queue is empty, or if no packet may leave before [`ready`](Self::ready).
    fn dequeue(&mut self, now: Instant, actions: &mut dyn QueueActions) -> Option<QueuedPacket>;

    /// Returns when the next packet may leave, after `dequeue` returned `None` although packets wait; a time in the future.
    fn ready(&self) -> Option<Instant> {
        None
    }

    /// Removes all packets, in any order. `actions` collects those that the discipline would drop.
    fn withdraw(&mut self, now: Instant, actions: &mut dyn QueueActions) -> Vec<QueuedPacket> {
        let mut all = Vec::new();
        let mut at = now;
        while self.waiting().packets > 0 {
            match (self.dequeue(at, actions), self.ready()) {
                (Some(next), _) => all.push(next),
                (None, Some(later)) => at = later,
                (None, None) => break,
            }
        }
        all
    }

    /// Returns the length of the queue.
    fn waiting(&self) -> Count;
}

/// The hosts at both ends of each route.
#[derive(Clone, Debug, Default)]
pub struct RouteHosts(Arc<[[HostId; 2]]>);

impl RouteHosts {
    pub(crate) fn new(hosts: impl IntoIterator<Item = [HostId; 2]>) -> Self {
        Self(hosts.into_iter().collect())
    }

    /// Returns the source and the destination of a route. Routes without a known source, and those added to a running network,
    /// have the same source, `HostId(u32::MAX)`; the latter also the same destination.
    #[must_use]
    pub fn of(&self, route: RouteId) -> [HostId; 2] {
        let known = self.0.get(route.0 as usize);
        known.copied().unwrap_or([UNKNOWN_HOST; 2])
    }
}

/// The source of packets that none of the known hosts sends.
pub(crate) const UNKNOWN_HOST: HostId = HostId(u32::MAX);

/// The properties of a link that disciplines may use.
#[derive(Clone, Debug)]
pub struct QueueContext {
    /// Rate of the link, or mean rate of its trace, cell or Wi-Fi channel; `None` if unlimited.
    pub rate: Option<Rate>,
    /// Source of the discipline's random streams.
    pub streams: Streams,
    /// The hosts of each route.
    pub hosts: RouteHosts,
}

/// The keys of a link on which the validity of a discipline's settings depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedLink {
    /// Rate of the link, or mean rate of its trace, cell or Wi-Fi channel; `None` if unlimited.
    pub rate: Option<Rate>,
    /// MTU in bytes; `None` if unlimited.
    pub mtu: Option<u32>,
}

/// Packet size on links without MTU, in bytes.
pub(super) const COMMON_MTU: u32 = 1500;

impl QueuedLink {
    /// Returns a problem if the link has no rate, so that no queue builds up.
    pub(super) fn requires_rate(&self, kind: &str) -> Vec<Problem> {
        let message = || format!("{kind:?} requires a link with a rate: set rate, trace, cell or wifi");
        let problem = self.rate.is_none().then(|| Problem::new("", message()));
        problem.into_iter().collect()
    }

    /// Returns a problem if a delay threshold exceeds the delay of a full queue.
    pub(super) fn threshold_problem(
        &self,
        key: &str,
        threshold: Duration,
        limit: QueueLimit,
    ) -> Option<Problem> {
        let rate = self.rate?;
        let packet = self.mtu.unwrap_or(COMMON_MTU);
        let (bytes, unit) = match limit {
            QueueLimit::Packets(packets) => {
                (u128::from(packets) * u128::from(packet), format!(" of {packet}B"))
            }
            QueueLimit::Bytes(size) => (u128::from(size.bytes()), String::new()),
        };
        let full = bytes * 8_000_000_000 / u128::from(rate.bits_per_second());
        let full = Duration::from_nanos(u64::try_from(full).unwrap_or(u64::MAX));
        (threshold > full).then(|| {
            let message = format!(
                "\"{threshold}\" is out of range: at most \"{full}\", the delay of a full queue ({limit}{unit} at {rate})"
            );
            Problem::new(key, message)
        })
    }
}

/// The settings of a discipline, as the key `queue` of a link.
pub trait DisciplineConfig {
    /// Returns the key `limit`.
    fn limit_key(&self) -> Option<QueueLimit>;

    /// Returns the key `limit` for changes.
    fn limit_key_mut(&mut self) -> &mut Option<QueueLimit>;

    /// Returns the limit, or the default of the discipline.
    fn limit(&self) -> QueueLimit {
        self.limit_key().unwrap_or(DEFAULT_LIMIT)
    }

    /// Returns all values out of range.
    fn validate(&self) -> Vec<Problem>;

    /// Returns all problems of the settings on a link.
    fn validate_on(&self, _: &QueuedLink) -> Vec<Problem> {
        Vec::new()
    }

    /// Returns the rate at which the discipline itself holds packets back, if it does.
    fn shaper(&self) -> Option<Rate> {
        None
    }

    /// Builds the discipline for a link; `None` for drop-tail, which the link implements itself.
    fn build(&self, context: &QueueContext) -> Option<Box<dyn Discipline + Send>>;
}

/// Implements access to the key `limit`.
macro_rules! limit_key {
    () => {
        fn limit_key(&self) -> Option<QueueLimit> {
            self.limit
        }

        fn limit_key_mut(&mut self) -> &mut Option<QueueLimit> {
            &mut self.limit
        }
    };
}

pub(super) use limit_key;
