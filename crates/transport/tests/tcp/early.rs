//! Fast Open and T/TCP with invalid cookies, lost SYNs and peers without the extension.

use foundation::{Duration, Instant, Size};
use transport::tcp::fast_open::FastOpen;
use transport::tcp::{Connection, Event, Flags, HostMemory, Profile, Segment, State, TcpConfig};

use crate::tcp::pair::{Fate, Pair, Side};
use crate::tcp::rig::{OURS, Out, Peer, Rig};
use crate::tcp::transactions::{DELAY, fast_open, line, lines, lossless, plain, transact, ttcp};

/// Returns a pair whose path drops the packets selected by `loses`.
fn losing(
    client: &TcpConfig,
    server: &TcpConfig,
    mut loses: impl FnMut(Instant, Side, &Segment) -> bool + 'static,
) -> Pair {
    Pair::new(
        client,
        server,
        Box::new(move |now, from, segment| {
            if loses(now, from, segment) {
                Fate::lost()
            } else {
                Fate::arrives(DELAY)
            }
        }),
    )
}

/// Returns the pair after a first connection, in which both hosts cached each other.
fn warm(mut pair: Pair) -> Pair {
    pair.warm_up();
    pair.forget();
    pair
}

/// Opens a connection whose client sends `bytes`, asserts that they arrive, and returns the lengths of its data segments.
fn upload(pair: &mut Pair, bytes: u64) -> Vec<u32> {
    let client = pair.end(Side::Client);
    (client.to_write, client.finish) = (bytes, true);
    pair.open(Side::Client);
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.end(Side::Server).received, bytes);
    let sent = pair.sent().iter().filter(|sent| sent.from == Side::Client);
    sent.map(|sent| sent.packet.segment.length)
        .filter(|&length| length > 0)
        .collect()
}

#[test]
fn no_second_cookie_request_to_a_server_without_fast_open() {
    let mut pair = Pair::new(&fast_open(), &plain(), lossless());
    transact(&mut pair, 100, 200);
    assert_eq!(
        pair.sent()[0].packet.segment.options.opening().fast_open,
        Some(FastOpen::Request)
    );
    pair.forget();
    transact(&mut pair, 100, 200);
    let syn = pair.sent()[0].packet.segment;
    assert_eq!((syn.options.opening().fast_open, syn.length), (None, 0));
}

#[test]
fn invalid_cookie_is_replaced() {
    let mut pair = Pair::new(&fast_open(), &fast_open(), lossless());
    transact(&mut pair, 100, 200);
    pair.forget();
    // Old cookies remain valid after one change of the key, and new ones are issued; after two changes they are
    // invalid.
    for (changes, early) in [(1, true), (2, false)] {
        for change in 0..changes {
            pair.end(Side::Server)
                .memory
                .cookie_keys()
                .change([90 + changes + change; 32]);
        }
        transact(&mut pair, 100, 200);
        let sent: Vec<Segment> = pair.sent().iter().map(|sent| sent.packet.segment).collect();
        assert_eq!(sent[0].length, 100);
        let acknowledges = sent[1].acknowledgement - sent[0].sequence;
        assert_eq!(acknowledges, if early { 101 } else { 1 });
        assert!(
            matches!(sent[1].options.opening().fast_open, Some(FastOpen::Cookie(_))),
            "a new cookie"
        );
        assert_eq!(pair.end(Side::Client).connection().used_early_data(), early);
        // With an invalid cookie, the data leaves again at once, with the last segment of the handshake.
        assert_eq!(sent[2].length, if early { 0 } else { 100 });
        pair.forget();
        transact(&mut pair, 100, 200);
        assert!(
            pair.end(Side::Client).connection().used_early_data(),
            "the new cookie is valid"
        );
        pair.forget();
    }
}

#[test]
fn rejected_data_leaves_again_as_far_as_the_window_reaches() {
    // `tcp_retransmit_skb` of Linux cuts a segment at the end of the window. The data of a SYN left without knowing it.
    let server = TcpConfig {
        receive_buffer: Some(Size::from_bytes(1500)),
        ..fast_open()
    };
    let mut pair = warm(Pair::new(&fast_open(), &server, lossless()));
    // In a simultaneous open, no SYN acknowledges data.
    pair.end(Side::Server).finish = true;
    pair.open(Side::Server);
    assert_eq!(upload(&mut pair, 1200), [1200, 750, 450]);
}

#[test]
fn repeated_data_of_a_syn_is_cut_at_the_end_of_the_window_of_its_time() {
    let linux = TcpConfig {
        fast_open: true,
        mss: Some(Size::from_bytes(2433)),
        ..TcpConfig::new(Profile::Linux)
    };
    let server = TcpConfig {
        receive_buffer: Some(Size::from_bytes(1500)),
        ..linux.clone()
    };
    let drops =
        |_, from, segment: &Segment| from == Side::Client && segment.has(Flags::SYN) && segment.length > 0;
    let mut pair = warm(losing(&linux, &server, drops));
    assert_eq!(upload(&mut pair, 1448), [1448, 750, 697, 1]);
}

#[test]
fn data_of_a_syn_above_the_path_mtu_leaves_again_in_segments_that_fit() {
    let linux = TcpConfig {
        ttcp: true,
        ..TcpConfig::new(Profile::Linux)
    };
    let mut pair = warm(Pair::new(&linux, &linux, lossless()));
    pair.mtu = (Instant::ZERO, 128);
    upload(&mut pair, 394);
}

#[test]
fn retransmitted_syn_has_neither_data_nor_cookie() {
    // RFC 7413, section 4.2.1.
    let drops =
        |_, from, segment: &Segment| from == Side::Client && segment.has(Flags::SYN) && segment.length > 0;
    let mut pair = losing(&fast_open(), &fast_open(), drops);
    transact(&mut pair, 100, 200);
    pair.forget();
    for _ in 0..2 {
        transact(&mut pair, 100, 200);
        let syns: Vec<Segment> = pair
            .sent()
            .iter()
            .map(|sent| sent.packet.segment)
            .filter(|segment| segment.flags == Flags::SYN)
            .collect();
        assert_eq!(syns.len(), 2);
        assert_eq!((syns[1].length, syns[1].options.opening().fast_open), (0, None));
        assert!(!pair.end(Side::Client).connection().used_early_data());
        pair.forget();
    }
    // After two consecutive losses the path is assumed to drop such SYNs, and the next SYN is plain.
    transact(&mut pair, 100, 200);
    let syn = pair.sent()[0].packet.segment;
    assert_eq!((syn.length, syn.options.opening().fast_open), (0, None));
}

#[test]
fn data_is_accepted_once_after_a_lost_syn_ack() {
    for config in [fast_open(), ttcp()] {
        let mut losses = 0;
        let mut pair = losing(&config, &config, move |_, from, segment| {
            let is_answer = from == Side::Server && segment.has(Flags::SYN);
            losses += u32::from(is_answer);
            // The SYN-ACK of the first transaction passes, that of the second is lost once.
            is_answer && losses == 2
        });
        transact(&mut pair, 100, 200);
        pair.forget();
        transact(&mut pair, 100, 200);
        let lines = lines(&pair);
        let syns = lines.iter().filter(|line| line.starts_with("> S")).count();
        assert_eq!(syns, 2, "{lines:#?}");
        assert!(pair.end(Side::Server).connection().used_early_data());
        pair.check_stream(Side::Server);
        pair.check_stream(Side::Client);
    }
}

#[test]
fn server_limits_pending_opens() {
    let mut pair = Pair::new(&fast_open(), &fast_open(), lossless());
    transact(&mut pair, 100, 200);
    pair.forget();
    pair.end(Side::Server).memory.limit_pending(0);
    transact(&mut pair, 100, 200);
    assert!(!pair.end(Side::Client).connection().used_early_data());
    pair.forget();
    pair.end(Side::Server).memory.limit_pending(1);
    // Completed handshakes do not count.
    for _ in 0..3 {
        transact(&mut pair, 100, 200);
        assert!(pair.end(Side::Client).connection().used_early_data());
        pair.forget();
    }
}

#[test]
fn ttcp_falls_back_with_a_plain_tcp_peer() {
    let mut pair = Pair::new(&ttcp(), &plain(), lossless());
    for _ in 0..2 {
        transact(&mut pair, 100, 200);
        let syn = pair.sent()[0].packet.segment;
        assert!(syn.options.opening().count_is_new && syn.length == 0);
        let counted = pair.sent()[1..]
            .iter()
            .any(|sent| sent.packet.segment.options.count.is_some());
        assert!(!counted, "no count after a SYN-ACK without one");
        pair.forget();
    }
    // A server that no longer uses T/TCP: data leaves with the SYN and again after it.
    let mut pair = Pair::new(&ttcp(), &ttcp(), lossless());
    transact(&mut pair, 100, 200);
    pair.end(Side::Server).config = plain();
    pair.forget();
    transact(&mut pair, 100, 200);
    assert_eq!(
        lines(&pair)[..3],
        ["> SFP 0:102 100 cc", "< S. 0:1 ack 1", "> FP. 1:102 100 ack 1"]
    );
}

#[test]
fn server_without_a_cached_count_buffers_the_data() {
    // RFC 1644, section 3.4: the TAO test fails, and the handshake completes in three segments.
    let mut pair = Pair::new(&ttcp(), &ttcp(), lossless());
    transact(&mut pair, 100, 200);
    pair.forget();
    pair.end(Side::Server).memory = transport::tcp::HostMemory::new([1; 32], 1);
    transact(&mut pair, 100, 200);
    assert_eq!(
        lines(&pair),
        [
            "> SFP 0:102 100 cc",
            "< S. 0:1 ack 1 cc echo",
            "> . 102:102 ack 1 cc",
            "< FP. 1:202 200 ack 102 cc",
            "> . 102:102 ack 202 cc",
        ]
    );
    pair.forget();
    transact(&mut pair, 100, 200);
    assert_eq!(pair.sent().len(), 3, "the count is cached again");
}

#[test]
fn echo_of_another_count_is_reset() {
    let mut pair = Pair::new(&ttcp(), &ttcp(), lossless());
    transact(&mut pair, 100, 200);
    let mut old = pair.sent()[1].packet.segment;
    pair.forget();
    pair.open(Side::Client);
    let syn = pair.sent()[0].packet.segment;
    old.acknowledgement = syn.end();
    let count = syn.options.count.unwrap().get();
    let mut opening = old.options.opening();
    opening.count_echo = transport::tcp::ttcp::Count::new(count - 1);
    old.options.set_opening(opening);
    pair.with(Side::Client, |connection, now| {
        use transport::Machine as _;
        connection.handle_frame(now, old);
    });
    let reset = pair.sent().last().unwrap().packet.segment;
    assert_eq!((reset.flags, reset.sequence), (Flags::RST, syn.end()));
    assert_eq!(pair.end(Side::Client).state(), State::SynSent);
}

#[test]
fn segments_with_another_count_are_rejected() {
    let mut pair = Pair::new(&ttcp(), &ttcp(), lossless());
    transact(&mut pair, 100, 200);
    pair.forget();
    pair.connect();
    let mut stray = pair.sent()[0].packet.segment;
    assert_eq!(pair.end(Side::Server).state(), State::Established);
    stray.sequence = stray.sequence + 1;
    stray.flags = Flags::ACK | Flags::PSH;
    stray.acknowledgement = pair.sent()[2].packet.segment.acknowledgement;
    stray.length = 10;
    stray.options.count = None;
    pair.with(Side::Server, |connection, now| {
        use transport::Machine as _;
        connection.handle_frame(now, stray);
        assert_eq!(connection.readable(), 0);
    });
    assert_eq!(pair.end(Side::Server).received, 0);
}

#[test]
fn time_wait_is_short_only_for_short_connections() {
    // RFC 1644, section 3.5: eight RTOs if the connection was shorter than the maximum segment lifetime (120 s),
    // otherwise twice that lifetime.
    for (pause, maximum) in [(1, 10), (130, 240)] {
        let mut pair = Pair::new(&ttcp(), &ttcp(), lossless());
        pair.connect();
        pair.run_for(Duration::from_secs(pause));
        for side in [Side::Client, Side::Server] {
            pair.with(side, |connection, now| connection.finish(now));
            pair.run_for(DELAY * 4);
        }
        assert_eq!(pair.end(Side::Client).state(), State::TimeWait);
        assert_eq!(pair.end(Side::Client).connection().may_be_replaced(), pause == 1);
        let before = pair.now;
        pair.run_until(Duration::from_secs(300), |pair| {
            pair.end(Side::Client).saw(Event::Closed)
        });
        let waited = (pair.now - before).as_nanos() / 1_000_000_000;
        assert!(
            (maximum - 3..=maximum).contains(&waited),
            "{waited} s after {pause} s"
        );
    }
}

#[test]
fn higher_count_replaces_a_finished_connection() {
    let mut pair = losing(&ttcp(), &ttcp(), |now, from, segment| {
        // The last ACK of the second transaction is lost.
        now > Instant::ZERO + Duration::from_secs(1) && from == Side::Client && !segment.has(Flags::SYN)
    });
    transact(&mut pair, 100, 200);
    pair.forget();
    pair.end(Side::Server).answer = Some((100, 200));
    pair.end(Side::Client).to_write = 100;
    pair.end(Side::Client).finish = true;
    pair.open(Side::Client);
    pair.run_for(DELAY * 3);
    assert_eq!(pair.end(Side::Server).state(), State::LastAck);
    assert!(pair.end(Side::Client).connection().may_be_replaced());
    let mut next = pair.sent()[0].packet.segment;
    let server = |pair: &mut Pair, syn: &Segment| pair.end(Side::Server).connection().is_replaced_by(syn);
    assert!(!server(&mut pair, &next), "the same count");
    next.options.count = transport::tcp::ttcp::Count::new(next.options.count.unwrap().get() + 1);
    assert!(server(&mut pair, &next));
    next.flags = Flags::ACK;
    assert!(!server(&mut pair, &next));
    pair.with(Side::Server, |connection, _| connection.handle_successor());
    assert!(pair.end(Side::Server).saw(Event::Finished) && pair.end(Side::Server).state() == State::Closed);
}

#[test]
fn one_end_alone_may_use_an_extension() {
    let configs = [plain(), fast_open(), ttcp(), TcpConfig::new(Profile::Linux)];
    for client in &configs {
        for server in &configs {
            let mut pair = Pair::new(client, server, lossless());
            for _ in 0..3 {
                transact(&mut pair, 3000, 5000);
                pair.forget();
            }
        }
    }
    assert_eq!(
        line(
            Side::Client,
            &Segment::bare(Default::default(), Default::default(), Flags::SYN),
            [Default::default(); 2]
        ),
        "> S 0:1"
    );
}

/// Returns a client that sends data without a cookie and whose SYN is not yet polled.
fn opening_early(profile: Profile) -> Rig {
    let config = TcpConfig {
        fast_open: true,
        ..TcpConfig::new(profile)
    };
    let mut memory = HostMemory::new([0; 32], 0);
    memory.set_cookieless(true, false);
    let opening = memory.opening(Instant::ZERO, &config, [192, 0, 2, 1].into());
    Rig {
        connection: Connection::open_with(Instant::ZERO, &config, OURS, opening),
        now: Instant::ZERO,
        events: Vec::new(),
    }
}

/// Returns the first position and the length of each segment.
fn ranges(segments: &[Out]) -> Vec<(u32, u32)> {
    segments.iter().map(|out| (out.sequence, out.length)).collect()
}

fn syn_ack(acknowledgement: u32) -> Peer {
    let syn = Peer {
        acknowledgement,
        ..Peer::syn()
    };
    syn.with(Flags::ACK)
}

#[test]
fn syn_data_ends_with_its_record() {
    for profile in [Profile::Rfc, Profile::Linux] {
        for accepted in [true, false] {
            let mut rig = opening_early(profile);
            rig.connection.set_nodelay(true);
            for bytes in [100, 60] {
                assert_eq!(rig.connection.write(rig.now, bytes), bytes);
                rig.connection.end_record();
            }
            assert_eq!(rig.connection.write(rig.now, 40), 40);
            assert_eq!(ranges(&rig.out()), [(0, 100)], "{profile:?}");
            rig.wait(100);
            let acknowledged = if accepted { 101 } else { 1 };
            let sent = rig.exchange(syn_ack(acknowledged));
            let first = if accepted { None } else { Some((1, 100)) };
            let expected: Vec<_> = first.into_iter().chain([(101, 60), (161, 40)]).collect();
            let data: Vec<_> = ranges(&sent)
                .into_iter()
                .filter(|(_, length)| *length > 0)
                .collect();
            assert_eq!(data, expected, "{profile:?}, accepted: {accepted}");
        }
    }
}

#[test]
fn syn_is_repeated_once_per_fall_of_the_path_mtu() {
    for profile in [Profile::Rfc, Profile::Linux] {
        let mut rig = opening_early(profile);
        let rig_mss = rig.info().announced_mss;
        rig.connection.write(rig.now, 500);
        assert_eq!(ranges(&rig.out()), [(0, 500)]);
        for (mtu, repeats) in [(1500, 0), (560, 1), (560, 0), (1400, 0), (530, 1)] {
            rig.wait(10);
            rig.connection.handle_path_mtu(rig.now, mtu);
            assert_eq!(ranges(&rig.out()), vec![(0, 0); repeats], "{profile:?}, {mtu}");
        }
        rig.wait(10);
        let sent = rig.exchange(syn_ack(1));
        assert!(sent.iter().any(|out| out.length > 0));
        // No SYN was lost: the initial window is more than one segment (RFC 5681, section 3.1).
        let (window, segment) = (rig.connection.controller().window(), rig.connection.segment());
        assert!(window >= 2 * u64::from(segment), "{profile:?}: {window}");
        let announced = if profile == Profile::Linux { 490 } else { rig_mss };
        assert_eq!(rig.info().announced_mss, announced);
        // Later messages do not change what this end's SYN carried.
        rig.connection.handle_path_mtu(rig.now, 400);
        assert_eq!(rig.info().announced_mss, announced);
    }
}
