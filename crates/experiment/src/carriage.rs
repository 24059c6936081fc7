//! What of QUIC carries the data of a workload.

use quic::{Carriage, QuicConfig};

use crate::workload::{WorkloadConfig, WorkloadKind};

/// Returns what carries the data of a workload over QUIC.
#[must_use]
pub fn carriage(config: &QuicConfig, workload: &WorkloadConfig) -> Carriage {
    match workload.kind {
        WorkloadKind::Frames if config.datagrams == Some(true) => Carriage::Datagrams,
        WorkloadKind::Frames => Carriage::Frames,
        _ if workload.has_exchanges() => Carriage::Exchanges,
        _ => Carriage::Stream,
    }
}
