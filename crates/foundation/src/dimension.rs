//! The dimensions of quantities with their units, for programs in other languages.

use crate::quantity::{self, Unit};
use crate::time;

/// The units of one dimension.
#[derive(Clone, Copy, Debug)]
pub struct Dimension {
    /// Its name in the vocabulary.
    pub name: &'static str,
    units: &'static [Unit],
    aliases: &'static [Unit],
    /// Base units of the Rust type in one s, bit/s, B, 1, 1/s or packet.
    scale: f64,
}

/// All dimensions of text quantities. A queue limit has packets or a size.
pub const DIMENSIONS: [Dimension; 6] = [
    Dimension::new("duration", time::UNITS, time::ALIASES, 1e9),
    Dimension::new("rate", quantity::RATE_UNITS, quantity::RATE_ALIASES, 1.0),
    Dimension::new("size", quantity::SIZE_UNITS, quantity::SIZE_ALIASES, 1.0),
    Dimension::new("proportion", quantity::PROBABILITY_UNITS, &[], 1.0),
    Dimension::new("frequency", quantity::FREQUENCY_UNITS, &[], 1e6),
    Dimension::new("packets", quantity::PACKET_UNITS, quantity::PACKET_ALIASES, 1.0),
];

impl Dimension {
    const fn new(name: &'static str, units: &'static [Unit], aliases: &'static [Unit], scale: f64) -> Self {
        Self {
            name,
            units,
            aliases,
            scale,
        }
    }

    /// Returns the name of each unit that messages list, and its size in s, bit/s, B, 1, 1/s or packets.
    pub fn units(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.scaled(self.units)
    }

    /// Returns other spellings of units, with their sizes.
    pub fn aliases(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.scaled(self.aliases)
    }

    fn scaled(&self, units: &'static [Unit]) -> impl Iterator<Item = (&'static str, f64)> {
        let scale = self.scale;
        units.iter().map(move |unit| (unit.name(), unit.scale() / scale))
    }
}
