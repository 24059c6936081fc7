//! A mixture of lognormal distributions.

use foundation::Generator;
use rand::RngExt;
use rand_distr::{Distribution, LogNormal};

use super::named::Lognormal;

/// A weighted mixture of lognormal distributions.
#[derive(Clone, Debug)]
pub struct Mixture {
    /// Cumulative weights.
    until: Vec<f64>,
    parts: Vec<LogNormal<f64>>,
}

impl Mixture {
    /// Returns the mixture of these components; weights are relative to their sum.
    ///
    /// # Panics
    /// If a sigma is negative or a median is not above 0.
    pub fn new(parts: &[Lognormal]) -> Self {
        let mut sum = 0.0;
        let until = parts.iter().map(|(weight, ..)| {
            sum += weight;
            sum
        });
        Self {
            until: until.collect(),
            parts: parts
                .iter()
                .map(|&(_, sigma, median)| LogNormal::new(median.ln(), sigma).expect("sigma is not negative"))
                .collect(),
        }
    }

    /// Draws a value.
    pub fn draw(&self, random: &mut Generator) -> f64 {
        let all = self.until[self.until.len() - 1];
        let place = random.random::<f64>() * all;
        let part = self.until.partition_point(|&until| until <= place);
        self.parts[part.min(self.parts.len() - 1)].sample(random)
    }
}
