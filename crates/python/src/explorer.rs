//! The engine of the explorer's page.

use std::sync::{Mutex, PoisonError};

use explorer::requests::Sessions;
use foundation::confinement::confined;
use pyo3::prelude::*;

use crate::classes::{fault, guarded};

/// Stepping sessions behind one call with JSON. Documented in the stub.
#[pyclass(frozen, module = "longfat._native")]
pub struct Explorer(Mutex<Sessions>);

#[pymethods]
impl Explorer {
    #[new]
    fn new() -> Self {
        Self(Mutex::default())
    }

    fn reply(&self, py: Python<'_>, request: &[u8]) -> PyResult<String> {
        py.detach(|| {
            let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            confined(|| guarded(|| sessions.reply(request))).map_err(fault)
        })
    }
}

/// Calls a function, in which specifications name neither classes nor files, with one argument.
#[pyfunction]
#[pyo3(name = "confined")]
pub fn call_confined<'py>(
    function: &Bound<'py, PyAny>,
    argument: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    confined(|| function.call1((argument,)))
}
