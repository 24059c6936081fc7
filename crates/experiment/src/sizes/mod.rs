//! Flow size distributions (`sizes`).

mod mixture;
mod named;
mod table;

use std::sync::Arc;

use foundation::{Generator, Problem};
use rand::RngExt;
use rand_distr::{Distribution, Exp};

use crate::workload::{PARETO_MAX, PARETO_MIN, PARETO_SHAPE, Sizes, WorkloadConfig, WorkloadKind};
use mixture::Mixture;
use table::Table;

/// A flow size distribution in bytes.
#[derive(Clone, Debug)]
pub struct SizeDistribution {
    shape: Shape,
    largest: u64,
}

#[derive(Clone, Debug)]
enum Shape {
    Fixed(u64),
    Exponential { mean: f64, distribution: Exp<f64> },
    BoundedPareto { least: f64, ratio: f64, shape: f64 },
    Mixture(Mixture),
    Table(Arc<Table>),
}

/// Limit of draws before a size above `largest` is truncated to it.
const MAX_DRAWS: u32 = 1000;

impl SizeDistribution {
    /// Returns the distribution of a workload; `None` if its flows have no size. `load` returns the content of a file or an
    /// error.
    ///
    /// # Errors
    /// A table that cannot be loaded or parsed.
    pub fn of(
        workload: &WorkloadConfig,
        load: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Option<Self>, Problem> {
        if matches!(
            workload.kind,
            WorkloadKind::RequestResponse
                | WorkloadKind::AllReduce
                | WorkloadKind::WebPage
                | WorkloadKind::Frames
        ) {
            return Ok(None);
        }
        let sizes = workload.sizes.unwrap_or_default();
        let size = workload.size.map(|size| size.bytes());
        let mut largest = workload.largest.map_or(u64::MAX, |largest| largest.bytes());
        let shape = match (sizes, size) {
            (Sizes::Fixed, None) => return Ok(None),
            (Sizes::Fixed, Some(size)) => Shape::Fixed(size),
            (Sizes::Exponential, size) => {
                let mean = size.unwrap_or(1).max(1) as f64;
                Shape::Exponential {
                    mean,
                    distribution: Exp::new(1.0 / mean).expect("the mean is above 0"),
                }
            }
            (Sizes::BoundedPareto, size) => {
                let least = size.unwrap_or(PARETO_MIN) as f64;
                largest = workload.largest.map_or(PARETO_MAX, |largest| largest.bytes());
                let shape = workload.shape.unwrap_or(PARETO_SHAPE);
                let ratio = (least / largest as f64).powf(shape);
                Shape::BoundedPareto { least, ratio, shape }
            }
            (Sizes::Campus, _) => Shape::Mixture(Mixture::new(&named::CAMPUS)),
            (Sizes::WebSearch, _) => Shape::Table(Arc::new(Table::new(&named::WEB_SEARCH))),
            (Sizes::DataMining, _) => Shape::Table(Arc::new(Table::new(&named::DATA_MINING))),
            (Sizes::Table, _) => {
                let file = workload.sizes_file.as_deref().unwrap_or_default();
                let wrong = |reason: String| Problem::new("sizes_file", format!("{file:?}: {reason}"));
                let text = load(file).map_err(wrong)?;
                Shape::Table(Arc::new(Table::parse(&text).map_err(wrong)?))
            }
        };
        Ok(Some(Self { shape, largest }))
    }

    /// Returns the mean size in bytes, of sizes up to `largest`.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let largest = self.largest as f64;
        let (mass, moment) = match &self.shape {
            Shape::Fixed(size) => return *size as f64,
            Shape::Exponential { mean, .. } => {
                let beyond = (-largest / mean).exp();
                (1.0 - beyond, mean - (largest + mean) * beyond)
            }
            // The upper end of the distribution is `largest`.
            &Shape::BoundedPareto { least, ratio, shape } => {
                let moment = if (shape - 1.0).abs() < 1e-9 {
                    least * (largest / least).ln()
                } else {
                    least * shape / (shape - 1.0) * (1.0 - (least / largest).powf(shape - 1.0))
                };
                (1.0 - ratio, moment)
            }
            Shape::Mixture(mixture) => mixture.below(largest),
            Shape::Table(table) => table.below(largest),
        };
        if mass > 0.0 { moment / mass } else { largest }
    }

    /// Draws a flow size in bytes, at least 1; sizes above `largest` are rejected.
    pub fn draw(&self, random: &mut Generator) -> u64 {
        for _ in 0..MAX_DRAWS {
            let size = self.draw_any(random);
            if size <= self.largest {
                return size;
            }
        }
        self.largest
    }

    fn draw_any(&self, random: &mut Generator) -> u64 {
        let size = match &self.shape {
            Shape::Fixed(size) => return *size,
            Shape::Exponential { distribution, .. } => distribution.sample(random),
            // The inverse of F(x) = (1 - (L/x)^a) / (1 - (L/H)^a).
            Shape::BoundedPareto { least, ratio, shape } => {
                let u: f64 = random.random();
                least * (1.0 - u * (1.0 - ratio)).powf(-1.0 / shape)
            }
            Shape::Mixture(mixture) => mixture.draw(random),
            Shape::Table(table) => table.at(random.random()),
        };
        // Rounded up, so that no flow is empty. The cast saturates.
        (size.ceil() as u64).max(1)
    }
}
