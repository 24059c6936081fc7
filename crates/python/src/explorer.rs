//! The engine of the explorer's page.

use std::sync::{Mutex, PoisonError};

use explorer::requests::Sessions;
use foundation::confinement::{Permitted, confined};
use pyo3::prelude::*;

use crate::classes::{fault, guarded};

/// Stepping sessions behind one call with JSON. Documented in the stub.
#[pyclass(frozen, module = "longfat._native")]
pub struct Explorer {
    sessions: Mutex<Sessions>,
    permitted: Permitted,
}

#[pymethods]
impl Explorer {
    #[new]
    #[pyo3(signature = (permitted = Vec::new()))]
    fn new(permitted: Vec<String>) -> Self {
        Self {
            sessions: Mutex::default(),
            permitted: permitted.into(),
        }
    }

    fn reply(&self, py: Python<'_>, request: &[u8]) -> PyResult<String> {
        py.detach(|| {
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            confined(self.permitted.clone(), || guarded(|| sessions.reply(request))).map_err(fault)
        })
    }
}

/// Calls a function, in which specifications name neither classes nor files except the permitted ones, with one argument.
#[pyfunction]
#[pyo3(name = "confined", signature = (function, argument, permitted = Vec::new(), /))]
pub fn call_confined<'py>(
    function: &Bound<'py, PyAny>,
    argument: &Bound<'py, PyAny>,
    permitted: Vec<String>,
) -> PyResult<Bound<'py, PyAny>> {
    confined(permitted.into(), || function.call1((argument,)))
}
