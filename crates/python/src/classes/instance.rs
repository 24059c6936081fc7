//! An object of a Python class, and the errors of its methods.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use foundation::wrong_value;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::fail;
use super::limit::{Stop, limited};

/// An object with the name of its class in errors.
pub(super) struct Instance {
    pub(super) name: Arc<str>,
    pub(super) object: Py<PyAny>,
    /// Limit of a call.
    pub(super) limit: Duration,
}

/// Runs `act`, which calls `what` of a class, for up to `limit`. The error is one line.
pub(super) fn bounded<T>(
    what: &str,
    limit: Duration,
    act: impl FnOnce(Python<'_>) -> Result<T, String>,
) -> Result<T, String> {
    let done = limited(limit, act);
    repeat_interrupt();
    done.unwrap_or_else(|stop| Err(stopped(what, limit, stop)))
}

thread_local! {
    /// Whether Ctrl-C ended the last call of this thread.
    static INTERRUPTED: Cell<bool> = const { Cell::new(false) };
}

/// Repeats a Ctrl-C that ended a call, so that it also stops the caller. Until then nothing else handles signals.
fn repeat_interrupt() {
    if INTERRUPTED.take() {
        // SAFETY: the function has no requirements.
        unsafe { pyo3::ffi::PyErr_SetInterrupt() };
    }
}

/// Returns the error of a call that was stopped.
fn stopped(what: &str, limit: Duration, stop: Stop) -> String {
    match stop {
        Stop::Limit => format!(
            "{what}: no result within {} s (call_limit_s of the class)",
            limit.as_secs_f64()
        ),
        Stop::Cancelled => format!("{what}: cancelled"),
    }
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
        self.run(
            |py| format!("{}.{}", self.name, method(py)),
            |py| {
                let name = method(py);
                let result = self.object.bind(py).call_method1(name, arguments);
                let result =
                    result.map_err(|error| format!("{}.{name}: {}", self.name, describe(py, &error)))?;
                read(py, result)
            },
        )
    }

    /// Runs `act`, which uses the object for up to the limit of its class. An error stops the trial.
    pub(super) fn run<T>(
        &self,
        what: impl FnOnce(Python<'_>) -> String,
        act: impl FnOnce(Python<'_>) -> Result<T, String>,
    ) -> T {
        let done = limited(self.limit, act);
        repeat_interrupt();
        let done = done.unwrap_or_else(|stop| Err(stopped(&Python::attach(what), self.limit, stop)));
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
    wrong_value::shortened(text.lines().next().unwrap_or_default())
}

/// Formats a Python exception in one line, with its line number.
pub(super) fn describe(py: Python<'_>, error: &PyErr) -> String {
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        INTERRUPTED.set(true);
    }
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
