//! Each probe ends exactly once for any arrivals.

use proptest::prelude::*;

use super::*;

const INTERVAL: Duration = Duration::from_millis(10);
const TIMEOUT: Duration = Duration::from_millis(100);

fn probes(count: u16) -> impl Iterator<Item = ProbeSpec> {
    (0..count).map(|size| ProbeSpec { ttl: 3, size })
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

#[test]
fn probes_are_paced_and_in_order() {
    let mut flight = Flight::new(at(0), INTERVAL, TIMEOUT, 1);
    flight.enqueue(probes(3));
    let first = flight.poll_send(at(0)).unwrap();
    assert_eq!(flight.poll_send(at(50)), None);
    assert_eq!(flight.poll_timeout(), Some(at(100)));
    assert_eq!(flight.answered(0, Some(0), u32::MAX), Some(first));
    assert_eq!(flight.poll_timeout(), Some(at(10)));
    assert_eq!(flight.poll_send(at(9)), None);
    assert_eq!(flight.poll_send(at(10)).unwrap().spec.size, 1);
}

#[test]
fn late_answers_are_ignored() {
    let mut flight = Flight::new(at(0), INTERVAL, TIMEOUT, 1);
    flight.enqueue(probes(4));
    let first = flight.poll_send(at(0)).unwrap();
    assert_eq!(flight.poll_lost(at(100)), Some(LostProbe { sent: first }));
    // All answers so far included their numbers: the slot is free.
    let second = flight.poll_send(at(100)).unwrap();
    assert_eq!(flight.answered(0, Some(0), u32::MAX), None);
    assert_eq!(flight.answered(0, None, u32::MAX), Some(second));
    // From here on, numbers may be missing: a slot stays empty after a loss.
    let third = flight.poll_send(at(110)).unwrap();
    assert_eq!(flight.poll_lost(at(210)), Some(LostProbe { sent: third }));
    assert_eq!(flight.answered(0, None, u32::MAX), None);
    assert_eq!(flight.poll_send(at(309)), None);
    assert_eq!(flight.poll_timeout(), Some(at(310)));
    assert_eq!(flight.poll_send(at(310)).unwrap().number, 3);
}

#[derive(Clone, Debug)]
enum Event {
    Pass(u64),
    Answer { slot: usize, number: Option<u32> },
    Stop,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0_u64..60).prop_map(Event::Pass),
        4 => (0_usize..4, proptest::option::of(0_u32..30)).prop_map(|(slot, number)| Event::Answer { slot, number }),
        1 => Just(Event::Stop),
    ]
}

proptest! {
    #[test]
    fn each_probe_ends_once(
        events in proptest::collection::vec(event(), 0..200), window in 1_usize..5, count in 0_u16..30,
    ) {
        let mut flight = Flight::new(at(0), INTERVAL, TIMEOUT, window);
        flight.enqueue(probes(count));
        let (mut now, mut open, mut last) = (0, Vec::new(), None::<u64>);
        for event in events {
            match event {
                Event::Pass(ms) => now += ms,
                Event::Answer { slot, number } => {
                    if let Some(sent) = flight.answered(slot, number, u32::MAX) {
                        prop_assert!(number.is_none_or(|number| number == sent.number));
                        prop_assert!(open.contains(&sent));
                        open.retain(|other| *other != sent);
                    }
                }
                Event::Stop => flight.stop(),
            }
            while let Some(lost) = flight.poll_lost(at(now)) {
                prop_assert!(open.contains(&lost.sent));
                open.retain(|other| *other != lost.sent);
            }
            while let Some(sent) = flight.poll_send(at(now)) {
                prop_assert!(last.is_none_or(|last| now - last >= 10));
                prop_assert_eq!(flight.slot_of(sent.number, u32::MAX), Some(sent.slot));
                last = Some(now);
                open.push(sent);
            }
            prop_assert!(open.len() <= window);
        }
        // The run finishes without further events.
        for _ in 0..10_000 {
            let Some(next) = flight.poll_timeout() else { break };
            let now = next.max(at(now));
            while let Some(lost) = flight.poll_lost(now) {
                open.retain(|other| *other != lost.sent);
            }
            while let Some(sent) = flight.poll_send(now) {
                open.push(sent);
            }
        }
        prop_assert!(flight.is_idle());
        prop_assert!(open.is_empty());
    }
}
