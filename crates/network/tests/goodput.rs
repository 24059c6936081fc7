//! Reviewed table of the goodput of a constant-rate source over queue and loss.

use std::fmt::Write as _;

use crate::common::{drive, path, train};
use foundation::Streams;
use network::Network;

/// Goodput in Mbit/s within 10 s of a source at 12 Mbit/s with bursts of 20 packets over a link of 10 Mbit/s.
#[test]
fn goodput_over_queue_and_loss() {
    let mut table = String::from("queue    ");
    let losses = ["0%", "1%", "5%", "20%", "50%"];
    for loss in losses {
        write!(table, "{loss:>8}").unwrap();
    }
    for queue in ["1pkt", "5pkt", "20pkt", "64KiB", "1000pkt"] {
        write!(table, "\n{queue:<9}").unwrap();
        for loss in losses {
            let json =
                format!(r#"{{"rate": "10Mbit/s", "delay": "10ms", "queue": "{queue}", "loss": "{loss}"}}"#);
            let mut network = Network::two_hosts(&path(&json), Streams::new(1, 0));
            // 1500 bytes per millisecond are 12 Mbit/s.
            let burst = 20;
            let bursts = train(10_000, 1_000_000, 1500)
                .map(|(at, packet)| (at / (burst * 1_000_000) * burst * 1_000_000, packet));
            let arrivals = drive(&mut network, bursts);
            let in_time = arrivals.iter().filter(|arrival| arrival.at <= 10_000_000_000);
            let bytes: u64 = in_time.map(|arrival| u64::from(arrival.packet.size)).sum();
            write!(table, "{:>8.3}", bytes as f64 * 8.0 / 10.0 / 1e6).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}
