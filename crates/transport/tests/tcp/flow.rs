//! Flow control, small segments and delayed acknowledgements (RFC 9293, sections 3.7.4 and 3.8.6).

use foundation::{Duration, Size};
use transport::tcp::{Error, Event, Flags, Profile, TcpConfig};

use crate::tcp::rig::{Out, Peer, Rig};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn linux() -> TcpConfig {
    TcpConfig::new(Profile::Linux)
}

fn server() -> Rig {
    Rig::server(&linux(), true)
}

fn lengths(out: &[Out]) -> Vec<u32> {
    out.iter().map(|o| o.length).collect()
}

#[test]
fn zero_window_probes_back_off() {
    let mut rig = server();
    rig.write(3000);
    rig.wait(100);
    assert_eq!(rig.exchange(Peer::ack(3001).window(0)), []);
    assert_eq!(rig.write(5000), []);
    // RTT 100 ms, so a timeout of 300 ms: probes after that, twice that, ... (RFC 9293, section 3.8.6.1).
    let probes = rig.run(2500);
    let times: Vec<u64> = probes.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [300, 900, 2100]);
    // An acknowledged number without data: the peer answers with its window.
    assert!(
        probes.iter().all(|(_, p)| (p.sequence, p.length) == (3000, 0)),
        "{probes:?}"
    );
    assert_eq!(rig.exchange(Peer::ack(3001).window(0)), []);
    let out = rig.exchange(Peer::ack(3001).window(5000));
    assert_eq!(lengths(&out), [1000; 5]);
}

#[test]
fn answered_window_probes_keep_the_connection() {
    let mut rig = server();
    rig.connection.set_user_timeout(MS(10_000));
    rig.write(1000);
    rig.exchange(Peer::ack(1001).window(0));
    rig.write(1000);
    for _ in 0..100 {
        rig.run(1000);
        rig.exchange(Peer::ack(1001).window(0));
    }
    assert_eq!(rig.events, [Event::Connected]);
    rig.run(14_000);
    assert_eq!(rig.events.last(), Some(&Event::Failed(Error::TimedOut)));
}

#[test]
fn waits_when_the_window_is_smaller_than_a_segment() {
    // RFC 9293, section 3.8.6.2.1.
    let mut rig = server();
    rig.write(1000);
    rig.exchange(Peer::ack(1001).window(1500));
    let out = rig.write(3000);
    assert_eq!(lengths(&out), [1000], "500 more would be silly");
    assert_eq!(lengths(&rig.exchange(Peer::ack(2001).window(2500))), [1000, 1000]);
}

#[test]
fn nagle_delays_the_second_small_segment() {
    // Minshall's variant, as in Linux: a small segment waits while another small one is in flight.
    let mut rig = server();
    assert_eq!(lengths(&rig.write(100)), [100]);
    assert_eq!(rig.write(50), []);
    assert_eq!(rig.write(50), []);
    assert_eq!(lengths(&rig.write(950)), [1000], "full segments leave");
    assert_eq!(lengths(&rig.exchange(Peer::ack(101))), [50]);
    // Classic Nagle (RFC 9293, section 3.7.4): while any segment is in flight.
    let mut rig = Rig::server(&TcpConfig::new(Profile::Rfc), true);
    assert_eq!(lengths(&rig.write(1000)), [1000]);
    assert_eq!(rig.write(100), []);
    assert_eq!(lengths(&rig.exchange(Peer::ack(1001))), [100]);
    // Without Nagle, everything leaves.
    rig.connection.set_nodelay(true);
    assert_eq!(lengths(&rig.write(100)), [100]);
}

#[test]
fn linux_counts_half_the_window_as_a_full_segment() {
    // `tcp_bound_to_half_wnd`; RFC 9293, section 3.8.6.2.1.
    for (profile, at_once) in [(Profile::Linux, vec![500, 500]), (Profile::Rfc, vec![500])] {
        let mut rig = Rig::accepting(&TcpConfig::new(profile), &Peer::syn().window(1000));
        rig.out();
        rig.wait(100);
        rig.exchange(Peer::ack(1).window(1000));
        assert_eq!(lengths(&rig.write(1000)), at_once, "{profile:?}");
    }
}

#[test]
fn segments_beyond_the_window_are_cut_or_dropped() {
    // RFC 9293, section 3.10.7.4, accepts the part inside the window; `tcp_sequence` of Linux drops the segment while data is
    // unread, and otherwise accepts all of it.
    for (profile, [with_unread, without]) in [(Profile::Linux, [0, 30_000]), (Profile::Rfc, [7000, 8000])] {
        let config = TcpConfig {
            receive_buffer: Some(Size::from_bytes(8000)),
            receive_overhead: Some(Size::from_bytes(0)),
            ..TcpConfig::new(profile)
        };
        let mut rig = Rig::server(&config, true);
        rig.exchange(Peer::ack(1).data(1000));
        rig.exchange(Peer::ack(1).from(1001).data(30_000));
        assert_eq!(rig.connection.readable(), 1000 + with_unread, "{profile:?}");
        let mut rig = Rig::server(&config, true);
        rig.exchange(Peer::ack(1).data(30_000));
        assert_eq!(rig.connection.readable(), without, "{profile:?}");
    }
}

#[test]
fn nodelay_releases_waiting_data() {
    let mut rig = server();
    rig.write(100);
    assert_eq!(rig.write(50), []);
    rig.connection.set_nodelay(true);
    assert_eq!(lengths(&rig.out()), [50]);
}

#[test]
fn cork_delays_partial_segments() {
    let mut rig = server();
    rig.connection.set_cork(true);
    assert_eq!(lengths(&rig.write(1200)), [1000]);
    rig.exchange(Peer::ack(1001));
    assert_eq!(rig.out(), []);
    rig.connection.set_cork(false);
    assert_eq!(lengths(&rig.out()), [200]);
    // Linux sends the segment after the interval of a probe.
    rig.exchange(Peer::ack(1201));
    rig.connection.set_cork(true);
    rig.write(10);
    let late = rig.run(1000);
    assert!(late[0].0 >= 200 && late[0].1.length == 10, "{late:?}");
}

#[test]
fn write_more_delays_a_partial_segment() {
    let mut rig = server();
    rig.connection.set_nodelay(true);
    assert_eq!(rig.connection.write_more(rig.now, 100), 100);
    assert_eq!(rig.out(), []);
    let out = rig.write(50);
    assert_eq!(
        (lengths(&out), out[0].flags.contains(Flags::PSH)),
        (vec![150], true)
    );
}

#[test]
fn push_marks_the_end_of_a_write() {
    let mut rig = server();
    let out = rig.write(2500);
    let pushed: Vec<bool> = out.iter().map(|o| o.flags.contains(Flags::PSH)).collect();
    assert_eq!(pushed, [false, false, true]);
}

#[test]
fn send_buffer_fills_and_drains() {
    let config = TcpConfig {
        send_buffer: Some(Size::from_bytes(20_000)),
        ..TcpConfig::new(Profile::Rfc)
    };
    let mut rig = Rig::server(&config, true);
    assert_eq!(rig.connection.write(rig.now, 50_000), 20_000);
    assert_eq!(rig.connection.write(rig.now, 1), 0);
    rig.out();
    assert!(!rig.events.contains(&Event::Writable));
    rig.exchange(Peer::ack(3001));
    assert_eq!(rig.events.last(), Some(&Event::Writable));
    assert_eq!(rig.connection.writable(), 3000);
}

#[test]
fn linux_charges_memory_and_wakes_the_writer_when_a_third_is_free() {
    let config = TcpConfig {
        send_buffer: Some(Size::from_bytes(20_000)),
        ..linux()
    };
    let mut rig = Rig::server(&config, true);
    // 1000 bytes of payload take 1832 bytes of memory; the last segment may exceed the buffer.
    assert_eq!(rig.connection.write(rig.now, 50_000), 11_000);
    rig.out();
    rig.exchange(Peer::ack(3001));
    assert_eq!(rig.connection.writable(), 3000);
    assert!(!rig.events.contains(&Event::Writable), "3000 of 8000 free");
    rig.exchange(Peer::ack(5001));
    assert_eq!(rig.events.last(), Some(&Event::Writable));
    assert_eq!(rig.connection.writable(), 5000);
}

#[test]
fn selectively_acknowledged_data_frees_overhead() {
    let config = TcpConfig {
        send_buffer: Some(Size::from_bytes(20_000)),
        ..linux()
    };
    let mut rig = Rig::server(&config, true);
    assert_eq!(rig.connection.write(rig.now, 50_000), 11_000);
    assert_eq!(rig.out().len(), 10);
    // Nine segments are merged into one, and their overhead of 832 of 1832 bytes is free: equivalent to 4086 bytes of
    // payload.
    rig.exchange(Peer::ack(1).sack(&[(1001, 10_001)]));
    assert_eq!(rig.events.last(), Some(&Event::Writable));
    assert_eq!(rig.connection.writable(), 4086);
}

#[test]
fn linux_send_buffer_grows_when_the_window_is_not_full() {
    let mut rig = server();
    // 20 segments of 2304 bytes, of which 1832 are used.
    assert_eq!(rig.connection.write(rig.now, 100_000), 26_000);
    assert_eq!(rig.out().len(), 10);
    // 16 in flight and 4 unsent: the window of 16 is the limit.
    rig.exchange(Peer::ack(6001));
    assert_eq!(rig.connection.writable(), 6000);
    rig.exchange(Peer::ack(8001));
    assert_eq!(
        rig.connection.write(rig.now, 100_000),
        8000,
        "18 out, a window of 18"
    );
    // 16 of a window of 28 are in flight and none are unsent: memory for 2 * 28 segments of 2304 bytes, 71 of 1832.
    rig.exchange(Peer::ack(18_001));
    assert_eq!(rig.connection.writable(), 55_000);
}

#[test]
fn every_second_full_segment_is_acknowledged() {
    // RFC 5681, section 4.2, with 200 ms for a single segment.
    let mut rig = Rig::server(&TcpConfig::new(Profile::Rfc), true);
    assert_eq!(rig.exchange(Peer::ack(1).data(1000)), []);
    assert_eq!(
        rig.exchange(Peer::ack(1).from(1001).data(1000))[0].acknowledgement,
        2001
    );
    rig.receive(Peer::ack(1).from(2001).data(1000));
    let late = rig.run(1000);
    assert_eq!((late.len(), late[0].0, late[0].1.acknowledgement), (1, 200, 3001));
}

#[test]
fn linux_acks_first_segments_at_once_and_then_adapts() {
    let mut rig = server();
    let mut sequence = 1;
    let mut delayed = 0;
    for _ in 0..41 {
        delayed += u32::from(rig.exchange(Peer::ack(1).from(sequence).data(1000)).is_empty());
        sequence += 1000;
        rig.connection.read(rig.now, u64::MAX);
    }
    // Sixteen ACKs at once, and one for each of three increases of the window (`tcp_grow_window`); then one per two
    // segments.
    assert_eq!(delayed, 11);
    rig.receive(Peer::ack(1).from(sequence).data(1000));
    let late = rig.run(1000);
    assert_eq!((late.len(), late[0].0), (1, 40));
}

#[test]
fn acks_of_gaps_and_filled_gaps_are_immediate() {
    // RFC 5681, section 4.2.
    let mut rig = Rig::server(&TcpConfig::new(Profile::Rfc), true);
    let gap = rig.exchange(Peer::ack(1).from(1001).data(1000));
    assert_eq!((gap[0].acknowledgement, gap[0].sack()), (1, vec![(1001, 2001)]));
    let more = rig.exchange(Peer::ack(1).from(3001).data(1000));
    assert_eq!(
        more[0].sack(),
        [(3001, 4001), (1001, 2001)],
        "RFC 2018, section 4: the most recent first"
    );
    let filled = rig.exchange(Peer::ack(1).data(1000));
    assert_eq!(
        (filled[0].acknowledgement, filled[0].sack()),
        (2001, vec![(3001, 4001)])
    );
    // RFC 2883, section 4: a duplicate is reported once, in the first block.
    let twice = rig.exchange(Peer::ack(1).data(1000));
    assert_eq!(twice[0].sack(), [(1, 1001), (3001, 4001)]);
    let next = rig.exchange(Peer::ack(1).from(2001).data(500));
    assert_eq!(
        (next[0].acknowledgement, next[0].sack()),
        (2501, vec![(3001, 4001)])
    );
}

/// Linux's `__tcp_ack_snd_check`: after three segments above a gap, an ACK waits for 5 % of the round trip, at most 1 ms, or for 44
/// segments.
#[test]
fn sack_compression_delays_acks_above_a_gap() {
    let config = TcpConfig {
        sack_compression: true,
        // No first segments that are acknowledged at once.
        quick_acks: Some(false),
        ..linux()
    };
    let mut rig = Rig::server(&config, true);
    let segment = |index: u32| Peer::ack(1).from(1 + index * 1000).data(1000);
    let sent = |range: std::ops::RangeInclusive<u32>, rig: &mut Rig| -> Vec<usize> {
        range.map(|index| rig.exchange(segment(index)).len()).collect()
    };
    // Segment 0 is lost. Three ACKs leave at once, the next one after 1 ms (the round trip is 100 ms), for four segments.
    assert_eq!(sent(1..=7, &mut rig), [1, 1, 1, 0, 0, 0, 0]);
    let late = rig.run(2);
    assert_eq!(late.len(), 1);
    assert_eq!((late[0].0, late[0].1.sack()), (1, vec![(1001, 8001)]));
    // The 45th segment sends the ACK.
    let mut many = sent(8..=52, &mut rig);
    assert_eq!(many.pop(), Some(1));
    assert!(many.iter().all(|&count| count == 0), "{many:?}");
    // Data that moves the next expected position, or fills the gap, is acknowledged at once, and so are the three after it.
    assert_eq!(sent(54..=54, &mut rig), [0]);
    assert_eq!(sent(0..=0, &mut rig), [1], "53 is still missing");
    assert_eq!(sent(55..=58, &mut rig), [1, 1, 0, 0]);
    assert_eq!(sent(53..=53, &mut rig), [1], "no gap is left");
    // A compressed ACK does not count as a delayed one: the delay of in-order data is still 40 ms.
    assert_eq!(sent(59..=59, &mut rig), [0]);
    let delayed = rig.run(100);
    assert_eq!((delayed.len(), delayed[0].0), (1, 40));
    // The first three above a new gap are acknowledged at once.
    assert_eq!(sent(61..=64, &mut rig), [1, 1, 1, 0]);
    // A peer without SACK counts duplicate ACKs.
    let mut rig = Rig::server(&config, false);
    assert_eq!(sent(1..=7, &mut rig), [1; 7]);
}

#[test]
fn unread_data_closes_the_window_and_a_read_opens_it() {
    let config = TcpConfig {
        receive_buffer: Some(Size::from_bytes(4000)),
        ..TcpConfig::new(Profile::Rfc)
    };
    let mut rig = Rig::server(&config, true);
    let mut window = 4000;
    for i in 0..4 {
        for out in rig.exchange(Peer::ack(1).from(1 + i * 1000).data(1000)) {
            window = out.window();
        }
    }
    assert_eq!(window, 0);
    // Data beyond the window is discarded and answered with an ACK.
    let probe = rig.exchange(Peer::ack(1).from(4001).data(1000));
    assert_eq!((probe[0].acknowledgement, probe[0].window()), (4001, 0));
    assert_eq!(rig.connection.readable(), 4000);
    rig.connection.read(rig.now, 500);
    assert_eq!(rig.out(), [], "RFC 9293, section 3.8.6.2.2: not worth a window");
    rig.connection.read(rig.now, 1500);
    let update = rig.out();
    assert_eq!((update[0].window(), update[0].length), (2000, 0));
}

#[test]
fn linux_opens_the_window_with_arriving_data() {
    let syn = Peer::syn().offering(Some(7), true);
    let mut rig = Rig::accepting(&linux(), &syn);
    assert_eq!(rig.out()[0].window(), 64_240);
    rig.receive(Peer::ack(1));
    let mut windows = Vec::new();
    for i in 0..50 {
        for out in rig.exchange(Peer::ack(1).from(1 + i * 1000).data(1000)) {
            windows.push(u64::from(out.window()) << 7);
        }
        rig.connection.read(rig.now, u64::MAX);
    }
    assert!(windows.is_sorted(), "{windows:?}");
    // 1000 of the 1856 bytes of a segment are payload: 137/256 of the initial 128 KiB.
    assert_eq!(
        *windows.last().unwrap(),
        (131_072_u64 * 137 / 256 - 1000).next_multiple_of(128)
    );
}

#[test]
fn linux_window_is_twice_the_data_read_per_round_trip() {
    let syn = Peer::syn().offering(Some(7), true);
    let mut rig = Rig::accepting(&linux(), &syn);
    rig.out();
    rig.receive(Peer::ack(1));
    let (mut sequence, mut window) = (1, 0);
    for round in [20, 40, 80, 160] {
        for _ in 0..round {
            for out in rig.exchange(Peer::ack(1).from(sequence).data(1000)) {
                window = u64::from(out.window()) << 7;
            }
            sequence += 1000;
            rig.connection.read(rig.now, u64::MAX);
        }
        rig.run(100);
    }
    // Twice the last round, and twice that again after it doubled, limited by two segments per arriving segment.
    assert!((320_000..=64_240 + 600_000).contains(&window), "{window}");
}

#[test]
fn fails_after_nine_keep_alive_probes() {
    // RFC 9293, section 3.8.4; Linux: 75 s apart.
    let config = TcpConfig {
        keep_alive: Some(MS(60_000)),
        ..linux()
    };
    let mut rig = Rig::server(&config, true);
    let probes = rig.run(200_000);
    let times: Vec<u64> = probes.iter().map(|(at, _)| at / 1000).collect();
    assert_eq!(times, [60, 135]);
    assert!(probes.iter().all(|(_, p)| p.sequence == 0 && p.length == 0));
    rig.exchange(Peer::ack(1));
    let rest = rig.run(1_000_000);
    assert_eq!(rest.len(), 9);
    assert_eq!(rig.events.last(), Some(&Event::Failed(Error::TimedOut)));
}

#[test]
fn user_timeout_fails_the_connection() {
    // RFC 9293, section 3.9.1.
    let mut rig = server();
    rig.connection.set_user_timeout(MS(3000));
    rig.write(1000);
    rig.run(2990);
    assert_eq!(rig.events, [Event::Connected]);
    rig.run(20);
    assert_eq!(rig.events.last(), Some(&Event::Failed(Error::TimedOut)));
}

#[test]
fn old_timestamps_are_rejected() {
    // RFC 7323, section 5.3 (PAWS), and section 4.3 on which timestamp is echoed.
    let syn = Peer::syn().offering(Some(7), true).stamped(1000, 0);
    let mut rig = Rig::accepting(&linux(), &syn);
    rig.out();
    rig.receive(Peer::ack(1).stamped(1100, 0));
    let echo = |out: &[Out]| out[0].options().timestamps.unwrap().echo;
    let out = rig.exchange(Peer::ack(1).data(100).stamped(1200, 0));
    assert_eq!((echo(&out), out[0].acknowledgement), (1200, 101));
    let old = rig.exchange(Peer::ack(1).from(101).data(100).stamped(900, 0));
    assert_eq!(
        (echo(&old), old[0].acknowledgement),
        (1200, 101),
        "rejected with an ACK"
    );
    assert_eq!(rig.connection.readable(), 100);
    // Out of order: the timestamp of the last in-order segment is echoed.
    let gap = rig.exchange(Peer::ack(1).from(201).data(100).stamped(1300, 0));
    assert_eq!(echo(&gap), 1200);
    let filled = rig.exchange(Peer::ack(1).from(101).data(100).stamped(1250, 0));
    assert_eq!((echo(&filled), filled[0].acknowledgement), (1250, 301));
    // After 24 days TS.Recent is invalid (RFC 7323, section 5.5).
    rig.now += Duration::from_secs(25 * 24 * 3600);
    let late = rig.exchange(Peer::ack(1).from(301).data(100).stamped(5, 0));
    assert_eq!(late[0].acknowledgement, 401);
}
