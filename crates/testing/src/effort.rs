//! Counts of random cases and kills, which `LONGFAT_EFFORT` scales. `tests/effort.py` is the Python version.

/// The share of the full count: 1/8 by default, as in `make test`; 1 in `make test-all`; more in long runs.
const EFFORT: &str = "LONGFAT_EFFORT";

/// Returns the share of a full count of random cases, at least 1.
///
/// # Panics
///
/// If `LONGFAT_EFFORT` is not a positive number.
pub fn cases(full: u32) -> u32 {
    share(full, std::env::var(EFFORT).ok().as_deref())
}

/// Returns rows of a table that are spread over it evenly: the share of all rows, at least `least`.
///
/// # Panics
///
/// If `LONGFAT_EFFORT` is not a positive number.
pub fn rows<T>(all: Vec<T>, least: usize) -> Vec<T> {
    let taken = (cases(all.len() as u32) as usize).max(least).min(all.len());
    spread(all, taken)
}

/// Returns the number in an environment variable, such as `LONGFAT_KILLS`, or the share of a full count.
///
/// # Panics
///
/// If a variable is not a number.
pub fn count(variable: &str, full: u32) -> u64 {
    std::env::var(variable).map_or_else(
        |_| u64::from(cases(full)),
        |text| {
            text.parse()
                .unwrap_or_else(|_| panic!("{variable}: {text:?} is not a number"))
        },
    )
}

fn spread<T>(all: Vec<T>, taken: usize) -> Vec<T> {
    let length = all.len();
    let starts_a_part = |place: usize| place == 0 || place * taken / length != (place - 1) * taken / length;
    let places = all.into_iter().enumerate();
    places
        .filter_map(|(place, row)| starts_a_part(place).then_some(row))
        .collect()
}

fn share(full: u32, effort: Option<&str>) -> u32 {
    let text = effort.unwrap_or("0.125");
    let effort = text
        .parse::<f64>()
        .ok()
        .filter(|effort| *effort > 0.0 && effort.is_finite());
    let effort = effort.unwrap_or_else(|| panic!("{EFFORT}: {text:?} is not a positive number"));
    (f64::from(full) * effort).round().max(1.0) as u32
}

#[cfg(test)]
mod tests {
    use super::{share, spread};

    #[test]
    fn takes_rows_from_the_whole_table() {
        assert_eq!(spread((0..18).collect(), 7), [0, 3, 6, 8, 11, 13, 16]);
        assert_eq!(spread((0..5).collect(), 5), [0, 1, 2, 3, 4]);
        assert_eq!(spread((0..5).collect(), 1), [0]);
    }

    #[test]
    fn scales_a_full_count() {
        assert_eq!(share(256, None), 32);
        assert_eq!(share(256, Some("1")), 256);
        assert_eq!(share(256, Some("10")), 2560);
        assert_eq!(share(3, None), 1);
    }

    #[test]
    #[should_panic(expected = "LONGFAT_EFFORT: \"much\" is not a positive number")]
    fn rejects_text() {
        share(256, Some("much"));
    }

    #[test]
    #[should_panic(expected = "LONGFAT_EFFORT: \"-1\" is not a positive number")]
    fn rejects_negative_numbers() {
        share(256, Some("-1"));
    }
}
