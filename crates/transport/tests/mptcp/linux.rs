//! Linux's details (`Setup::following_linux`).

use transport::mptcp::segment::Widths;
use transport::mptcp::{MptcpConfig, MptcpOption, PathIndex, Setup};
use transport::tcp::{self, Error, Event, Flags};

use crate::mptcp::addresses::single;
use crate::mptcp::pair::{Pair, Sent, Side, at};

fn both_ways(finish: bool) -> Pair {
    let text = r#"{"kind": "mptcp", "profile": "rfc", "policy": {"kind": "all", "first": "first"}}"#;
    let config: MptcpConfig = serde_json::from_str(text).unwrap();
    let mut pair = Pair::lossless(&config, &[20, 40], 300_000).with_setup(Setup::following_linux);
    pair.ends[1].to_write = 200_000;
    pair.ends[0].finish = finish;
    pair.open();
    pair
}

#[test]
fn numbers_have_eight_bytes_and_acks_the_length_of_the_peers() {
    let mut pair = both_ways(true);
    pair.run(at(60_000));
    assert!(pair.is_finished());
    let widths = |side| {
        let from_side = pair.trace.iter().filter(move |sent: &&Sent| sent.from == side);
        from_side.filter_map(|sent| match sent.packet.segment.option {
            MptcpOption::Dss { widths, .. } => Some(widths),
            _ => None,
        })
    };
    for side in [Side::Client, Side::Server] {
        assert!(widths(side).all(|widths| widths.data));
        assert!(
            widths(side).next_back()
                == Some(Widths {
                    acknowledgement: true,
                    data: true
                })
        );
    }
}

#[test]
fn every_subflow_carries_the_data_fin_and_fins_follow_its_ack() {
    let mut pair = both_ways(false);
    pair.run_until(at(5000));
    pair.with(Side::Client, |client, now| client.finish(now));
    pair.run(at(60_000));
    let carries = |side, subflow| {
        let mut sent = pair.trace.iter().filter(|sent| sent.from == side);
        sent.any(|sent| {
            let segment = &sent.packet.segment;
            segment.subflow == subflow && matches!(segment.option, MptcpOption::Dss { fin: true, .. })
        })
    };
    assert!(carries(Side::Client, 0) && carries(Side::Client, 1));
    let mut fins = pair
        .trace
        .iter()
        .filter(|sent| sent.packet.segment.tcp.has(Flags::FIN));
    assert!(fins.all(|sent| sent.packet.segment.tcp.length == 0));
}

#[test]
fn connection_waits_one_minute_for_a_subflow() {
    let mut pair = Pair::lossless(&single(), &[20], 1000).with_setup(Setup::following_linux);
    pair.ends[0].finish = false;
    pair.ends[1].finish = false;
    pair.open();
    pair.run_until(at(500));
    let mut reset = pair
        .trace
        .iter()
        .rfind(|sent| sent.from == Side::Client)
        .unwrap()
        .packet
        .segment;
    reset.tcp.flags = Flags::RST;
    reset.tcp.length = 0;
    let mut last_data = pair
        .trace
        .iter()
        .filter(|sent| sent.from == Side::Client)
        .map(|sent| sent.packet.segment.tcp.end());
    reset.tcp.sequence = last_data.next_back().unwrap();
    reset.option = MptcpOption::None;
    pair.deliver(Side::Server, PathIndex(0), reset);
    let state = |pair: &Pair| pair.connection(Side::Server).subflows().next().unwrap().state;
    assert_eq!(state(&pair), tcp::State::Closed);
    pair.run_until(at(60_000));
    assert!(!pair.ends[1].saw(Event::Failed(Error::TimedOut)));
    pair.run_until(at(61_000));
    assert!(pair.ends[1].saw(Event::Failed(Error::TimedOut)));
}
