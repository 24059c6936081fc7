//! Announced and removed addresses, and the segments that refuse or close connections.

use transport::Machine as _;
use transport::mptcp::segment::Token;
use transport::mptcp::{AddressForm, Connection, MptcpConfig, MptcpOption, PathIndex, Segment, Signal};
use transport::tcp::{self, Error, Event, Flags, SequenceNumber};

use crate::mptcp::pair::{Pair, Sent, Side, at, ms};

/// Settings whose policy opens no further subflows.
pub fn single() -> MptcpConfig {
    let text = r#"{"kind": "mptcp", "profile": "rfc", "policy": "single", "receive_buffer": "200kB"}"#;
    serde_json::from_str(text).unwrap()
}

fn announcements(pair: &Pair) -> (usize, usize) {
    let count = |wanted: bool| {
        let is_one = |sent: &&Sent| matches!(sent.packet.segment.signal, Signal::AddAddress { echo, .. } if echo == wanted);
        pair.trace.iter().filter(is_one).count()
    };
    (count(false), count(true))
}

/// Opens a pair of two paths; the server announces its second address once the client has the first data acknowledged.
fn announced() -> Pair {
    let mut pair = Pair::lossless(&single(), &[20, 40], 8_000_000);
    pair.open();
    pair.run_until(at(100));
    pair.with(Side::Server, |server, now| {
        server.announce_address(now, 1, AddressForm::default());
    });
    pair.run_until(at(150));
    pair
}

#[test]
fn announced_address_is_echoed_and_carries_a_subflow() {
    let mut pair = announced();
    assert_eq!(announcements(&pair), (1, 1));
    let take = |pair: &mut Pair| pair.with(Side::Client, |client, _| client.take_announced_address());
    assert_eq!((take(&mut pair), take(&mut pair)), (Some(1), None));
    let opens = |pair: &mut Pair| {
        pair.with(Side::Client, |client, now| {
            client.open_subflow(now, PathIndex(1), (0, 1), false)
        })
    };
    assert!(opens(&mut pair));
    pair.run_until(at(300));
    assert_eq!(pair.connection(Side::Server).subflows().len(), 2);
    let states = pair
        .connection(Side::Client)
        .subflows()
        .map(|subflow| subflow.state);
    assert_eq!(states.collect::<Vec<_>>(), [tcp::State::Established; 2]);
    pair.with(Side::Server, |server, now| {
        server.announce_address(now, 1, AddressForm::default());
    });
    pair.run(at(60_000));
    assert!(pair.is_finished());
    assert_eq!(announcements(&pair), (2, 2), "a known address is echoed again");
    assert_eq!(take(&mut pair), None);
}

#[test]
fn announcement_is_repeated_three_times_without_echo() {
    let lost = |_, _, _, segment: &mut Segment| match segment.signal {
        Signal::AddAddress { echo: true, .. } => vec![],
        _ => vec![ms(10)],
    };
    let mut pair = Pair::new(&single(), &[20], 1000, 1, Box::new(lost));
    pair.ends[0].finish = false;
    pair.open();
    pair.run_until(at(100));
    pair.with(Side::Server, |server, now| {
        server.announce_address(now, 1, AddressForm::default());
    });
    pair.run_until(at(120_000));
    assert_eq!(announcements(&pair), (4, 4));
    assert_eq!(pair.connection(Side::Server).poll_timeout(), None);
}

#[test]
fn removed_address_closes_its_subflows() {
    let mut pair = announced();
    pair.with(Side::Client, |client, now| {
        assert!(client.open_subflow(now, PathIndex(1), (0, 1), false));
    });
    pair.run_until(at(300));
    pair.with(Side::Server, |server, now| server.remove_address(now, 1));
    let removals = |sent: &&Sent| matches!(sent.packet.segment.signal, Signal::RemoveAddress { id: 1 });
    assert_eq!(pair.trace.iter().filter(removals).count(), 1);
    pair.run_until(at(400));
    for side in [Side::Client, Side::Server] {
        let states: Vec<tcp::State> = pair
            .connection(side)
            .subflows()
            .map(|subflow| subflow.state)
            .collect();
        assert_eq!(states, [tcp::State::Established, tcp::State::Closed]);
    }
    pair.run(at(60_000));
    assert!(pair.is_finished());
    assert_eq!(pair.ends[1].received, 8_000_000);
}

/// RFC 8684, section 3.2: a join with an unknown token is answered by a reset with MP_TCPRST.
#[test]
fn join_with_unknown_token_is_refused_as_an_error() {
    let mut segment = Segment {
        tcp: tcp::Segment::bare(SequenceNumber(7), SequenceNumber(0), Flags::SYN),
        option: MptcpOption::JoinSyn {
            token: Token::Value(1),
            nonce: 2,
            address: 0,
            backup: false,
        },
        signal: Signal::None,
        subflow: 1,
    };
    let reset = Connection::refuse(&segment).unwrap();
    assert!(reset.tcp.has(Flags::RST));
    let (transient, reason) = (false, 1);
    assert_eq!(reset.option, MptcpOption::Reset { transient, reason });
    segment.option = MptcpOption::None;
    assert_eq!(Connection::refuse(&segment).unwrap().option, MptcpOption::None);
}

/// Returns the connection's own key from its handshake.
fn key_of(pair: &Pair, side: Side) -> u64 {
    pair.connection(side).keys().sender
}

/// RFC 8684, section 3.5: every subflow is reset, but only by a segment that TCP accepts.
#[test]
fn fast_close_needs_an_acceptable_segment_and_resets_all_subflows() {
    for flags in [Flags::ACK, Flags::ACK | Flags::RST] {
        let mut pair = announced();
        pair.with(Side::Client, |client, now| {
            assert!(client.open_subflow(now, PathIndex(1), (0, 1), false));
        });
        pair.run_until(at(300));
        let receiver = key_of(&pair, Side::Client);
        let last = |sent: &&Sent| sent.from == Side::Server && sent.packet.segment.subflow == 1;
        let mut segment = pair.trace.iter().rfind(last).unwrap().packet.segment;
        segment.option = MptcpOption::FastClose { receiver };
        segment.tcp.flags = flags;
        segment.tcp.length = 0;
        let right = segment.tcp.sequence;
        segment.tcp.sequence = SequenceNumber(right.0.wrapping_sub(10));
        pair.deliver(Side::Client, PathIndex(1), segment);
        assert!(!pair.ends[0].saw(Event::Failed(Error::Reset)), "{flags:?}");
        segment.tcp.sequence = right;
        let before = pair.trace.len();
        pair.deliver(Side::Client, PathIndex(1), segment);
        assert!(pair.ends[0].saw(Event::Failed(Error::Reset)), "{flags:?}");
        let resets = pair.trace[before..]
            .iter()
            .filter(|sent| sent.packet.segment.tcp.has(Flags::RST));
        let subflows: Vec<(u8, MptcpOption)> = resets
            .map(|sent| (sent.packet.segment.subflow, sent.packet.segment.option))
            .collect();
        let (transient, reason) = (false, 0);
        let reset = MptcpOption::Reset { transient, reason };
        let all = [(0, reset), (1, reset)];
        let expected = if flags.contains(Flags::RST) {
            &all[..1]
        } else {
            &all[..]
        };
        assert_eq!(subflows, expected, "{flags:?}");
    }
}

/// RFC 8684, section 3.7: a peer whose segments after the SYN have no option gets plain TCP, even if its data has one.
#[test]
fn falls_back_after_a_third_segment_without_option() {
    let strip = |_, from, _, segment: &mut Segment| {
        if from == Side::Client && segment.tcp.length == 0 && !segment.tcp.has(Flags::SYN) {
            segment.option = MptcpOption::None;
        }
        vec![ms(10)]
    };
    let mut pair = Pair::new(&single(), &[20], 200_000, 1, Box::new(strip));
    pair.open();
    pair.run(at(60_000));
    assert!(pair.is_finished());
    assert_eq!(pair.ends[1].received, 200_000);
    assert!([Side::Client, Side::Server].map(|side| pair.connection(side).is_plain()) == [true; 2]);
}
