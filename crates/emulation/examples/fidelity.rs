//! Measures the accuracy and speed of emulated networks on this machine: `cargo run --release -p longfat-emulation
//! --example fidelity [delay] [load] [speed] [rate] [loss] [tcp] [hops]`.
//!
//! The load is printed with the figures, which depend on it.

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("emulated networks need Linux");
}

#[cfg(target_os = "linux")]
#[path = "fidelity/hops.rs"]
mod hops;

#[cfg(target_os = "linux")]
mod linux {
    use std::error::Error;
    use std::io::{ErrorKind, Read, Write};
    use std::mem::MaybeUninit;
    use std::net::{SocketAddr, SocketAddrV4, TcpListener, UdpSocket};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

    use emulation::{Emulation, EmulationOptions};
    use foundation::Streams;
    use network::{HostId, LinkId, PathConfig, Topology};
    use socket::datagrams::{Datagrams, Inbox, Peer};
    use socket2::{Domain, Protocol, Socket, Type};

    use crate::hops;

    type Part = fn() -> Outcome;
    pub type Outcome = Result<(), Box<dyn Error>>;

    const NEAR: HostId = HostId(0);
    const FAR: HostId = HostId(1);
    const FORWARD: LinkId = LinkId(0);

    pub fn main() -> Outcome {
        let selected: Vec<String> = std::env::args().skip(1).collect();
        // The measuring thread must not wait for other threads.
        socket::wait::sharpen_timers();
        socket::wait::raise_priority();
        let parts: [(&str, Part); 7] = [
            ("delay", delay),
            ("load", load),
            ("speed", speed),
            ("rate", rate),
            ("loss", loss),
            ("tcp", tcp),
            ("hops", hops::measure),
        ];
        for (name, part) in parts {
            if selected.is_empty() || selected.iter().any(|word| word == name) {
                println!("load {}", std::fs::read_to_string("/proc/loadavg")?.trim());
                part()?;
            }
        }
        Ok(())
    }

    pub fn emulate(keys: &str) -> Result<Emulation, Box<dyn Error>> {
        let path: PathConfig = serde_json::from_str(keys)?;
        let path = path
            .links(&mut |_| Err("no files".into()))
            .map_err(|problems| problems[0].to_string())?;
        Ok(Emulation::start(EmulationOptions::new(
            Topology::chain(&path),
            Streams::new(1, 0),
        ))?)
    }

    pub fn quantile(sorted: &[f64], q: f64) -> f64 {
        sorted[((sorted.len() - 1) as f64 * q) as usize]
    }

    fn wall() -> f64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs_f64()
    }

    /// Pings: the time added to the RTT, and to the one-way delay by the kernel's timestamps.
    fn delay() -> Outcome {
        for millis in [1_u32, 10, 50] {
            let emulation = emulate(&format!(r#"{{"delay": "{millis}ms"}}"#))?;
            let mut trips = round_trips(&emulation, millis)?;
            let mut ways = one_way(&emulation, millis, SPARSE)?;
            trips.sort_by(f64::total_cmp);
            ways.sort_by(f64::total_cmp);
            let report = emulation.report();
            println!(
                "delay {millis:2} ms: round trip +{:.0} µs p50, +{:.0} µs p99; one way +{:.0} µs p50, +{:.0} µs p99; late {:.0}/{:.0} µs; real-time {}",
                quantile(&trips, 0.5),
                quantile(&trips, 0.99),
                quantile(&ways, 0.5),
                quantile(&ways, 0.99),
                report.late.value_at_quantile(0.5) as f64 / 1e3,
                report.late.value_at_quantile(0.99) as f64 / 1e3,
                report.real_time,
            );
        }
        Ok(())
    }

    fn round_trips(emulation: &Emulation, millis: u32) -> Result<Vec<f64>, Box<dyn Error>> {
        let pinger = emulation.in_host(NEAR, || {
            Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::ICMPV4))
        })?;
        pinger.connect(&SocketAddr::from((emulation.host_address(FAR), 0)).into())?;
        pinger.set_nonblocking(true)?;
        let mut added = Vec::new();
        for number in 0..1000_u16 {
            let mut echo = vec![8, 0, 0, 0, 0, 0];
            echo.extend(number.to_be_bytes());
            echo.extend([0; 56]);
            let start = Instant::now();
            pinger.send(&echo)?;
            // Busy-wait: waking up from a sleep would add to the delay.
            std::thread::sleep(Duration::from_millis(2 * u64::from(millis)) - Duration::from_micros(500));
            let mut reply = [MaybeUninit::uninit(); 200];
            while let Err(error) = pinger.recv(&mut reply) {
                if error.kind() != ErrorKind::WouldBlock || start.elapsed() > Duration::from_secs(2) {
                    return Err(error.into());
                }
            }
            added.push(start.elapsed().as_secs_f64() * 1e6 - f64::from(millis) * 2e3);
            std::thread::sleep(Duration::from_micros(500 + u64::from(number) * 7 % 1000));
        }
        Ok(added)
    }

    /// The time added to the one-way delay at 10,000 packets/s, also while one processor computes.
    fn load() -> Outcome {
        for busy in [0, 1] {
            let over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                for _ in 0..busy {
                    scope.spawn(|| {
                        while !over.load(Ordering::Relaxed) {
                            std::hint::spin_loop();
                        }
                    });
                }
                let measured =
                    emulate(r#"{"delay": "10ms"}"#).and_then(|emulation| -> Result<_, Box<dyn Error>> {
                        let ways = one_way(&emulation, 10, DENSE)?;
                        Ok((ways, emulation.report().real_time))
                    });
                over.store(true, Ordering::Relaxed);
                let (mut ways, real_time) = measured?;
                ways.sort_by(f64::total_cmp);
                println!(
                    "delay 10 ms, {} packets at 10,000/s, {busy} busy: one way +{:.0} µs p50, +{:.0} µs p90, +{:.0} µs p99, \
                     +{:.0} µs p99.9; real-time {real_time}",
                    ways.len(),
                    quantile(&ways, 0.5),
                    quantile(&ways, 0.9),
                    quantile(&ways, 0.99),
                    quantile(&ways, 0.999),
                );
                Outcome::Ok(())
            })?;
        }
        Ok(())
    }

    /// Packets and seconds between two of them.
    struct Pings {
        packets: u64,
        interval: f64,
    }

    const SPARSE: Pings = Pings {
        packets: 2000,
        interval: 1e-3,
    };
    const DENSE: Pings = Pings {
        packets: 100_000,
        interval: 1e-4,
    };

    fn one_way(emulation: &Emulation, millis: u32, pings: Pings) -> Result<Vec<f64>, Box<dyn Error>> {
        let receiver = emulation.in_host(FAR, || Datagrams::bind(SocketAddr::from(([0, 0, 0, 0], 9))))?;
        let sender = emulation.in_host(NEAR, || UdpSocket::bind("0.0.0.0:0"))?;
        sender.connect((emulation.host_address(FAR), 9))?;
        let (mut added, mut inbox) = (Vec::new(), Inbox::new(32));
        let mut take = |added: &mut Vec<f64>| -> Outcome {
            while receiver.receive(&mut inbox)? > 0 {
                for train in inbox.trains() {
                    for datagram in train.datagrams() {
                        let sent = f64::from_be_bytes(datagram.try_into()?);
                        let arrived = train.stamp.ok_or("no stamp")?.as_secs_f64();
                        added.push((arrived - sent) * 1e6 - f64::from(millis) * 1e3);
                    }
                }
            }
            Ok(())
        };
        let start = Instant::now();
        for number in 0..pings.packets {
            // The interval is not a multiple of any clock tick.
            let due = (number as f64 + (number * 7 % 10) as f64 / 20.0) * pings.interval;
            while start.elapsed().as_secs_f64() < due {
                std::thread::sleep(Duration::from_secs_f64(pings.interval / 2.0));
            }
            sender.send(&wall().to_be_bytes())?;
            take(&mut added)?;
        }
        std::thread::sleep(Duration::from_millis(u64::from(millis) + 100));
        take(&mut added)?;
        Ok(added)
    }

    /// Sends `bytes`-byte datagrams at a rate for a time; returns the numbers of packets sent and received.
    fn flood(
        emulation: &Emulation,
        bytes: usize,
        per_second: f64,
        seconds: f64,
    ) -> Result<(u64, u64), Box<dyn Error>> {
        let receiver = emulation.in_host(FAR, || Datagrams::bind(SocketAddr::from(([0, 0, 0, 0], 9))))?;
        let sender = emulation.in_host(NEAR, || Datagrams::bind(SocketAddr::from(([0, 0, 0, 0], 0))))?;
        let to = Peer::new(SocketAddrV4::new(emulation.host_address(FAR), 9).into());
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let counting = scope.spawn(|| {
                socket::wait::raise_priority();
                let (mut arrived, mut inbox) = (0_u64, Inbox::new(32));
                let mut last = Instant::now();
                while !done.load(Ordering::Relaxed) || last.elapsed() < Duration::from_millis(300) {
                    socket::wait::wait(receiver.socket(), false, foundation::Duration::from_millis(20));
                    while receiver.receive(&mut inbox).is_ok_and(|slots| slots > 0) {
                        arrived += inbox
                            .trains()
                            .map(|train| train.datagrams().count() as u64)
                            .sum::<u64>();
                        last = Instant::now();
                    }
                }
                arrived
            });
            let train = vec![1_u8; bytes * 32];
            let (start, mut sent) = (Instant::now(), 0_u64);
            while start.elapsed().as_secs_f64() < seconds {
                while (sent as f64) < start.elapsed().as_secs_f64() * per_second {
                    sender.send(to, &train, bytes)?;
                    sent += 32;
                }
                std::thread::sleep(Duration::from_micros(100));
            }
            done.store(true, Ordering::Relaxed);
            Ok((sent, counting.join().map_err(|_| "the receiver panicked")?))
        })
    }

    fn speed() -> Outcome {
        for thousands in [50_u32, 100, 150, 200] {
            let emulation = emulate(r#"{"delay": "1ms", "queue": "100000pkt"}"#)?;
            let (sent, arrived) = flood(&emulation, 100, f64::from(thousands) * 1e3, 4.0)?;
            let report = emulation.report();
            println!(
                "speed {thousands} kpps for 4 s: sent {sent}; the path lost {} and the receiving socket {} ({:.3} %); late p99 {:.0} µs",
                sent - report.written,
                report.written - arrived,
                (sent - arrived) as f64 / sent as f64 * 100.0,
                report.late.value_at_quantile(0.99) as f64 / 1e3,
            );
        }
        Ok(())
    }

    fn rate() -> Outcome {
        for megabits in [1_u32, 10, 100, 1000] {
            let emulation = emulate(&format!(
                r#"{{"rate": "{megabits}Mbit/s", "delay": "5ms", "queue": "100pkt"}}"#
            ))?;
            let per_second = f64::from(megabits) * 1e6 * 1.1 / 8.0 / 1500.0;
            let seen = |emulation: &Emulation| {
                emulation.with_network(|network, now| (network.counters(FORWARD).delivered.bytes, now))
            };
            let (begin, end) = std::thread::scope(|scope| {
                let looking = scope.spawn(|| {
                    std::thread::sleep(Duration::from_secs(1));
                    let begin = seen(&emulation);
                    std::thread::sleep(Duration::from_secs(3));
                    (begin, seen(&emulation))
                });
                flood(&emulation, 1472, per_second, 4.5).map(|_| looking.join())
            })?
            .map_err(|_| "panicked")?;
            let bits = (end.0 - begin.0) as f64 * 8.0 / (end.1 - begin.1).as_secs_f64();
            println!(
                "rate {megabits} Mbit/s: {:.3} Mbit/s ({:+.2} %)",
                bits / 1e6,
                bits / f64::from(megabits) / 1e4 - 100.0
            );
        }
        Ok(())
    }

    fn loss() -> Outcome {
        for percent in [0.1, 1.0, 10.0] {
            let emulation = emulate(&format!(
                r#"{{"delay": "1ms", "loss": "{percent}%", "queue": "100000pkt"}}"#
            ))?;
            let (sent, arrived) = flood(&emulation, 100, 5e4, 4.0)?;
            let (sent, p) = (sent as f64, percent / 100.0);
            let realised = 1.0 - arrived as f64 / sent;
            // 99.9 % of the binomial distribution, by the normal approximation.
            let margin = 3.29 * (p * (1.0 - p) / sent).sqrt();
            let verdict = if (realised - p).abs() <= margin {
                "inside"
            } else {
                "OUTSIDE"
            };
            println!(
                "loss {percent} %: {:.4} % of {sent} lost, {verdict} {:.4} % ± {:.4} %",
                realised * 100.0,
                percent,
                margin * 100.0
            );
        }
        Ok(())
    }

    fn tcp() -> Outcome {
        let limited = r#"{"rate": "100Mbit/s", "delay": "10ms", "queue": "170pkt"}"#;
        let unlimited = r#"{"delay": "1ms", "queue": "100000pkt"}"#;
        for (algorithm, keys) in [("reno", limited), ("cubic", limited), ("cubic", unlimited)] {
            let emulation = emulate(keys)?;
            let listener = emulation.in_host(FAR, || TcpListener::bind("0.0.0.0:80"))?;
            let to = SocketAddr::from((emulation.host_address(FAR), 80));
            let seconds = 6.0;
            let (bytes, took) = std::thread::scope(|scope| {
                let reading = scope.spawn(|| -> std::io::Result<(u64, f64)> {
                    let (mut stream, _) = listener.accept()?;
                    let (mut total, mut buffer) = (0, vec![0; 1 << 16]);
                    let mut begin = None;
                    loop {
                        let length = stream.read(&mut buffer)?;
                        let begin = *begin.get_or_insert_with(Instant::now);
                        total += length as u64;
                        if length == 0 {
                            return Ok((total, begin.elapsed().as_secs_f64()));
                        }
                    }
                });
                let client = emulation.in_host(NEAR, || {
                    Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))
                })?;
                client.set_tcp_congestion(algorithm.as_bytes())?;
                client.connect(&to.into())?;
                let (start, block) = (Instant::now(), vec![0_u8; 1 << 16]);
                while start.elapsed().as_secs_f64() < seconds {
                    (&client).write_all(&block)?;
                }
                drop(client);
                reading
                    .join()
                    .unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()))
            })?;
            let counters = emulation.with_network(|network, _| network.counters(FORWARD));
            println!(
                "tcp {algorithm}: {:.1} Mbit/s of goodput through {keys}; {} dropped of {}",
                bytes as f64 * 8.0 / took / 1e6,
                counters.queue_dropped.packets,
                counters.entered.packets
            );
        }
        Ok(())
    }
}
