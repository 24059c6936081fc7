//! Compares the RTT to each router of chains of eight links with the links' configuration.

use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use emulation::Emulation;
use network::HostId;
use socket2::{Domain, Protocol, Socket, Type};

use crate::linux::{Outcome, emulate, quantile};

/// Rate in Mbit/s and one-way delay in ms of the links of two chains.
const CHAINS: [[(u32, u32); 8]; 2] = [
    [
        (100, 1),
        (50, 2),
        (20, 10),
        (10, 5),
        (100, 3),
        (5, 7),
        (40, 4),
        (80, 1),
    ],
    [
        (5, 1),
        (10, 1),
        (20, 1),
        (5, 1),
        (100, 1),
        (50, 1),
        (10, 1),
        (100, 1),
    ],
];
/// Probe sizes in bytes with all headers.
const SIZES: [usize; 3] = [64, 500, 1500];
const PROBES: u16 = 200;
/// The size limit of an ICMP error with its quote (RFC 1812, section 4.3.2.3).
const MAX_ERROR_SIZE: usize = 576;

/// Sends echo requests with each time to live.
pub fn measure() -> Outcome {
    for links in CHAINS {
        let keys: Vec<String> = links
            .iter()
            .map(|(rate, delay)| format!(r#"{{"rate": "{rate}Mbit/s", "delay": "{delay}ms"}}"#))
            .collect();
        let emulation = emulate(&format!(r#"{{"hops": [{}]}}"#, keys.join(", ")))?;
        let pinger = emulation.in_host(HostId(0), || {
            Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))
        })?;
        pinger.set_nonblocking(true)?;
        let far = SocketAddr::from((emulation.host_address(HostId(1)), 0));
        for size in SIZES {
            for hops in 1..=links.len() {
                let answer = match hops < links.len() {
                    true => (size + 28).min(MAX_ERROR_SIZE),
                    false => size,
                };
                let micros = |(rate, delay): &(u32, u32)| {
                    2e3 * f64::from(*delay) + (size + answer) as f64 * 8.0 / f64::from(*rate)
                };
                let expected: f64 = links[..hops].iter().map(micros).sum();
                pinger.set_ttl_v4(hops as u32)?;
                let mut added = Vec::new();
                for number in 0..PROBES {
                    added.push(probe(&pinger, far, size, number, expected)? - expected);
                }
                added.sort_by(f64::total_cmp);
                println!(
                    "hop {hops} of 8, {size} B: {:.3} ms configured; {:+.0} µs minimum, {:+.0} µs p50, {:+.0} µs p99",
                    expected / 1e3,
                    added[0],
                    quantile(&added, 0.5),
                    quantile(&added, 0.99)
                );
            }
        }
        reported(&emulation);
    }
    Ok(())
}

fn reported(emulation: &Emulation) {
    let report = emulation.report();
    let late = |q| report.late.value_at_quantile(q) as f64 / 1e3;
    println!(
        "late {:.0}/{:.0} µs; real-time {}",
        late(0.5),
        late(0.99),
        report.real_time
    );
}

/// Returns the RTT of one echo request in microseconds.
fn probe(
    pinger: &Socket,
    far: SocketAddr,
    size: usize,
    number: u16,
    expected: f64,
) -> Result<f64, Box<dyn std::error::Error>> {
    let mut echo = vec![8, 0, 0, 0, 0x4c, 0x46];
    echo.extend(number.to_be_bytes());
    echo.resize(size - 20, 0);
    let mut sum: u32 = echo
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    echo[2..4].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    let start = Instant::now();
    pinger.send_to(&echo, &far.into())?;
    // Busy-wait: waking up from a sleep would add to the delay.
    std::thread::sleep(Duration::from_secs_f64((expected / 1e6 - 5e-4).max(0.0)));
    let mut reply = [MaybeUninit::uninit(); 2000];
    loop {
        match pinger.recv(&mut reply) {
            Ok(length) => {
                let took = start.elapsed().as_secs_f64() * 1e6;
                // SAFETY: the kernel wrote `length` bytes.
                let bytes: Vec<u8> = reply[..length]
                    .iter()
                    .map(|byte| unsafe { byte.assume_init() })
                    .collect();
                // An echo reply has the sequence number; a router's error quotes the request.
                let at = match bytes[20] {
                    0 => 20 + 6,
                    11 => 20 + 8 + 20 + 6,
                    _ => continue,
                };
                if bytes.get(at..at + 2) == Some(&number.to_be_bytes()[..]) {
                    return Ok(took);
                }
            }
            Err(error)
                if error.kind() == ErrorKind::WouldBlock && start.elapsed() < Duration::from_secs(2) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
