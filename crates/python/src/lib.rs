//! Python bindings of longfat, and nothing else: each function takes and gives JSON text, frees the
//! interpreter while it works, and turns an error into an exception with one clear line.

mod check;
mod controllers;
mod hops;
mod kernels;
mod measuring;
mod multipath;
mod packetdrill;
mod testbed;
mod trials;
mod wall;

use pyo3::prelude::*;

/// The compiled part of longfat. Its documentation is the stub `_native.pyi`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::check::{capacity, check_path, checked_paths};
    #[pymodule_export]
    use super::controllers::{Acknowledgement, Loss};
    #[pymodule_export]
    use super::hops::HopProber;
    #[pymodule_export]
    use super::kernels::{
        check_emulated, clean, doctor, emulate, emulate_traced, enter_user_namespace, shell,
    };
    #[pymodule_export]
    use super::measuring::{echo, ping, transact};
    #[pymodule_export]
    use super::multipath::{manage_paths, mptcp_subflows, mptcp_support};
    #[pymodule_export]
    use super::packetdrill::run_scripts;
    #[pymodule_export]
    use super::testbed::Testbed;
    #[pymodule_export]
    use super::trials::{
        Cancel, Cancelled, check, check_trial, layout, path_links, simulate, trace, version, vocabulary,
    };
    #[pymodule_export]
    use super::wall::{endpoint, file_protocol, receive_files, relay, send_files};

    /// A study may name classes of Python from the moment on at which the module is imported.
    #[pymodule_init]
    #[allow(clippy::unnecessary_wraps, reason = "the shape of an initialiser")]
    fn init(_module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        super::controllers::install();
        Ok(())
    }
}
