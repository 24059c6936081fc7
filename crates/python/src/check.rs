//! Whether this machine holds the paths of a trial.

#[cfg(target_os = "linux")]
mod here {
    use emulation::check::{self, PathReport};
    use emulation::user_namespace;
    use pyo3::exceptions::{PyIndexError, PyValueError};
    use pyo3::prelude::*;

    use crate::testbed::{interruptible, raised};
    use crate::trials::{json, spec};

    pub fn checked_paths(spec_json: &str) -> PyResult<String> {
        let paths = check::paths(&spec(spec_json)?);
        json(&paths.map_err(|error| PyValueError::new_err(error.to_string()))?)
    }

    pub fn check_path(py: Python<'_>, spec_json: &str, number: usize) -> PyResult<String> {
        let spec = spec(spec_json)?;
        let paths = check::paths(&spec).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let path = paths
            .get(number)
            .ok_or_else(|| PyIndexError::new_err(number.to_string()))?;
        user_namespace::enter().map_err(raised)?;
        let streams = spec.streams().component("check");
        let report: PyResult<PathReport> =
            py.detach(|| interruptible(|stopped| check::check(path, streams, stopped))?.map_err(raised));
        json(&report?)
    }

    pub fn capacity(py: Python<'_>, enough: f64) -> PyResult<String> {
        user_namespace::enter().map_err(raised)?;
        let found: PyResult<check::Capacity> =
            py.detach(|| interruptible(|stopped| check::capacity(enough, stopped))?.map_err(raised));
        json(&found?)
    }
}

#[cfg(not(target_os = "linux"))]
mod here {
    use pyo3::exceptions::PyOSError;
    use pyo3::prelude::*;

    fn unsupported() -> PyResult<String> {
        Err(PyOSError::new_err(emulation::UNSUPPORTED.to_string()))
    }

    pub fn checked_paths(_: &str) -> PyResult<String> {
        unsupported()
    }

    pub fn check_path(_: Python<'_>, _: &str, _: usize) -> PyResult<String> {
        unsupported()
    }

    pub fn capacity(_: Python<'_>, _: f64) -> PyResult<String> {
        unsupported()
    }
}

use pyo3::prelude::*;

/// The kinds of paths that packets of a trial take, as JSON.
#[pyfunction]
pub fn checked_paths(spec_json: &str) -> PyResult<String> {
    here::checked_paths(spec_json)
}

/// Builds one of them by itself and measures it, as JSON.
#[pyfunction]
pub fn check_path(py: Python<'_>, spec_json: &str, number: usize) -> PyResult<String> {
    here::check_path(py, spec_json, number)
}

/// How many packets a second this machine emulates, as JSON.
#[pyfunction]
#[pyo3(signature = (enough=f64::INFINITY))]
pub fn capacity(py: Python<'_>, enough: f64) -> PyResult<String> {
    here::capacity(py, enough)
}
