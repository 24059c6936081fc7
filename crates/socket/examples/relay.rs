//! Measures the relay: packets per second, and the delay that it adds to the
//! configured one. One process each for sender, relay and receiver, on loopback.
//!
//! `relay [SECONDS]`

use std::net::{SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use foundation::Streams;
use network::PathConfig;
use socket::datagrams::{Datagrams, Inbox};
use socket::relay::{Relay, RelayOptions};
use socket::wait;

/// Nanoseconds of a clock that all processes share.
fn clock() -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn cpu() -> f64 {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn relay(to: &str, path: &str, seconds: u64) {
    let path: PathConfig = serde_json::from_str(path).expect("a path");
    let path = path.resolve(&mut |_| Err("no files".into())).expect("a path");
    let to = to.parse().expect("an address");
    let options = RelayOptions::new(([127, 0, 0, 1], 0).into(), to, path, Streams::new(1, 0));
    let relay = Relay::bind(options).expect("a socket");
    println!("{}", relay.address());
    let end = Instant::now() + Duration::from_secs(seconds + 1);
    let report = relay
        .run(&mut |_| {
            if Instant::now() < end {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })
        .expect("relayed");
    println!(
        "    the relay: {} in, {} out, {} dropped; wakes {} / {} late (p50 / p99); {:.2} s of CPU",
        report.forward.entered.packets,
        report.forward.delivered.packets,
        report.dropped,
        report.late_p50,
        report.late_p99,
        cpu(),
    );
}

/// Counts datagrams and their delay beyond `delay`, computed from the time stamp in each.
fn receive(delay: u64, seconds: u64) {
    let socket = Datagrams::bind(([127, 0, 0, 1], 0).into()).expect("a socket");
    println!("{}", socket.local_address().expect("an address"));
    wait::sharpen_timers();
    wait::raise_priority();
    let clock_of_stamps = socket::clock::Clock::new();
    let (mut inbox, mut late, mut count) = (Inbox::new(32), Vec::new(), 0_u64);
    let end = Instant::now() + Duration::from_secs(seconds + 1);
    let (mut first, mut last) = (0, 0);
    while Instant::now() < end {
        if socket.receive(&mut inbox).expect("received") == 0 {
            wait::wait(socket.socket(), false, foundation::Duration::from_millis(50));
            continue;
        }
        let (stamps, now) = (clock_of_stamps.stamps(), clock());
        for train in inbox.trains() {
            // The kernel's timestamp excludes the wake-up time of this process.
            let arrived = now - (stamps.now() - stamps.instant(train.stamp)).as_nanos();
            for datagram in train.datagrams() {
                let sent = u64::from_le_bytes(datagram[..8].try_into().expect("a time"));
                late.push(arrived.saturating_sub(sent + delay) / 1000);
                first = if count == 0 { arrived } else { first };
                last = arrived;
                count += 1;
            }
        }
    }
    late.sort_unstable();
    let at = |share: f64| {
        late.get((late.len() as f64 * share) as usize)
            .copied()
            .unwrap_or(0)
    };
    println!(
        "    received {count} in {:.2} s: {:.0} packets/s; added delay {} / {} / {} us (p50 / p99 / p99.9)",
        (last - first) as f64 / 1e9,
        count as f64 * 1e9 / (last - first).max(1) as f64,
        at(0.5),
        at(0.99),
        at(0.999),
    );
}

fn start(arguments: &[&str]) -> (Child, std::io::Lines<std::io::BufReader<ChildStdout>>, String) {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut lines =
        std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("its output")));
    let address = lines.next().expect("a line").expect("an address");
    (child, lines, address)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let seconds = |text: &str| text.parse().expect("a number of seconds");
    match words.as_slice() {
        ["relay", to, path, time] => return relay(to, path, seconds(time)),
        ["receive", delay, time] => return receive(delay.parse().expect("nanoseconds"), seconds(time)),
        _ => {}
    }
    let time = words.first().copied().unwrap_or("5");
    for (title, path, delay, rate) in [
        (
            "1,000 packets/s, 10 ms",
            r#"{"delay": "10ms"}"#,
            10_000_000_u64,
            1_000_u64,
        ),
        (
            "10,000 packets/s, 10 ms",
            r#"{"delay": "10ms"}"#,
            10_000_000,
            10_000,
        ),
        (
            "160,000 packets/s, 10 ms",
            r#"{"delay": "10ms", "queue": "100000pkt"}"#,
            10_000_000,
            160_000,
        ),
    ] {
        println!("{title}, 1000 bytes:");
        let (mut receiver, mut counted, to) = start(&["receive", &delay.to_string(), time]);
        let (mut relay, mut done, address) = start(&["relay", &to, path, time]);
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let to: SocketAddr = address.parse().expect("an address");
        wait::raise_priority();
        let (start, mut sent) = (clock(), 0_u64);
        let before = cpu();
        let end = start + seconds(time) * 1_000_000_000;
        let mut datagram = [0; 1000];
        while clock() < end {
            // At most a few at a time; the number of sent datagrams shows whether the sender keeps up.
            for _ in 0..64.min(((clock() - start) * rate / 1_000_000_000).saturating_sub(sent)) {
                datagram[..8].copy_from_slice(&clock().to_le_bytes());
                let _ = socket.send_to(&datagram, to);
                sent += 1;
            }
            if rate < 100_000 {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
        println!("    sent {sent}, {:.2} s of CPU", cpu() - before);
        for lines in [&mut done, &mut counted] {
            println!("{}", lines.next().expect("a line").expect("a report"));
        }
        relay.wait().expect("an end");
        receiver.wait().expect("an end");
    }
}
