//! What a link does to packets besides carrying them.
//!
//! All of it is decided as a packet reaches the link, in order of arrival, from one random stream a
//! feature. The n-th packet that reaches a link meets the n-th draw of each, whatever became of
//! those before it and whatever its size and time: so protocols that are compared under one seed meet
//! the same losses, and a feature that is added shifts no other.

mod chance;
mod corrupt;
mod duplicate;
mod jitter;
pub mod loss;
mod reorder;

use std::num::NonZeroU64;

use foundation::{Probability, Streams};

use crate::config::LinkSpec;

pub(crate) use chance::Chance;
pub use jitter::{Distribution, JitterConfig};
pub use loss::LossConfig;
pub use reorder::ReorderConfig;

/// All impairments of one link. A link that has none has no such box and pays nothing.
#[derive(Clone, Debug)]
pub(crate) struct Impairments {
    loss: Option<loss::Loss>,
    corrupt: Option<corrupt::Corrupt>,
    duplicate: Option<duplicate::Duplicate>,
    jitter: Option<jitter::Jitter>,
    reorder: Option<reorder::Reorder>,
}

/// What is decided of a packet as it reaches the link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) lost: bool,
    pub(crate) duplicated: bool,
    /// Which bit is flipped.
    pub(crate) corrupted: Option<u64>,
    pub(crate) lag: Lag,
}

/// How a packet's way over the link differs from the link's delay, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lag {
    pub(crate) jitter: i64,
    /// Whether the packet may land before one that took off earlier.
    pub(crate) free: bool,
    /// How long it is held back while others overtake.
    pub(crate) held_back: Option<NonZeroU64>,
}

impl Impairments {
    /// The impairments that `spec` asks for; `None` where it asks for none.
    pub(crate) fn new(spec: &LinkSpec, streams: Streams) -> Option<Box<Self>> {
        // A feature that is set to nothing is left out: its stream is its own, so no other notices.
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
        };
        let any = impairments.loss.is_some()
            || impairments.corrupt.is_some()
            || impairments.duplicate.is_some()
            || impairments.jitter.is_some()
            || impairments.reorder.is_some();
        any.then(|| Box::new(impairments))
    }

    /// These impairments after the link has changed from one specification to another: what is asked of them alike goes on
    /// where it was, the rest begins anew with draws from `streams`.
    pub(crate) fn changed(
        before: Option<Box<Self>>,
        from: &LinkSpec,
        to: &LinkSpec,
        streams: Streams,
    ) -> Option<Box<Self>> {
        let mut new = Self::new(to, streams)?;
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

    /// Draws the next packet's fate: from every stream, whatever the others say.
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
            fate.lag.free = !jitter.keep_order;
        }
        if let Some(reorder) = &mut self.reorder {
            fate.lag.held_back = reorder.next();
        }
        fate
    }
}
