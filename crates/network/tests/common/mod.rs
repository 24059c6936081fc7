//! Shared code of the tests: paths from JSON, and a driver of virtual time.
use foundation::{Ecn, Instant, Streams};
use network::{Body, DropReason, HostId, LinkId, Network, Observer, Packet, PacketRef, PathConfig, PathSpec};

/// Returns a path with these keys.
pub fn path(json: &str) -> PathSpec {
    let config: PathConfig = serde_json::from_str(json).unwrap();
    config
        .resolve(&mut |file| Err(format!("unexpected file {file}")))
        .unwrap()
}

/// A packet body that records its changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    pub number: u64,
    pub flow: u64,
    pub ecn: Ecn,
    pub flips: u32,
    pub marks: u32,
    pub priority: u8,
}

impl Body for Mark {
    fn flip_bit(&mut self, _: u64) {
        self.flips += 1;
    }
    fn ecn(&self) -> Ecn {
        if self.marks > 0 { Ecn::Ce } else { self.ecn }
    }
    fn mark_congestion_experienced(&mut self) -> bool {
        self.marks += u32::from(self.ecn.is_capable());
        self.ecn.is_capable()
    }
    fn flow(&self) -> u64 {
        self.flow
    }
    fn priority(&self) -> u8 {
        self.priority
    }
}

pub fn mark(number: u64) -> Mark {
    Mark {
        number,
        ..Mark::default()
    }
}

/// A delivery with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival<B> {
    pub at: u64,
    pub host: HostId,
    pub packet: Packet<B>,
}

/// Sends packets at their times, which must increase, and advances the network to each of its timeouts until it is
/// empty.
pub fn drive<B: Body, O: Observer<B>>(
    network: &mut Network<B, O>,
    sends: impl IntoIterator<Item = (u64, Packet<B>)>,
) -> Vec<Arrival<B>> {
    let mut arrivals = Vec::new();
    for (at, packet) in sends {
        settle(network, Some(at), &mut arrivals);
        network.send(Instant::from_nanos(at), packet);
    }
    settle(network, None, &mut arrivals);
    assert_eq!(network.packets_inside(), 0);
    arrivals
}

fn settle<B: Body, O: Observer<B>>(
    network: &mut Network<B, O>,
    until: Option<u64>,
    arrivals: &mut Vec<Arrival<B>>,
) {
    while let Some(due) = network.poll_timeout() {
        if until.is_some_and(|until| due.as_nanos() > until) {
            return;
        }
        network.handle_timeout(due);
        while let Some((host, packet)) = network.poll_delivery() {
            arrivals.push(Arrival {
                at: due.as_nanos(),
                host,
                packet,
            });
        }
    }
}

/// Returns packets 1, 2, 3, … of `size` bytes, `gap` nanoseconds apart.
pub fn train(count: u64, gap: u64, size: u32) -> impl Iterator<Item = (u64, Packet<Mark>)> {
    (1..=count).map(move |number| {
        (
            (number - 1) * gap,
            Packet::new(network::FORWARD, size, mark(number)),
        )
    })
}

/// Returns the numbers of packets in the order of arrival.
pub fn numbers(arrivals: &[Arrival<Mark>]) -> Vec<u64> {
    arrivals
        .iter()
        .map(|arrival| arrival.packet.body.number)
        .collect()
}

/// Sends a train from host 0 over a path with these keys.
pub fn run_train(
    json: &str,
    seed: u64,
    count: u64,
    gap: u64,
    size: u32,
) -> (Vec<Arrival<Mark>>, Network<Mark>) {
    let mut network = Network::two_hosts(&path(json), Streams::new(seed, 0));
    let arrivals = drive(&mut network, train(count, gap, size));
    (arrivals, network)
}

/// Returns the packets of a train that the first link's loss model drops.
pub fn lost(json: &str, seed: u64, count: u64, gap: u64, size: u32) -> Vec<u64> {
    let mut network =
        network::NetworkBuilder::chain(&[path(json)], Streams::new(seed, 0)).build_observed(Log::default());
    drive(&mut network, train(count, gap, size));
    let drops = network.observer().drops(DropReason::Loss);
    drops.into_iter().map(|(_, id)| id).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Entered,
    Dropped(DropReason),
    Duplicated,
    Corrupted,
    Marked,
    Left,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEvent {
    pub at: u64,
    pub link: LinkId,
    pub kind: EventKind,
    pub id: u64,
    pub size: u32,
}

/// Records every event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    pub events: Vec<LogEvent>,
}

impl Log {
    /// Returns time and packet number of each drop with this reason, in order.
    pub fn drops(&self, reason: DropReason) -> Vec<(u64, u64)> {
        let dropped = self
            .events
            .iter()
            .filter(|event| event.kind == EventKind::Dropped(reason));
        dropped.map(|event| (event.at, event.id)).collect()
    }

    fn note<B>(&mut self, at: Instant, link: LinkId, kind: EventKind, packet: PacketRef<'_, B>) {
        self.events.push(LogEvent {
            at: at.as_nanos(),
            link,
            kind,
            id: packet.id,
            size: packet.size,
        });
    }
}

impl<B> Observer<B> for Log {
    fn entered(&mut self, at: Instant, link: LinkId, packet: PacketRef<'_, B>) {
        self.note(at, link, EventKind::Entered, packet);
    }
    fn dropped(&mut self, at: Instant, link: LinkId, reason: DropReason, packet: PacketRef<'_, B>) {
        self.note(at, link, EventKind::Dropped(reason), packet);
    }
    fn duplicated(&mut self, at: Instant, link: LinkId, packet: PacketRef<'_, B>) {
        self.note(at, link, EventKind::Duplicated, packet);
    }
    fn corrupted(&mut self, at: Instant, link: LinkId, packet: PacketRef<'_, B>) {
        self.note(at, link, EventKind::Corrupted, packet);
    }
    fn marked(&mut self, at: Instant, link: LinkId, packet: PacketRef<'_, B>) {
        self.note(at, link, EventKind::Marked, packet);
    }
    fn left(&mut self, at: Instant, link: LinkId, packet: PacketRef<'_, B>) {
        self.note(at, link, EventKind::Left, packet);
    }
}
