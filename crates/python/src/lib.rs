//! Python bindings of longfat.
use pyo3::prelude::*;

#[pymodule]
mod _native {}
