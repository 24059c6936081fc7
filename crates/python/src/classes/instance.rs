//! An object of a Python class, and the errors of its methods.

use std::sync::Arc;

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::fail;

/// An object with the name of its class in errors.
pub(super) struct Instance {
    pub(super) name: Arc<str>,
    pub(super) object: Py<PyAny>,
}

impl Instance {
    /// Calls a method and reads its result. An exception, or an error of `read`, stops the trial.
    pub(super) fn call<A, T>(
        &self,
        method: fn(Python<'_>) -> &Bound<'_, PyString>,
        arguments: A,
        read: impl FnOnce(Python<'_>, Bound<'_, PyAny>) -> Result<T, String>,
    ) -> T
    where
        A: for<'py> PyCallArgs<'py>,
    {
        let done = Python::attach(|py| {
            let name = method(py);
            let result = self.object.bind(py).call_method1(name, arguments);
            let result = result.map_err(|error| format!("{}.{name}: {}", self.name, describe(py, &error)))?;
            read(py, result)
        });
        done.unwrap_or_else(|message| fail(message))
    }

    /// Returns the error of a wrong value: "fastest.py:Fastest.choose returned 7: expected ...".
    pub(super) fn wrong(&self, received: &str, value: &Bound<'_, PyAny>, why: &str) -> String {
        format!("{}.{received} {}: {why}", self.name, shown(value))
    }
}

/// Returns an object's representation on one line of bounded length.
pub(super) fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value
        .repr()
        .map_or_else(|_| "an object".to_owned(), |text| text.to_string());
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() > 60 {
        return format!("{}...", line.chars().take(57).collect::<String>());
    }
    line.to_owned()
}

/// Formats a Python exception in one line, with its line number.
pub(super) fn describe(py: Python<'_>, error: &PyErr) -> String {
    let text = error.value(py).to_string();
    let text = text.lines().next().unwrap_or_default().trim();
    let kind = error
        .get_type(py)
        .name()
        .map_or_else(|_| "an exception".to_owned(), |name| name.to_string());
    let mut line = if text.is_empty() {
        kind
    } else {
        format!("{kind}: {text}")
    };
    if let Some(number) = line_number(py, error) {
        line += &format!(" (line {number})");
    }
    line
}

/// Returns the line of the innermost frame of a traceback.
fn line_number(py: Python<'_>, error: &PyErr) -> Option<u64> {
    let mut frame = error.traceback(py)?.into_any();
    loop {
        let next = frame.getattr("tb_next").ok()?;
        if next.is_none() {
            return frame.getattr("tb_lineno").ok()?.extract().ok();
        }
        frame = next;
    }
}
