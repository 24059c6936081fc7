//! Simulated goodput is within 2 % of exact closed forms.

use experiment::TrialSpec;
use simulation::run;

/// ARQ header, UDP and IPv4 headers around 1000 bytes of payload, and around an ACK.
const DATA: f64 = 1000.0 + 32.0 + 28.0;
const ACK: f64 = 32.0 + 28.0;
const PAYLOAD_BITS: f64 = 8000.0;

fn goodput(path: &str, protocol: &str, packets: u64) -> f64 {
    let json = format!(
        r#"{{"path": {{"queue": "100000pkt", {path}}}, "protocol": {{"mss": "1000B", {protocol}}},
            "workload": {{"kind": "file", "size": "{}B"}}, "seed": 7}}"#,
        packets * 1000
    );
    let record = run(&TrialSpec::from_json(&json).unwrap(), None).unwrap();
    assert_eq!(record.error, None, "{json}");
    record.metrics.unwrap()["goodput_bps"].unwrap()
}

fn assert_within(simulated: f64, exact: f64, what: &str) {
    let error = simulated / exact - 1.0;
    assert!(
        error.abs() < 0.02,
        "{what}: simulated {simulated:.0}, exact {exact:.0} bit/s: {:+.2} %",
        error * 100.0
    );
}

/// Stop-and-wait (Bertsekas and Gallager, Data Networks, section 2.4.1): a packet takes one round trip plus one timeout
/// per loss of it or its ACK.
#[test]
fn stop_and_wait_under_loss_matches_its_closed_form() {
    for (loss, timeout_ms, delay_ms, rate) in [
        (0.0, 200.0, 5.0, 10e6),
        (0.02, 50.0, 5.0, 10e6),
        (0.1, 200.0, 20.0, 100e6),
        (0.3, 25.0, 10.0, 1e9),
    ] {
        let path = format!(
            r#""rate": "{rate}bit/s", "delay": "{delay_ms}ms", "loss": "{}%""#,
            loss * 100.0
        );
        let protocol = format!(r#""kind": "stop-and-wait", "rto": "{timeout_ms}ms""#);
        let round_trip = (DATA + ACK) * 8.0 / rate + 2.0 * delay_ms / 1e3;
        let failure = 1.0 - (1.0 - loss) * (1.0 - loss);
        let mean = round_trip + failure / (1.0 - failure) * timeout_ms / 1e3;
        let what = format!("loss {loss}, timeout {timeout_ms} ms");
        assert_within(goodput(&path, &protocol, 100_000), PAYLOAD_BITS / mean, &what);
    }
}

/// Without loss, a sliding window transfers its packets once per round trip, up to the link's rate.
#[test]
fn windows_without_loss_match_their_closed_form() {
    for kind in ["go-back-n", "selective-repeat"] {
        for window in [1, 2, 4, 8, 16, 32, 64] {
            let protocol = format!(r#""kind": "{kind}", "window": {window}"#);
            let round_trip = (DATA + ACK) * 8.0 / 10e6 + 0.02;
            let limited = f64::from(window) * PAYLOAD_BITS / round_trip;
            let exact = limited.min(10e6 * 1000.0 / DATA);
            let simulated = goodput(r#""rate": "10Mbit/s", "delay": "10ms""#, &protocol, 20_000);
            assert_within(simulated, exact, &format!("{kind}, window {window}"));
        }
    }
}

/// Go-Back-N that sends its window as a burst, with independent loss of data, no loss of ACKs, and a timeout T of at
/// least a round trip R. A window without loss takes R and transfers W packets; a window whose first loss is packet k
/// takes T and transfers k - 1. With q = 1 - p, it transfers q (1 - q^W) / p packets in a time of T (1 - q^W) + R q^W
/// on average.
#[test]
fn go_back_n_under_loss_matches_its_closed_form() {
    for (loss, window, timeout_ms) in [
        (0.02_f64, 4, 21.0),
        (0.05, 8, 50.0),
        (0.1, 4, 200.0),
        (0.01, 32, 30.0),
    ] {
        let path = format!(
            r#""rate": "100Gbit/s", "delay": "10ms", "loss": "{}%", "reverse": {{"loss": "0%"}}"#,
            loss * 100.0
        );
        let protocol = format!(r#""kind": "go-back-n", "window": {window}, "rto": "{timeout_ms}ms""#);
        let intact = (1.0 - loss).powi(window);
        let carried = (1.0 - loss) * (1.0 - intact) / loss;
        let mean = timeout_ms / 1e3 * (1.0 - intact) + 0.02 * intact;
        let what = format!("loss {loss}, window {window}, timeout {timeout_ms} ms");
        assert_within(
            goodput(&path, &protocol, 200_000),
            carried * PAYLOAD_BITS / mean,
            &what,
        );
    }
}
