//! Packets that the hosts' kernels drop. Link counters do not include them.

use std::io;
use std::ops::{Add, Sub};

use serde::Serialize;

use super::host::DEVICE_PREFIX;

/// Packets dropped by one host's kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostDrops {
    /// Packets dropped at a full receive buffer or backlog of a socket, because the application was too slow or got no
    /// processor time (`RcvbufErrors` and `MemErrors` of UDP, `TCPRcvQDrop` and `TCPBacklogDrop`).
    pub socket: u64,
    /// Packets dropped at the full transmit queue of the host's device.
    pub sent: u64,
    /// Packets that the host's device did not accept.
    pub received: u64,
}

impl HostDrops {
    /// Reads the counters of the calling thread's network namespace, since it was created.
    ///
    /// # Errors
    /// The system's, for example without `/proc`.
    pub(crate) fn read() -> io::Result<Self> {
        let file = |name: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{name}"));
        let (snmp, netstat) = (file("snmp")?, file("netstat")?);
        let (received, sent) = device_drops(&file("dev")?);
        Ok(Self {
            socket: sum(&snmp, "Udp", &["RcvbufErrors", "MemErrors"])
                + sum(&netstat, "TcpExt", &["TCPRcvQDrop", "TCPBacklogDrop"]),
            sent,
            received,
        })
    }

    /// The sum of all counters.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.socket + self.sent + self.received
    }
}

impl Add for HostDrops {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            socket: self.socket + other.socket,
            sent: self.sent + other.sent,
            received: self.received + other.received,
        }
    }
}

impl Sub for HostDrops {
    type Output = Self;

    /// The drops since `before`.
    fn sub(self, before: Self) -> Self {
        Self {
            socket: self.socket.saturating_sub(before.socket),
            sent: self.sent.saturating_sub(before.sent),
            received: self.received.saturating_sub(before.received),
        }
    }
}

/// Reads the packets dropped at full backlogs of all processors, from any sender (`softnet_stat`, second column).
///
/// # Errors
/// The system's.
pub(crate) fn backlog() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/net/softnet_stat")?;
    let dropped = text.lines().filter_map(|line| line.split_whitespace().nth(1));
    Ok(dropped
        .filter_map(|count| u64::from_str_radix(count, 16).ok())
        .sum())
}

/// The sum of counters of a protocol in the format of `/proc/net/snmp`: a line of names, then a line of values.
fn sum(text: &str, protocol: &str, names: &[&str]) -> u64 {
    let mut lines = text
        .lines()
        .filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(':'));
    let (Some(known), Some(values)) = (lines.next(), lines.next()) else {
        return 0;
    };
    let counters = known.split_whitespace().zip(values.split_whitespace());
    counters
        .filter(|(name, _)| names.contains(name))
        .filter_map(|(_, value)| value.parse::<u64>().ok())
        .sum()
}

/// Dropped packets of our devices in `/proc/net/dev`: received and sent.
fn device_drops(text: &str) -> (u64, u64) {
    /// Column indices of both.
    const COLUMNS: (usize, usize) = (3, 11);
    let ours = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.trim().starts_with(DEVICE_PREFIX));
    ours.fold((0, 0), |(received, sent), (_, columns)| {
        let columns: Vec<u64> = columns
            .split_whitespace()
            .map(|value| value.parse().unwrap_or(0))
            .collect();
        let at = |place: usize| columns.get(place).copied().unwrap_or(0);
        (received + at(COLUMNS.0), sent + at(COLUMNS.1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_counters_by_name() {
        let text = "Ip: Forwarding InErrors\nIp: 1 9\n\
            Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors\n\
            Udp: 100 0 47 3 40 5 0 0 7\nUdpLite: InDatagrams RcvbufErrors\nUdpLite: 1 2\n";
        assert_eq!(sum(text, "Udp", &["RcvbufErrors", "MemErrors"]), 47);
        assert_eq!(sum(text, "TcpExt", &["TCPRcvQDrop"]), 0);
    }

    #[test]
    fn counts_only_our_devices() {
        let text = "Inter-|   Receive                            |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n\
            \x20   lo:     100       1    0    8    0     0          0         0      100       1    0    9    0     0       0          0\n\
            longfat0:     100       1    0    2    0     0          0         0      100       1    0    3    0     0       0          0\n\
            longfat1:     100       1    0    4    0     0          0         0      100       1    0    5    0     0       0          0\n";
        assert_eq!(device_drops(text), (6, 8));
    }
}
