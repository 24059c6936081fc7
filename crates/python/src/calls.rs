//! Errors as Python exceptions, and calls of Python functions from loops that run without the interpreter lock.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use kernel::Error;
use pyo3::call::PyCallArgs;
#[cfg(target_os = "linux")]
use pyo3::exceptions::PyOSError;
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::Value;

/// Returns an error as a `ValueError`.
pub fn wrong(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub use socket::system_error::plain;

/// Converts an error: `ValueError` for bad input, `OSError` with the number for a failed command, `OSError` otherwise.
#[cfg(target_os = "linux")]
pub fn raised(error: Error) -> PyErr {
    match error {
        Error::Option(_) => wrong(error),
        Error::Command { ref name, ref source } => match source.raw_os_error() {
            Some(number) => PyOSError::new_err((number, source.to_string(), name.clone())),
            None => PyOSError::new_err(error.to_string()),
        },
        _ => PyOSError::new_err(plain(&error)),
    }
}

/// Returns `value` as JSON text.
pub fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(wrong)
}

/// Calls a Python function from a loop. An exception, or Ctrl-C, stops the loop and is raised after it.
pub struct Callback<'a> {
    function: Option<&'a Py<PyAny>>,
    raised: Option<PyErr>,
    /// Whether Ctrl-C raised it.
    interrupted: bool,
}

impl<'a> Callback<'a> {
    pub const fn new(function: Option<&'a Py<PyAny>>) -> Self {
        Self {
            function,
            raised: None,
            interrupted: false,
        }
    }

    /// Calls the function. A false result other than `None` stops the loop.
    pub fn call<A>(&mut self, arguments: A) -> ControlFlow<()>
    where
        A: for<'py> PyCallArgs<'py>,
    {
        let function = self.function;
        self.poll(|py| {
            let Some(function) = function else { return Ok(true) };
            let answer = function.call1(py, arguments)?;
            Ok(answer.is_none(py) || answer.is_truthy(py)?)
        })
    }

    /// Passes a value as JSON to the function.
    pub fn report(&mut self, value: &impl ToString) -> ControlFlow<()> {
        self.call((value.to_string(),))
    }

    /// As [`report`](Self::report), but passes values also after Ctrl-C: they are about what happened before.
    fn deliver(&mut self, value: &impl ToString) -> ControlFlow<()> {
        match self.function.filter(|_| self.interrupted) {
            Some(function) => {
                // The interruption is raised after the loop, errors of the function about its end are not.
                let _ = Python::attach(|py| function.call1(py, (value.to_string(),)));
                ControlFlow::Break(())
            }
            None => self.report(value),
        }
    }

    /// Handles signals without a call of the function.
    pub fn check(&mut self) -> ControlFlow<()> {
        self.poll(|_| Ok(true))
    }

    fn poll(&mut self, act: impl FnOnce(Python<'_>) -> PyResult<bool>) -> ControlFlow<()> {
        if self.raised.is_some() {
            return ControlFlow::Break(());
        }
        match Python::attach(|py| py.check_signals().and_then(|()| act(py))) {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => ControlFlow::Break(()),
            Err(error) => {
                self.interrupted = Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py));
                self.raised = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Returns the loop's result, or raises the exception that stopped it.
    pub fn finish<T>(self, result: PyResult<T>) -> PyResult<T> {
        self.raised.map_or(result, Err)
    }

    /// As [`finish`](Self::finish), but Ctrl-C is a regular end: also returns whether it stopped the loop.
    pub fn finish_or_interrupted<T>(self, py: Python<'_>, result: PyResult<T>) -> PyResult<(T, bool)> {
        match self.raised {
            Some(error) if !error.is_instance_of::<PyKeyboardInterrupt>(py) => Err(error),
            raised => Ok((result?, raised.is_some())),
        }
    }
}

/// Handles signals during native work that has nothing to report, such as a simulation. Handlers run in the main thread
/// only.
pub struct Signals(Mutex<(Instant, Option<PyErr>)>);

impl Signals {
    pub fn new() -> Self {
        Self(Mutex::new((Instant::now(), None)))
    }

    /// Handles signals, at most every [`TICK`]. Returns whether a handler raised an exception, such as for Ctrl-C.
    pub fn raised(&self) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.1.is_none() && state.0.elapsed() >= TICK {
            state.1 = Python::attach(|py| py.check_signals().err());
            state.0 = Instant::now();
        }
        state.1.is_some()
    }

    /// Raises the exception of a handler.
    ///
    /// # Errors
    /// That exception.
    pub fn check(&self) -> PyResult<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.1.take().map_or(Ok(()), Err)
    }
}

/// How often signals are handled while there is nothing to report.
pub const TICK: Duration = Duration::from_millis(50);
/// Reports that may wait for the function.
const WAITING: usize = 1024;

/// Passes a report to the function; returns whether to stop.
pub type Report<'a> = dyn FnMut(&Value) -> ControlFlow<()> + 'a;

/// Runs `work` on a thread and the function with its reports on this one: a slow function, or its first imports, would
/// stop the ACKs of a transfer. Returns after the last report.
pub fn reported<T: Send>(callback: &mut Callback<'_>, work: impl FnOnce(&mut Report<'_>) -> T + Send) -> T {
    let stopped = AtomicBool::new(false);
    let (reports, inbox) = sync_channel(WAITING);
    let stopped = &stopped;
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            work(&mut move |report| {
                // The other end is dropped after this thread only.
                let _ = reports.send(report.clone());
                match stopped.load(Ordering::Relaxed) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            })
        });
        loop {
            let step = match inbox.recv_timeout(TICK) {
                Ok(report) => callback.deliver(&report),
                Err(RecvTimeoutError::Timeout) => callback.check(),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if step.is_break() {
                stopped.store(true, Ordering::Relaxed);
            }
        }
        worker.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Runs `work`, which may block for long, such as a name's resolution, on a thread. If a signal handler raises meanwhile,
/// returns that exception and leaves the thread alone.
pub fn awaited<T: Send + 'static>(py: Python<'_>, work: impl FnOnce() -> T + Send + 'static) -> PyResult<T> {
    let caller = std::thread::current();
    let worker = std::thread::spawn(move || {
        let done = work();
        caller.unpark();
        done
    });
    while !worker.is_finished() {
        py.detach(|| std::thread::park_timeout(TICK));
        py.check_signals()?;
    }
    Ok(worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
}

/// Runs `work`, which polls its argument; if a signal handler raises meanwhile, returns that exception.
#[cfg(target_os = "linux")]
pub fn interruptible<T>(work: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<T, Error>) -> PyResult<T> {
    let mut callback = Callback::new(None);
    let result = work(&mut || callback.check().is_break());
    callback.finish(result.map_err(raised))
}
