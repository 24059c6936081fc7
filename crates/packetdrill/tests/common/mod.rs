//! An interpreter that skips code snippets, which the Python tests cover.

use std::collections::BTreeMap;

use packetdrill::interpreter::{Evaluation, Interpreter};

/// Skips all code.
pub struct NoCode;

impl Interpreter for NoCode {
    fn run(&mut self, _: &str, _: &BTreeMap<&'static str, u64>) -> Evaluation {
        Evaluation::default()
    }
}
