use super::super::{CLIENT, SERVER};
use super::*;
use proptest::prelude::*;

const IDLE: Duration = Duration::from_secs(10);

/// A client's stack and the server's peers, with counters of bytes each way.
struct World {
    now: Instant,
    stack: Stack,
    peers: Peers,
    up: usize,
    down: usize,
    packets: u32,
}

fn from() -> SocketAddr {
    ([192, 0, 2, 1], 4000).into()
}

impl World {
    fn new() -> Self {
        Self {
            now: Instant::ZERO + Duration::from_secs(1),
            stack: Stack::new(Streams::new(1, 0), 20_000..=29_999),
            peers: Peers::new(Streams::new(2, 0), IDLE),
            up: 0,
            down: 0,
            packets: 0,
        }
    }

    /// Runs one transaction; `losses` has an entry for each datagram, alternating up and down.
    fn transact(
        &mut self,
        ttcp: bool,
        request: &[u8],
        losses: &mut impl Iterator<Item = bool>,
    ) -> Option<Vec<u8>> {
        let to = SocketAddr::new(SERVER, PORT);
        let stream = self.stack.connect(self.now, CLIENT, to, &config(ttcp)).unwrap();
        let mut written = self.stack.write(self.now, stream, request);
        if written == request.len() {
            self.stack.finish(self.now, stream);
        }
        let (mut reply, mut has_ended) = (Vec::new(), false);
        let (mut packet, mut datagram, mut buffer) = (Vec::new(), Vec::new(), [0; 4096]);
        let limit = self.now + Duration::from_secs(600);
        while !has_ended && self.now < limit {
            while self.stack.poll_transmit(self.now, &mut packet) {
                carriage::write(MessageKind::Up, 9, &packet, carriage::SPARE, &mut datagram);
                self.packets += 1;
                self.up += datagram.len();
                if !losses.next().unwrap_or(false) {
                    self.peers.handle(self.now, from(), 9, &datagram);
                }
            }
            while let Some(to) = self.peers.poll_transmit(self.now, &mut datagram) {
                assert_eq!(to, from());
                self.packets += 1;
                self.down += datagram.len();
                assert!(self.down <= self.up, "{} {}", self.down, self.up);
                if !losses.next().unwrap_or(false) {
                    self.stack
                        .handle_packet(self.now, carriage::read(&datagram).unwrap());
                }
            }
            while let Some(event) = self.stack.poll_event() {
                match event {
                    Event::Connection(it, ConnectionEvent::PeerFinished) if it == stream => has_ended = true,
                    Event::Connection(it, ConnectionEvent::Failed(_)) if it == stream => return None,
                    _ => {}
                }
            }
            if written < request.len() {
                written += self.stack.write(self.now, stream, &request[written..]);
                if written == request.len() {
                    self.stack.finish(self.now, stream);
                }
            }
            loop {
                let read = self.stack.read(self.now, stream, &mut buffer);
                reply.extend_from_slice(&buffer[..read]);
                if read == 0 {
                    break;
                }
            }
            self.now += Duration::from_millis(1);
            self.stack.handle_timeout(self.now);
            self.peers.handle_timeout(self.now);
            if self.now.as_nanos().is_multiple_of(200_000_000) {
                // Padding, as a waiting client sends it.
                carriage::write(MessageKind::Up, 9, &[], 1400, &mut datagram);
                self.up += datagram.len();
                self.peers.handle(self.now, from(), 9, &datagram);
            }
        }
        self.stack.release(self.now, stream);
        while self.stack.poll_transmit(self.now, &mut packet) {
            carriage::write(MessageKind::Up, 9, &packet, carriage::SPARE, &mut datagram);
            self.packets += 1;
            self.up += datagram.len();
            self.peers.handle(self.now, from(), 9, &datagram);
        }
        has_ended.then_some(reply)
    }
}

#[test]
fn a_transaction_takes_three_segments_where_tcp_takes_more() {
    let mut world = World::new();
    let request = vec![5; 1300];
    let mut taken = Vec::new();
    for ttcp in [false, true, true] {
        world.packets = 0;
        let reply = world.transact(ttcp, &request, &mut std::iter::empty());
        assert_eq!(reply.as_deref(), Some(&request[..]));
        taken.push(world.packets);
    }
    // T/TCP's first transaction fills the cache (RFC 1644, section 3.2).
    assert!(taken[0] > 3, "{taken:?}");
    assert_eq!(taken[2], 3, "{taken:?}");
    assert_eq!(world.peers.answered(), 3);
}

#[test]
fn sources_and_connections_are_bounded_and_time_out() {
    let mut peers = Peers::new(Streams::new(2, 0), IDLE);
    let now = Instant::ZERO + Duration::from_secs(1);
    let mut client = Stack::new(Streams::new(1, 0), 20_000..=29_999);
    let (mut packet, mut datagram) = (Vec::new(), Vec::new());
    let mut taken = 0;
    for number in 0..200_u16 {
        client
            .connect(now, CLIENT, SocketAddr::new(SERVER, PORT), &config(false))
            .unwrap();
        assert!(client.poll_transmit(now, &mut packet));
        carriage::write(MessageKind::Up, 1, &packet, 0, &mut datagram);
        taken += usize::from(peers.handle(now, ([192, 0, 2, 1], 1000 + number).into(), 1, &datagram));
        let one = peers.handle(now, ([192, 0, 2, 1], 1000).into(), 1, &datagram);
        assert!(number < 10 || !one || number == 0, "{number}");
    }
    assert_eq!(taken, PEERS);
    peers.handle_timeout(now + IDLE + Duration::from_nanos(1));
    assert_eq!(peers.peers.len(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testing::cases(48)))]

    /// Under any loss, the request returns complete or the connection fails, and no more bytes arrive than were sent.
    #[test]
    fn the_reply_equals_the_request(
        sizes in prop::collection::vec(1..20_000_usize, 1..3), ttcp: bool,
        losses in prop::collection::vec(prop::bool::weighted(0.2), 200),
    ) {
        let mut world = World::new();
        let mut losses = losses.into_iter();
        for size in sizes {
            let request: Vec<u8> = (0..size).map(|at| at as u8).collect();
            if let Some(reply) = world.transact(ttcp, &request, &mut losses) {
                prop_assert!(reply == request);
            }
        }
        prop_assert!(world.down <= world.up);
    }

    /// Invalid packets cause no harm.
    #[test]
    fn accepts_any_datagram_without_harm(datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..20)) {
        let mut peers = Peers::new(Streams::new(2, 0), IDLE);
        let (mut up, mut down, mut out) = (0, 0, Vec::new());
        for (at, mut datagram) in datagrams.into_iter().enumerate() {
            if let Some(length) = datagram.get_mut(8..10) {
                length.copy_from_slice(&[0, 40]);
            }
            if let Some(first) = datagram.get_mut(10) {
                *first = 0x45;
            }
            up += datagram.len();
            let now = Instant::ZERO + Duration::from_millis(at as u64);
            peers.handle(now, from(), 3, &datagram);
            while peers.poll_transmit(now, &mut out).is_some() {
                down += out.len();
            }
        }
        prop_assert!(down <= up);
    }
}
