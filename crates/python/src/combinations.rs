//! Checks of many specifications in one call: the cells of a study.

use experiment::TrialSpec;
use experiment::combination::{self, Column};
use experiment::plan::Plan;
use experiment::support::{self, WorldKind};
use pyo3::prelude::*;

use crate::calls::wrong;

/// Returns the number of the first specification that a world does not support, or, without a world, that is no trial.
///
/// `columns` are sections: name, contents in JSON, and the number of the content in each specification (native 32 bit).
/// Specifications with invalid sections are no trials; a world ignores them.
#[pyfunction]
#[pyo3(signature = (columns, seed, world=None))]
pub fn first_refused(
    columns: Vec<(String, Vec<String>, Vec<u8>)>,
    seed: u64,
    world: Option<&str>,
) -> PyResult<Option<usize>> {
    let world = match world {
        Some(name) => {
            let kind = WorldKind::named(name);
            Some(kind.ok_or_else(|| wrong(format!("there is no world {name:?}")))?)
        }
        None => None,
    };
    let rows: Vec<Vec<u32>> = columns
        .iter()
        .map(|(_, _, bytes)| {
            let (numbers, _) = bytes.as_chunks::<4>();
            numbers.iter().copied().map(u32::from_ne_bytes).collect()
        })
        .collect();
    let columns: Vec<Column<'_>> = columns
        .iter()
        .zip(&rows)
        .map(|((name, contents, _), rows)| Column { name, contents, rows })
        .collect();
    let refuses = |spec: Option<&TrialSpec>| match (world, spec) {
        (Some(world), Some(spec)) => !support::unsupported(world, spec).is_empty(),
        (Some(_), None) => false,
        (None, spec) => spec.is_none_or(|spec| Plan::of(spec).is_err()),
    };
    combination::first(&columns, seed, refuses).map_err(wrong)
}

/// Returns the numbers of those contents of one section, in JSON, that have problems.
#[pyfunction]
pub fn wrong_contents(section: &str, contents: Vec<String>) -> PyResult<Vec<usize>> {
    combination::wrong_contents(section, &contents).map_err(wrong)
}
