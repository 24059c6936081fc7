//! Quantities in study files. Their text form includes a unit; a number without one is an error that lists the allowed
//! units, because unit mistakes are the most common errors in configurations of network simulators.

use std::fmt;
use std::str::FromStr;

use crate::time::Duration;

/// A text that is not a quantity. The message contains the text and the allowed form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct QuantityError(String);

impl QuantityError {
    /// Returns an error with this message.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// A unit: its name and its size in base units.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    name: &'static str,
    scale: f64,
}

impl Unit {
    /// Returns a unit of `scale` base units.
    #[must_use]
    pub const fn new(name: &'static str, scale: f64) -> Self {
        Self { name, scale }
    }

    /// Returns the name, as written after a number.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns its size in base units.
    #[must_use]
    pub const fn scale(&self) -> f64 {
        self.scale
    }
}

/// Returns the names of units as a list in a message.
#[must_use]
pub fn unit_names(units: &[Unit]) -> String {
    units.iter().map(|u| u.name).collect::<Vec<_>>().join(", ")
}

/// Parses a number and a unit. Returns the value in base units, rounded to an integer.
///
/// # Errors
/// For a missing number, a missing or unknown unit, and a negative or too large value.
pub fn parse_scaled(what: &str, text: &str, units: &[Unit], aliases: &[Unit]) -> Result<u64, QuantityError> {
    let (number, unit) = split_number(what, text, units)?;
    if unit.is_empty() {
        return Err(QuantityError(format!(
            "{text:?} has no unit: write {what} as a number with one of {}, e.g. \"{}{}\"",
            unit_names(units),
            text.trim(),
            units[units.len() / 2].name
        )));
    }
    let known = units.iter().chain(aliases).find(|u| u.name == unit);
    let Some(known) = known else {
        return Err(QuantityError(format!(
            "{text:?} has the unknown unit {unit:?}: {what} is a number with one of {}{}",
            unit_names(units),
            unit_hint(unit, units.iter().map(|u| u.name))
        )));
    };
    let value = (number * known.scale).round();
    // 2^63 keeps every sum of two quantities inside u64.
    if !value.is_finite() || value >= 9.2e18 {
        return Err(QuantityError(format!("{text:?} is too large for {what}")));
    }
    Ok(value as u64)
}

/// Returns the hint of an error about an unknown unit: all units with this prefix, a rate in other letters or in
/// bytes, else the nearest one.
///
/// ```
/// use foundation::quantity::unit_hint;
/// let sizes = ["B", "kB", "KiB", "MB", "MiB"];
/// assert_eq!(unit_hint("k", sizes), "; did you mean \"kB\" or \"KiB\"?");
/// assert_eq!(unit_hint("MMB", sizes), "; did you mean \"MB\"?");
/// assert_eq!(unit_hint("parsec", sizes), "");
/// assert_eq!(unit_hint("Mb/s", ["kbit/s", "Mbit/s"]), "; did you mean \"Mbit/s\"?");
/// assert_eq!(unit_hint("MB/s", ["kbit/s", "Mbit/s"]), "; 1 MB/s is 8 Mbit/s");
/// ```
pub fn unit_hint<'a>(unit: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    let prefix = unit.to_lowercase();
    let mut meant: Vec<&str> = known
        .clone()
        .into_iter()
        .filter(|name| name.to_lowercase().starts_with(&prefix))
        .collect();
    let in_bits = |suffix| {
        let bits = format!("{}bit/s", unit.strip_suffix(suffix)?);
        known.clone().into_iter().find(|name| **name == bits)
    };
    if let Some(bits) = in_bits("B/s") {
        return format!("; 1 {unit} is 8 {bits}");
    }
    meant.extend(in_bits("b/s"));
    if meant.is_empty() {
        meant.extend(nearest(unit, known.clone()));
    }
    if meant.is_empty() {
        return String::new();
    }
    let quoted: Vec<String> = meant.iter().map(|name| format!("{name:?}")).collect();
    format!("; did you mean {}?", quoted.join(" or "))
}

/// Splits "20ms" into 20 and "ms".
///
/// # Errors
/// If the text does not start with a number, or the number is negative.
pub fn split_number<'a>(what: &str, text: &'a str, units: &[Unit]) -> Result<(f64, &'a str), QuantityError> {
    let trimmed = text.trim();
    if trimmed.starts_with('-') {
        return Err(QuantityError(format!(
            "{text:?} is negative: {what} is at least 0"
        )));
    }
    let end = trimmed
        .char_indices()
        .find(|&(_, c)| !(c.is_ascii_digit() || c == '.'))
        .map_or(trimmed.len(), |(i, _)| i);
    let (number, unit) = trimmed.split_at(end);
    let number: f64 = number.parse().map_err(|_| {
        QuantityError(format!(
            "{text:?} is not {what}: a number with one of {}",
            unit_names(units)
        ))
    })?;
    Ok((number, unit.trim()))
}

/// Writes `value` in the largest unit of at most its size that preserves it exactly.
pub(crate) fn write_scaled(f: &mut fmt::Formatter<'_>, value: u64, units: &[Unit]) -> fmt::Result {
    let in_unit = |u: &Unit| value as f64 / u.scale;
    let unit = units
        .iter()
        .rev()
        .find(|u| value as f64 >= u.scale && (in_unit(u) * u.scale).round() as u64 == value)
        .unwrap_or(&units[0]);
    write!(f, "{}{}", in_unit(unit), unit.name)
}

/// Returns the known name nearest to a mistyped one, if any is near.
///
/// ```
/// assert_eq!(foundation::quantity::nearest("dealy", ["rate", "delay"]), Some("delay"));
/// assert_eq!(foundation::quantity::nearest("xyz", ["rate", "delay"]), None);
/// ```
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|k| {
            (
                strsim::damerau_levenshtein(&name.to_lowercase(), &k.to_lowercase()),
                k,
            )
        })
        .filter(|&(distance, k)| distance <= 1.max(k.len().min(name.len()) / 3))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, k)| k)
}

/// Implements serde and JSON Schema for a type with a text form.
#[macro_export]
macro_rules! impl_text_quantity {
    ($type:ty, $name:literal, $description:literal, $pattern:literal, [$($example:literal),+]) => {
        impl ::serde::Serialize for $type {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl ::serde::de::Visitor<'_> for Visitor {
                    type Value = $type;
                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str(concat!($description, ", in quotes, e.g. ", $(stringify!($example), " "),+))
                    }
                    fn visit_str<E: ::serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Visitor)
            }
        }

        impl ::schemars::JsonSchema for $type {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                ::schemars::json_schema!({
                    "type": "string",
                    "description": $description,
                    "pattern": $pattern,
                    "examples": [$($example),+],
                })
            }
        }
    };
}
pub use impl_text_quantity;

/// A data rate in bit/s, more than zero. As text: `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s` (powers of 1000).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

pub(crate) const RATE_UNITS: &[Unit] = &[
    Unit::new("bit/s", 1.0),
    Unit::new("kbit/s", 1e3),
    Unit::new("Mbit/s", 1e6),
    Unit::new("Gbit/s", 1e9),
];
pub(crate) const RATE_ALIASES: &[Unit] = &[
    Unit::new("bps", 1.0),
    Unit::new("kbps", 1e3),
    Unit::new("Mbps", 1e6),
    Unit::new("Gbps", 1e9),
];

impl Rate {
    /// Returns a rate of `bits` bit/s; `None` for zero.
    #[must_use]
    pub const fn from_bits_per_second(bits: u64) -> Option<Self> {
        if bits == 0 { None } else { Some(Self(bits)) }
    }

    /// Returns the rate in bit/s.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Returns the serialization delay of `bytes` bytes at this rate, rounded up to the nanosecond.
    #[must_use]
    #[inline]
    pub fn time_for(self, bytes: u64) -> Duration {
        // 8e9 * bytes fits into u64 up to 2.3 GB, which no packet exceeds.
        match bytes.checked_mul(8_000_000_000) {
            Some(scaled) => Duration::from_nanos(scaled.div_ceil(self.0)),
            None => {
                let nanos = (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(self.0));
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
        }
    }

    /// Returns the bytes sent in `span` at this rate, rounded down.
    #[must_use]
    pub fn bytes_in(self, span: Duration) -> u64 {
        let bytes = u128::from(self.0) * u128::from(span.as_nanos()) / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

impl FromStr for Rate {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let bits = parse_scaled("a rate", text, RATE_UNITS, RATE_ALIASES)?;
        Self::from_bits_per_second(bits)
            .ok_or_else(|| QuantityError(format!("{text:?} is not a rate: it must be above 0")))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, RATE_UNITS)
    }
}

impl_text_quantity!(
    Rate,
    "Rate",
    "a data rate with its unit: bit/s, kbit/s, Mbit/s or Gbit/s",
    r"^[0-9]+(\.[0-9]+)? ?(bit/s|kbit/s|Mbit/s|Gbit/s|bps|kbps|Mbps|Gbps)$",
    ["100Mbit/s", "1.5Gbit/s"]
);

/// An amount of data in bytes. As text: `B`, `kB`, `MB`, `GB` (powers of 1000), `KiB`, `MiB`, `GiB` (powers of 1024).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(u64);

/// The units of a [`Size`].
pub const SIZE_UNITS: &[Unit] = &[
    Unit::new("B", 1.0),
    Unit::new("kB", 1e3),
    Unit::new("KiB", 1024.0),
    Unit::new("MB", 1e6),
    Unit::new("MiB", 1_048_576.0),
    Unit::new("GB", 1e9),
    Unit::new("GiB", 1_073_741_824.0),
];
pub(crate) const SIZE_ALIASES: &[Unit] = &[Unit::new("KB", 1e3)];

impl Size {
    /// Returns a size of `bytes` bytes.
    #[must_use]
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Returns the number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for Size {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse_scaled("a size", text, SIZE_UNITS, SIZE_ALIASES).map(Self)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The largest unit with an integer value: 65536 is "64KiB", 2000000 is "2MB", 1857353 is "1857353B".
        let unit = SIZE_UNITS
            .iter()
            .rev()
            .find(|u| self.0 > 0 && self.0.is_multiple_of(u.scale as u64))
            .unwrap_or(&SIZE_UNITS[0]);
        write!(f, "{}{}", self.0 / unit.scale as u64, unit.name)
    }
}

impl_text_quantity!(
    Size,
    "Size",
    "an amount of data with its unit: B, kB, MB, GB (powers of 1000), KiB, MiB or GiB (powers of 1024)",
    r"^[0-9]+(\.[0-9]+)? ?(B|kB|KB|MB|GB|KiB|MiB|GiB)$",
    ["1500B", "64KiB", "2MB"]
);

/// A frequency above zero. As text: `/s` or `/min` ("1000/s").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frequency(u64);

/// Base unit: one millionth per second.
pub(crate) const FREQUENCY_UNITS: &[Unit] = &[Unit::new("/min", 1e6 / 60.0), Unit::new("/s", 1e6)];

impl Frequency {
    /// Returns the frequency in 1/s.
    #[must_use]
    pub fn per_second(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl FromStr for Frequency {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        match parse_scaled("a frequency", text, FREQUENCY_UNITS, &[])? {
            0 => Err(QuantityError(format!(
                "{text:?} is not a frequency: it must be above 0"
            ))),
            millionths => Ok(Self(millionths)),
        }
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.per_second())
    }
}

impl_text_quantity!(
    Frequency,
    "Frequency",
    "a frequency with its unit: /s or /min",
    r"^[0-9]+(\.[0-9]+)? ?(/s|/min)$",
    ["1000/s", "0.5/s"]
);

/// The unit of a number of packets.
pub const PACKET_UNITS: &[Unit] = &[Unit::new("pkt", 1.0)];
/// Other spellings of it.
pub const PACKET_ALIASES: &[Unit] = &[
    Unit::new("pkts", 1.0),
    Unit::new("packet", 1.0),
    Unit::new("packets", 1.0),
];

pub(crate) const PROBABILITY_UNITS: &[Unit] = &[Unit::new("%", 0.01)];

/// A probability, written in percent: "2%", "0.5%". From 0 % to 100 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

impl Probability {
    /// 0 %.
    pub const ZERO: Self = Self(0.0);

    /// Returns a probability; `None` outside 0..=1.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// Returns the value in 0..=1.
    #[must_use]
    pub const fn value(self) -> f64 {
        self.0
    }
}

impl FromStr for Probability {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let (number, unit) = split_number("a probability", text, PROBABILITY_UNITS)?;
        if unit != "%" {
            return Err(QuantityError(format!(
                "{text:?} is not a probability: write it in percent, e.g. \"2%\""
            )));
        }
        Self::new(number / 100.0)
            .ok_or_else(|| QuantityError(format!("{text:?} is out of range: 0% to 100%")))
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Twelve digits hide the rounding error of x * 100 and preserve every practical percentage.
        let percent = format!("{:.12}", self.0 * 100.0);
        write!(f, "{}%", percent.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl_text_quantity!(
    Probability,
    "Probability",
    "a probability in percent, from 0% to 100%",
    r"^[0-9]+(\.[0-9]+)? ?%$",
    ["2%", "0.5%"]
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_value_agree() {
        assert_eq!(
            "100Mbit/s".parse::<Rate>().unwrap().bits_per_second(),
            100_000_000
        );
        assert_eq!("1.5 Gbit/s".parse::<Rate>().unwrap().to_string(), "1.5Gbit/s");
        assert_eq!("64KiB".parse::<Size>().unwrap().bytes(), 65_536);
        assert_eq!(Size::from_bytes(65_536).to_string(), "64KiB");
        assert_eq!(Size::from_bytes(1_857_353).to_string(), "1857353B");
        assert_eq!("2%".parse::<Probability>().unwrap().value(), 0.02);
        assert_eq!("7%".parse::<Probability>().unwrap().to_string(), "7%");
        assert_eq!("0.5%".parse::<Probability>().unwrap().to_string(), "0.5%");
    }

    #[test]
    fn errors_list_the_allowed_units() {
        let rate = "100".parse::<Rate>().unwrap_err().to_string();
        assert!(rate.contains("no unit") && rate.contains("Mbit/s"), "{rate}");
        let rate = "100MBit/s".parse::<Rate>().unwrap_err().to_string();
        assert!(rate.contains("did you mean \"Mbit/s\""), "{rate}");
        let size = "100k".parse::<Size>().unwrap_err().to_string();
        assert!(size.ends_with("; did you mean \"kB\" or \"KiB\"?"), "{size}");
        assert!("0Mbit/s".parse::<Rate>().is_err());
        assert!(
            "0.02"
                .parse::<Probability>()
                .unwrap_err()
                .to_string()
                .contains("percent")
        );
        assert!(
            "120%"
                .parse::<Probability>()
                .unwrap_err()
                .to_string()
                .contains("100%")
        );
        assert!("ten MB".parse::<Size>().is_err());
        let bare = serde_json::from_str::<Size>("5").unwrap_err().to_string();
        assert!(bare.contains("KiB"), "{bare}");
    }

    #[test]
    fn serialization_delay_is_bits_over_rate() {
        let rate: Rate = "1.544Mbit/s".parse().unwrap();
        // 552 bytes at T1: 2.86 ms (latency-and-bandwidth tables of any TCP/IP text).
        assert_eq!(rate.time_for(552).as_micros(), 2860);
        assert_eq!(rate.bytes_in(Duration::from_secs(1)), 193_000);
        assert_eq!(
            "1bit/s".parse::<Rate>().unwrap().time_for(u64::MAX),
            Duration::MAX
        );
    }

    proptest::proptest! {
        #[test]
        fn quantities_round_trip(bits in 1_u64..1 << 53, bytes in 0_u64..1 << 53, nanos in 0_u64..1 << 53) {
            let rate = Rate::from_bits_per_second(bits).unwrap();
            proptest::prop_assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate);
            let size = Size::from_bytes(bytes);
            proptest::prop_assert_eq!(size.to_string().parse::<Size>().unwrap(), size);
            let span = Duration::from_nanos(nanos);
            proptest::prop_assert_eq!(span.to_string().parse::<Duration>().unwrap(), span);
        }
    }
}
