//! A distribution given by points of its cumulative distribution function.

use super::named::Point;

/// A piecewise linear cumulative distribution function.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    points: Vec<Point>,
}

impl Table {
    /// Returns the distribution through these points, in order; the last share is 1.
    pub fn new(points: &[Point]) -> Self {
        Self {
            points: points.to_vec(),
        }
    }

    /// Parses a CSV file: each line has a size in bytes and the share of flows of at most that size, from 0 to 1, both
    /// non-decreasing. A first line without numbers is a heading; lines that start with `#` are comments.
    ///
    /// # Errors
    /// The first invalid line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut points: Vec<Point> = Vec::new();
        let mut is_first = true;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let is_heading = std::mem::take(&mut is_first);
            let Some(point) = read(line) else {
                if is_heading && !line.starts_with(|c: char| c.is_ascii_digit()) {
                    continue;
                }
                return Err(format!(
                    "line {number}: {line:?} is not a size in bytes and a share such as 1000,0.5"
                ));
            };
            if !(point.0 >= 0.0 && point.0 < 1e15) {
                return Err(format!(
                    "line {number}: {} is not a size: 0 to 1e15 bytes",
                    point.0
                ));
            }
            if !(0.0..=1.0).contains(&point.1) {
                return Err(format!("line {number}: {} is not a share: 0 to 1", point.1));
            }
            if points
                .last()
                .is_some_and(|last| last.0 > point.0 || last.1 > point.1)
            {
                return Err(format!("line {number}: sizes and shares must not decrease"));
            }
            points.push(point);
        }
        match points.last() {
            None => Err("no line with a size and a share".into()),
            Some((_, share)) if *share < 1.0 => Err(format!("the last share is {share}: it must be 1")),
            Some(_) => Ok(Self { points }),
        }
    }

    /// Returns the probability of values up to `most`, and the integral of the value over them.
    pub fn below(&self, most: f64) -> (f64, f64) {
        let (mut mass, mut moment) = (0.0, 0.0);
        let mut before: Point = (self.points[0].0, 0.0);
        for &point in &self.points {
            let ((low, start), (high, end)) = (before, point);
            before = point;
            if low > most {
                break;
            }
            let part = if high > most {
                (most - low) / (high - low)
            } else {
                1.0
            };
            let own = (end - start) * part;
            mass += own;
            moment += own * (low + high.min(most)) / 2.0;
        }
        (mass, moment)
    }

    /// Returns the quantile `u`, from 0 to 1.
    pub fn at(&self, u: f64) -> f64 {
        let next = self.points.partition_point(|&(_, share)| share < u);
        let above = self.points[next.min(self.points.len() - 1)];
        let Some(&below) = next.checked_sub(1).and_then(|place| self.points.get(place)) else {
            return above.0;
        };
        let width = above.1 - below.1;
        if width <= 0.0 {
            return above.0;
        }
        below.0 + (above.0 - below.0) * (u - below.1) / width
    }
}

fn read(line: &str) -> Option<Point> {
    let (size, share) = line.split_once([',', ';', '\t', ' '])?;
    Some((size.trim().parse().ok()?, share.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_line_by_line() {
        let table = Table::parse("# sizes\nbytes,share\n100,0\n200, 0.5\n1000,1\n").unwrap();
        assert_eq!(table.at(0.0), 100.0);
        assert_eq!(table.at(0.25), 150.0);
        assert_eq!(table.at(0.75), 600.0);
        assert_eq!(table.at(1.0), 1000.0);
    }

    #[test]
    fn a_first_share_above_zero_is_a_point_mass() {
        let table = Table::parse("40,0.25\n80,1").unwrap();
        assert_eq!((table.at(0.1), table.at(0.25), table.at(1.0)), (40.0, 40.0, 80.0));
    }

    #[test]
    fn errors_name_the_line_of_a_file() {
        for (text, line) in [
            ("", "no line"),
            ("1,0\nx,1", "line 2"),
            ("1,0\n2,1.5", "line 2"),
            ("-1,0\n2,1", "line 1"),
            ("5,0\n2,1", "line 2"),
            ("5,0.5\n6,0.2", "line 2"),
            ("5,0\n6,0.9", "must be 1"),
        ] {
            let error = Table::parse(text).unwrap_err();
            assert!(error.contains(line), "{text:?}: {error}");
        }
    }
}
