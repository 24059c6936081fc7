//! Impairments: loss, corruption, duplication, jitter and reordering.
//!
//! A link draws all of them when a packet arrives, in order of arrival, from one random stream per
//! impairment. The n-th packet on a link gets the n-th draw of each, regardless of its size, its time and the packets before
//! it. Protocols compared under one seed therefore see the same losses, and an added impairment does not affect the others.

mod chance;
mod corrupt;
mod duplicate;
mod jitter;
pub mod loss;
mod reorder;

use std::num::NonZeroU64;

use foundation::{Probability, Streams};

use crate::config::LinkSpec;
use crate::nat::{Translator, TranslatorSide};

pub(crate) use chance::Chance;
pub use jitter::{Distribution, JitterConfig};
pub use loss::LossConfig;
pub use reorder::ReorderConfig;

/// All impairments of one link. A link without impairments has `None` instead and no cost.
#[derive(Clone, Debug)]
pub(crate) struct Impairments {
    loss: Option<loss::Loss>,
    corrupt: Option<corrupt::Corrupt>,
    duplicate: Option<duplicate::Duplicate>,
    jitter: Option<jitter::Jitter>,
    reorder: Option<reorder::Reorder>,
    /// The address translator. It belongs to the same path of a packet, so that other links do not check for it.
    translator: Option<TranslatorSide>,
}

/// The result of all draws for one packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) lost: bool,
    pub(crate) duplicated: bool,
    /// Selects the flipped bit.
    pub(crate) corrupted: Option<u64>,
    pub(crate) lag: Lag,
}

/// The deviation of a packet from the link's delay, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lag {
    pub(crate) jitter: i64,
    /// Whether the packet may overtake earlier ones.
    pub(crate) may_overtake: bool,
    /// Extra delay during which later packets overtake this one.
    pub(crate) reorder_delay: Option<NonZeroU64>,
}

impl Impairments {
    /// Returns the impairments of `spec`, with the address translator of both directions; `None` if it has none.
    pub(crate) fn new(
        spec: &LinkSpec,
        streams: Streams,
        translator: Option<&Translator>,
    ) -> Option<Box<Self>> {
        let translator = spec.nat.as_ref().zip(translator);
        // An impairment with probability 0 is omitted. Streams are separate, so this does not affect the others.
        let likely = |probability: &Probability| probability.value() > 0.0;
        let impairments = Self {
            loss: spec
                .loss
                .as_ref()
                .filter(|config| config.is_some())
                .map(|config| loss::Loss::new(config, streams)),
            corrupt: spec
                .corrupt
                .filter(likely)
                .map(|probability| corrupt::Corrupt::new(probability, streams)),
            duplicate: spec
                .duplicate
                .filter(likely)
                .map(|probability| duplicate::Duplicate::new(probability, streams)),
            jitter: spec
                .jitter
                .filter(|config| !config.spread.is_zero())
                .map(|config| jitter::Jitter::new(&config, streams)),
            reorder: spec
                .reorder
                .filter(|config| likely(&config.probability))
                .map(|config| reorder::Reorder::new(&config, streams)),
            translator: translator.map(|(nat, translator)| translator.side(nat)),
        };
        let any = impairments.loss.is_some()
            || impairments.corrupt.is_some()
            || impairments.duplicate.is_some()
            || impairments.jitter.is_some()
            || impairments.reorder.is_some()
            || impairments.translator.is_some();
        any.then(|| Box::new(impairments))
    }

    /// Returns the impairments after a change of specification. Those with unchanged settings continue; the others restart
    /// with draws from `streams`.
    pub(crate) fn changed(
        before: Option<Box<Self>>,
        from: &LinkSpec,
        to: &LinkSpec,
        streams: Streams,
        translator: Option<&Translator>,
    ) -> Option<Box<Self>> {
        let mut new = Self::new(to, streams, translator)?;
        if let Some(before) = before {
            if from.loss == to.loss {
                new.loss = before.loss;
            }
            if from.corrupt == to.corrupt {
                new.corrupt = before.corrupt;
            }
            if from.duplicate == to.duplicate {
                new.duplicate = before.duplicate;
            }
            if from.jitter == to.jitter {
                new.jitter = before.jitter;
            }
            if from.reorder == to.reorder {
                new.reorder = before.reorder;
            }
        }
        Some(new)
    }

    /// Returns the address translator.
    #[inline]
    pub(crate) const fn translator(&self) -> Option<&TranslatorSide> {
        self.translator.as_ref()
    }

    /// Draws the result for the next packet from every stream.
    #[inline]
    pub(crate) fn next(&mut self) -> Fate {
        let mut fate = Fate::default();
        if let Some(loss) = &mut self.loss {
            fate.lost = loss.next();
        }
        if let Some(corrupt) = &mut self.corrupt {
            fate.corrupted = corrupt.next();
        }
        if let Some(duplicate) = &mut self.duplicate {
            fate.duplicated = duplicate.next();
        }
        if let Some(jitter) = &mut self.jitter {
            fate.lag.jitter = jitter.next();
            fate.lag.may_overtake = !jitter.keep_order;
        }
        if let Some(reorder) = &mut self.reorder {
            fate.lag.reorder_delay = reorder.next();
        }
        fate
    }
}
