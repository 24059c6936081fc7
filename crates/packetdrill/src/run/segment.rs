//! Conversion of segments between the machine's and the script's numbering, and their description.

use transport::tcp::fast_open::FastOpen;
use transport::tcp::options::OpeningOptions;
use transport::tcp::{Ecn, Field, Flags, Options, Segment, SequenceNumber, Timestamps};

use crate::language::{EcnMark, MultipathSpec, OptionSpec, TcpSpec, letters};

/// The number mapping of one connection. In segments with SYN, a script writes the peer's sequence numbers as they are
/// and chooses the machine's initial number; in all others both sides count from their SYN, which is zero. The script
/// also chooses the first timestamp of the machine.
#[derive(Clone, Debug, Default)]
pub struct Mapping {
    /// The machine's initial sequence number.
    initial: u32,
    /// The script's number for it.
    script_initial: u32,
    /// The peer's initial sequence number, once its SYN has arrived.
    peer_initial: u32,
    /// Pairs of the script's and the machine's timestamps, in the order in which they were first matched.
    stamps: Vec<(u32, u32)>,
}

impl Mapping {
    /// Creates the mapping of a machine with this initial sequence number.
    pub fn beginning_at(initial: u32) -> Self {
        Self {
            initial,
            ..Self::default()
        }
    }

    /// Sets the machine's initial sequence number, which its first SYN shows.
    pub fn set_initial(&mut self, initial: u32) {
        self.initial = initial;
    }

    /// Sets the script's number for the machine's initial sequence number.
    pub fn name_initial(&mut self, number: u32) {
        self.script_initial = number;
    }

    /// Sets the peer's initial sequence number.
    pub fn learn_peer(&mut self, number: u32) {
        self.peer_initial = number;
    }

    /// Returns the offsets from the script's numbers to the machine's stream and to the peer's stream.
    fn offsets(&self, syn: bool) -> (u32, u32) {
        if syn {
            (self.initial.wrapping_sub(self.script_initial), 0)
        } else {
            (self.initial, self.peer_initial)
        }
    }

    /// Converts a sequence number of the machine that an ICMP message quotes.
    pub fn quoted(&self, number: u32) -> SequenceNumber {
        SequenceNumber(number.wrapping_add(self.initial))
    }

    /// Records that the script's timestamp `script` is the machine's timestamp `actual`.
    pub fn pair(&mut self, script: u32, actual: u32) {
        self.stamps.push((script, actual));
    }

    /// Converts a timestamp of the machine, relative to the first pair.
    pub fn stamp_to_script(&self, actual: u32) -> Option<u32> {
        let (script, first) = self.stamps.first()?;
        Some(script.wrapping_add(actual.wrapping_sub(*first)))
    }

    /// Converts a timestamp that the script echoes: to the paired value, or else relative to the first pair.
    fn stamp_to_machine(&self, script: u32) -> u32 {
        if let Some((_, actual)) = self.stamps.iter().rev().find(|(known, _)| *known == script) {
            return *actual;
        }
        match self.stamps.first() {
            Some((first, actual)) => actual.wrapping_add(script.wrapping_sub(*first)),
            None => script,
        }
    }

    /// Converts an inbound segment of the script.
    ///
    /// # Errors
    /// If an option does not fit into a segment.
    pub fn inbound(&self, spec: &TcpSpec, ecn: Option<EcnMark>) -> Result<Segment, String> {
        let (own, peer) = self.offsets(spec.flags.contains(Flags::SYN));
        let mut options = Options::default();
        for option in spec.options.iter().flatten() {
            match option {
                OptionSpec::Nop | OptionSpec::Eol => {}
                OptionSpec::Mss(bytes) => options.mss = Some(*bytes),
                OptionSpec::WindowScale(shift) => options.window_scale = Some(*shift),
                OptionSpec::SackPermitted => options.sack_permitted = true,
                OptionSpec::Sack(blocks) => {
                    let shift = |edge: u32| SequenceNumber(edge.wrapping_add(own));
                    for (left, right) in blocks {
                        if !options.sack.push((shift(*left), shift(*right))) {
                            return Err("more than four SACK blocks".to_owned());
                        }
                    }
                }
                OptionSpec::Timestamps(value, echo) => {
                    let acknowledges = spec.flags.contains(Flags::ACK);
                    let echo = if acknowledges {
                        self.stamp_to_machine(*echo)
                    } else {
                        *echo
                    };
                    options.timestamps = Some(Timestamps { value: *value, echo });
                }
                OptionSpec::Counters(counters) => options.sack.set_counters(*counters),
                OptionSpec::FastOpen { option, experimental } => options.set_opening(OpeningOptions {
                    fast_open: Some(*option),
                    experimental: *experimental,
                    ..OpeningOptions::default()
                }),
                // Those of multipath TCP are no part of the segment of TCP.
                OptionSpec::InvalidCookie | OptionSpec::Multipath(_) => {}
            }
        }
        let acknowledgement = match spec.acknowledgement {
            // Without a number, packetdrill acknowledges nothing, not even the SYN.
            number if spec.flags.contains(Flags::ACK) => number.unwrap_or(0).wrapping_add(own),
            Some(number) => number,
            None => 0,
        };
        Ok(Segment {
            sequence: SequenceNumber(spec.sequence.wrapping_add(peer)),
            acknowledgement: SequenceNumber(acknowledgement),
            flags: spec.flags,
            window: spec.window.unwrap_or(0),
            length: spec.length,
            options,
            ecn: match ecn {
                None => Ecn::NotEct,
                Some(EcnMark::Exactly(codepoint)) => codepoint,
                Some(EcnMark::AnyEct) => Ecn::Ect0,
            },
        })
    }

    /// Converts a segment of the machine; its options have no padding.
    pub fn outbound(&self, segment: &Segment) -> TcpSpec {
        let (own, peer) = self.offsets(segment.has(Flags::SYN));
        let options = &segment.options;
        let number = |number: SequenceNumber| number.0.wrapping_sub(peer);
        let blocks = options.sack.as_slice().iter();
        let blocks: Vec<(u32, u32)> = blocks
            .map(|(left, right)| (number(*left), number(*right)))
            .collect();
        let stamps = options.timestamps.map(|stamps| {
            let value = self.stamp_to_script(stamps.value).unwrap_or(stamps.value);
            OptionSpec::Timestamps(value, stamps.echo)
        });
        let listed = [
            options.mss.map(OptionSpec::Mss),
            options.sack_permitted.then_some(OptionSpec::SackPermitted),
            stamps,
            options.window_scale.map(OptionSpec::WindowScale),
            (!blocks.is_empty()).then_some(OptionSpec::Sack(blocks)),
            options.opening().fast_open.map(|option| OptionSpec::FastOpen {
                option,
                experimental: options.opening().experimental,
            }),
            options.sack.counters().map(OptionSpec::Counters),
        ];
        TcpSpec {
            flags: segment.flags,
            sequence: segment.sequence.0.wrapping_sub(own),
            length: segment.length,
            acknowledgement: segment.has(Flags::ACK).then(|| number(segment.acknowledgement)),
            window: Some(segment.window),
            options: Some(listed.into_iter().flatten().collect()),
        }
    }

    /// Describes a segment of the machine, with its options of multipath TCP, in the script's notation.
    pub fn describe(&self, segment: &Segment, multipath: Vec<MultipathSpec>) -> String {
        let marked = segment.ecn != Ecn::NotEct;
        let mut spec = self.outbound(segment);
        let options = spec.options.get_or_insert_default();
        options.extend(multipath.into_iter().map(OptionSpec::Multipath));
        describe_spec(&spec, marked.then_some(EcnMark::Exactly(segment.ecn)))
    }
}

/// Describes a segment in the script's notation.
pub fn describe_spec(spec: &TcpSpec, ecn: Option<EcnMark>) -> String {
    let ecn = ecn.map_or_else(String::new, |mark| format!("[{}] ", mark.name()));
    let to = spec.sequence.wrapping_add(spec.length);
    let mut text = format!(
        "{ecn}{} {}:{to}({})",
        letters(spec.flags),
        spec.sequence,
        spec.length
    );
    if let Some(number) = spec.acknowledgement {
        text.push_str(&format!(" ack {number}"));
    }
    if let Some(window) = spec.window {
        text.push_str(&format!(" win {window}"));
    }
    match &spec.options {
        None => text.push_str(" <...>"),
        Some(options) => {
            let parts: Vec<String> = options.iter().filter_map(describe_option).collect();
            if !parts.is_empty() {
                text.push_str(&format!(" <{}>", parts.join(",")));
            }
        }
    }
    text
}

fn describe_option(option: &OptionSpec) -> Option<String> {
    Some(match option {
        OptionSpec::Nop | OptionSpec::Eol => return None,
        OptionSpec::Mss(bytes) => format!("mss {bytes}"),
        OptionSpec::WindowScale(shift) => format!("wscale {shift}"),
        OptionSpec::SackPermitted => "sackOK".to_owned(),
        OptionSpec::Sack(blocks) => {
            let blocks: Vec<String> = blocks
                .iter()
                .map(|(left, right)| format!("{left}:{right}"))
                .collect();
            format!("sack {}", blocks.join(" "))
        }
        OptionSpec::Timestamps(value, echo) => format!("TS val {value} ecr {echo}"),
        OptionSpec::Counters(counters) => {
            let name = |field| match field {
                Field::Ect0 => "e0b",
                Field::Ect1 => "e1b",
                Field::Ce => "ceb",
            };
            let values = counters
                .iter()
                .map(|(field, value)| format!(" {} {value}", name(field)));
            format!("ECN{}", values.collect::<String>())
        }
        OptionSpec::FastOpen { option, experimental } => {
            let name = if *experimental { "FOEXP" } else { "FO" };
            match option {
                FastOpen::Request => name.to_owned(),
                FastOpen::Cookie(cookie) => format!("{name} {cookie}"),
            }
        }
        OptionSpec::InvalidCookie => "FO of an invalid length".to_owned(),
        OptionSpec::Multipath(spec) => spec.to_string(),
    })
}
