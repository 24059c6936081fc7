//! Loss models: which packets of a link are lost.
//!
//! A packet's fate depends on its number on the link and the link's loss stream alone, not on time or size.

use foundation::{Generator, Probability, Streams};

use super::chance::Chance;
use super::loss_config::LossConfig;

/// A loss model at work.
#[derive(Clone, Debug)]
pub(crate) enum Loss {
    /// Each packet with the same probability, independent of all others.
    Bernoulli { chance: Chance, stream: Generator },
    /// Two states with a loss probability each.
    GilbertElliott(Box<GilbertElliott>),
    /// Every n-th packet; how many are left until then.
    Every { period: u64, left: u64 },
    /// Packets by their number on the link, rising.
    Packets {
        numbers: Box<[u64]>,
        next: usize,
        seen: u64,
    },
}

impl Loss {
    pub(crate) fn new(config: &LossConfig, streams: Streams) -> Self {
        let mut stream = streams.stream("loss");
        match config {
            LossConfig::Bernoulli { probability } => Self::Bernoulli {
                chance: Chance::new(*probability),
                stream,
            },
            &LossConfig::GilbertElliott {
                enter_bad,
                leave_bad,
                loss_good,
                loss_bad,
            } => {
                // Starting in the stationary distribution makes the mean loss the same from the first packet on.
                let share = enter_bad.value() / (enter_bad.value() + leave_bad.value());
                let start = Probability::new(share).unwrap_or_default();
                Self::GilbertElliott(Box::new(GilbertElliott {
                    bad: Chance::new(start).throw(&mut stream),
                    enter_bad: Chance::new(enter_bad),
                    leave_bad: Chance::new(leave_bad),
                    loss_good: Chance::new(loss_good),
                    loss_bad: Chance::new(loss_bad),
                    stream,
                }))
            }
            &LossConfig::Every { every } => {
                let period = every.max(1);
                Self::Every { period, left: period }
            }
            LossConfig::Packets { packets } => {
                let mut numbers = packets.clone();
                numbers.sort_unstable();
                numbers.dedup();
                Self::Packets {
                    numbers: numbers.into(),
                    next: 0,
                    seen: 0,
                }
            }
        }
    }

    /// Whether the next packet is lost.
    #[inline]
    pub(crate) fn next(&mut self) -> bool {
        match self {
            Self::Bernoulli { chance, stream } => chance.throw(stream),
            Self::GilbertElliott(model) => model.next(),
            Self::Every { period, left } => {
                *left -= 1;
                let lost = *left == 0;
                if lost {
                    *left = *period;
                }
                lost
            }
            Self::Packets { numbers, next, seen } => {
                *seen += 1;
                let lost = numbers.get(*next) == Some(seen);
                *next += usize::from(lost);
                lost
            }
        }
    }
}

/// Bursts of loss: a Markov chain of a good and a bad state that steps once a packet
/// (Gilbert, BSTJ 39, 1960; Elliott, BSTJ 42, 1963).
#[derive(Clone, Debug)]
pub(crate) struct GilbertElliott {
    bad: bool,
    enter_bad: Chance,
    leave_bad: Chance,
    loss_good: Chance,
    loss_bad: Chance,
    stream: Generator,
}

impl GilbertElliott {
    /// Always two draws, so that the states of two models with different losses stay in step.
    fn next(&mut self) -> bool {
        let (loss, step) = if self.bad {
            (self.loss_bad, self.leave_bad)
        } else {
            (self.loss_good, self.enter_bad)
        };
        let lost = loss.throw(&mut self.stream);
        self.bad ^= step.throw(&mut self.stream);
        lost
    }
}
