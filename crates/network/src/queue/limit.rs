//! Queue limits in packets or bytes.

use std::fmt;
use std::str::FromStr;

use foundation::quantity::{
    PACKET_ALIASES, PACKET_UNITS, QuantityError, SIZE_UNITS, Unit, impl_text_quantity, split_number,
    unit_hint, unit_names,
};
use foundation::{Problem, Size};

/// A queue limit in packets or bytes, the packet in transmission included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Packets of any size, e.g. `"100pkt"`.
    Packets(u64),
    /// Bytes, e.g. `"64KiB"`.
    Bytes(Size),
}

impl QueueLimit {
    /// Returns all values out of range.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        let empty =
            matches!(self, Self::Packets(0)) || matches!(self, Self::Bytes(size) if size.bytes() == 0);
        let mut problems = Vec::new();
        if empty {
            problems.push(Problem::new(
                "",
                format!("\"{self}\" is out of range: at least \"1pkt\" or \"1B\" (the packet in transmission counts)"),
            ));
        }
        problems
    }

    /// Returns all problems of an optional key `limit`.
    pub(super) fn problems(limit: Option<Self>) -> Vec<Problem> {
        let found = limit.map_or_else(Vec::new, |limit| limit.validate());
        found.into_iter().map(|problem| problem.within("limit")).collect()
    }

    /// Returns the limits in packets and in bytes; `u64::MAX` for the unlimited one.
    #[must_use]
    pub const fn packets_and_bytes(self) -> (u64, u64) {
        match self {
            Self::Packets(packets) => (packets, u64::MAX),
            Self::Bytes(size) => (u64::MAX, size.bytes()),
        }
    }
}

/// 1000 packets, the default of many routers and of Linux interfaces.
pub(super) const DEFAULT_LIMIT: QueueLimit = QueueLimit::Packets(1000);

impl Default for QueueLimit {
    fn default() -> Self {
        DEFAULT_LIMIT
    }
}

/// Returns the units in messages; [`Size`] parses the bytes.
fn units() -> Vec<Unit> {
    [PACKET_UNITS, SIZE_UNITS].concat()
}

impl FromStr for QueueLimit {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let (number, unit) = split_number("a queue limit", text, &units())?;
        match unit {
            _ if PACKET_UNITS
                .iter()
                .chain(PACKET_ALIASES)
                .any(|known| known.name() == unit) =>
            {
                if number.fract() != 0.0 || number > 1e15 {
                    return Err(QuantityError::new(format!(
                        "{text:?} is not a whole number of packets: write e.g. \"100pkt\""
                    )));
                }
                Ok(Self::Packets(number as u64))
            }
            "" => Err(QuantityError::new(format!(
                "{text:?} has no unit: write a queue limit in packets or bytes, e.g. \"{text}pkt\" or \"64KiB\""
            ))),
            _ => text.parse().map(Self::Bytes).map_err(|_| {
                QuantityError::new(format!(
                    "{text:?} has the unknown unit {unit:?}: a queue limit is a number with one of {}{}",
                    unit_names(&units()),
                    unit_hint(unit, units().iter().map(Unit::name))
                ))
            }),
        }
    }
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(packets) => write!(f, "{packets}pkt"),
            Self::Bytes(size) => size.fmt(f),
        }
    }
}

impl_text_quantity!(
    QueueLimit,
    "QueueLimit",
    "a queue limit with its unit: pkt (packets), or B, kB, MB, GB, KiB, MiB, GiB (bytes)",
    r"^[0-9]+ ?(pkt|pkts|packet|packets)$|^[0-9]+(\.[0-9]+)? ?(B|kB|KB|MB|GB|KiB|MiB|GiB)$",
    ["100pkt", "64KiB"]
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_value_agree() {
        assert_eq!("100pkt".parse(), Ok(QueueLimit::Packets(100)));
        assert_eq!("64KiB".parse(), Ok(QueueLimit::Bytes(Size::from_bytes(65_536))));
        for text in ["100pkt", "64KiB", "1500B"] {
            assert_eq!(text.parse::<QueueLimit>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn errors_list_the_allowed_units() {
        let message = |text: &str| text.parse::<QueueLimit>().unwrap_err().to_string();
        assert!(message("100").contains("\"100pkt\""), "{}", message("100"));
        assert!(message("1.5pkt").contains("whole"), "{}", message("1.5pkt"));
        assert!(message("10ms").contains("pkt, B"), "{}", message("10ms"));
        assert!(
            message("100k").ends_with("did you mean \"kB\" or \"KiB\"?"),
            "{}",
            message("100k")
        );
        assert!(message("many").contains("queue limit"), "{}", message("many"));
        assert!(message("-1pkt").contains("negative"), "{}", message("-1pkt"));
        let bare = serde_json::from_str::<QueueLimit>("100").unwrap_err().to_string();
        assert!(bare.contains("pkt"), "{bare}");
        assert_eq!(QueueLimit::Packets(0).validate().len(), 1);
        assert!(QueueLimit::default().validate().is_empty());
    }
}
