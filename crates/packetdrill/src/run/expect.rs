//! Compares sent segments with the expected packets.

use std::collections::VecDeque;

use foundation::{Duration, Instant};
use transport::tcp::{Ecn, Flags, Segment};

use super::segment::{Mapping, describe_spec, to_script};
use super::settings::HostSettings;
use super::tested::SentSegment;
use crate::language::{EcnMark, OptionSpec, TcpFlags, TcpSpec};

/// Consecutive segments as one packet, as a device with segmentation offload sees them.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Header of the packet: the sequence number of the first segment, all other fields of the last.
    pub segment: Segment,
    /// Number of segments.
    pub count: u32,
    /// When the last segment was sent.
    pub at: Instant,
}

/// Takes the packet at the head of the sent segments, up to `length` bytes of payload; `None` while it is incomplete.
///
/// A device with segmentation offload sees the sender's large packets, but the machine emits segments. Therefore
/// consecutive segments without a gap and with the same acknowledgement number, flags and length (except the last) count
/// as one packet, until the expected length is reached.
pub fn take(sent: &mut VecDeque<SentSegment>, length: u32, settings: &HostSettings) -> Option<Packet> {
    let first = sent.front()?;
    let (mut whole, mut count) = (first.segment, 1);
    let mut at = first.at;
    if settings.offload {
        while whole.length < length {
            match sent.get(count) {
                Some(next) if follows(&whole, &sent[count - 1].segment, next, length) => {
                    whole = join(whole, &next.segment);
                    at = next.at;
                    count += 1;
                }
                Some(_) => break,
                None if whole.length == 0 => break,
                None => return None,
            }
        }
    }
    sent.drain(..count);
    Some(Packet {
        segment: whole,
        count: count as u32,
        at,
    })
}

fn follows(whole: &Segment, last: &Segment, next: &SentSegment, length: u32) -> bool {
    let next = &next.segment;
    let late = Flags::PSH | Flags::FIN;
    let steady = |segment: &Segment| segment.flags.bits() & !(late | Flags::CWR).bits();
    whole.length > 0
        && next.length > 0
        && next.sequence == whole.end()
        && !last.has(Flags::FIN)
        && steady(last) == steady(next)
        && next.acknowledgement == whole.acknowledgement
        && whole.length + next.length <= length
        && (next.length == last.length || whole.length + next.length == length)
}

fn join(whole: Segment, next: &Segment) -> Segment {
    // CWR is set on the first segment of a large packet (RFC 3168, section 6.1.2), the other flags come from the last.
    let reduced = whole.flags.bits() & Flags::CWR.bits();
    let flags = (next.flags.bits() & !Flags::CWR.bits()) | reduced;
    Segment {
        sequence: whole.sequence,
        length: whole.length + next.length,
        flags: Flags::from_bits(flags),
        ..*next
    }
}

/// Returns how `packet` differs from `spec`; `None` if it matches. Records the mapping of timestamps.
pub fn mismatch(
    packet: &Packet,
    spec: &TcpSpec,
    ecn: Option<EcnMark>,
    mapping: &mut Mapping,
    settings: &HostSettings,
    since_start: Duration,
) -> Option<String> {
    let segment = &packet.segment;
    let what = header_mismatch(packet, spec, ecn, mapping).or_else(|| {
        let options = spec.options.as_deref()?;
        options_mismatch(segment, options, mapping, settings, since_start)
    })?;
    Some(format!("{} ({what})", mapping.describe(segment)))
}

fn header_mismatch(
    packet: &Packet,
    spec: &TcpSpec,
    ecn: Option<EcnMark>,
    mapping: &Mapping,
) -> Option<&'static str> {
    let segment = &packet.segment;
    let mut flags = (to_script(segment.flags), spec.flags);
    if packet.count > 1 {
        // Inside a large packet the kernel's segmentation sets PSH, not TCP: Linux forces it on each packet of
        // several segments.
        flags = (flags.0.without(TcpFlags::PSH), flags.1.without(TcpFlags::PSH));
    }
    let acknowledges = segment.has(Flags::ACK);
    let marked = match ecn {
        None => true,
        Some(EcnMark::NotEct) => segment.ecn == Ecn::NotEct,
        Some(EcnMark::Ect0) => segment.ecn == Ecn::Ect0,
        Some(EcnMark::Ect1) => segment.ecn == Ecn::Ect1,
        Some(EcnMark::AnyEct) => matches!(segment.ecn, Ecn::Ect0 | Ecn::Ect1),
        Some(EcnMark::Ce) => segment.ecn == Ecn::Ce,
    };
    let checks = [
        (flags.0 == flags.1, "other flags"),
        (
            mapping.sequence(segment) == spec.sequence,
            "another sequence number",
        ),
        (segment.length == spec.length, "another length"),
        (
            !acknowledges
                || mapping.peer_number(segment, segment.acknowledgement) == spec.acknowledgement.unwrap_or(0),
            "another acknowledgement number",
        ),
        (
            spec.window.is_none_or(|window| window == segment.window),
            "another window",
        ),
        (marked, "another ECN codepoint"),
    ];
    checks.into_iter().find(|(fine, _)| !fine).map(|(_, what)| what)
}

/// Compares options one by one; segments do not specify padding and order.
fn options_mismatch(
    segment: &Segment,
    expected: &[OptionSpec],
    mapping: &mut Mapping,
    settings: &HostSettings,
    since_start: Duration,
) -> Option<&'static str> {
    let actual = &segment.options;
    let find = |wanted: fn(&OptionSpec) -> bool| expected.iter().find(|option| wanted(option));
    let mss = match find(|option| matches!(option, OptionSpec::Mss(_))) {
        Some(OptionSpec::Mss(bytes)) => Some(*bytes),
        _ => None,
    };
    if actual.mss != mss {
        return Some("another MSS option");
    }
    let scale = match find(|option| matches!(option, OptionSpec::WindowScale(_))) {
        Some(OptionSpec::WindowScale(shift)) => Some(*shift),
        _ => None,
    };
    if actual.window_scale != scale {
        return Some("another window scale option");
    }
    if actual.sack_permitted != expected.contains(&OptionSpec::SackPermitted) {
        return Some("another SACK-permitted option");
    }
    let fast_open = match find(|option| matches!(option, OptionSpec::FastOpen(_))) {
        Some(OptionSpec::FastOpen(option)) => Some(*option),
        _ => None,
    };
    if actual.opening().fast_open != fast_open {
        return Some("another Fast Open option");
    }
    let blocks: Vec<(u32, u32)> = actual
        .sack
        .as_slice()
        .iter()
        .map(|(left, right)| {
            (
                mapping.peer_number(segment, *left),
                mapping.peer_number(segment, *right),
            )
        })
        .collect();
    let wanted = match find(|option| matches!(option, OptionSpec::Sack(_))) {
        Some(OptionSpec::Sack(blocks)) => blocks.clone(),
        _ => Vec::new(),
    };
    if blocks != wanted {
        return Some("other SACK blocks");
    }
    match (
        actual.timestamps,
        find(|option| matches!(option, OptionSpec::Timestamps(..))),
    ) {
        (None, None) => None,
        (Some(stamps), Some(OptionSpec::Timestamps(value, echo))) => {
            mapping.pair(*value, stamps.value);
            if stamps.echo != *echo {
                return Some("another echoed timestamp");
            }
            let tick = settings.timestamp_tick?;
            let counted = mapping.stamp_to_script(stamps.value)?;
            let off = tick * u64::from((counted.wrapping_sub(*value) as i32).unsigned_abs());
            let tolerance = settings
                .tolerance
                .max(since_start.mul_f64(settings.tolerance_percent / 100.0));
            (off > tolerance).then_some("another timestamp")
        }
        _ => Some("another timestamps option"),
    }
}

/// Describes the expected packet.
pub fn expectation(spec: &TcpSpec, ecn: Option<EcnMark>) -> String {
    describe_spec(spec, ecn)
}
