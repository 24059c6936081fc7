//! Python bindings of longfat.
//!
//! Each function takes and returns JSON text, releases the interpreter while it works, and converts an error into an
//! exception with a one-line message. The crate may depend on all others and contains no logic of its own.

mod batch;
mod calls;
#[cfg(target_os = "linux")]
mod check;
mod classes;
mod combinations;
mod credentials;
mod environment;
mod explanation;
mod explorer;
#[cfg(target_os = "linux")]
mod hops;
#[cfg(target_os = "linux")]
mod kernels;
#[cfg(target_os = "linux")]
mod measuring;
#[cfg(target_os = "linux")]
mod multipath;
mod packetdrill;
#[cfg(unix)]
mod protection;
mod session;
#[cfg(target_os = "linux")]
mod tcp_relay;
#[cfg(target_os = "linux")]
mod testbed;
#[cfg(unix)]
mod transfer;
mod trials;
#[cfg(not(target_os = "linux"))]
mod unsupported;
mod wall;

use pyo3::prelude::*;

/// A trial allocates and frees its memory at once. The system's allocator returns that to the kernel after each trial, and
/// threads wait for each other in the kernel.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The compiled part of longfat, documented in the stub `_native.pyi`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::batch::simulate_trials;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::check::{capacity, check_path, checked_paths};
    #[pymodule_export]
    use super::classes::CallStopped;
    #[pymodule_export]
    use super::classes::controllers::{Acknowledgement, Loss};
    #[pymodule_export]
    use super::classes::policies::{Host, HostPath, Join, Progress};
    #[pymodule_export]
    use super::classes::queues::{Arrival, Packet};
    #[pymodule_export]
    use super::classes::schedulers::{DataView, Subflow};
    #[pymodule_export]
    use super::combinations::{first_refused, wrong_contents};
    #[pymodule_export]
    use super::credentials::{
        check_code, check_public_key, count_trusted, new_code, new_identity, public_key,
    };
    #[pymodule_export]
    use super::environment::Environments;
    #[pymodule_export]
    use super::explanation::{capture_sequence, explain_capture};
    #[pymodule_export]
    use super::explorer::{Explorer, call_confined};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::hops::HopProber;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::kernels::{
        check_emulated, clean, doctor, emulate, emulate_traced, enter_user_namespace, shell,
    };
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::measuring::{echo, ping, transact};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::multipath::{manage_paths, mptcp_subflows, mptcp_support};
    #[pymodule_export]
    use super::packetdrill::run_scripts;
    #[pymodule_export]
    use super::session::Session;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::tcp_relay::TcpRelay;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::testbed::Testbed;
    #[cfg(unix)]
    #[pymodule_export]
    use super::transfer::{Decisions, file_protocol, receive_files, send_files};
    #[pymodule_export]
    use super::trials::{
        Cancel, Cancelled, check, check_trial, host_metrics, layout, links, path_links, simulate, trace,
        unsupported, version, vocabulary,
    };
    #[cfg(not(unix))]
    #[pymodule_export]
    use super::unsupported::{Approvals, file_protocol, receive_files, send_files};
    #[cfg(not(target_os = "linux"))]
    #[pymodule_export]
    use super::unsupported::{
        HopProber, TcpRelay, Testbed, capacity, check_emulated, check_path, checked_paths, clean, doctor,
        echo, emulate, emulate_traced, enter_user_namespace, manage_paths, mptcp_subflows, mptcp_support,
        ping, shell, transact,
    };
    #[pymodule_export]
    use super::wall::{endpoint, relay};

    /// Importing the module lets studies name Python classes.
    #[pymodule_init]
    fn init(_module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        super::classes::install();
        Ok(())
    }
}
