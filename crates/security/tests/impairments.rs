//! Whole transfers over paths that lose, duplicate, delay, reorder, change, cut, replay and re-address datagrams, on
//! virtual time. Each ends with the whole file or with an error at both ends.
//!
//! `LONGFAT_PATTERNS` is the number of patterns, and `LONGFAT_FIRST_PATTERN` the first one.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;

use foundation::{Duration, Generator, Instant, Size, Streams};
use rand::RngExt;
use security::{
    Admission, Channel, Code, Credentials, HALF_OPEN_TIMEOUT, HandshakeError, Initiator, Proposal, Reason,
    Refusal, Responder,
};
use transport::Machine;
use transport::arq::config::ArqProtocol;
use transport::arq::{ArqConfig, Connection, Event, Frame, StreamRange};

use crate::ends::{Bytes, address, code, keys};

/// How long an end tolerates refusals without an authentic frame.
const PATIENCE: Duration = Duration::from_secs(3);
/// Virtual time after which a transfer counts as hanging.
const LIMIT: Duration = Duration::from_secs(3600);

fn contents(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// The probabilities of one pattern, per datagram.
#[derive(Debug)]
struct Pattern {
    loss: f64,
    duplicate: f64,
    change: f64,
    cut: f64,
    extend: f64,
    replay: f64,
    readdress: f64,
    delay: (Duration, Duration),
    /// Share of the datagrams with the longest delay times ten.
    late: f64,
    /// Longest datagram.
    mtu: usize,
    /// Nothing arrives in these spans.
    outages: Vec<(Instant, Instant)>,
}

impl Pattern {
    fn draw(random: &mut Generator) -> Self {
        let mut rare = |maximum: f64| {
            if random.random_bool(0.5) {
                0.0
            } else {
                maximum * random.random::<f64>().powi(2)
            }
        };
        let (loss, duplicate, change, cut, extend) = (rare(0.6), rare(0.5), rare(0.3), rare(0.2), rare(0.1));
        let (replay, readdress, late) = (rare(0.3), rare(0.1), rare(0.2));
        let shortest = Duration::from_micros(random.random_range(1..100_000));
        let longest = shortest + Duration::from_micros(random.random_range(0..300_000));
        let outages = (0..random.random_range(0_u32..3))
            .map(|_| {
                let start = Instant::from_nanos(random.random_range(0..5_000_000_000));
                let span = Duration::from_millis(random.random_range(1..20_000));
                (start, start + span)
            })
            .collect();
        Self {
            loss,
            duplicate,
            change,
            cut,
            extend,
            replay,
            readdress,
            delay: (shortest, longest),
            late,
            mtu: random.random_range(1500..20_000),
            outages,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Opener,
    Listener,
}

/// A path between both ends. The opener's address, as the listener sees it, may change.
struct Path {
    pattern: Pattern,
    random: Generator,
    arrivals: BTreeMap<(Instant, u64), (End, SocketAddr, Vec<u8>)>,
    sent: u64,
    port: u16,
    past: Vec<(End, Vec<u8>)>,
}

impl Path {
    fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.random.random_bool(probability)
    }

    fn send(&mut self, now: Instant, to: End, datagram: Vec<u8>) {
        if self.past.len() < 64 {
            self.past.push((to, datagram.clone()));
        }
        if self.chance(self.pattern.readdress) {
            self.port += 1;
        }
        if self.chance(self.pattern.replay) {
            let old = self.random.random_range(0..self.past.len());
            let (to, old) = self.past[old].clone();
            self.carry(now, to, old);
        }
        if self.chance(self.pattern.duplicate) {
            self.carry(now, to, datagram.clone());
        }
        self.carry(now, to, datagram);
    }

    fn carry(&mut self, now: Instant, to: End, mut datagram: Vec<u8>) {
        if datagram.len() > self.pattern.mtu {
            return;
        }
        let dark = |(start, end): &(Instant, Instant)| (*start..*end).contains(&now);
        if self.pattern.outages.iter().any(dark) || self.chance(self.pattern.loss) {
            return;
        }
        if self.chance(self.pattern.change) {
            for _ in 0..self.random.random_range(1..4) {
                let bit = self.random.random_range(0..datagram.len() * 8);
                datagram[bit / 8] ^= 1 << (bit % 8);
            }
        }
        if self.chance(self.pattern.cut) {
            datagram.truncate(self.random.random_range(0..datagram.len()));
        }
        if self.chance(self.pattern.extend) {
            let more = self.random.random_range(1..40);
            datagram.resize(datagram.len() + more, self.random.random());
        }
        let (low, high) = self.pattern.delay;
        let mut delay = Duration::from_nanos(self.random.random_range(low.as_nanos()..=high.as_nanos()));
        if self.chance(self.pattern.late) {
            delay += high * 10;
        }
        self.sent += 1;
        let from = address(self.port);
        self.arrivals
            .insert((now + delay, self.sent), (to, from, datagram));
    }
}

/// A connection and its channel.
struct Session {
    connection: Connection<Bytes>,
    channel: Channel,
    last_arrival: Instant,
    finished: bool,
    peer_finished: bool,
    failure: Option<transport::arq::Error>,
}

impl Session {
    fn new(now: Instant, connection: Connection<Bytes>, channel: Channel) -> Self {
        Self {
            connection,
            channel,
            last_arrival: now,
            finished: false,
            peer_finished: false,
            failure: None,
        }
    }

    /// Handles a datagram; returns whether it was authentic and new.
    fn handle(&mut self, now: Instant, datagram: &mut [u8]) -> bool {
        let Ok(frame) = self.channel.open(datagram) else {
            return false;
        };
        self.last_arrival = now;
        let frame = frame.map_payload(|range: Range<usize>| Bytes(datagram[range].to_vec()));
        self.connection.handle_frame(now, frame);
        true
    }

    fn seal(&mut self, frame: &Frame<StreamRange>) -> Vec<u8> {
        let mut datagram = Vec::new();
        self.channel.seal(frame, &mut datagram, |range, out| {
            out.extend((range.offset..).take(range.length as usize).map(contents));
        });
        datagram
    }

    /// Sends what is due; returns the payload that arrived in order.
    fn drain(&mut self, now: Instant, to: End, path: &mut Path) -> Vec<u8> {
        let mut received = Vec::new();
        loop {
            while let Some(Bytes(payload)) = self.connection.read() {
                received.extend(payload);
            }
            while let Some(event) = self.connection.poll_event() {
                match event {
                    Event::PeerFinished => self.peer_finished = true,
                    Event::Finished => self.finished = true,
                    Event::Failed(error) => self.failure = Some(error),
                    Event::Connected | Event::Readable | Event::Closed => {}
                }
            }
            let Some(frame) = self.connection.poll_transmit(now) else {
                return received;
            };
            let datagram = self.seal(&frame);
            path.send(now, to, datagram);
        }
    }
}

/// Why a transfer failed, in one line.
type Failure = String;

struct Transfer {
    now: Instant,
    path: Path,
    config: ArqConfig,
    size: u64,
    searches_path_mtu: bool,
    initiator: Initiator,
    /// Whether the last message of the handshake is confirmed.
    confirmed: bool,
    id: u32,
    first: u32,
    opener: Option<Session>,
    failure: Option<Failure>,
    responder: Responder,
    listener: Option<Session>,
    /// The opener's address at the listener.
    peer: SocketAddr,
    admitted: u32,
    received: Vec<u8>,
    /// Bytes that the listener received and sent before it admitted the opener.
    before_admission: (usize, usize),
}

impl Transfer {
    fn new(number: u64) -> Self {
        let mut random = Streams::new(14, number).stream("impairments");
        let kinds = [
            ArqProtocol::SelectiveRepeat,
            ArqProtocol::GoBackN,
            ArqProtocol::StopAndWait,
        ];
        let kind = if random.random_bool(0.7) {
            kinds[0]
        } else {
            kinds[random.random_range(0..3)]
        };
        let config = ArqConfig {
            mss: Size::from_bytes(random.random_range(50..1400)),
            acknowledge_every: random.random_range(1..17),
            receive_buffer: random.random_range(1..200),
            ..if kind == ArqProtocol::SelectiveRepeat {
                ArqConfig::for_files()
            } else {
                ArqConfig::new(kind)
            }
        };
        assert_eq!(config.validate(), []);
        let (own, other) = if random.random_bool(0.5) {
            (code(1), code(1))
        } else {
            (keys(1, &[2]), keys(2, &[1]))
        };
        // Some openers are not authentic.
        let own = if random.random_bool(0.05) {
            Credentials::Code(Code::new([9; 12]))
        } else {
            own
        };
        let now = Instant::from_nanos(random.random_range(0..10_000_000_000));
        let (id, first) = (random.random(), random.random());
        let proposal = Proposal {
            parameters: config.parameters(),
            first,
            receive_window: config.receive_buffer,
        };
        let initiator = Initiator::new(
            now,
            id,
            &own,
            proposal,
            random.random(),
            random.random(),
            config.give_up,
        );
        let window = random.random_range(1..512);
        let responder = Responder::new(other, random.random(), window, random.random());
        // Mostly a few packets, often none.
        let size = random.random_range(0_u64..4).pow(2) * random.random_range(0..1000_u64);
        let pattern = Pattern::draw(&mut random);
        let searches_path_mtu = random.random_bool(0.5);
        Self {
            now,
            path: Path {
                pattern,
                random,
                arrivals: BTreeMap::new(),
                sent: 0,
                port: 1000,
                past: Vec::new(),
            },
            config,
            size,
            searches_path_mtu,
            initiator,
            confirmed: false,
            id,
            first,
            opener: None,
            failure: None,
            responder,
            listener: None,
            peer: address(0),
            admitted: 0,
            received: Vec::new(),
            before_admission: (0, 0),
        }
    }

    fn opener_is_over(&self) -> bool {
        self.failure.is_some() || self.opener.as_ref().is_some_and(|s| s.connection.is_closed())
    }

    fn listener_is_over(&self) -> bool {
        self.listener.as_ref().is_none_or(|s| s.connection.is_closed())
    }

    /// Runs until both ends are over; returns whether the file has arrived.
    fn run(mut self) -> Result<(), Failure> {
        let end = self.now + LIMIT;
        let mut events = 0_u32;
        loop {
            self.send();
            if self.opener_is_over() && self.listener_is_over() && self.path.arrivals.is_empty() {
                break;
            }
            let arrival = self.path.arrivals.first_key_value().map(|(&(at, _), _)| at);
            let next = [arrival, self.timeout()].into_iter().flatten().min();
            let next = next.unwrap_or_else(|| panic!("deadlock at {:?}", self.path.pattern));
            events += 1;
            assert!(
                next < end && events < 1_000_000,
                "the transfer hangs: {:?}",
                self.path.pattern
            );
            self.now = self.now.max(next);
            if arrival.is_some_and(|at| at <= self.now) {
                let (_, (to, from, datagram)) = self.path.arrivals.pop_first().expect("an arrival");
                match to {
                    End::Opener => self.arrive_at_opener(datagram),
                    End::Listener => self.arrive_at_listener(from, datagram),
                }
            }
            self.handle_timeouts();
        }
        self.judge()
    }

    fn timeout(&self) -> Option<Instant> {
        let mut next = Vec::new();
        if self.failure.is_none() && !self.confirmed {
            next.push(self.initiator.poll_timeout());
        }
        for session in [&self.opener, &self.listener].into_iter().flatten() {
            next.extend(session.connection.poll_timeout());
        }
        next.into_iter().filter(|&at| at < Instant::MAX).min()
    }

    fn handle_timeouts(&mut self) {
        let now = self.now;
        for session in [&mut self.opener, &mut self.listener].into_iter().flatten() {
            if session.connection.poll_timeout().is_some_and(|at| at <= now) {
                session.connection.handle_timeout(now);
            }
        }
        if let Err(error) = self.initiator.check(now) {
            self.fail(error.to_string());
        }
    }

    /// Aborts the opener's connection.
    fn fail(&mut self, failure: Failure) {
        assert!(!failure.is_empty() && !failure.contains('\n'), "{failure:?}");
        self.failure.get_or_insert(failure);
        if let Some(session) = &mut self.opener {
            session.connection.abort();
        }
    }

    fn send(&mut self) {
        let now = self.now;
        while self.failure.is_none() && !self.opener_is_over() {
            let Some(datagram) = self.initiator.poll_transmit(now) else {
                break;
            };
            self.path.send(now, End::Listener, datagram);
        }
        if let Some(session) = &mut self.opener {
            session.drain(now, End::Listener, &mut self.path);
            if let Some(error) = session.failure {
                self.failure.get_or_insert(error.to_string());
            }
        }
        if let Some(session) = &mut self.listener {
            self.received
                .extend(session.drain(now, End::Opener, &mut self.path));
            if session.peer_finished && !session.finished {
                session.connection.finish();
                self.received
                    .extend(session.drain(now, End::Opener, &mut self.path));
            }
        }
    }

    fn arrive_at_opener(&mut self, mut datagram: Vec<u8>) {
        if self.opener_is_over() {
            return;
        }
        let now = self.now;
        let Some(session) = &mut self.opener else {
            match self.initiator.handle(now, &datagram) {
                Ok(None) => {}
                Ok(Some(outcome)) => {
                    let window = outcome.acceptance.receive_window;
                    let mut connection = Connection::established(
                        now,
                        (self.id, self.first),
                        &self.config,
                        window,
                        outcome.rtt,
                    );
                    if self.searches_path_mtu {
                        connection.search_path_mtu(65_000);
                    }
                    connection.write(self.size);
                    connection.finish();
                    self.opener = Some(Session::new(now, connection, outcome.channel));
                }
                Err(error) => self.fail(error.to_string()),
            }
            return;
        };
        if session.handle(now, &mut datagram) {
            self.confirmed = true;
            self.initiator.confirm();
            return;
        }
        let Some(refusal) = Refusal::decode(&datagram).filter(|refusal| refusal.connection == self.id) else {
            return;
        };
        let mut patience = PATIENCE;
        let silence = now - session.last_arrival;
        if !self.confirmed {
            patience = HALF_OPEN_TIMEOUT;
            if let Err(error) = self.initiator.handle(now, &datagram) {
                return self.fail(error.to_string());
            }
        }
        if silence >= patience && refusal.reason == Reason::Unknown {
            self.fail("the receiver does not know the connection".to_owned());
        }
    }

    fn arrive_at_listener(&mut self, from: SocketAddr, mut datagram: Vec<u8>) {
        let now = self.now;
        if self.admitted == 0 {
            self.before_admission.0 += datagram.len();
        }
        if let Some(session) = self.listener.as_mut().filter(|s| !s.connection.is_closed())
            && session.handle(now, &mut datagram)
        {
            if session.channel.opened_newest() {
                self.peer = from;
            }
            return;
        }
        let known = self.listener.as_ref().is_some_and(|s| !s.connection.is_closed());
        let reply = match self.responder.handle(now, from, &datagram, false) {
            Admission::Reply(reply) => Some(reply),
            Admission::Ignore if known || Refusal::is_handshake(&datagram) => None,
            Admission::Ignore => Refusal::of(&datagram, Reason::Unknown),
            Admission::Admit(admitted) => {
                let config = self.config.adopting(admitted.proposal.parameters);
                let numbers = (admitted.connection, admitted.proposal.first);
                let window = admitted.proposal.receive_window;
                let connection = Connection::established(now, numbers, &config, window, None);
                self.listener = Some(Session::new(now, connection, admitted.channel));
                self.admitted += 1;
                self.peer = from;
                None
            }
        };
        if let Some(reply) = reply {
            assert!(reply.len() <= datagram.len(), "an amplifier");
            if self.admitted == 0 {
                self.before_admission.1 += reply.len();
            }
            self.path.send(now, End::Opener, reply);
        }
    }

    /// Checks the final state of both ends.
    fn judge(&self) -> Result<(), Failure> {
        assert!(self.admitted <= 1, "a replayed handshake was admitted");
        assert!(self.before_admission.1 <= self.before_admission.0);
        assert!(self.received.len() as u64 <= self.size);
        assert!((0..).zip(&self.received).all(|(at, &byte)| byte == contents(at)));
        let finished = self.opener.as_ref().is_some_and(|session| session.finished);
        if finished {
            assert_eq!(self.received.len() as u64, self.size, "a part of the file");
            assert!(
                self.listener
                    .as_ref()
                    .is_some_and(|session| session.peer_finished)
            );
            return Ok(());
        }
        if let Some(session) = &self.listener {
            assert!(session.finished || session.failure.is_some());
        }
        let failure = self.failure.as_ref().expect("neither finished nor failed");
        let arrived = self
            .listener
            .as_ref()
            .is_some_and(|session| session.peer_finished);
        Err(match (self.admitted, arrived) {
            (0, _) => format!("not admitted: {failure}"),
            (_, true) => format!("complete, but without confirmation: {failure}"),
            (_, false) => format!("incomplete: {failure}"),
        })
    }
}

#[test]
fn random_impairments_end_in_the_file_or_an_error() {
    let first = std::env::var("LONGFAT_FIRST_PATTERN").map_or(0, |text| text.parse().unwrap());
    let patterns = testing::count("LONGFAT_PATTERNS", 300);
    let mut failures = BTreeMap::<Failure, u64>::new();
    for pattern in first..first + patterns {
        let result = std::panic::catch_unwind(|| Transfer::new(pattern).run());
        match result {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => *failures.entry(failure).or_default() += 1,
            Err(_) => panic!("pattern {pattern}"),
        }
    }
    let failed: u64 = failures.values().sum();
    println!(
        "{patterns} patterns: {} files, {failed} errors",
        patterns - failed
    );
    for (failure, count) in &failures {
        println!("  {count} {failure}");
    }
    assert!(failed < patterns / 2, "most patterns do not prevent a transfer");
}

#[test]
fn an_untrusted_opener_is_an_error() {
    let credentials = Credentials::Code(Code::new([9; 12]));
    let mut transfer = Transfer::new(0);
    transfer.path.pattern = Pattern {
        loss: 0.0,
        duplicate: 0.0,
        change: 0.0,
        cut: 0.0,
        extend: 0.0,
        replay: 0.0,
        readdress: 0.0,
        delay: (Duration::from_millis(5), Duration::from_millis(5)),
        late: 0.0,
        mtu: 1500,
        outages: Vec::new(),
    };
    transfer.responder = Responder::new(credentials, [1; 32], 10, true);
    let failure = transfer.run().unwrap_err();
    let refusals =
        [Reason::WrongCode, Reason::NeedsCode].map(|reason| HandshakeError::Refused(reason).to_string());
    assert!(
        refusals.iter().any(|refusal| failure.ends_with(refusal)),
        "{failure}"
    );
}
