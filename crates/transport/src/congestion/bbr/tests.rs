//! Worked numbers of draft-ietf-ccwg-bbr. Tests of whole connections are in `tests/congestion_loop`.

use foundation::{Duration, Instant};

use super::*;
use crate::congestion::RateSample;

const SEGMENT: u64 = 1000;
const RTT: Duration = Duration::from_millis(100);

fn bbr() -> Bbr {
    Bbr::new(&BbrSettings::default(), Additions::default(), SEGMENT)
}

/// Returns the model of a path of 8 Mbit/s and 100 ms: a bandwidth-delay product of 100 packets.
fn settled() -> Bbr {
    let mut bbr = bbr();
    bbr.bandwidth.update(8_000_000);
    bbr.bw = 8_000_000;
    bbr.min_rtt.value = Some(RTT);
    bbr.full_pipe.ever = true;
    bbr.delivered = 10_000_000;
    bbr.window = 200 * SEGMENT;
    bbr.state = State::Cruise;
    bbr
}

#[test]
fn paces_initial_window_over_a_millisecond() {
    // Section 5.6.2: 2.77 * 10 packets / 1 ms.
    assert_eq!(bbr().pacing_rate, 10 * SEGMENT * 8 * 1000 * 277 / 100);
    assert_eq!(bbr().window, 10 * SEGMENT);
}

#[test]
fn window_is_multiple_of_bdp() {
    let mut bbr = settled();
    assert_eq!(bbr.bdp(100), 100 * SEGMENT);
    // Table of section 5.6.1.
    for (state, window) in [
        (State::Down, 200),
        (State::Cruise, 200),
        (State::Refill, 200),
        (State::Up, 225 + 2),
        (State::ProbeRtt, 50),
    ] {
        bbr.state = state;
        bbr.window = 1000 * SEGMENT;
        bbr.set_window(SEGMENT);
        assert_eq!(bbr.window, window * SEGMENT, "{state:?}");
    }
    // 1 % below the bandwidth, times the gain.
    for (state, percent) in [
        (State::Startup, 277),
        (State::Drain, 50),
        (State::Down, 90),
        (State::Cruise, 100),
        (State::Up, 125),
    ] {
        bbr.set_pacing_rate(state.pacing_gain());
        assert_eq!(bbr.pacing_rate, 8_000_000 * 99 / 100 * percent / 100, "{state:?}");
    }
}

#[test]
fn long_term_bound_has_headroom_in_cruise_only() {
    let mut bbr = settled();
    bbr.inflight_longterm = 120 * SEGMENT;
    for (state, window) in [
        (State::Cruise, 102),
        (State::Down, 120),
        (State::Refill, 120),
        (State::Up, 120),
    ] {
        bbr.state = state;
        bbr.window = 110 * SEGMENT;
        bbr.set_window(20 * SEGMENT);
        assert_eq!(bbr.window, window * SEGMENT, "{state:?}");
    }
    bbr.inflight_longterm = 4 * SEGMENT;
    bbr.set_window(SEGMENT);
    assert_eq!(
        bbr.window,
        4 * SEGMENT,
        "section 5.6.4.3: never below four packets"
    );
}

#[test]
fn finds_where_losses_cross_threshold() {
    // 2 % of x are lost after lost_prefix = (0.02 × prior - lost) / 0.98 of the train (section 5.5.10.2).
    let bbr = settled();
    let flight = Flight {
        in_flight: 200 * SEGMENT,
        lost: 10 * SEGMENT,
    };
    assert!(bbr.is_too_high(flight));
    // 190 packets before the train of 10, none lost: 3.8 may be lost, and 3.877 more packets reach 2 %.
    assert_eq!(
        bbr.in_flight_at_loss(flight, 10 * SEGMENT),
        190 * SEGMENT + 3_800_000 / 980
    );
    assert!(!bbr.is_too_high(Flight {
        in_flight: 200 * SEGMENT,
        lost: 4 * SEGMENT,
    }));
}

fn ack(bbr: &Bbr, now: Instant, prior_delivered: u64, rate: u64) -> Acknowledgement {
    Acknowledgement {
        now,
        bytes: SEGMENT,
        marked_bytes: 0,
        rtt: Some(RTT),
        newest_sent_at: now - RTT,
        smoothed_rtt: RTT,
        bytes_in_flight: 90 * SEGMENT,
        delivered: bbr.delivered + SEGMENT,
        rate_sample: Some(RateSample {
            delivered: rate / 80,
            interval: RTT,
            prior_delivered,
            lost: 0,
            in_flight_at_send: 90 * SEGMENT,
            application_limited: false,
        }),
        window_limited: false,
        in_recovery: false,
    }
}

fn loss(now: Instant) -> Loss {
    Loss {
        now,
        bytes: 2 * SEGMENT,
        newest_sent_at: now - RTT,
        prior_in_flight: 92 * SEGMENT,
        bytes_in_flight: 90 * SEGMENT,
        in_flight_at_send: 92 * SEGMENT,
        lost_since_send: 2 * SEGMENT,
        application_limited: false,
        in_recovery: false,
    }
}

#[test]
fn lossy_round_reduces_short_term_bounds_by_beta_at_most() {
    // Down to the delivered bytes, but at least 0.7 of the previous bound (section 5.5.10.3).
    for (delivered_rate, bound) in [(7_000_000, 7_000_000), (4_000_000, 5_600_000)] {
        let mut bbr = settled();
        bbr.probe_wait = Duration::from_secs(3);
        bbr.cycle_started = Instant::from_nanos(1);
        let now = Instant::ZERO + Duration::from_millis(500);
        bbr.on_lost(&loss(now));
        let end = bbr.delivered;
        bbr.on_acknowledged(&ack(&bbr.clone(), now, end - 1, delivered_rate));
        assert_eq!(bbr.bw_shortterm, UNBOUNDED, "only at the end of the round");
        let later = now + RTT;
        bbr.on_acknowledged(&ack(&bbr.clone(), later, end, delivered_rate));
        assert_eq!((bbr.bw_shortterm, bbr.bw), (bound, bound));
        assert_eq!(bbr.state, State::Cruise);
        bbr.start_refill();
        assert_eq!(bbr.bw_shortterm, UNBOUNDED, "section 5.3.3.3");
    }
}

#[test]
fn lossy_rounds_without_a_measured_rate_keep_the_bandwidth() {
    let mut bbr = settled();
    bbr.probe_wait = Duration::from_secs(100);
    bbr.cycle_started = Instant::from_nanos(1);
    let mut now = Instant::ZERO + Duration::from_millis(500);
    for _ in 0..20 {
        bbr.on_lost(&loss(now));
        now += RTT;
        let mut late = ack(&bbr.clone(), now, bbr.delivered, 1_000_000);
        // Sooner than the path allows: an ACK of an earlier transmission.
        late.newest_sent_at = now;
        late.rtt = None;
        bbr.on_acknowledged(&late);
        assert_eq!(bbr.bw, 8_000_000);
    }
}

#[test]
fn responds_to_marks_in_every_state() {
    let now = Instant::ZERO + Duration::from_millis(500);
    let mut startup = bbr();
    startup.on_congestion_experienced(now, now - RTT);
    assert!(startup.full_pipe.ever);
    let mut up = settled();
    up.state = State::Up;
    up.probe_samples = true;
    up.in_flight = 120 * SEGMENT;
    up.on_congestion_experienced(now, now - RTT);
    assert_eq!((up.state, up.inflight_longterm), (State::Down, 120 * SEGMENT));
    let mut cruise = settled();
    cruise.probe_wait = Duration::from_secs(3);
    let end = cruise.delivered;
    cruise.on_congestion_experienced(now, now - RTT);
    cruise.on_acknowledged(&ack(&cruise.clone(), now + RTT, end, 6_000_000));
    assert_eq!(cruise.bw, 6_000_000);
}

#[test]
fn timeout_reduces_window_to_one_segment_temporarily() {
    let mut bbr = settled();
    let now = Instant::ZERO + Duration::from_millis(500);
    bbr.on_timeout(now, 90 * SEGMENT);
    assert_eq!(bbr.window, SEGMENT);
    let end = bbr.delivered;
    bbr.on_acknowledged(&ack(&bbr.clone(), now + RTT, end, 8_000_000));
    assert_eq!(
        bbr.window,
        (200 + 1) * SEGMENT,
        "section 5.6.4.4, and what was acknowledged"
    );
}

/// A spurious loss restores the bounds and the state that it ended (section 5.5.11).
#[test]
fn undoes_spurious_loss() {
    let now = Instant::ZERO + Duration::from_millis(500);
    let mut up = settled();
    up.state = State::Up;
    up.probe_samples = true;
    up.inflight_longterm = 150 * SEGMENT;
    up.on_lost(&Loss {
        lost_since_send: 40 * SEGMENT,
        bytes: 40 * SEGMENT,
        ..loss(now)
    });
    assert_eq!(up.state, State::Down);
    assert!(up.inflight_longterm < 110 * SEGMENT);
    up.on_spurious(now + RTT);
    assert_eq!((up.state, up.inflight_longterm), (State::Refill, 150 * SEGMENT));

    let mut cruise = settled();
    cruise.probe_wait = Duration::from_secs(3);
    let end = cruise.delivered;
    cruise.on_lost(&loss(now));
    cruise.on_acknowledged(&ack(&cruise.clone(), now + RTT, end, 6_000_000));
    assert_eq!(cruise.bw, 6_000_000);
    cruise.on_spurious(now + RTT);
    assert_eq!((cruise.bw_shortterm, cruise.state), (UNBOUNDED, State::Cruise));

    let mut startup = bbr();
    startup.on_lost(&loss(now));
    startup.full_pipe.ever = true;
    startup.undo.ended = Some(State::Startup);
    startup.state = State::Drain;
    startup.on_spurious(now + RTT);
    assert!(startup.state == State::Startup && !startup.full_pipe.ever && startup.outputs().in_slow_start);
    // Only once.
    startup.state = State::Drain;
    startup.on_spurious(now + RTT);
    assert_eq!(startup.state, State::Drain);
}

/// A spurious timeout restores the window at once (RFC 4015).
#[test]
fn undoes_spurious_timeout() {
    let mut bbr = settled();
    let now = Instant::ZERO + Duration::from_millis(500);
    bbr.on_timeout(now, 90 * SEGMENT);
    bbr.on_spurious(now + RTT);
    assert_eq!(bbr.window, 200 * SEGMENT);
}

#[test]
fn ignores_samples_of_earlier_transmissions() {
    let mut bbr = settled();
    let now = Instant::ZERO + Duration::from_millis(500);
    let rounds = bbr.round_count;
    let end = bbr.delivered;
    // The packet appears to have been sent 1 ms ago on a path of 100 ms.
    bbr.on_acknowledged(&Acknowledgement {
        newest_sent_at: now - Duration::from_millis(1),
        ..ack(&bbr.clone(), now, end, 80_000_000)
    });
    assert_eq!((bbr.round_count, bbr.max_bw()), (rounds, 8_000_000));
}

/// Returns a controller in Startup with the settings for files, on a path of 8 Mbit/s and 100 ms.
fn starting(settings: &BbrTolerantSettings) -> Box<dyn Controller> {
    use crate::congestion::settings::ControllerSettings;
    let mut controller = settings.build(SEGMENT);
    controller.on_sent(Instant::ZERO, SEGMENT, SEGMENT);
    controller
}

/// Returns the acknowledgement of a packet after `rtt`; `delivered` packets were before it.
fn acknowledgement(delivered: u64, now: Instant, rtt: Duration) -> Acknowledgement {
    Acknowledgement {
        now,
        bytes: SEGMENT,
        marked_bytes: 0,
        rtt: Some(rtt),
        newest_sent_at: now - rtt,
        smoothed_rtt: rtt,
        bytes_in_flight: 90 * SEGMENT,
        delivered: (delivered + 1) * SEGMENT,
        rate_sample: Some(RateSample {
            delivered: 100 * SEGMENT,
            interval: RTT,
            prior_delivered: delivered.saturating_sub(90) * SEGMENT,
            application_limited: false,
            in_flight_at_send: 90 * SEGMENT,
            lost: 0,
        }),
        window_limited: true,
        in_recovery: false,
    }
}

fn acknowledge(controller: &mut dyn Controller, delivered: u64, now: Instant, rtt: Duration) {
    controller.on_acknowledged(&acknowledgement(delivered, now, rtt));
}

#[test]
fn a_queue_suspends_the_growth_of_startup() {
    let rate = |controller: &dyn Controller| controller.pacing_rate().unwrap().bits_per_second();
    let without_jump = BbrTolerantSettings {
        startup_jump: 0,
        ..BbrTolerantSettings::for_files()
    };
    for (settings, suspends) in [(without_jump, true), (BbrTolerantSettings::default(), false)] {
        let mut controller = starting(&settings);
        let mut now = Instant::ZERO + RTT;
        acknowledge(&mut *controller, 0, now, RTT);
        // A quarter of 100 ms: 124 ms is a burst, 126 ms a queue.
        for (at, millis) in [124, 126, 126, 126, 124, 126, 126, 126].into_iter().enumerate() {
            now += Duration::from_millis(1);
            acknowledge(
                &mut *controller,
                1 + at as u64,
                now,
                Duration::from_millis(millis),
            );
            assert!(controller.in_slow_start());
            assert!(rate(&*controller) >= 8_000_000 * 99 / 100 * 277 / 100);
        }
        acknowledge(&mut *controller, 9, now, Duration::from_millis(126));
        assert_eq!(rate(&*controller) == 8_000_000 * 99 / 100, suspends);
        acknowledge(&mut *controller, 10, now, Duration::from_millis(110));
        assert_eq!(
            rate(&*controller),
            8_000_000 * 99 / 100 * 277 / 100,
            "the queue is gone"
        );
    }
}

/// Returns whether Startup continues on a path that loses one packet in 13 and delays the others by 100 ms, in most samples
/// also by `noise`.
fn startup_survives_loss(settings: &BbrTolerantSettings, noise: Duration) -> bool {
    let mut controller = starting(settings);
    let mut now = Instant::ZERO + RTT;
    acknowledge(&mut *controller, 0, now, RTT);
    for packet in 1_u64..1000 {
        now += Duration::from_millis(1);
        if packet % 12 == 0 {
            controller.on_lost(&Loss {
                bytes: SEGMENT,
                lost_since_send: 8 * SEGMENT,
                ..loss(now)
            });
        }
        controller.on_acknowledged(&Acknowledgement {
            rate_sample: Some(RateSample {
                // The rate grows by half in each round.
                delivered: 100 * SEGMENT * 3_u64.pow((packet / 90) as u32),
                interval: RTT * 2_u64.pow((packet / 90) as u32),
                prior_delivered: packet.saturating_sub(90) * SEGMENT,
                application_limited: false,
                in_flight_at_send: 100 * SEGMENT,
                lost: 8 * SEGMENT,
            }),
            ..acknowledgement(packet, now, RTT + noise)
        });
    }
    controller.in_slow_start()
}

#[test]
fn startup_ignores_random_loss_while_most_round_trips_show_no_queue() {
    // A queue of 25 ms suspends Startup.
    let files = BbrTolerantSettings::for_files();
    assert!(startup_survives_loss(&files, Duration::from_millis(12)));
    assert!(!startup_survives_loss(&files, Duration::from_millis(13)));
    // Without that limit, a 32nd of the round trip.
    let draft = BbrTolerantSettings::default();
    assert!(startup_survives_loss(&draft, Duration::from_millis(3)));
    assert!(!startup_survives_loss(&draft, Duration::from_millis(4)));
}

#[test]
fn samples_near_the_minimum_make_probe_rtt_unnecessary() {
    for (settings, rtt, probes) in [
        (BbrTolerantSettings::for_files(), 106, false),
        (BbrTolerantSettings::for_files(), 107, true),
        (BbrTolerantSettings::default(), 106, true),
    ] {
        let mut controller = starting(&settings);
        let mut now = Instant::ZERO + RTT;
        acknowledge(&mut *controller, 0, now, RTT);
        let mut probed = false;
        for packet in 1..100 {
            now += RTT;
            acknowledge(&mut *controller, packet * 100, now, Duration::from_millis(rtt));
            controller.metrics(&mut |name, value| {
                probed |= name == "state" && value == f64::from(State::ProbeRtt as u8);
            });
        }
        assert_eq!(probed, probes, "{rtt} ms");
    }
}

/// Returns the pacing rate and the window after the initial window's ACKs have arrived, one each `interval`.
fn after_a_train(settings: &BbrTolerantSettings, interval: Duration) -> (u64, u64) {
    let mut controller = starting(settings);
    let mut now = Instant::ZERO + RTT;
    for packet in 0..32 {
        let delivered = (packet + 1) * SEGMENT;
        controller.on_acknowledged(&Acknowledgement {
            now,
            bytes: SEGMENT,
            marked_bytes: 0,
            rtt: Some(now - Instant::ZERO),
            newest_sent_at: Instant::ZERO,
            smoothed_rtt: RTT,
            bytes_in_flight: (31 - packet) * SEGMENT,
            delivered,
            rate_sample: Some(RateSample {
                delivered,
                interval: now - Instant::ZERO,
                prior_delivered: 0,
                application_limited: false,
                in_flight_at_send: (packet + 1) * SEGMENT,
                lost: 0,
            }),
            window_limited: true,
            in_recovery: false,
        });
        now += interval;
    }
    (
        controller.pacing_rate().unwrap().bits_per_second(),
        controller.window(),
    )
}

#[test]
fn startup_jumps_to_the_rate_of_a_packet_train() {
    // Packets of 1000 B each 0.2 ms are 40 Mbit/s, or 500 packets per 100 ms.
    let (rate, window) = after_a_train(&BbrTolerantSettings::for_files(), Duration::from_micros(200));
    assert_eq!(rate, 40_000_000);
    // ACKs after the jump grow the window, too.
    assert!((500..=532).contains(&(window / SEGMENT)), "{window}");
    // A jump is at most to 16 times the initial window per round trip.
    let (rate, window) = after_a_train(&BbrTolerantSettings::for_files(), Duration::from_micros(20));
    assert_eq!(rate, 16 * 32 * 80_000);
    assert!((512..=544).contains(&(window / SEGMENT)), "{window}");
    // The draft doubles.
    let draft = BbrTolerantSettings {
        startup_jump: 0,
        ..BbrTolerantSettings::for_files()
    };
    let (rate, window) = after_a_train(&draft, Duration::from_micros(200));
    assert!(rate < 10_000_000 && window < 70 * SEGMENT, "{rate} {window}");
}

#[test]
fn a_train_leaves_at_once_although_the_round_trip_is_known() {
    for (settings, leaves_at_once) in [
        (BbrTolerantSettings::for_files(), true),
        (BbrTolerantSettings::default(), false),
    ] {
        let mut controller = starting(&settings);
        acknowledge(&mut *controller, 0, Instant::ZERO + RTT, RTT);
        controller.on_sent(Instant::ZERO + RTT, SEGMENT, SEGMENT);
        let rate = controller.pacing_rate().unwrap();
        let window = rate.time_for(controller.window());
        assert_eq!(window <= Duration::from_millis(1), leaves_at_once, "{window}");
    }
}

/// Returns the model with a minimum round-trip time and a response to marks, and an ACK that ends a round.
fn marked(response: MarkResponse, min_rtt: u64) -> (Bbr, AckSample) {
    let mut bbr = settled();
    bbr.marks = MarkShare::new(response);
    bbr.min_rtt.value = Some(Duration::from_millis(min_rtt));
    let sample = AckSample {
        now: Instant::ZERO,
        rtt: None,
        acknowledged: SEGMENT,
        rate: 0,
        delivered: 0,
        prior_delivered: 0,
        application_limited: false,
        flight: Flight {
            in_flight: 0,
            lost: 0,
        },
        starts_round: true,
        starts_loss_round: false,
    };
    (bbr, sample)
}

/// google/bbr: the average share, with a weight of 1/16, starts at 1, and a third of it is cut from the bound.
#[test]
fn share_of_marks_lowers_short_term_bound() {
    let (mut bbr, sample) = marked(MarkResponse::Share, 5);
    bbr.marks.count(100 * SEGMENT, 25 * SEGMENT);
    bbr.check_mark_share(Instant::ZERO, &sample);
    // 1 - (1 - 1/16 * 3/4) / 3 = 0.68229 of a window of 200 packets.
    assert_eq!(bbr.inflight_shortterm, 136_458);
    // A round without marks lowers the average alone: 0.953125 * 15/16.
    bbr.marks.count(100 * SEGMENT, 0);
    bbr.check_mark_share(Instant::ZERO, &sample);
    assert_eq!(bbr.inflight_shortterm, 136_458);
    bbr.marks.count(100 * SEGMENT, 100 * SEGMENT);
    bbr.check_mark_share(Instant::ZERO, &sample);
    // The average is 0.893555 + (1 - 0.893555) / 16 = 0.900208: 136458 * (1 - 0.300069).
    assert_eq!(bbr.inflight_shortterm, 95_511);
    // A mark is not a loss, and the share does not count within a round.
    bbr.note_mark(Instant::ZERO);
    assert!(!bbr.marked_in_round);
    bbr.marks.count(SEGMENT, SEGMENT);
    let within = AckSample {
        starts_round: false,
        ..sample
    };
    bbr.check_mark_share(Instant::ZERO, &within);
    assert_eq!(bbr.inflight_shortterm, 95_511);
}

#[test]
fn half_of_marks_ends_a_probe_and_two_such_rounds_startup() {
    for (marks, state) in [(49, State::Up), (50, State::Down)] {
        let (mut bbr, sample) = marked(MarkResponse::Share, 5);
        (bbr.state, bbr.probe_samples) = (State::Up, true);
        bbr.marks.count(100 * SEGMENT, marks * SEGMENT);
        bbr.check_mark_share(Instant::ZERO, &sample);
        assert_eq!(bbr.state, state, "{marks} %");
    }
    let (mut bbr, sample) = marked(MarkResponse::Share, 5);
    bbr.full_pipe.ever = false;
    bbr.state = State::Startup;
    for (marks, full) in [(50, false), (49, false), (50, false), (50, true)] {
        bbr.marks.count(100 * SEGMENT, marks * SEGMENT);
        bbr.check_mark_share(Instant::ZERO, &sample);
        assert_eq!(bbr.full_pipe.ever, full);
    }
}

/// Google's kernel ignores the share above 5 ms, and all marks without low-latency ECN.
#[test]
fn marks_are_ignored_on_long_paths_or_by_setting() {
    for (response, min_rtt) in [(MarkResponse::Share, 6), (MarkResponse::None, 5)] {
        for state in [State::Startup, State::Cruise, State::Up] {
            let (mut bbr, sample) = marked(response, min_rtt);
            bbr.full_pipe.ever = false;
            (bbr.state, bbr.probe_samples) = (state, true);
            for _ in 0..3 {
                bbr.note_mark(Instant::ZERO);
                bbr.marks.count(100 * SEGMENT, 100 * SEGMENT);
                bbr.check_mark_share(Instant::ZERO, &sample);
            }
            assert_eq!(bbr.state, state, "{response:?}");
            assert_eq!(bbr.inflight_shortterm, UNBOUNDED, "{response:?}, {state:?}");
            assert_eq!(bbr.inflight_longterm, UNBOUNDED, "{response:?}, {state:?}");
            assert!(!bbr.full_pipe.ever && !bbr.marked_in_round, "{response:?}");
        }
    }
}
