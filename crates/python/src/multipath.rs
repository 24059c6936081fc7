//! The kernel's MPTCP: a path manager in user space, and queries.

use kernel::mptcp::daemon::{self, Notification, Options};
use kernel::mptcp::{self, ConnectionInfo, PathManager};
use pyo3::prelude::*;
use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use transport::mptcp::policy::PolicyConfig;

use crate::calls::{Callback, raised, wrong};

/// Runs a path manager for the MPTCP connections of this network namespace until `on_event` returns False or raises.
///
/// `on_event` is called with a JSON text for each event, and with None several times a second.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the keywords of one Python function")]
#[pyo3(signature = (policy_json, name, on_event, set_sysctl=false, requested_only=false, announce=false, seed=1))]
pub fn manage_paths(
    py: Python<'_>,
    policy_json: &str,
    name: String,
    on_event: &Bound<'_, PyAny>,
    set_sysctl: bool,
    requested_only: bool,
    announce: bool,
    seed: u64,
) -> PyResult<()> {
    let policy: PolicyConfig =
        serde_json::from_str(policy_json).map_err(|error| wrong(format!("policy: {error}")))?;
    let options = Options {
        policy,
        name,
        set_sysctl,
        requested_only,
        announce,
        seed,
    };
    let on_event = on_event.clone().unbind();
    py.detach(|| {
        let callback = RefCell::new(Callback::new(Some(&on_event)));
        let mut keep_running = || callback.borrow_mut().call((None::<&str>,)).is_continue();
        let mut report = |event: Notification| {
            let text = serde_json::to_string(&event).unwrap_or_default();
            // An exception stops the next turn.
            let _ = callback.borrow_mut().call((text,));
        };
        let result = daemon::run(&options, &mut keep_running, &mut report);
        callback.into_inner().finish(result.map_err(raised))
    })
}

/// Returns who opens MPTCP subflows here: "user", "kernel", "kernel-only" (no choice), "disabled" or "missing".
#[pyfunction]
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

/// Returns the token and subflows of a socket's connection as JSON; None for plain TCP.
#[pyfunction]
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
    let state = serde_json::json!({
        "token": connection.token, "unacknowledged": connection.unacknowledged, "subflows": subflows,
    });
    Ok(Some(state.to_string()))
}
