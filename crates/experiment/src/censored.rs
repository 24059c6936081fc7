//! Statistics of values of which some are only known to exceed all others: the times of requests without a response, or of
//! flows that did not complete.

/// Values and the number of those beyond all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Censored {
    sorted: Vec<f64>,
    beyond: u64,
}

impl Censored {
    /// Returns a sample of measured values and `beyond` values that exceed them.
    #[must_use]
    pub fn new(mut measured: Vec<f64>, beyond: u64) -> Self {
        measured.sort_by(f64::total_cmp);
        Self {
            sorted: measured,
            beyond,
        }
    }

    /// Returns the measured values in ascending order.
    #[must_use]
    pub fn measured(&self) -> &[f64] {
        &self.sorted
    }

    /// Returns the smallest value; `None` if nothing was measured.
    #[must_use]
    pub fn minimum(&self) -> Option<f64> {
        self.sorted.first().copied()
    }

    /// Returns the mean; `None` if nothing was measured or a value is beyond.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        mean(&self.sorted, self.beyond)
    }

    /// Returns quantile `q`: the smallest value with at least that share at or below it; `None` if it is beyond.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = rank(q, self.sorted.len() as u64 + self.beyond);
        self.sorted.get(rank as usize - 1).copied()
    }
}

/// Returns the mean of values; `None` if there are none or if `beyond` others are unknown.
#[must_use]
pub fn mean(values: &[f64], beyond: u64) -> Option<f64> {
    (!values.is_empty() && beyond == 0).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the rank of quantile `q` among `count` values, from 1.
#[must_use]
pub fn rank(q: f64, count: u64) -> u64 {
    ((q * count as f64).ceil() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_among_values_beyond_are_unknown() {
        let half = Censored::new(vec![3.0, 1.0, 2.0], 3);
        assert_eq!(half.quantile(0.5), Some(3.0));
        assert_eq!(half.quantile(0.51), None);
        assert_eq!(half.minimum(), Some(1.0));
    }

    #[test]
    fn mean_needs_every_value() {
        assert_eq!(Censored::new(vec![1.0, 3.0], 0).mean(), Some(2.0));
        assert_eq!(Censored::new(vec![1.0, 3.0], 1).mean(), None);
        assert_eq!(Censored::new(Vec::new(), 0).mean(), None);
        assert_eq!(Censored::new(Vec::new(), 0).quantile(0.5), None);
    }
}
