//! Waits until a server listens.

use std::process::Child;
use std::time::{Duration, Instant};

use network::HostId;

use super::report::code_of;
use super::stopping::Stopping;
use crate::emulation::Emulation;
use crate::error::Error;

/// A port at which a server listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListeningPort {
    /// Its number.
    pub number: u16,
    /// UDP rather than TCP.
    pub is_udp: bool,
}

impl ListeningPort {
    /// Whether a socket that other hosts can reach listens at the port in the calling thread's namespace.
    pub(crate) fn is_reachable(self) -> bool {
        find(self) == Listener::Reachable
    }
}

/// How long a server has until it listens.
const PATIENCE: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_millis(20);

/// The sockets of a port at a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Listener {
    None,
    /// Only at addresses that other hosts cannot reach.
    Loopback,
    Reachable,
}

/// Waits until a socket listens at a port of a host, without a connection to it.
pub(super) fn wait(
    emulation: &Emulation,
    host: HostId,
    port: ListeningPort,
    server: &mut Child,
    stopping: &mut Stopping<'_>,
) -> Result<(), Error> {
    let kind = if port.is_udp { "UDP" } else { "TCP" };
    let failed = |why: String| {
        Err(Error::System {
            what: format!("wait for the server at {kind} port {}", port.number),
            source: std::io::Error::other(why),
        })
    };
    let start = Instant::now();
    loop {
        let listener = emulation.in_host(host, || find(port));
        if listener == Listener::Reachable {
            return Ok(());
        }
        // A daemon's first process exits with 0.
        if let Some(status) = server
            .try_wait()
            .ok()
            .flatten()
            .filter(|status| !status.success())
        {
            return failed(format!("it exited with code {}", code_of(status)));
        }
        if stopping.request().is_some() {
            return failed("interrupted".into());
        }
        if start.elapsed() > PATIENCE {
            let where_to = match listener {
                Listener::Loopback => ", but at the host's loopback addresses: let it listen at 0.0.0.0",
                _ => "",
            };
            return failed(format!(
                "it does not listen there after {} s{where_to}",
                PATIENCE.as_secs()
            ));
        }
        std::thread::sleep(INTERVAL);
    }
}

/// Finds the sockets of a port in the calling thread's namespace (`proc(5)`, `/proc/net/tcp`).
fn find(port: ListeningPort) -> Listener {
    // TCP_LISTEN; UDP sockets without a peer are in TCP_CLOSE.
    let (name, state) = if port.is_udp { ("udp", "07") } else { ("tcp", "0A") };
    let read = |suffix| std::fs::read_to_string(format!("/proc/thread-self/net/{name}{suffix}"));
    let texts = ["", "6"].map(|suffix| read(suffix).unwrap_or_default());
    let found = texts.iter().flat_map(|text| text.lines().skip(1));
    found
        .filter_map(|line| listener(line, port.number, state))
        .max()
        .unwrap_or(Listener::None)
}

/// The socket of a line, if it has this port and state.
fn listener(line: &str, port: u16, state: &str) -> Option<Listener> {
    let mut fields = line.split_whitespace().skip(1);
    let (local, _, found) = (fields.next()?, fields.next()?, fields.next()?);
    let (address, number) = local.split_once(':')?;
    if found != state || u16::from_str_radix(number, 16).ok()? != port {
        return None;
    }
    // 127.0.0.0/8 and ::1, as numbers of 32 bits in the machine's byte order.
    let is_v4 = address.len() == 8;
    let first = u32::from_str_radix(address.get(..8)?, 16).ok()?.to_ne_bytes()[0];
    let one = format!("{:08X}", u32::from_ne_bytes([0, 0, 0, 1]));
    let is_loopback = match is_v4 {
        true => first == 127,
        false => address.starts_with("000000000000000000000000") && address.ends_with(&one),
    };
    Some(if is_loopback {
        Listener::Loopback
    } else {
        Listener::Reachable
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_listeners_and_where_they_can_be_reached() {
        let line = |address: &str, state: &str| {
            format!(
                "   0: {address}:1F90 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 0 0 1 1"
            )
        };
        let v4 = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
        let v6 = |last: u8| format!("{}{}", "0".repeat(24), v4([0, 0, 0, last]));
        for (address, expected) in [
            (v4([0; 4]), Listener::Reachable),
            (v4([10, 77, 0, 2]), Listener::Reachable),
            (v4([127, 0, 0, 1]), Listener::Loopback),
            (v6(0), Listener::Reachable),
            (v6(1), Listener::Loopback),
        ] {
            assert_eq!(
                listener(&line(&address, "0A"), 8080, "0A"),
                Some(expected),
                "{address}"
            );
            assert_eq!(listener(&line(&address, "01"), 8080, "0A"), None);
            assert_eq!(listener(&line(&address, "0A"), 8081, "0A"), None);
        }
        assert_eq!(listener("", 1, "0A"), None);
    }
}
