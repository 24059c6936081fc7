//! Sends bytes through the relay over lossy paths, and prints the results.
//!
//! `lossy [MB] [PROTOCOL]`: PROTOCOL is a table of settings as JSON; default: the settings of file transfer.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use foundation::Streams;
use network::PathConfig;
use socket::endpoint::{receive_pattern, send_pattern};
use socket::relay::{Relay, RelayOptions};
use transport::arq::ArqConfig;

/// Paths with a queue of one bandwidth-delay product, as in other comparisons of transports.
const PATHS: [(&str, f64, &str); 4] = [
    (
        "RTT 20 ms, no loss, 100 Mbit/s",
        100.0,
        r#"{"rate": "100Mbit/s", "delay": "10ms", "queue": "250000B"}"#,
    ),
    (
        "RTT 20 ms, 1 % loss, 100 Mbit/s",
        100.0,
        r#"{"rate": "100Mbit/s", "delay": "10ms", "queue": "250000B", "loss": "1%"}"#,
    ),
    (
        "RTT 100 ms, 2 % loss, 50 Mbit/s",
        50.0,
        r#"{"rate": "50Mbit/s", "delay": "50ms", "queue": "625000B", "loss": "2%"}"#,
    ),
    (
        "RTT 10 ms, 10 % loss, no limit",
        f64::NAN,
        r#"{"delay": "5ms", "loss": "10%"}"#,
    ),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let megabytes: u64 = arguments
        .next()
        .map_or(20, |text| text.parse().expect("a number of MB"));
    let config = arguments.next().map_or_else(ArqConfig::for_files, |text| {
        serde_json::from_str(&text).expect("settings")
    });
    let size = megabytes * 1_000_000;
    for (title, link, path) in PATHS {
        let stop = AtomicBool::new(false);
        let (tell, address) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let listening = |address| tell.send(address).expect("somebody listens");
                receive_pattern(([127, 0, 0, 1], 0).into(), listening, &mut || {
                    !stop.load(Ordering::Relaxed)
                })
            });
            let path: PathConfig = serde_json::from_str(path).expect("a path");
            let path = path.resolve(&mut |_| Err("no files".into())).expect("a path");
            let to = address.recv().expect("an address");
            let options = RelayOptions::new(([127, 0, 0, 1], 0).into(), to, path, Streams::new(1, 0));
            let relay = Relay::bind(options).expect("a socket");
            let to = relay.address();
            let relay = scope.spawn(|| {
                relay.run(&mut |_| {
                    if stop.load(Ordering::Relaxed) {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                })
            });
            let sent = send_pattern(to, &config, size, &mut || true);
            stop.store(true, Ordering::Relaxed);
            let report = relay.join().expect("a relay").expect("a report");
            match sent {
                Ok(s) => {
                    let time = (s.last_acknowledged_at.unwrap_or_default()
                        - s.first_data_at.unwrap_or_default())
                    .as_secs_f64();
                    let goodput = size as f64 * 8e-6 / time;
                    let needed = size as f64 / config.mss.bytes() as f64;
                    println!(
                        "{title}: {goodput:.1} Mbit/s ({:.0} % of the link), {:.3} packets sent for one needed, {} timeouts, {} spurious; lost {}, full queue {}, late p99 {}",
                        goodput / link * 100.0,
                        s.packets_sent as f64 / needed,
                        s.timeouts,
                        s.spurious_retransmissions,
                        report.forward.lost.packets,
                        report.forward.queue_dropped.packets,
                        report.late_p99,
                    );
                }
                Err(error) => println!("{title}: {error}"),
            }
        });
    }
}
