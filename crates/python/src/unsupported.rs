//! The functions that need Linux, or another Unix, on other systems: each raises an `OSError`.

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

macro_rules! unsupported {
    ($system:literal: $($name:ident)*) => {$(
        #[pyfunction]
        #[pyo3(signature = (*_args, **_keywords))]
        pub fn $name(_args: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
            Err(PyOSError::new_err(concat!(stringify!($name), " needs ", $system, ": it is not supported here")))
        }
    )*};
}

macro_rules! unsupported_class {
    ($system:literal: $($name:ident)*) => {$(
        #[pyclass(frozen, module = "longfat._native")]
        pub struct $name;

        #[pymethods]
        impl $name {
            #[new]
            #[pyo3(signature = (*_args, **_keywords))]
            fn new(_args: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
                Err(PyOSError::new_err(concat!(stringify!($name), " needs ", $system, ": it is not supported here")))
            }
        }
    )*};
}

unsupported! {
    "Linux":
    capacity check_path checked_paths check_emulated clean doctor emulate emulate_traced enter_user_namespace shell
    echo ping transact manage_paths mptcp_subflows
}
unsupported_class! { "Linux": HopProber TcpRelay Testbed }
#[cfg(not(unix))]
unsupported! { "Unix": file_protocol receive_files send_files }
#[cfg(not(unix))]
unsupported_class! { "Unix": Approvals }

/// Returns "missing": there is no MPTCP here.
#[pyfunction]
pub const fn mptcp_support() -> &'static str {
    "missing"
}
