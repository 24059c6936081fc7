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
use crate::classes::{cancellable, guarded};
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
    let run_all = || records(spec, &numbers, flag.as_deref()).map(Batch::of);
    let batch = py.detach(|| cancellable(flag.as_ref(), run_all))?;
    let found = PyDict::new(py);
    found.set_item("errors", batch.errors)?;
    let metrics = PyDict::new(py);
    for (name, values) in &batch.metrics {
        metrics.set_item(name, PyBytes::new(py, values))?;
    }
    found.set_item("metrics", metrics)?;
    found.set_item("heights", PyBytes::new(py, &batch.heights))?;
    let flows: PyResult<Vec<_>> = batch.flows.iter().map(|column| column_of(py, column)).collect();
    found.set_item("flows", flows?)?;
    Ok(found)
}

/// The results by columns, computed without the interpreter's lock.
struct Batch {
    errors: Vec<Option<String>>,
    metrics: Vec<(String, Vec<u8>)>,
    heights: Vec<u8>,
    flows: Vec<Column>,
}

impl Batch {
    fn of(mut records: Vec<TrialRecord>) -> Self {
        let flows: Vec<_> = records
            .iter_mut()
            .map(|record| std::mem::take(&mut record.flows))
            .collect();
        let heights = flows.iter().map(|flows| (flows.len() as u32).to_le_bytes());
        let heights = heights.flatten().collect();
        let flows = flows.concat();
        Self {
            metrics: metrics_of(&records),
            errors: records.into_iter().map(|record| record.error).collect(),
            heights,
            flows: if flows.is_empty() {
                Vec::new()
            } else {
                columns(&flows)
            },
        }
    }
}

fn records(mut spec: TrialSpec, numbers: &[u64], cancel: Option<&AtomicBool>) -> PyResult<Vec<TrialRecord>> {
    let mut records = Vec::with_capacity(numbers.len());
    let is_cancelled = || cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed));
    for &number in numbers {
        spec.trial = number;
        match guarded(|| run(&spec, Some(&is_cancelled))) {
            Ok(Ok(record)) => records.push(record),
            Ok(Err(TrialError::Cancelled)) => break,
            Ok(Err(TrialError::Spec(error))) => return Err(wrong(error)),
            // The exception may be the cancellation of a call.
            Err(_) if is_cancelled() => break,
            // An exception of a Python controller fails the trial, like a broken transfer.
            Err(fault) => records.push(TrialRecord::of_transfer(Err(&fault))),
        }
        if is_cancelled() {
            break;
        }
    }
    Ok(records)
}

/// Returns the values of each metric, in the order of names.
fn metrics_of(records: &[TrialRecord]) -> Vec<(String, Vec<u8>)> {
    let all = || records.iter().filter_map(|record| record.metrics.as_ref());
    let names: BTreeSet<&String> = all().flat_map(|metrics| metrics.keys()).collect();
    let value = |record: &TrialRecord, name: &String| {
        let metrics = record.metrics.as_ref();
        let value = metrics.and_then(|metrics| metrics.get(name).copied().flatten());
        value.filter(|value| value.is_finite()).unwrap_or(f64::NAN)
    };
    let bytes = |name: &String| {
        records
            .iter()
            .flat_map(|record| value(record, name).to_le_bytes())
            .collect()
    };
    names
        .into_iter()
        .map(|name| (name.clone(), bytes(name)))
        .collect()
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
