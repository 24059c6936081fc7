//! Several simulated trials of one specification in one call, with their results by columns: a call from Python costs more than
//! a small trial.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use experiment::flow_table::{Column, Packed, columns};
use experiment::{TrialRecord, TrialSpec};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use simulation::trial::{TrialError, run};

use crate::calls::wrong;
use crate::controllers::guarded;
use crate::trials::{Cancel, spec};

/// Simulates trials with these numbers. Returns the results of all trials, or of the first ones if `cancel` stops it:
///
/// - `errors`: reasons of failures, None for trials without one;
/// - `metrics`: the values of each metric by name, as bytes of little-endian doubles, NaN for a missing value;
/// - `heights`: the number of flows of each trial, as bytes of little-endian 32-bit integers;
/// - `flows`: the columns of all flows, trial by trial.
#[pyfunction]
#[pyo3(signature = (spec_json, numbers, cancel=None))]
pub fn simulate_trials<'py>(
    py: Python<'py>,
    spec_json: &str,
    numbers: Vec<u64>,
    cancel: Option<&Cancel>,
) -> PyResult<Bound<'py, PyDict>> {
    let spec = spec(spec_json)?;
    let flag = cancel.map(Cancel::flag);
    let mut records = py.detach(|| records(spec, &numbers, flag.as_deref()))?;
    let flows: Vec<_> = records
        .iter_mut()
        .map(|record| std::mem::take(&mut record.flows))
        .collect();
    let heights = flows.iter().map(|flows| (flows.len() as u32).to_le_bytes());
    let found = PyDict::new(py);
    found.set_item(
        "heights",
        PyBytes::new(py, &heights.flatten().collect::<Vec<u8>>()),
    )?;
    let flows = flows.concat();
    let table = if flows.is_empty() {
        Vec::new()
    } else {
        columns(&flows)
    };
    let table: PyResult<Vec<_>> = table.iter().map(|column| column_of(py, column)).collect();
    found.set_item("flows", table?)?;
    found.set_item("metrics", metrics_of(py, &records)?)?;
    let errors: Vec<_> = records.iter().map(|record| record.error.as_deref()).collect();
    found.set_item("errors", errors)?;
    Ok(found)
}

fn records(mut spec: TrialSpec, numbers: &[u64], cancel: Option<&AtomicBool>) -> PyResult<Vec<TrialRecord>> {
    let mut records = Vec::with_capacity(numbers.len());
    for &number in numbers {
        spec.trial = number;
        match guarded(|| run(&spec, cancel)) {
            Ok(Ok(record)) => records.push(record),
            Ok(Err(TrialError::Cancelled)) => break,
            Ok(Err(TrialError::Spec(error))) => return Err(wrong(error)),
            // An exception of a Python controller fails the trial, like a broken transfer.
            Err(fault) => records.push(TrialRecord::of_transfer(Err(&fault))),
        }
        if cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            break;
        }
    }
    Ok(records)
}

fn metrics_of<'py>(py: Python<'py>, records: &[TrialRecord]) -> PyResult<Bound<'py, PyDict>> {
    let all = || records.iter().filter_map(|record| record.metrics.as_ref());
    let names: BTreeSet<&String> = all().flat_map(|metrics| metrics.keys()).collect();
    let found = PyDict::new(py);
    for name in names {
        let value = |record: &TrialRecord| {
            let metrics = record.metrics.as_ref();
            let value = metrics.and_then(|metrics| metrics.get(name).copied().flatten());
            value.filter(|value| value.is_finite()).unwrap_or(f64::NAN)
        };
        let values = records.iter().map(|record| value(record).to_le_bytes());
        let values: Vec<u8> = values.flatten().collect();
        found.set_item(name, PyBytes::new(py, &values))?;
    }
    Ok(found)
}

fn column_of<'py>(py: Python<'py>, column: &Column) -> PyResult<Bound<'py, PyDict>> {
    let bytes = |packed: &Packed| PyBytes::new(py, &packed.0);
    let found = PyDict::new(py);
    found.set_item("name", column.name)?;
    found.set_item("dtype", column.dtype)?;
    found.set_item("values", bytes(&column.values))?;
    if let Some(present) = &column.present {
        found.set_item("present", bytes(present))?;
    }
    if let Some(dictionary) = &column.dictionary {
        found.set_item("words", dictionary)?;
    }
    if let Some(lengths) = &column.lengths {
        found.set_item("lengths", bytes(lengths))?;
    }
    Ok(found)
}
