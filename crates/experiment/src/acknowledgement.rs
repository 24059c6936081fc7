//! The acknowledgement of a TCP segment, for queue disciplines.

use network::TcpAck;
use transport::tcp::{Flags, Options, Segment};

/// Returns the acknowledgement of a segment with ACK and without SYN; `None` for others.
#[must_use]
pub fn acknowledgement(segment: &Segment) -> Option<TcpAck> {
    if !segment.flags.contains(Flags::ACK) || segment.flags.contains(Flags::SYN) {
        return None;
    }
    let signals = Flags::ECE | Flags::CWR;
    let known = Options {
        timestamps: segment.options.timestamps,
        sack: segment.options.sack.as_slice().iter().copied().collect(),
        ..Options::default()
    };
    let mut ack = TcpAck::new(segment.acknowledgement.0);
    let is_plain = segment.flags.without(signals) == Flags::ACK && segment.options == known;
    ack.is_pure = segment.length == 0 && is_plain;
    ack.signals = [Flags::ECE, Flags::CWR].map(|flag| segment.flags.contains(flag));
    ack.timestamps = segment
        .options
        .timestamps
        .map(|stamps| (stamps.value, stamps.echo));
    for (from, to) in segment.options.sack.as_slice() {
        ack.select((from.0, to.0));
    }
    Some(ack)
}
