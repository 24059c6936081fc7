//! Accurate ECN (RFC 9768): the sender counts what the receiver was marked, over paths that mark, lose and reorder.

use std::cell::Cell;
use std::rc::Rc;

use foundation::Duration;
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use transport::congestion::CongestionConfig;
use transport::tcp::{Ecn, EcnMode, EcnOption, Event, Flags, Segment, TcpConfig};

use super::pair::{Fate, Pair, Path, Side};

const DELAY: Duration = Duration::from_millis(10);

fn config(ecn: EcnMode, option: EcnOption) -> TcpConfig {
    TcpConfig {
        ecn: Some(ecn),
        ecn_option: Some(option),
        ..TcpConfig::default()
    }
}

/// Segments and bytes of the client that the path marked.
#[derive(Default)]
struct Marked {
    packets: Cell<u32>,
    bytes: Cell<u32>,
}

/// A path that marks ECN-capable packets of the client; it loses ACKs and delays single ones by up to 2 ms if `loss` is
/// not 0.
fn path(seed: u64, marks: f64, loss: f64, marked: Rc<Marked>) -> Path {
    let mut random = SmallRng::seed_from_u64(seed);
    Box::new(move |_, from, segment| {
        let most = if loss > 0.0 { 2000 } else { 1 };
        let late = Duration::from_micros(random.next_u64() % most);
        if from == Side::Server {
            let is_pure = !segment.has(Flags::SYN | Flags::FIN);
            return if is_pure && random.random_bool(loss) {
                Fate::lost()
            } else {
                Fate::arrives(DELAY + late)
            };
        }
        let is_marked = segment.ecn != Ecn::NotEct && random.random_bool(marks);
        if is_marked {
            marked.packets.set(marked.packets.get() + 1);
            marked.bytes.set(marked.bytes.get() + segment.length);
        }
        Fate {
            marked: is_marked,
            ..Fate::arrives(DELAY)
        }
    })
}

fn transfer(config: &TcpConfig, path: Path) -> Pair {
    let mut pair = Pair::new(config, config, path);
    pair.end(Side::Client).to_write = 2_000_000;
    pair.end(Side::Client).finish = true;
    pair.open(Side::Client);
    pair.run_until(Duration::from_secs(120), |pair| {
        pair.end(Side::Server).received == 2_000_000
    });
    // The ACK of the FIN reports everything, and the FIN is sent again until it arrives.
    pair.run_until(Duration::from_secs(180), |pair| {
        pair.end(Side::Client).saw(Event::Finished)
    });
    pair
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Both counters are exact if no ACK is lost. Otherwise they are estimates (RFC 9768, appendix A).
    #[test]
    fn the_sender_counts_what_was_marked(seed: u64, marks in 0.0..0.5) {
        let marked = Rc::new(Marked::default());
        let pair = transfer(
            &config(EcnMode::Accurate, EcnOption::Full),
            path(seed, marks, 0.0, Rc::clone(&marked)),
        );
        let info = pair.ends[0].connection().info();
        let counted = info.accurate_ecn.expect("negotiated");
        prop_assert_eq!(counted.ce_packets, marked.packets.get());
        prop_assert_eq!(counted.ce_bytes, marked.bytes.get());
        prop_assert_eq!(info.delivered_marked, u64::from(marked.packets.get()));
    }

    /// Without the option too, unless more than seven segments are acknowledged at once.
    #[test]
    fn the_counter_of_segments_needs_no_option(seed: u64, marks in 0.0..0.5) {
        let marked = Rc::new(Marked::default());
        let pair = transfer(
            &config(EcnMode::Accurate, EcnOption::Off),
            path(seed, marks, 0.0, Rc::clone(&marked)),
        );
        let counted = pair.ends[0].connection().info().accurate_ecn.expect("negotiated");
        prop_assert_eq!(counted.ce_packets, marked.packets.get());
        prop_assert_eq!(counted.ce_bytes, 0);
    }

    /// Whatever the ends support, they agree on the feedback that both have, and the transfer completes.
    #[test]
    fn every_pair_of_modes_agrees(seed: u64, client in any_mode(), server in any_mode(), marks in 0.0..0.2) {
        let marked = Rc::new(Marked::default());
        let end = |mode| config(mode, EcnOption::Minimum);
        let mut pair = Pair::new(&end(client), &end(server), path(seed, marks, 0.02, marked));
        pair.end(Side::Client).to_write = 200_000;
        pair.end(Side::Client).finish = true;
        pair.open(Side::Client);
        let complete = pair.run_until(Duration::from_secs(60), |pair| pair.end(Side::Server).received == 200_000);
        prop_assert!(complete);
        let info = |pair: &Pair, end: usize| {
            let info = pair.ends[end].connection().info();
            (info.ecn, info.accurate_ecn.is_some())
        };
        let expected = match (client, server) {
            (EcnMode::Off, _) | (_, EcnMode::Off) => (false, false),
            (EcnMode::Accurate, EcnMode::Accurate) => (true, true),
            _ => (true, false),
        };
        prop_assert_eq!((info(&pair, 0), info(&pair, 1)), (expected, expected));
    }
}

fn any_mode() -> impl Strategy<Value = EcnMode> {
    prop_oneof![
        Just(EcnMode::Off),
        Just(EcnMode::Classic),
        Just(EcnMode::Dctcp),
        Just(EcnMode::Accurate),
    ]
}

/// A middlebox that clears the three flags: RFC 9768, section 3.1.2 (table 2), falls back to no ECN.
#[test]
fn cleared_flags_end_ecn_but_not_the_transfer() {
    for from_client in [true, false] {
        let mut pair = Pair::lossless(&config(EcnMode::Accurate, EcnOption::Full), DELAY);
        pair.rewrite = Some(Box::new(move |from, segment: &mut Segment| {
            if (from == Side::Client) == from_client {
                segment.flags = segment.flags.without(Flags::from_ace(7));
            }
        }));
        pair.end(Side::Client).to_write = 100_000;
        pair.open(Side::Client);
        assert!(
            pair.run_until(Duration::from_secs(10), |pair| pair.end(Side::Server).received
                == 100_000)
        );
        let sent = pair.sent().iter().filter(|sent| sent.from == Side::Client);
        let capable = sent.filter(|sent| sent.packet.segment.ecn != Ecn::NotEct).count();
        assert_eq!(capable, 0, "cleared on the way from the client: {from_client}");
    }
}

/// A path that changes the code point of the SYN ends ECN-capable segments, but not the response to marks: they can be those
/// of a queue behind the change (RFC 9768, section 3.2.2.3).
#[test]
fn marks_count_after_a_mangled_syn() {
    let mut pair = Pair::lossless(&config(EcnMode::Accurate, EcnOption::Full), DELAY);
    let mut number = 0;
    let marked = Rc::new(Cell::new(0));
    let seen = Rc::clone(&marked);
    pair.rewrite = Some(Box::new(move |from, segment: &mut Segment| {
        if from == Side::Client {
            number += u32::from(segment.length > 0);
            if segment.has(Flags::SYN) || (segment.length > 0 && number % 50 == 0) {
                segment.ecn = Ecn::Ce;
                seen.set(seen.get() + 1);
            }
        }
    }));
    pair.end(Side::Client).to_write = 1_000_000;
    pair.open(Side::Client);
    assert!(
        pair.run_until(Duration::from_secs(30), |pair| pair.end(Side::Server).received
            == 1_000_000)
    );
    pair.run_until(Duration::from_secs(1), |_| false);
    let data = pair
        .sent()
        .iter()
        .filter(|sent| sent.from == Side::Client && sent.packet.segment.length > 0);
    assert!(data.clone().count() > 600);
    // The client sends ECN-capable segments until the SYN-ACK reports the change. The rewriting of the path is not in `sent`.
    let capable = data
        .clone()
        .filter(|sent| sent.packet.segment.ecn != Ecn::NotEct)
        .count();
    assert_eq!(capable, 0, "segments stay ECN-capable");
    let info = pair.ends[0].connection().info();
    // The SYN counts nowhere.
    assert_eq!(info.delivered_marked, u64::from(marked.get() - 1));
    assert!(info.ssthresh_packets.is_some(), "the window was reduced");
    assert_eq!(
        pair.ends[0]
            .connection()
            .info()
            .accurate_ecn
            .map(|seen| seen.ce_packets),
        Some(marked.get() - 1)
    );
}

/// Prague sends ECT(1) in every segment after the handshake, retransmissions and ACKs included (RFC 9331, section 4.1).
#[test]
fn prague_sends_ect1() {
    let prague = TcpConfig {
        congestion: Some(CongestionConfig::named("prague").expect("built in")),
        ..TcpConfig::default()
    };
    let mut random = SmallRng::seed_from_u64(1);
    let lossy: Path = Box::new(move |_, _, segment| {
        if segment.length > 0 && random.random_bool(0.02) {
            Fate::lost()
        } else {
            Fate::arrives(DELAY)
        }
    });
    let mut pair = Pair::new(&prague, &prague, lossy);
    pair.end(Side::Client).to_write = 500_000;
    pair.open(Side::Client);
    assert!(
        pair.run_until(Duration::from_secs(60), |pair| pair.end(Side::Server).received
            == 500_000)
    );
    assert!(pair.sent().iter().any(|sent| sent.packet.retransmission));
    for sent in pair.sent() {
        let segment = &sent.packet.segment;
        let expected = if segment.has(Flags::SYN) {
            Ecn::NotEct
        } else {
            Ecn::Ect1
        };
        assert_eq!(segment.ecn, expected, "{segment:?}");
    }
}
