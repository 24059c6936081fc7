//! Conversion of segments between the machine's and the script's numbering, and their description.

use transport::tcp::fast_open::FastOpen;
use transport::tcp::options::OpeningOptions;
use transport::tcp::{Ecn, Flags, Options, Segment, SequenceNumber, Timestamps};

use crate::language::{EcnMark, OptionSpec, TcpFlags, TcpSpec};

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

    /// Returns the sequence number of an outbound segment in the script's numbering.
    pub fn sequence(&self, segment: &Segment) -> u32 {
        let (own, _) = self.offsets(segment.has(Flags::SYN));
        segment.sequence.0.wrapping_sub(own)
    }

    /// Returns a number of the peer's stream in an outbound segment, in the script's numbering.
    pub fn peer_number(&self, segment: &Segment, number: SequenceNumber) -> u32 {
        let (_, peer) = self.offsets(segment.has(Flags::SYN));
        number.0.wrapping_sub(peer)
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
        let (own, peer) = self.offsets(spec.flags.contains(TcpFlags::SYN));
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
                    let acknowledges = spec.flags.contains(TcpFlags::ACK);
                    let echo = if acknowledges {
                        self.stamp_to_machine(*echo)
                    } else {
                        *echo
                    };
                    options.timestamps = Some(Timestamps { value: *value, echo });
                }
                OptionSpec::FastOpen(option) => options.set_opening(OpeningOptions {
                    fast_open: Some(*option),
                    ..OpeningOptions::default()
                }),
            }
        }
        let acknowledgement = match spec.acknowledgement {
            Some(number) if spec.flags.contains(TcpFlags::ACK) => number.wrapping_add(own),
            Some(number) => number,
            None => 0,
        };
        Ok(Segment {
            sequence: SequenceNumber(spec.sequence.wrapping_add(peer)),
            acknowledgement: SequenceNumber(acknowledgement),
            flags: to_machine(spec.flags),
            window: spec.window.unwrap_or(0),
            length: spec.length,
            options,
            ecn: match ecn {
                None | Some(EcnMark::NotEct) => Ecn::NotEct,
                Some(EcnMark::Ect0 | EcnMark::AnyEct) => Ecn::Ect0,
                Some(EcnMark::Ect1) => Ecn::Ect1,
                Some(EcnMark::Ce) => Ecn::Ce,
            },
        })
    }

    /// Describes a segment of the machine in the script's notation.
    pub fn describe(&self, segment: &Segment) -> String {
        let from = self.sequence(segment);
        let to = from.wrapping_add(segment.length);
        let ecn = match segment.ecn {
            Ecn::NotEct => "",
            Ecn::Ect0 => "[ect0] ",
            Ecn::Ect1 => "[ect1] ",
            Ecn::Ce => "[ce] ",
        };
        let mut text = format!(
            "{ecn}{} {from}:{to}({})",
            to_script(segment.flags),
            segment.length
        );
        if segment.has(Flags::ACK) {
            text.push_str(&format!(
                " ack {}",
                self.peer_number(segment, segment.acknowledgement)
            ));
        }
        text.push_str(&format!(" win {}", segment.window));
        let options = self.describe_options(segment);
        if !options.is_empty() {
            text.push_str(&format!(" <{options}>"));
        }
        text
    }

    /// Describes options in the script's notation, without padding.
    fn describe_options(&self, segment: &Segment) -> String {
        let options = &segment.options;
        let mut parts = Vec::new();
        if let Some(bytes) = options.mss {
            parts.push(format!("mss {bytes}"));
        }
        if options.sack_permitted {
            parts.push("sackOK".to_owned());
        }
        if let Some(stamps) = options.timestamps {
            let value = self.stamp_to_script(stamps.value).unwrap_or(stamps.value);
            parts.push(format!("TS val {value} ecr {}", stamps.echo));
        }
        if let Some(shift) = options.window_scale {
            parts.push(format!("wscale {shift}"));
        }
        if !options.sack.is_empty() {
            let blocks: Vec<String> = options
                .sack
                .as_slice()
                .iter()
                .map(|(left, right)| {
                    let number = |edge| self.peer_number(segment, edge);
                    format!("{}:{}", number(*left), number(*right))
                })
                .collect();
            parts.push(format!("sack {}", blocks.join(" ")));
        }
        if let Some(option) = options.opening().fast_open {
            parts.push(describe_fast_open(option));
        }
        parts.join(",")
    }
}

/// Describes an expected segment in the script's notation.
pub fn describe_spec(spec: &TcpSpec, ecn: Option<EcnMark>) -> String {
    let ecn = match ecn {
        None => "",
        Some(EcnMark::NotEct) => "[noecn] ",
        Some(EcnMark::Ect0) => "[ect0] ",
        Some(EcnMark::Ect1) => "[ect1] ",
        Some(EcnMark::AnyEct) => "[ect01] ",
        Some(EcnMark::Ce) => "[ce] ",
    };
    let to = spec.sequence.wrapping_add(spec.length);
    let mut text = format!("{ecn}{} {}:{to}({})", spec.flags, spec.sequence, spec.length);
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
        OptionSpec::FastOpen(option) => describe_fast_open(*option),
    })
}

fn describe_fast_open(option: FastOpen) -> String {
    match option {
        FastOpen::Request => "FO".to_owned(),
        FastOpen::Cookie(cookie) => format!("FO {cookie}"),
    }
}

const PAIRS: [(TcpFlags, Flags); 7] = [
    (TcpFlags::FIN, Flags::FIN),
    (TcpFlags::SYN, Flags::SYN),
    (TcpFlags::RST, Flags::RST),
    (TcpFlags::PSH, Flags::PSH),
    (TcpFlags::ACK, Flags::ACK),
    (TcpFlags::ECE, Flags::ECE),
    (TcpFlags::CWR, Flags::CWR),
];

/// Converts flags of the script.
fn to_machine(flags: TcpFlags) -> Flags {
    let set = PAIRS.iter().filter(|(script, _)| flags.contains(*script));
    set.fold(Flags::NONE, |all, (_, machine)| all | *machine)
}

/// Converts flags of the machine.
pub fn to_script(flags: Flags) -> TcpFlags {
    let set = PAIRS.iter().filter(|(_, machine)| flags.contains(*machine));
    set.fold(TcpFlags::default(), |all, (script, _)| all | *script)
}
