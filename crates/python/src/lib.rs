//! Python bindings of longfat, and nothing else: each function takes and gives JSON text, frees the
//! interpreter while it works, and turns an error into an exception with one clear line.

mod trials;
mod wall;

use pyo3::prelude::*;

/// The compiled part of longfat. Its documentation is the stub `_native.pyi`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::trials::{Cancel, Cancelled, check, simulate, trace, version, vocabulary};
    #[pymodule_export]
    use super::wall::{endpoint, file_protocol, receive_files, relay, send_files};
}
