//! Controllers in a closed loop over one bottleneck.

mod laws;
mod model;
mod single;

use foundation::{Duration, Instant};
use model::{Loop, Path, SEGMENT, Workload};
use transport::congestion::CongestionConfig;

fn at(secs: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(secs)
}

#[test]
#[ignore = "for looking at"]
fn explore() {
    let name = std::env::var("CC").unwrap_or("bbr".into());
    let f = |n: &str, d: f64| std::env::var(n).map_or(d, |v| v.parse().unwrap());
    let (mbit, rtt, loss, secs) = (f("MBIT", 96.0), f("RTT", 20.0), f("LOSS", 0.0), f("SECS", 20.0));
    let queue = f("QUEUE", mbit * rtt * 1000.0 / 8.0 / SEGMENT as f64) as usize;
    let step = f("STEP", 1.0);
    let config: CongestionConfig = if name.starts_with('{') {
        serde_json::from_str(&name).unwrap()
    } else {
        CongestionConfig::named(&name).unwrap()
    };
    let mut path = Path::new(mbit, rtt, queue, loss);
    path.ack_slots = Duration::from_micros(f("SLOT", 0.0) as u64);
    path.timer_lateness = Duration::from_micros(f("LATE", 0.0) as u64);
    let mut l = Loop::new(
        path,
        1,
        (0..f("N", 1.0) as u64)
            .map(|_| (config.build(SEGMENT), Workload::BULK))
            .collect(),
    );
    let mut t = 0.0;
    while t < secs {
        let before: Vec<u64> = l.flows.iter().map(|f| f.delivered()).collect();
        l.reset();
        t += step;
        l.run(at(t));
        print!("{t:6.2} queue {:6.1} drops {:5}", l.mean_queue(), l.overflowed);
        for (flow, before) in l.flows.iter().zip(before) {
            let got = (flow.delivered() - before) as f64 * 8.0 / step / 1e6;
            print!(
                " | {got:7.2} Mbit/s {:.3} sent {} to {}",
                got / mbit,
                flow.sent as f64 * SEGMENT as f64 * 8.0 / step / 1e6 / got,
                flow.timeouts
            );
            if std::env::var("M").is_ok() {
                flow.controller.metrics(&mut |n, v| print!(" {n}={v:.4e}"));
            }
        }
        println!();
    }
}
