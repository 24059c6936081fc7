//! Checks whether this machine can emulate the paths of a trial.

use emulation::check;
use emulation::user_namespace;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::calls::{interruptible, json, raised, wrong};
use crate::trials::spec;

/// Returns the kinds of paths that the packets of a trial take, as JSON.
#[pyfunction]
pub fn checked_paths(spec_json: &str) -> PyResult<String> {
    let paths = check::paths(&spec(spec_json)?);
    json(&paths.map_err(wrong)?)
}

/// Builds one of these paths by itself and measures it; returns JSON.
#[pyfunction]
pub fn check_path(py: Python<'_>, spec_json: &str, number: usize) -> PyResult<String> {
    let spec = spec(spec_json)?;
    let paths = check::paths(&spec).map_err(wrong)?;
    let path = paths
        .get(number)
        .ok_or_else(|| PyIndexError::new_err(number.to_string()))?;
    user_namespace::enter().map_err(raised)?;
    let streams = spec.streams().component("check");
    json(&py.detach(|| interruptible(|stopped| check::check(path, streams, stopped)))?)
}

/// Returns how many packets per second this machine can emulate, as JSON.
#[pyfunction]
#[pyo3(signature = (enough=f64::INFINITY))]
pub fn capacity(py: Python<'_>, enough: f64) -> PyResult<String> {
    user_namespace::enter().map_err(raised)?;
    json(&py.detach(|| interruptible(|stopped| check::capacity(enough, stopped)))?)
}
