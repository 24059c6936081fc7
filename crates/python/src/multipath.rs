//! The kernel's MPTCP: a path manager in user space, and what it can do here.

#[cfg(target_os = "linux")]
mod here {
    use kernel::Error;
    use kernel::mptcp::daemon::{self, Notification, Options};
    use kernel::mptcp::{self, ConnectionInfo, PathManager};
    use pyo3::exceptions::{PyOSError, PyValueError};
    use pyo3::prelude::*;
    use std::os::fd::BorrowedFd;
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use transport::mptcp::policy::PolicyConfig;

    fn refused(error: &Error) -> PyErr {
        match error {
            Error::Option(_) => PyValueError::new_err(error.to_string()),
            _ => PyOSError::new_err(error.to_string()),
        }
    }

    fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[expect(clippy::too_many_arguments, reason = "the keywords of one Python function")]
    pub fn manage_paths(
        py: Python<'_>,
        policy_json: &str,
        name: String,
        set_sysctl: bool,
        requested_only: bool,
        announce: bool,
        seed: u64,
        tell: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let policy: PolicyConfig = serde_json::from_str(policy_json)
            .map_err(|error| PyValueError::new_err(format!("policy: {error}")))?;
        let options = Options {
            policy,
            name,
            set_sysctl,
            requested_only,
            announce,
            seed,
        };
        let tell = tell.clone().unbind();
        // What a callback raises ends the daemon, and is raised again.
        let raised = Mutex::new(None);
        let result = py.detach(|| {
            let raised = &raised;
            let mut go_on = || {
                Python::attach(
                    |py| match py.check_signals().and_then(|()| tell.call1(py, (py.None(),))) {
                        Ok(answer) => !answer.bind(py).is(pyo3::types::PyBool::new(py, false)),
                        Err(error) => {
                            locked(raised).get_or_insert(error);
                            false
                        }
                    },
                )
            };
            let mut notify = |notification: Notification| {
                let text = serde_json::to_string(&notification).unwrap_or_default();
                Python::attach(|py| {
                    if let Err(error) = tell.call1(py, (text,)) {
                        locked(raised).get_or_insert(error);
                    }
                });
            };
            daemon::run(&options, &mut go_on, &mut notify)
        });
        if let Some(error) = locked(&raised).take() {
            return Err(error);
        }
        result.map_err(|error| refused(&error))
    }

    pub fn mptcp_support() -> String {
        match (mptcp::is_enabled(), mptcp::path_manager()) {
            (None, _) => "missing",
            (Some(false), _) => "disabled",
            (_, Ok(PathManager::User)) => "user",
            (_, Ok(PathManager::Kernel)) => "kernel",
            (_, Err(_)) => "kernel-only",
        }
        .into()
    }

    pub fn mptcp_subflows(descriptor: i32) -> PyResult<Option<String>> {
        // SAFETY: the caller's socket is open for as long as the call takes.
        let socket = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let Some(connection) = ConnectionInfo::of_socket(&socket)? else {
            return Ok(None);
        };
        let subflows: Vec<serde_json::Value> = connection
            .subflows
            .iter()
            .map(|subflow| {
                serde_json::json!({
                    "local": subflow.pair.local.ip().to_string(),
                    "remote": subflow.pair.remote.ip().to_string(),
                    "rtt_ms": f64::from(subflow.tcp.smoothed_rtt_us()) / 1e3,
                    "bytes_sent": subflow.tcp.bytes_sent(),
                    "bytes_received": subflow.tcp.bytes_received(),
                    "retransmissions": subflow.tcp.retransmissions(),
                })
            })
            .collect();
        let value = serde_json::json!({
            "token": connection.token, "unacknowledged": connection.unacknowledged, "subflows": subflows,
        });
        Ok(Some(value.to_string()))
    }
}

#[cfg(not(target_os = "linux"))]
mod here {
    use pyo3::exceptions::PyOSError;
    use pyo3::prelude::*;

    #[expect(clippy::too_many_arguments, reason = "the keywords of one Python function")]
    pub fn manage_paths(
        _: Python<'_>,
        _: &str,
        _: String,
        _: bool,
        _: bool,
        _: bool,
        _: u64,
        _: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        Err(PyOSError::new_err("a path manager for MPTCP needs Linux"))
    }

    pub fn mptcp_support() -> String {
        "missing".into()
    }

    pub fn mptcp_subflows(_: i32) -> PyResult<Option<String>> {
        Err(PyOSError::new_err("MPTCP needs Linux"))
    }
}

use pyo3::prelude::*;

/// Runs a path manager for the MPTCP connections of this network namespace until `tell` answers False or raises.
///
/// `tell` is called with a JSON text for each event, and with None several times a second.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the keywords of one Python function")]
#[pyo3(signature = (policy_json, name, tell, set_sysctl=false, requested_only=false, announce=false, seed=1))]
pub fn manage_paths(
    py: Python<'_>,
    policy_json: &str,
    name: String,
    tell: &Bound<'_, PyAny>,
    set_sysctl: bool,
    requested_only: bool,
    announce: bool,
    seed: u64,
) -> PyResult<()> {
    here::manage_paths(
        py,
        policy_json,
        name,
        set_sysctl,
        requested_only,
        announce,
        seed,
        tell,
    )
}

/// Who opens subflows of MPTCP here: "user", "kernel", "kernel-only" (there is no choice), "disabled" or "missing".
#[pyfunction]
pub fn mptcp_support() -> String {
    here::mptcp_support()
}

/// The token and subflows of a socket's connection as JSON; None where it is plain TCP.
#[pyfunction]
pub fn mptcp_subflows(descriptor: i32) -> PyResult<Option<String>> {
    here::mptcp_subflows(descriptor)
}
