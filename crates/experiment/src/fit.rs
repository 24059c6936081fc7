//! Conflicts between the protocol and the workload of the same flows.

use foundation::Problem;

use crate::protocol::{MAX_DATAGRAM, ProtocolConfig};
use crate::workload::{WorkloadConfig, WorkloadKind};

/// Returns the first conflict between protocol and workload.
pub(crate) fn fit(protocol: &ProtocolConfig, workload: &WorkloadConfig) -> Option<Problem> {
    if let ProtocolConfig::Tcp(config) = protocol
        && config.path.is_some()
        && workload.each_path == Some(true)
    {
        let message =
            "true excludes path of the protocol, since each path has its own flows: remove one of them";
        return Some(Problem::new("each_path", message));
    }
    if let ProtocolConfig::Quic(config) = protocol
        && config.fair_streams.is_some()
        && !workload.has_exchanges()
        && workload.kind != WorkloadKind::Frames
    {
        let message = format!(
            "{:?} without streams has one stream for each flow: remove fair_streams of the protocol",
            workload.kind.name()
        );
        return Some(Problem::new("kind", message));
    }
    if let ProtocolConfig::Quic(config) = protocol
        && config.datagrams.is_some()
        && workload.kind != WorkloadKind::Frames
    {
        let message = format!(
            "{:?} needs every byte: remove datagrams of the protocol (only frames)",
            workload.kind.name()
        );
        return Some(Problem::new("kind", message));
    }
    let is_datagram = matches!(protocol, ProtocolConfig::Udp(_) | ProtocolConfig::Icmp(_));
    if is_datagram && workload.barrier == Some(true) {
        let message = "true requires a connection: allowed over TCP, Multipath TCP, QUIC and ARQ protocols";
        return Some(Problem::new("barrier", message));
    }
    if is_datagram && workload.streams.is_some() {
        let message = "requires a connection: allowed over TCP, Multipath TCP, QUIC and ARQ protocols";
        return Some(Problem::new("streams", message));
    }
    let name = match protocol {
        ProtocolConfig::Udp(_) => "udp",
        ProtocolConfig::Icmp(_) => "icmp",
        _ => return None,
    };
    let is_echo = matches!(protocol, ProtocolConfig::Icmp(_));
    match workload.kind {
        WorkloadKind::RequestResponse => messages_fit(protocol, workload),
        other if protocol.response_timeout().is_some() => {
            let message = format!(
                "{:?} has no requests: remove response_timeout of the protocol",
                other.name()
            );
            Some(Problem::new("kind", message))
        }
        WorkloadKind::OnOff if !is_echo => None,
        WorkloadKind::Bulk if workload.rate.is_some() && !is_echo => None,
        WorkloadKind::Bulk if !is_echo => Some(Problem::new("rate", "the key is missing: required for udp")),
        other => {
            let others = if is_echo {
                ""
            } else {
                ", bulk (with a rate), on-off"
            };
            let message = format!(
                "{name} cannot carry {:?}: allowed: request-response{others}",
                other.name()
            );
            Some(Problem::new("kind", message))
        }
    }
}

/// Returns the first problem of requests and responses of one datagram each.
fn messages_fit(protocol: &ProtocolConfig, workload: &WorkloadConfig) -> Option<Problem> {
    let (request, response) = workload.exchange();
    for (key, bytes) in [("request_size", request), ("response_size", response)] {
        if bytes > MAX_DATAGRAM {
            let message =
                format!("\"{bytes}B\" is out of range: at most {MAX_DATAGRAM}B, the size of a datagram");
            return Some(Problem::new(key, message));
        }
    }
    match protocol {
        ProtocolConfig::Icmp(_) if request != response => {
            let message =
                format!("\"{response}B\" is not possible: icmp echoes request_size = \"{request}B\"");
            Some(Problem::new("response_size", message))
        }
        ProtocolConfig::Udp(config) if config.mss.is_some() => {
            let message = "request-response over udp sends one datagram each: remove mss of the protocol";
            Some(Problem::new("kind", message))
        }
        _ => None,
    }
}
