//! Fast Open and T/TCP where things do not go as they should: cookies refused, SYNs lost, peers that know nothing of it.

use foundation::{Duration, Instant};
use transport::tcp::fast_open::FastOpen;
use transport::tcp::{Event, Flags, Profile, Segment, State, TcpConfig};

use crate::tcp::pair::{Fate, Pair, Side};
use crate::tcp::transactions::{DELAY, ask, fast_open, kind, line, lines, plain, ttcp};

/// A pair whose path loses what `loses` says.
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

#[test]
fn a_server_without_fast_open_is_not_asked_again() {
    let mut pair = Pair::new(&fast_open(), &plain(), kind());
    ask(&mut pair, 100, 200);
    assert_eq!(
        pair.sent()[0].packet.segment.options.opening().fast_open,
        Some(FastOpen::Request)
    );
    pair.forget();
    ask(&mut pair, 100, 200);
    let syn = pair.sent()[0].packet.segment;
    assert_eq!((syn.options.opening().fast_open, syn.length), (None, 0));
}

#[test]
fn a_cookie_of_another_key_is_refused_and_replaced() {
    let mut pair = Pair::new(&fast_open(), &fast_open(), kind());
    ask(&mut pair, 100, 200);
    pair.forget();
    // Changed once, old cookies are good still, and new ones are given; changed twice, they are not.
    for (changes, early) in [(1, true), (2, false)] {
        for change in 0..changes {
            pair.end(Side::Server)
                .memory
                .cookie_keys()
                .change([90 + changes + change; 32]);
        }
        ask(&mut pair, 100, 200);
        let sent: Vec<Segment> = pair.sent().iter().map(|sent| sent.packet.segment).collect();
        assert_eq!(sent[0].length, 100);
        let acknowledges = sent[1].acknowledgement - sent[0].sequence;
        assert_eq!(acknowledges, if early { 101 } else { 1 });
        assert!(
            matches!(sent[1].options.opening().fast_open, Some(FastOpen::Cookie(_))),
            "a new one"
        );
        assert_eq!(pair.end(Side::Client).connection().was_early(), early);
        // Refused, the data leaves again at once, with the last segment of the handshake.
        assert_eq!(sent[2].length, if early { 0 } else { 100 });
        pair.forget();
        ask(&mut pair, 100, 200);
        assert!(
            pair.end(Side::Client).connection().was_early(),
            "the new cookie is good"
        );
        pair.forget();
    }
}

#[test]
fn a_syn_that_times_out_is_sent_again_without_data_or_cookie() {
    // RFC 7413, section 4.2.1.
    let drops =
        |_, from, segment: &Segment| from == Side::Client && segment.has(Flags::SYN) && segment.length > 0;
    let mut pair = losing(&fast_open(), &fast_open(), drops);
    ask(&mut pair, 100, 200);
    pair.forget();
    for _ in 0..2 {
        ask(&mut pair, 100, 200);
        let syns: Vec<Segment> = pair
            .sent()
            .iter()
            .map(|sent| sent.packet.segment)
            .filter(|segment| segment.flags == Flags::SYN)
            .collect();
        assert_eq!(syns.len(), 2);
        assert_eq!((syns[1].length, syns[1].options.opening().fast_open), (0, None));
        assert!(!pair.end(Side::Client).connection().was_early());
        pair.forget();
    }
    // Twice in a row: the path drops them, and the next SYN is plain.
    ask(&mut pair, 100, 200);
    let syn = pair.sent()[0].packet.segment;
    assert_eq!((syn.length, syn.options.opening().fast_open), (0, None));
}

#[test]
fn an_answer_that_is_lost_leaves_the_data_taken_once() {
    for config in [fast_open(), ttcp()] {
        let mut losses = 0;
        let mut pair = losing(&config, &config, move |_, from, segment| {
            let is_answer = from == Side::Server && segment.has(Flags::SYN);
            losses += u32::from(is_answer);
            // The first transaction's answer passes, that of the second is lost once.
            is_answer && losses == 2
        });
        ask(&mut pair, 100, 200);
        pair.forget();
        ask(&mut pair, 100, 200);
        let lines = lines(&pair);
        let syns = lines.iter().filter(|line| line.starts_with("> S")).count();
        assert_eq!(syns, 2, "{lines:#?}");
        assert!(pair.end(Side::Server).connection().was_early());
        pair.check_stream(Side::Server);
        pair.check_stream(Side::Client);
    }
}

#[test]
fn a_server_takes_only_so_many_at_a_time() {
    let mut pair = Pair::new(&fast_open(), &fast_open(), kind());
    ask(&mut pair, 100, 200);
    pair.forget();
    pair.end(Side::Server).memory.limit_pending(0);
    ask(&mut pair, 100, 200);
    assert!(!pair.end(Side::Client).connection().was_early());
    pair.forget();
    pair.end(Side::Server).memory.limit_pending(1);
    // Those that are done count no longer.
    for _ in 0..3 {
        ask(&mut pair, 100, 200);
        assert!(pair.end(Side::Client).connection().was_early());
        pair.forget();
    }
}

#[test]
fn ttcp_falls_back_where_the_peer_knows_nothing_of_it() {
    let mut pair = Pair::new(&ttcp(), &plain(), kind());
    for _ in 0..2 {
        ask(&mut pair, 100, 200);
        let syn = pair.sent()[0].packet.segment;
        assert!(syn.options.opening().count_is_new && syn.length == 0);
        let counted = pair.sent()[1..]
            .iter()
            .any(|sent| sent.packet.segment.options.count.is_some());
        assert!(!counted, "no count where the answer had none");
        pair.forget();
    }
    // A server that knew it and does no longer: data comes with the SYN, and again after it.
    let mut pair = Pair::new(&ttcp(), &ttcp(), kind());
    ask(&mut pair, 100, 200);
    pair.end(Side::Server).config = plain();
    pair.forget();
    ask(&mut pair, 100, 200);
    assert_eq!(
        lines(&pair)[..3],
        ["> SFP 0:102 100 cc", "< S. 0:1 ack 1", "> FP. 1:102 100 ack 1"]
    );
}

#[test]
fn a_server_that_has_forgotten_keeps_the_data_until_the_handshake_is_done() {
    // RFC 1644, section 3.4: the TAO test fails, and three segments later all is well.
    let mut pair = Pair::new(&ttcp(), &ttcp(), kind());
    ask(&mut pair, 100, 200);
    pair.forget();
    pair.end(Side::Server).memory = transport::tcp::HostMemory::new([1; 32], 1);
    ask(&mut pair, 100, 200);
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
    ask(&mut pair, 100, 200);
    assert_eq!(pair.sent().len(), 3, "and then it remembers");
}

#[test]
fn an_echo_of_another_count_is_reset() {
    let mut pair = Pair::new(&ttcp(), &ttcp(), kind());
    ask(&mut pair, 100, 200);
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
fn segments_of_another_count_are_not_taken() {
    let mut pair = Pair::new(&ttcp(), &ttcp(), kind());
    ask(&mut pair, 100, 200);
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
    // RFC 1644, section 3.5: eight retransmission timeouts if the connection was shorter than the longest life of a segment
    // (120 s), else twice that.
    for (pause, most) in [(1, 10), (130, 240)] {
        let mut pair = Pair::new(&ttcp(), &ttcp(), kind());
        pair.connect();
        pair.run_for(Duration::from_secs(pause));
        for side in [Side::Client, Side::Server] {
            pair.with(side, |connection, now| connection.finish(now));
            pair.run_for(DELAY * 4);
        }
        assert_eq!(pair.end(Side::Client).state(), State::TimeWait);
        assert_eq!(pair.end(Side::Client).connection().makes_room(), pause == 1);
        let before = pair.now;
        pair.run_until(Duration::from_secs(300), |pair| {
            pair.end(Side::Client).saw(Event::Closed)
        });
        let waited = (pair.now - before).as_nanos() / 1_000_000_000;
        assert!((most - 3..=most).contains(&waited), "{waited} s after {pause} s");
    }
}

#[test]
fn a_higher_count_takes_the_place_of_a_connection_that_is_done() {
    let mut pair = losing(&ttcp(), &ttcp(), |now, from, segment| {
        // The last acknowledgement of the second transaction is lost.
        now > Instant::ZERO + Duration::from_secs(1) && from == Side::Client && !segment.has(Flags::SYN)
    });
    ask(&mut pair, 100, 200);
    pair.forget();
    pair.end(Side::Server).answer = Some((100, 200));
    pair.end(Side::Client).to_write = 100;
    pair.end(Side::Client).finish = true;
    pair.open(Side::Client);
    pair.run_for(DELAY * 3);
    assert_eq!(pair.end(Side::Server).state(), State::LastAck);
    assert!(pair.end(Side::Client).connection().makes_room());
    let mut next = pair.sent()[0].packet.segment;
    let server = |pair: &mut Pair, syn: &Segment| pair.end(Side::Server).connection().is_replaced_by(syn);
    assert!(!server(&mut pair, &next), "the same again");
    next.options.count = transport::tcp::ttcp::Count::new(next.options.count.unwrap().get() + 1);
    assert!(server(&mut pair, &next));
    next.flags = Flags::ACK;
    assert!(!server(&mut pair, &next));
    pair.with(Side::Server, |connection, _| connection.handle_successor());
    assert!(pair.end(Side::Server).saw(Event::Finished) && pair.end(Side::Server).state() == State::Closed);
}

#[test]
fn either_way_may_be_chosen_by_one_end_alone() {
    let configs = [plain(), fast_open(), ttcp(), TcpConfig::new(Profile::Linux)];
    for client in &configs {
        for server in &configs {
            let mut pair = Pair::new(client, server, kind());
            for _ in 0..3 {
                ask(&mut pair, 3000, 5000);
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
