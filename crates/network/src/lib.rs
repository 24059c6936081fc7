//! The network as a state machine: links with a rate, a delay, a queue and impairments, joined by routes, and the
//! topologies built from them. It depends on `foundation` only. It must not read a clock, perform I/O, draw random numbers
//! from any source but the streams passed to it, or interpret packet contents: the caller owns time and bytes. A simulator
//! passes virtual time and typed bodies; a relay or an emulator passes wall-clock time and datagrams.
//!
//! # Usage
//!
//! A caller drives a [`Network`] with four methods.
//!
//! - [`send`](Network::send)`(now, packet)` passes in a packet at the start of its route.
//! - [`handle_timeout`](Network::handle_timeout)`(now)` processes everything due by `now`, each event at its own
//!   time and in order, however late the call is.
//! - [`poll_timeout`](Network::poll_timeout)`()` returns the time of the next event.
//! - [`poll_delivery`](Network::poll_delivery)`()` returns the next packet that has reached a host.
//!
//! After each `send` or `handle_timeout`, drain `poll_delivery` and call `poll_timeout` again, because its earlier
//! result is stale. Calling `handle_timeout` too early or too often is harmless. `now` must not decrease
//! between calls.
//!
//! ```
//! use foundation::{Duration, Instant, Streams};
//! use network::{FORWARD, HostId, LinkConfig, Network, Packet, PathConfig};
//!
//! let path = PathConfig {
//!     rate: Some("10Mbit/s".parse()?),
//!     delay: Some("20ms".parse()?),
//!     ..PathConfig::default()
//! };
//! let path = path.resolve(&mut |_| Err("no files here".into())).unwrap();
//! let mut network: Network<Vec<u8>> = Network::two_hosts(&path, Streams::new(1, 0));
//! network.send(Instant::ZERO, Packet::new(FORWARD, 1250, b"hello".to_vec()));
//! let due = network.poll_timeout().unwrap();
//! assert_eq!(due, Instant::ZERO + Duration::from_millis(21)); // 1 ms serialization, 20 ms propagation
//! network.handle_timeout(due);
//! let (host, packet) = network.poll_delivery().unwrap();
//! assert_eq!((host, packet.body.as_slice()), (HostId(1), &b"hello"[..]));
//! # Ok::<(), foundation::QuantityError>(())
//! ```
//!
//! # Stages of a link
//!
//! 1. **Impairments.** When a packet reaches the near end, the link draws loss, corruption, duplication, jitter and
//!    reordering. Each impairment has its own random stream and takes the same number of draws per packet. The result for
//!    the n-th packet therefore depends only on n and the seed, and compared protocols see the same losses.
//! 2. **MTU and loss.** A packet larger than the MTU is dropped; then the loss model applies. Loss comes *before* the queue,
//!    so a lost packet uses neither buffer space nor link time, like Linux `netem` in front of a rate limit. A saturated
//!    link delivers its full rate whatever the loss rate; a radio link that loses packets in the air delivers less.
//!    Transports see the same pattern of arrivals and losses in both cases.
//! 3. **Queue.** The packet joins the queue, or is dropped when the queue is full or its discipline decides so. A discipline
//!    may mark an ECN-capable packet instead. A duplicate joins directly behind its original and occupies its own space and
//!    link time. The queue limit includes the packet in transmission.
//! 4. **Transmission.** The link serializes the packet at its rate or at the opportunities of a recorded trace.
//! 5. **Propagation.** The packet takes the delay plus its jitter. By default it never overtakes the packet in front of it;
//!    a packet delayed by `reorder` is overtaken.
//! 6. **Arrival.** Once complete (store and forward), the packet enters the next link of its route or reaches its host.
//!
//! # Outages
//!
//! A link is down at the times in [`LinkSpec::down`], since the start of the network or [`Network::restart_outages`]. It drops
//! the packets that wait when it fails and those that arrive meanwhile, after their impairments have been drawn; the packet in
//! transmission and those in propagation reach the far end. [`NetworkBuilder::reroute`] changes routes at scheduled times, and
//! [`Topology::avoid_outages`] derives these changes from the outages. All of this is one more entry in the event queue, so a
//! network without outages does no work for them.
//!
//! # Topologies and observation
//!
//! Two hosts and a path between them are the simple case. [`topology`] builds other shapes: it names hosts and links, finds
//! the route between any two hosts, and creates a [`NetworkBuilder`].
//!
//! Each link keeps exact counters ([`Network::counters`]), its queue length ([`Network::queue`]), time integrals of queue
//! length and busy time ([`Network::occupancy`]) and, on request, a histogram of queueing delays ([`Network::waits`]). An
//! [`Observer`] sees every packet.
//!
//! # Time, order and speed
//!
//! Times are whole nanoseconds, but a busy link carries the fraction from packet to packet, so its rate is
//! exact. Events at the same nanosecond happen in the order of the times at which they were scheduled, then of their links.
//! A packet-hop costs one event: the departure time is computed when the packet joins the queue, and the queue length
//! is the number of departures still in the future. Packets leave a link in order, so the event queue contains only the
//! head of each link. With [`NetworkBuilder::cut_through`], packets cross many links without an event. Per packet, the code allocates nothing and dispatches nothing dynamically, except in
//! queue disciplines other than drop-tail; a link without impairments has no impairment cost.

#![forbid(unsafe_code)]

mod builder;
mod calendar;
mod config;
mod cut_through;
mod impairment;
mod link;
mod medium;
mod nat;
mod network;
mod observer;
mod outages;
mod packet;
mod packet_store;
pub mod queue;
mod requested_loss;
mod routes;
pub mod topology;
mod trace;

pub use builder::{FORWARD, NetworkBuilder, REVERSE};
pub use config::{
    Capacity, HopConfig, LinkConfig, LinkSpec, Outage, OutageError, PathConfig, PathSpec, Preset, Subscriber,
};
pub use impairment::{Distribution, JitterConfig, LossConfig, ReorderConfig, loss};
pub use link::{Count, LinkCounters, Occupancy};
pub use medium::{Cell, CellConfig, CellScheduler, Wifi, WifiConfig};
pub use nat::{ExternalAddress, Nat, NatConfig};
pub use network::{Arrival, Network};
pub use observer::{DropReason, Observer, Transmission};
pub use packet::{Body, Connection, HostId, LinkId, Packet, PacketRef, RouteId, TcpAck, UDP_IPV4_OVERHEAD};
pub use packet_store::TooBig;
pub use queue::{QueueConfig, QueueLimit};
pub use topology::{NodeId, Topology, TopologyConfig, TopologyLink};
pub use trace::{DeliveryTrace, TraceError, TraceStart};
