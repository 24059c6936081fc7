//! Compares sent segments with the expected packets.

use std::collections::VecDeque;

use foundation::{Duration, Instant};
use transport::mptcp::{self, MptcpOption, Signal};
use transport::tcp::{Ecn, Flags, Segment};

use super::segment::Mapping;
use super::settings::HostSettings;
use super::tested::SentSegment;
use crate::language::{EcnMark, OptionSpec, TcpSpec};

/// Consecutive segments as one packet, as a device with segmentation offload sees them.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Header of the packet: the sequence number of the first segment, all other fields of the last.
    pub segment: Segment,
    /// Options of multipath TCP; a mapping covers all segments.
    pub option: MptcpOption,
    /// Further option of multipath TCP.
    pub signal: Signal,
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
    let (mut option, signal) = (first.option, first.signal);
    let mut at = first.at;
    if settings.offload {
        while whole.length < length {
            match sent.get(count) {
                Some(next) if follows(&whole, &sent[count - 1].segment, next, length) => {
                    whole = join(whole, &next.segment);
                    option = join_options(option, next.option);
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
        option,
        signal,
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

/// Returns the option of two segments: the mapping of the first, extended by that of the next.
fn join_options(option: MptcpOption, next: MptcpOption) -> MptcpOption {
    match (option, next) {
        (
            MptcpOption::Dss {
                acknowledgement,
                mapping: Some(first),
                widths,
                checksum,
                ..
            },
            MptcpOption::Dss {
                mapping: Some(next),
                fin,
                ..
            },
        ) if first.data + u64::from(first.length) == next.data => MptcpOption::Dss {
            acknowledgement,
            mapping: Some(mptcp::segment::Mapping {
                length: first.length + next.length,
                ..first
            }),
            fin,
            widths,
            checksum,
        },
        _ => option,
    }
}

/// Returns how `packet` differs from `spec`; `None` if it matches. Records the mapping of timestamps.
pub fn mismatch(
    packet: &Packet,
    spec: &TcpSpec,
    ecn: Option<EcnMark>,
    mapping: &mut Mapping,
    stamps: Stamps<'_>,
) -> Option<&'static str> {
    let segment = &packet.segment;
    let actual = mapping.outbound(segment);
    header_mismatch(packet, &actual, spec, ecn).or_else(|| {
        let expected = spec.options.as_deref()?;
        other_option(actual.options.as_deref()?, expected)
            .or_else(|| stamps_mismatch(segment, expected, mapping, stamps))
    })
}

/// How timestamps are compared.
#[derive(Clone, Copy, Debug)]
pub struct Stamps<'a> {
    /// The clock and the tolerances.
    pub settings: &'a HostSettings,
    /// The time since the start.
    pub since_start: Duration,
    /// Whether only their presence counts, as in the scripts of multipath-tcp/packetdrill.
    pub presence_only: bool,
}

fn header_mismatch(
    packet: &Packet,
    actual: &TcpSpec,
    spec: &TcpSpec,
    ecn: Option<EcnMark>,
) -> Option<&'static str> {
    // Inside a large packet the kernel's segmentation sets PSH, not TCP: Linux forces it on each packet of several
    // segments.
    let ignored = if packet.count > 1 { Flags::PSH } else { Flags::NONE };
    let compared = |flags: Flags| flags.bits() & !ignored.bits();
    let codepoint = packet.segment.ecn;
    let marked = match ecn {
        None => true,
        Some(EcnMark::Exactly(wanted)) => codepoint == wanted,
        Some(EcnMark::AnyEct) => matches!(codepoint, Ecn::Ect0 | Ecn::Ect1),
    };
    let acknowledged = spec.acknowledgement.unwrap_or(0);
    let checks = [
        (compared(actual.flags) == compared(spec.flags), "other flags"),
        (actual.sequence == spec.sequence, "another sequence number"),
        (actual.length == spec.length, "another length"),
        (
            actual.acknowledgement.is_none_or(|number| number == acknowledged),
            "another acknowledgement number",
        ),
        (
            spec.window.is_none() || spec.window == actual.window,
            "another window",
        ),
        (marked, "another ECN codepoint"),
    ];
    checks.into_iter().find(|(fine, _)| !fine).map(|(_, what)| what)
}

/// Compares options other than timestamps one by one; segments do not specify padding and order.
fn other_option(actual: &[OptionSpec], expected: &[OptionSpec]) -> Option<&'static str> {
    type Kind = fn(&OptionSpec) -> bool;
    let kinds: [(Kind, _); 6] = [
        (|o| matches!(o, OptionSpec::Mss(_)), "another MSS option"),
        (
            |o| matches!(o, OptionSpec::WindowScale(_)),
            "another window scale option",
        ),
        (
            |o| matches!(o, OptionSpec::SackPermitted),
            "another SACK-permitted option",
        ),
        (
            |o| matches!(o, OptionSpec::FastOpen { .. }),
            "another Fast Open option",
        ),
        (|o| matches!(o, OptionSpec::Counters(_)), "another AccECN option"),
        (
            |o| matches!(o, OptionSpec::Sack(blocks) if !blocks.is_empty()),
            "other SACK blocks",
        ),
    ];
    let find = |listed: &[OptionSpec], kind: Kind| listed.iter().find(|o| kind(o)).cloned();
    let differs = |kind| find(actual, kind) != find(expected, kind);
    kinds
        .into_iter()
        .find(|(kind, _)| differs(*kind))
        .map(|(_, what)| what)
}

fn stamps_mismatch(
    segment: &Segment,
    expected: &[OptionSpec],
    mapping: &mut Mapping,
    stamped: Stamps<'_>,
) -> Option<&'static str> {
    let Stamps {
        settings,
        since_start,
        presence_only,
    } = stamped;
    let wanted = expected.iter().find_map(|option| match option {
        OptionSpec::Timestamps(value, echo) => Some((*value, *echo)),
        _ => None,
    });
    match (segment.options.timestamps, wanted) {
        (None, None) => None,
        (Some(stamps), Some((value, echo))) => {
            mapping.pair(value, stamps.value);
            if presence_only {
                return None;
            }
            if stamps.echo != echo {
                return Some("another echoed timestamp");
            }
            let tick = settings.timestamp_tick?;
            let counted = mapping.stamp_to_script(stamps.value)?;
            let off = tick * u64::from((counted.wrapping_sub(value) as i32).unsigned_abs());
            let tolerance = settings
                .tolerance
                .max(since_start.mul_f64(settings.tolerance_percent / 100.0));
            (off > tolerance).then_some("another timestamp")
        }
        _ => Some("another timestamps option"),
    }
}
