//! Two connections and an impaired network between them, on virtual time. Every frame crosses as
//! bytes, so that encoding, checksum and decoding are part of every test.

use std::collections::BTreeMap;

use foundation::{Duration, Instant, Streams};
use rand::{Rng, RngExt};
use transport::Machine;
use transport::arq::{Admission, ArqConfig, Connection, Event, Frame, Listener, Payload, codec};

/// Impairments of the network.
#[derive(Clone, Copy, Debug)]
pub struct Impairments {
    pub loss: f64,
    pub duplicate: f64,
    pub corrupt: f64,
    /// Range of the one-way delay, drawn per frame, which causes reordering.
    pub delay: (Duration, Duration),
}

impl Impairments {
    pub const NONE: Self = Self {
        loss: 0.0,
        duplicate: 0.0,
        corrupt: 0.0,
        delay: (Duration::from_millis(5), Duration::from_millis(5)),
    };
}

#[derive(Clone, Debug)]
pub struct Bytes(pub Vec<u8>);

impl Payload for Bytes {
    fn length(&self) -> u32 {
        self.0.len() as u32
    }

    fn split(self, size: u32) -> Vec<Self> {
        self.0
            .chunks(size as usize)
            .map(|part| Self(part.to_vec()))
            .collect()
    }
}

/// Returns the byte of the test stream at `offset`.
pub fn pattern(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

pub struct Host {
    pub connection: Option<Connection<Bytes>>,
    pub received: Vec<u8>,
    pub events: Vec<Event>,
    /// Whether the application reads.
    pub reads: bool,
}

impl Host {
    const fn new() -> Self {
        Self {
            connection: None,
            received: Vec::new(),
            events: Vec::new(),
            reads: true,
        }
    }

    pub fn failed(&self) -> bool {
        self.events.iter().any(|e| matches!(e, Event::Failed(_)))
    }
}

pub struct Pair {
    pub now: Instant,
    pub opener: Host,
    pub listener: Host,
    door: Listener,
    config: ArqConfig,
    network: BTreeMap<(Instant, u64), (bool, Vec<u8>)>,
    sent: u64,
    impairments: Impairments,
    random: foundation::Generator,
    /// Drop frames towards the listener and towards the opener.
    pub cut: (bool, bool),
    /// Longest frame that the network carries.
    pub mtu: usize,
    /// Longest frame that the ends search for; 0: none.
    search: usize,
    pub frames: [u64; 2],
}

impl Pair {
    pub fn new(config: &ArqConfig, impairments: Impairments, seed: u64, first: u32) -> Self {
        let mut pair = Self {
            now: Instant::ZERO,
            opener: Host::new(),
            listener: Host::new(),
            door: Listener::new([7; 32], config.receive_buffer),
            config: config.clone(),
            network: BTreeMap::new(),
            sent: 0,
            impairments,
            random: Streams::new(seed, 0).stream("network"),
            cut: (false, false),
            mtu: usize::MAX,
            search: 0,
            frames: [0; 2],
        };
        let id = pair.random.next_u32();
        pair.opener.connection = Some(Connection::open(pair.now, id, first, config));
        pair
    }

    /// Lets both ends search for frames of up to `length` bytes.
    pub fn search_path_mtu(&mut self, length: usize) {
        self.search = length;
        if let Some(connection) = &mut self.opener.connection {
            connection.search_path_mtu(length);
        }
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.random.random_bool(probability)
    }

    fn put_on_the_wire<P: Payload>(
        &mut self,
        to_listener: bool,
        frame: &Frame<P>,
        append: impl Fn(&P, &mut Vec<u8>),
    ) {
        let mut bytes = Vec::new();
        let append = |p: &P, out: &mut Vec<u8>| {
            append(p, out);
            Ok::<(), std::convert::Infallible>(())
        };
        codec::encode(frame, &mut bytes, append).unwrap();
        assert_eq!(bytes.len(), frame.length(), "length() is the encoded length");
        self.frames[usize::from(to_listener)] += 1;
        let cut = if to_listener { self.cut.0 } else { self.cut.1 };
        if cut || bytes.len() > self.mtu || self.chance(self.impairments.loss) {
            return;
        }
        let copies = 1 + u32::from(self.chance(self.impairments.duplicate));
        for _ in 0..copies {
            let mut bytes = bytes.clone();
            if self.chance(self.impairments.corrupt) {
                let bit = self.random.random_range(0..bytes.len() * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let (low, high) = self.impairments.delay;
            let delay = self.random.random_range(low.as_nanos()..=high.as_nanos());
            self.sent += 1;
            self.network.insert(
                (self.now + Duration::from_nanos(delay), self.sent),
                (to_listener, bytes),
            );
        }
    }

    /// Processes the output of a host's connection.
    pub fn drain(&mut self, is_opener: bool) {
        loop {
            let host = if is_opener {
                &mut self.opener
            } else {
                &mut self.listener
            };
            let Some(connection) = &mut host.connection else {
                return;
            };
            let frame = connection.poll_transmit(self.now);
            while let Some(event) = connection.poll_event() {
                host.events.push(event);
            }
            if host.reads {
                while let Some(Bytes(payload)) = connection.read() {
                    host.received.extend_from_slice(&payload);
                }
            }
            let Some(frame) = frame else {
                // The read may have opened the window.
                if connection
                    .poll_transmit(self.now)
                    .map(|f| self.send_later(is_opener, f))
                    .is_none()
                {
                    return;
                }
                continue;
            };
            self.send_later(is_opener, frame);
        }
    }

    fn send_later(&mut self, is_opener: bool, frame: Frame<transport::arq::StreamRange>) {
        self.put_on_the_wire(is_opener, &frame, |range, out| {
            out.extend((range.offset..).take(range.length as usize).map(pattern));
        });
    }

    fn deliver(&mut self, to_listener: bool, bytes: &[u8]) {
        let Ok(frame) = codec::decode(bytes) else { return };
        let frame = frame.map_payload(|place| Bytes(bytes[place].to_vec()));
        let (now, is_opener) = (self.now, !to_listener);
        let host = if to_listener {
            &mut self.listener
        } else {
            &mut self.opener
        };
        if let Some(connection) = host.connection.as_mut().filter(|c| !c.is_closed()) {
            connection.handle_frame(now, frame);
            self.drain(is_opener);
            return;
        }
        match self.door.handle_frame::<_, Bytes>(now, b"peer", &frame) {
            Admission::Reply(reply) => self.put_on_the_wire(is_opener, &reply, |_, _| {}),
            // A repeated `Open` of a closed connection.
            Admission::Accept(_) if host.connection.is_some() => {}
            Admission::Accept(parameters) => {
                let mut accepted = Connection::accept(now, &frame, parameters, &self.config);
                if self.search > 0 {
                    accepted.search_path_mtu(self.search);
                }
                host.connection = Some(accepted);
                self.drain(false);
            }
            Admission::Ignore => {}
        }
    }

    /// Processes the next event, if it occurs by `until`. Returns whether it did.
    pub fn step(&mut self, until: Instant) -> bool {
        let timeout = |h: &Host| {
            h.connection
                .as_ref()
                .and_then(Machine::poll_timeout)
                .unwrap_or(Instant::MAX)
        };
        let frame_at = self.network.keys().next().map_or(Instant::MAX, |k| k.0);
        let next = frame_at.min(timeout(&self.opener)).min(timeout(&self.listener));
        if next > until || next == Instant::MAX {
            self.now = self.now.max(if until == Instant::MAX { self.now } else { until });
            return false;
        }
        self.now = self.now.max(next);
        if frame_at <= next {
            let (_, (to_listener, bytes)) = self.network.pop_first().unwrap();
            self.deliver(to_listener, &bytes);
        } else {
            for is_opener in [true, false] {
                let host = if is_opener {
                    &mut self.opener
                } else {
                    &mut self.listener
                };
                if let Some(connection) = &mut host.connection {
                    connection.handle_timeout(self.now);
                    self.drain(is_opener);
                }
            }
        }
        true
    }

    /// Runs until both ends are closed, for at most `limit` steps. Returns whether they closed.
    pub fn run(&mut self, limit: u64) -> bool {
        for _ in 0..limit {
            if self.is_over() || !self.step(Instant::MAX) {
                return self.is_over();
            }
        }
        false
    }

    /// Whether the opener is closed, and the listener if it had a connection.
    pub fn is_over(&self) -> bool {
        let over = |h: &Host| h.connection.as_ref().is_none_or(Connection::is_closed);
        over(&self.opener) && over(&self.listener)
    }

    /// Writes `bytes` at an end and closes its stream.
    pub fn write_all(&mut self, is_opener: bool, bytes: u64) {
        let host = if is_opener {
            &mut self.opener
        } else {
            &mut self.listener
        };
        let connection = host.connection.as_mut().unwrap();
        connection.write(bytes);
        connection.finish();
        self.drain(is_opener);
    }
}

/// Asserts that `received` is a prefix of the test stream.
pub fn assert_pattern(received: &[u8]) {
    for (i, &byte) in received.iter().enumerate() {
        assert_eq!(byte, pattern(i as u64), "byte {i} of the stream");
    }
}
