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
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
struct Part {
    /// Mean and standard deviation of the logarithm.
    mu: f64,
    sigma: f64,
    distribution: LogNormal<f64>,
}

impl Part {
    /// Returns the probability and the first moment up to a logarithm, by Simpson's rule over ±10 standard
    /// deviations of the normal distribution and of its shift by one `sigma`, which the moment weights.
    fn below(&self, most: f64) -> (f64, f64) {
        const STEPS: u32 = 4000;
        let (mu, sigma) = (self.mu, self.sigma);
        let (from, to) = (-10.0, (10.0 + sigma).min((most - mu) / sigma));
        if to <= from {
            return (0.0, 0.0);
        }
        let width = (to - from) / f64::from(STEPS);
        let density = |z: f64| (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
        let (mut mass, mut moment) = (0.0, 0.0);
        for step in 0..=STEPS {
            let z = from + f64::from(step) * width;
            let weight = match step {
                0 | STEPS => 1.0,
                step if step % 2 == 1 => 4.0,
                _ => 2.0,
            };
            mass += weight * density(z);
            moment += weight * (mu + sigma * z).exp() * density(z);
        }
        (mass * width / 3.0, moment * width / 3.0)
    }
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
                .map(|&(_, sigma, median)| Part {
                    mu: median.ln(),
                    sigma,
                    distribution: LogNormal::new(median.ln(), sigma).expect("sigma is not negative"),
                })
                .collect(),
        }
    }

    /// Returns the probability of values up to `most`, and the integral of the value over them.
    pub fn below(&self, most: f64) -> (f64, f64) {
        let (mut mass, mut moment, mut before) = (0.0, 0.0, 0.0);
        for (until, part) in self.until.iter().zip(&self.parts) {
            let (own, sum) = part.below(most.ln());
            mass += (until - before) * own;
            moment += (until - before) * sum;
            before = *until;
        }
        (mass / before, moment / before)
    }

    /// Draws a value.
    pub fn draw(&self, random: &mut Generator) -> f64 {
        let all = self.until[self.until.len() - 1];
        let place = random.random::<f64>() * all;
        let part = self.until.partition_point(|&until| until <= place);
        self.parts[part.min(self.parts.len() - 1)]
            .distribution
            .sample(random)
    }
}
