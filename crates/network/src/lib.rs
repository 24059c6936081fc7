//! The network as a state machine: links with a rate, a delay, a queue and impairments, joined by routes.
//!
//! It never looks at a clock, draws no randomness but from the streams that it is given, does no I/O, and
//! knows nothing of what packets carry. The caller owns time and bytes. In simulation time is virtual and
//! a body is a typed frame; in a relay or an emulator time is the wall's and a body is the bytes of a datagram.
//!
//! # The contract
//!
//! [`Network`] has four verbs.
//!
//! - [`send`](Network::send)`(now, packet)`: a host hands over a packet at the start of its route.
//! - [`handle_timeout`](Network::handle_timeout)`(now)`: everything due by `now` moves, each packet at its own
//!   time and in order, however late the call comes.
//! - [`poll_timeout`](Network::poll_timeout)`()`: when `handle_timeout` next has something to do.
//! - [`poll_delivery`](Network::poll_delivery)`()`: the next packet that has reached a host.
//!
//! After each `send` or `handle_timeout`, drain `poll_delivery` and ask `poll_timeout` again: its earlier
//! answer no longer holds. Calling `handle_timeout` too early or too often does no harm. Times do not fall
//! from call to call.
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
//! assert_eq!(due, Instant::ZERO + Duration::from_millis(21)); // 1 ms to send, 20 ms to fly
//! network.handle_timeout(due);
//! let (host, packet) = network.poll_delivery().unwrap();
//! assert_eq!((host, packet.body.as_slice()), (HostId(1), &b"hello"[..]));
//! # Ok::<(), foundation::QuantityError>(())
//! ```
//!
//! # The way of a packet over a link
//!
//! 1. It reaches the near end, and its fate is drawn: lost, corrupted, duplicated, jittered, held back. Each of
//!    these has a random stream of its own and takes the same number of draws a packet. So the fate of the
//!    n-th packet on a link depends on n and the seed alone: protocols that are compared meet the same losses.
//! 2. Larger than the MTU, it is dropped; then, if its fate is so, it is lost. Loss comes *before* the queue, so a
//!    lost packet takes neither room nor time on the link, as with Linux's `netem` in front of a rate. A link
//!    that is never idle thus delivers its whole rate whatever the loss; on a radio that loses packets in
//!    the air it would deliver less. What protocols see (which packets arrive, and that their senders must send
//!    them again) is the same.
//! 3. It joins the queue, or is dropped where there is no room or the discipline says so; a discipline may mark it
//!    instead, if its body lets it. A duplicate joins right behind its original and takes room and time of its own.
//!    The queue's limit counts the packet that is being sent.
//! 4. It is sent, bit after bit at the link's rate or as a recorded trace lets it.
//! 5. It flies for the delay, and more or less by its jitter. Unless asked otherwise, a packet waits for the one
//!    in front of it rather than overtake it. One that is held back by `reorder` is overtaken.
//! 6. Wholly arrived (store and forward), it enters the next link of its route or reaches its host.
//!
//! # Topologies and observation
//!
//! Two hosts and a path between them are the simple case. [`topology`] draws others: it names hosts and links, finds the
//! way between any two hosts, and starts a [`NetworkBuilder`] with them.
//!
//! What happens on a link is counted ([`Network::counters`]). How long its queue is ([`Network::queue`]), how long
//! it was on average and how busy the link ([`Network::occupancy`]), and how long packets waited ([`Network::waits`]) can be asked at
//! any time and is exact. An [`Observer`] sees every packet.
//!
//! # Time, order and speed
//!
//! Times are whole nanoseconds, but a busy link carries the fraction from packet to packet, so that its rate is
//! exact. Events at the same nanosecond happen in the order in which they were scheduled.
//! A packet-hop costs one event: a packet's departure is computed when it joins the queue, and the queue's length
//! is the number of departures not yet past. Packets leave a link in order, so only the head of each link
//! stands in the event queue. Nothing is allocated and nothing is dispatched dynamically a packet, except in
//! queue disciplines other than drop-tail; a link without impairments pays for none.

#![forbid(unsafe_code)]

mod builder;
mod calendar;
mod cargo;
mod config;
mod impairment;
mod link;
mod network;
mod observer;
mod packet;
pub mod queue;
mod routes;
pub mod topology;
mod trace;

pub use builder::{FORWARD, NetworkBuilder, REVERSE};
pub use cargo::TooBig;
pub use config::{Capacity, HopConfig, LinkConfig, LinkSpec, PathConfig, PathSpec, Preset, Subscriber};
pub use impairment::{Distribution, JitterConfig, LossConfig, ReorderConfig, loss};
pub use link::{Count, LinkCounters, Occupancy, QueueInUse};
pub use network::Network;
pub use observer::{Drop, DropLog, DropReason, Observer};
pub use packet::{Body, HostId, LinkId, Packet, PacketRef, RouteId, UDP_IPV4_OVERHEAD};
pub use queue::{QueueConfig, QueueLimit};
pub use topology::{NodeId, Topology, TopologyConfig, TopologyLink};
pub use trace::{DeliveryTrace, TraceError};
