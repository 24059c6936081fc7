//! The machine in virtual time, with sockets in memory: random sequences of writes, half-closes, resets and stalls at both
//! ends.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::rc::Rc;

use foundation::{Duration, Instant, Streams};
use network::PathConfig;
use proptest::prelude::*;
use proxy::{Direction, Key, Proxy, ProxyOptions, Socket, Target};
use transport::tcp::TcpConfig;

/// Bytes that a socket's buffer holds.
const ROOM: usize = 20_000;

/// The state of a socket, shared with the program that uses it.
#[derive(Debug, Default)]
struct Pipe {
    /// From the program to the relay.
    outgoing: VecDeque<u8>,
    has_finished: bool,
    /// From the relay to the program.
    incoming: VecDeque<u8>,
    peer_has_finished: bool,
    /// The program reset its socket.
    is_reset: bool,
    /// The relay reset its socket.
    was_reset: bool,
    /// The relay dropped its socket.
    is_closed: bool,
}

struct FakeSocket(Rc<RefCell<Pipe>>);

impl Socket for FakeSocket {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut pipe = self.0.borrow_mut();
        if pipe.is_reset {
            return Err(ErrorKind::ConnectionReset.into());
        }
        let count = out.len().min(pipe.outgoing.len());
        if count == 0 && !pipe.has_finished {
            return Err(ErrorKind::WouldBlock.into());
        }
        for (to, byte) in out.iter_mut().zip(pipe.outgoing.drain(..count)) {
            *to = byte;
        }
        Ok(count)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut pipe = self.0.borrow_mut();
        assert!(!pipe.peer_has_finished, "a byte after the end of the stream");
        if pipe.is_reset {
            return Err(ErrorKind::ConnectionReset.into());
        }
        let count = bytes.len().min(ROOM - pipe.incoming.len());
        if count == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        pipe.incoming.extend(&bytes[..count]);
        Ok(count)
    }

    fn finish(&mut self) {
        self.0.borrow_mut().peer_has_finished = true;
    }

    fn reset(self) {
        self.0.borrow_mut().was_reset = true;
    }
}

impl Drop for FakeSocket {
    fn drop(&mut self) {
        self.0.borrow_mut().is_closed = true;
    }
}

/// A program at an end of a connection.
#[derive(Default)]
struct Program {
    pipe: Rc<RefCell<Pipe>>,
    key: Option<Key>,
    written: Vec<u8>,
    read: Vec<u8>,
    is_stalled: bool,
}

/// A step of a program.
#[derive(Clone, Copy, Debug)]
enum Action {
    Write(u16),
    Finish,
    Reset,
    Stall,
    Resume,
    Wait(u16),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        8 => (1_u16..30_000).prop_map(Action::Write),
        2 => Just(Action::Finish),
        1 => Just(Action::Reset),
        2 => Just(Action::Stall),
        2 => Just(Action::Resume),
        5 => (0_u16..2000).prop_map(Action::Wait),
    ]
}

/// The steps of a connection: at which end, and which.
type Script = Vec<(bool, Action)>;

struct World {
    now: Instant,
    proxy: Proxy<FakeSocket>,
    /// Client and target of each connection.
    pairs: Vec<[Program; 2]>,
    /// Whether the target of a connection refuses it.
    refuses: Vec<bool>,
    /// How late the machine wakes up.
    lateness: Duration,
}

impl World {
    fn new(path: &str, tcp: TcpConfig, separate: bool, seed: u64) -> Self {
        let path: PathConfig = serde_json::from_str(path).unwrap();
        let path = path.resolve(&mut |_| Err("no files".into())).unwrap();
        let options = ProxyOptions {
            separate,
            ..ProxyOptions::new(path, tcp, Streams::new(seed, 0))
        };
        Self {
            now: Instant::ZERO,
            proxy: Proxy::new(options),
            pairs: Vec::new(),
            refuses: Vec::new(),
            lateness: Duration::ZERO,
        }
    }

    fn connect(&mut self, refuses: bool) -> usize {
        let number = self.pairs.len();
        let mut pair: [Program; 2] = Default::default();
        let socket = FakeSocket(Rc::clone(&pair[0].pipe));
        // The port names the connection.
        let target = Target::Address(([127, 0, 0, 1], 1 + number as u16).into());
        pair[0].key = self.proxy.accept(self.now, socket, target, None);
        self.pairs.push(pair);
        self.refuses.push(refuses);
        number
    }

    /// Processes what is due now, and lets programs read.
    fn settle(&mut self) {
        loop {
            self.proxy.catch_up(self.now);
            while let Some(request) = self.proxy.poll_request() {
                let number = usize::from(request.target.port()) - 1;
                let result = match self.refuses[number] {
                    true => Err("refused".to_owned()),
                    false => Ok(FakeSocket(Rc::clone(&self.pairs[number][1].pipe))),
                };
                self.pairs[number][1].key = self.proxy.connected(self.now, request.key, result);
            }
            for program in self.pairs.iter_mut().flatten() {
                if !program.is_stalled {
                    let mut pipe = program.pipe.borrow_mut();
                    let before = program.read.len();
                    program.read.extend(pipe.incoming.drain(..));
                    if let Some(key) = program.key.filter(|_| program.read.len() > before) {
                        self.proxy.ready(key, false, true);
                    }
                }
            }
            if self.proxy.poll_timeout().is_none_or(|due| due > self.now) {
                return;
            }
        }
    }

    fn run_until(&mut self, limit: Instant) {
        self.settle();
        while let Some(due) = self.proxy.poll_timeout().filter(|&due| due <= limit) {
            self.now = self.now.max(due + self.lateness);
            self.settle();
        }
        self.now = self.now.max(limit);
    }

    fn act(&mut self, number: usize, at: usize, action: Action) {
        let program = &mut self.pairs[number][at];
        let mut pipe = program.pipe.borrow_mut();
        match action {
            Action::Write(count) if !pipe.has_finished && !pipe.is_reset => {
                let start = program.written.len();
                let bytes = (start..start + usize::from(count)).map(|at| (at * 7 + number) as u8);
                let bytes: Vec<u8> = bytes.collect();
                pipe.outgoing.extend(&bytes);
                program.written.extend(bytes);
            }
            Action::Finish => pipe.has_finished = true,
            Action::Reset => pipe.is_reset = true,
            Action::Stall => program.is_stalled = true,
            Action::Resume => program.is_stalled = false,
            Action::Write(_) | Action::Wait(_) => {}
        }
        let is_reset = pipe.is_reset;
        drop(pipe);
        if let Some(key) = program.key {
            match is_reset {
                true => self.proxy.socket_reset(self.now, key),
                false => self.proxy.ready(key, true, false),
            }
        }
        if let Action::Wait(millis) = action {
            self.run_until(self.now + Duration::from_millis(u64::from(millis)));
        }
        self.settle();
    }
}

fn check(path: &str, separate: bool, scripts: &[(bool, Script)], seed: u64) -> Result<(), TestCaseError> {
    let mut world = World::new(path, TcpConfig::default(), separate, seed);
    for (refuses, _) in scripts {
        world.connect(*refuses);
    }
    let longest = scripts.iter().map(|(_, script)| script.len()).max().unwrap_or(0);
    for step in 0..longest {
        for (number, (_, script)) in scripts.iter().enumerate() {
            if let Some(&(at, action)) = script.get(step) {
                world.act(number, usize::from(at), action);
            }
        }
    }
    // All programs read to the end and finish.
    for number in 0..scripts.len() {
        for at in [0, 1] {
            world.act(number, at, Action::Resume);
            world.act(number, at, Action::Finish);
        }
    }
    world.run_until(world.now + Duration::from_secs(1500));
    for (number, pair) in world.pairs.iter().enumerate() {
        let was_reset = pair.iter().any(|program| {
            let pipe = program.pipe.borrow();
            pipe.is_reset || pipe.was_reset
        });
        prop_assert!(
            !world.refuses[number] || was_reset,
            "{number}: refused without a reset"
        );
        for (from, to) in [(0, 1), (1, 0)] {
            let (sent, received) = (&pair[from].written, &pair[to].read);
            // After a reset the streams are cut; they are never wrong.
            prop_assert!(sent.starts_with(received), "{number}: wrong bytes from {from}");
            let has_end = pair[to].pipe.borrow().peer_has_finished;
            if !was_reset {
                prop_assert_eq!(sent.len(), received.len(), "{}: lost bytes from {}", number, from);
                prop_assert!(has_end, "{number}: no end of the stream from {from}");
            }
            if has_end {
                prop_assert_eq!(
                    sent.len(),
                    received.len(),
                    "{}: an early end from {}",
                    number,
                    from
                );
            }
        }
        prop_assert!(
            pair[0].pipe.borrow().is_closed,
            "{number}: the client's socket is open"
        );
        if pair[1].key.is_some() {
            prop_assert!(
                pair[1].pipe.borrow().is_closed,
                "{number}: the target's socket is open"
            );
        }
    }
    let networks = usize::from(!separate);
    prop_assert_eq!(world.proxy.in_use(), [0, 0, networks], "nothing is left");
    let report = world.proxy.report();
    prop_assert_eq!(report.completed + report.reset, report.accepted);
    Ok(())
}

fn scripts(most: usize) -> impl Strategy<Value = Vec<(bool, Script)>> {
    let script = prop::collection::vec((any::<bool>(), action()), 0..12);
    prop::collection::vec((prop::bool::weighted(0.1), script), 1..=most)
}

fn path() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("{}"),
        Just(r#"{"delay": "10ms", "loss": "3%"}"#),
        Just(r#"{"rate": "5Mbit/s", "delay": "20ms", "queue": "20pkt"}"#),
        Just(
            r#"{"delay": "5ms", "jitter": {"spread": "4ms", "keep_order": false}, "corrupt": "1%", "duplicate": "2%", "mtu": "1200B"}"#
        ),
        Just(
            r#"{"rate": "10Mbit/s", "queue": {"kind": "fq-codel"}, "reorder": {"probability": "3%", "delay": "8ms"}}"#
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::with_cases(testing::count("LONGFAT_SEQUENCES", 2000) as u32) })]

    #[test]
    fn bytes_are_equal_and_nothing_is_left(
        path in path(), separate: bool, scripts in scripts(4), seed: u64,
    ) {
        check(path, separate, &scripts, seed)?;
    }
}

#[test]
fn a_stalled_reader_stalls_the_writer() {
    let mut world = World::new("{}", TcpConfig::default(), false, 1);
    world.connect(false);
    world.act(0, 1, Action::Stall);
    for _ in 0..1000 {
        world.act(0, 0, Action::Write(20_000));
    }
    world.run_until(world.now + Duration::from_secs(30));
    // The send buffer, the receive buffer and the socket's own; the rest waits at the writer.
    let waiting = world.pairs[0][0].pipe.borrow().outgoing.len();
    assert!(waiting > 8_000_000, "{waiting} of 20,000,000 bytes wait");
    world.act(0, 1, Action::Resume);
    world.act(0, 0, Action::Finish);
    world.run_until(world.now + Duration::from_secs(30));
    assert_eq!(world.pairs[0][1].read.len(), 20_000_000);
}

#[test]
fn an_outage_and_requested_losses_are_counted_and_end() {
    let mut world = World::new("{}", TcpConfig::default(), false, 1);
    world.connect(false);
    world.settle();
    world.proxy.lose_next(3, true, false);
    world.act(0, 0, Action::Write(20_000));
    world.run_until(world.now + Duration::from_secs(5));
    let report = world.proxy.report();
    assert_eq!((report.forward.lost.packets, report.reverse.lost.packets), (3, 0));
    world
        .proxy
        .start_outage(world.now, Duration::from_secs(2), true, true);
    let before = world.pairs[0][1].read.len();
    world.act(0, 0, Action::Write(10_000));
    world.run_until(world.now + Duration::from_millis(1900));
    assert_eq!(world.pairs[0][1].read.len(), before);
    world.run_until(world.now + Duration::from_secs(10));
    assert_eq!(world.pairs[0][1].read.len(), before + 10_000);
    assert!(world.proxy.report().forward.outage_dropped.packets > 0);
}

#[test]
fn retransmissions_of_open_connections_are_counted() {
    let mut world = World::new("{}", TcpConfig::default(), false, 1);
    world.connect(false);
    world.settle();
    world.proxy.lose_next(3, true, false);
    world.act(0, 0, Action::Write(20_000));
    world.run_until(world.now + Duration::from_secs(5));
    let open = world.proxy.report();
    assert_eq!(open.open, 1);
    assert!(
        open.retransmissions >= 3,
        "{} retransmissions",
        open.retransmissions
    );
    world.act(0, 0, Action::Finish);
    world.act(0, 1, Action::Finish);
    world.run_until(world.now + Duration::from_secs(300));
    assert_eq!(world.proxy.in_use()[1], 0);
    assert_eq!(world.proxy.report().retransmissions, open.retransmissions);
}

#[test]
fn outages_before_a_connection_do_not_affect_its_separate_path() {
    let path = r#"{"delay": "10ms", "down": ["1s..2s"]}"#;
    let mut world = World::new(path, TcpConfig::default(), true, 1);
    for (start, dropped) in [(500, 0), (1500, 1), (5000, 1)] {
        world.run_until(Instant::ZERO + Duration::from_millis(start));
        let number = world.connect(false);
        world.run_until(world.now + Duration::from_millis(50));
        let counted = world.proxy.report().forward.outage_dropped.packets;
        assert_eq!(counted, dropped, "after {start} ms");
        assert_eq!(world.pairs[number][1].key.is_some(), start != 1500);
        // The connections of the next round are alone.
        world.act(number, 0, Action::Reset);
    }
}

/// Returns the goodput of one transfer in virtual time, in bit/s, when the machine wakes up late.
fn goodput(controller: &str, size: usize, seed: u64, lateness: Duration) -> f64 {
    let path = r#"{"rate": "100Mbit/s", "delay": "25ms", "loss": "1%", "queue": "416pkt"}"#;
    let tcp = serde_json::from_str(&format!(r#"{{"kind": "tcp", "congestion": "{controller}"}}"#)).unwrap();
    let mut world = World::new(path, tcp, false, seed);
    world.lateness = lateness;
    world.connect(false);
    let mut pipe = world.pairs[0][0].pipe.borrow_mut();
    pipe.outgoing.extend(std::iter::repeat_n(0, size));
    pipe.has_finished = true;
    drop(pipe);
    world.settle();
    while world.pairs[0][1].read.len() < size {
        let due = world.proxy.poll_timeout().unwrap();
        world.run_until(due.max(world.now));
    }
    size as f64 * 8.0 / (world.now - Instant::ZERO).as_secs_f64()
}

#[test]
fn late_wake_ups_do_not_lower_goodput() {
    for controller in ["reno", "cubic", "bbr1"] {
        let of = |lateness| goodput(controller, 5_000_000, 1, Duration::from_millis(lateness));
        let (punctual, late) = (of(0), of(5));
        assert!(
            (late / punctual - 1.0).abs() < 0.02,
            "{controller}: {late:.0} bit/s, punctual {punctual:.0} bit/s"
        );
    }
}

/// Packets of 1,000 bytes leave a link of 8 Mbit/s each millisecond. A caller that wakes up at 4.5 ms for the first time is 3.5 ms to
/// 0.5 ms late. One that is late for the last packet only is not late in the median.
#[test]
fn lateness_counts_each_move() {
    for (ends, p50, most) in [(&[4500][..], 1500, 3500), (&[1000, 2000, 3000, 4500], 0, 500)] {
        let mut world = World::new(
            r#"{"rate": "8Mbit/s", "queue": "100pkt"}"#,
            TcpConfig::default(),
            false,
            1,
        );
        let client = world.proxy.open_datagrams(world.now);
        for _ in 0..4 {
            world
                .proxy
                .send_datagram(world.now, Direction::Forward, client, &[0; 972]);
        }
        for &end in ends {
            world.proxy.catch_up(Instant::ZERO + Duration::from_micros(end));
        }
        let report = world.proxy.report();
        let micros = |time: Duration| time.as_nanos() / 1000;
        let close = |time, to: u64| micros(time).abs_diff(to) <= to / 100;
        assert!(
            close(report.late_p50, p50) && close(report.late_p99, most),
            "{report:?}"
        );
    }
}
