//! Sends small datagrams at a rate over an emulated path and reports where packets were lost.
//!
//! ```console
//! $ cargo run --release -p longfat-emulation --example flood -- 62000 125000 --busy 1
//! ```
//!
//! The receiver has the system's default receive buffer. `--busy N` runs N computing threads, `--seconds S` sends for S
//! seconds (default 3), `--size B` sets the datagrams' size in bytes (default 200).

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("emulated networks need Linux");
}

#[cfg(target_os = "linux")]
mod linux {
    use std::net::{Ipv4Addr, UdpSocket};
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    use emulation::{Emulation, EmulationOptions};
    use foundation::Streams;
    use network::{HostId, LinkId, PathConfig, Topology};

    const FROM: HostId = HostId(0);
    const TO: HostId = HostId(1);
    /// Interval of the sender's timer, at which it sends all packets due.
    const TICK: Duration = Duration::from_millis(1);
    /// How long to wait for packets in flight.
    const TIMEOUT: Duration = Duration::from_millis(300);

    struct Options {
        rates: Vec<f64>,
        busy: usize,
        seconds: f64,
        size: usize,
    }

    fn options() -> Options {
        let mut found = Options {
            rates: Vec::new(),
            busy: 0,
            seconds: 3.0,
            size: 200,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut number = || -> f64 {
                let value = words.next().and_then(|value| value.parse().ok());
                value.unwrap_or_else(|| panic!("{word} needs a number"))
            };
            match word.as_str() {
                "--busy" => found.busy = number() as usize,
                "--seconds" => found.seconds = number(),
                "--size" => found.size = number() as usize,
                rate => found
                    .rates
                    .push(rate.parse().unwrap_or_else(|_| panic!("{rate}: no rate"))),
            }
        }
        if found.rates.is_empty() {
            found.rates = vec![12_000.0, 62_000.0, 125_000.0];
        }
        found
    }

    pub fn main() {
        let options = options();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..options.busy {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop()
                    }
                });
            }
            for &rate in &options.rates {
                measure(rate, &options);
            }
            over.store(true, Ordering::Relaxed);
        });
    }

    fn measure(rate: f64, options: &Options) {
        let path: PathConfig = serde_json::from_str(r#"{"delay": "5ms"}"#).unwrap();
        let path = path.resolve(&mut |_| Err("no files".into())).unwrap();
        let emulation = Emulation::start(EmulationOptions::new(Topology::path(&path), Streams::new(1, 0)));
        let emulation = emulation.unwrap_or_else(|error| panic!("{error}"));
        let receiver = emulation.in_host(TO, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 9)).unwrap());
        let sender = emulation.in_host(FROM, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap());
        sender.connect((emulation.host_address(TO), 9)).unwrap();
        receiver
            .set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        let (over, received) = (AtomicBool::new(false), AtomicU64::new(0));
        let sent = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut buffer = vec![0; 65_536];
                while !over.load(Ordering::Relaxed) {
                    if receiver.recv(&mut buffer).is_ok() {
                        received.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
            let datagram = vec![0; options.size];
            let (start, mut sent) = (Instant::now(), 0_u64);
            while start.elapsed().as_secs_f64() < options.seconds {
                while (sent as f64) < start.elapsed().as_secs_f64().min(options.seconds) * rate
                    && start.elapsed().as_secs_f64() < options.seconds
                {
                    sender.send(&datagram).unwrap();
                    sent += 1;
                }
                std::thread::sleep(TICK);
            }
            std::thread::sleep(TIMEOUT);
            over.store(true, Ordering::Relaxed);
            sent
        });
        let received = received.load(Ordering::Relaxed);
        let lost = emulation.with_network(|network, _| network.counters(LinkId(0)).lost.packets);
        let drops = emulation.host_drops().unwrap();
        let report = emulation.report();
        let [p50, p99] = [0.5, 0.99].map(|q| report.delays[1].value_at_quantile(q) as f64 / 1e6);
        println!(
            "{:.0}/s: {:.3} % missing of {sent}; lost by the link {lost}, by the sender's device {}, at the receiving \
             socket {}, unexplained {}; delay {p50:.2} ms, 99 % {p99:.2} ms",
            sent as f64 / options.seconds,
            (sent - received) as f64 / sent as f64 * 100.0,
            drops[0].sent,
            drops[1].socket,
            (sent - received).saturating_sub(lost + drops[0].sent + drops[1].socket),
        );
    }
}
