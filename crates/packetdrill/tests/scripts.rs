//! The project's conformance scripts in `tests/packetdrill`, without their snippets.

use std::path::PathBuf;

use packetdrill::files::{run_file, scripts};
use packetdrill::run::Outcome;

use crate::common::NoCode;

#[test]
fn every_script_passes() {
    let directory = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/packetdrill"));
    let found = scripts(&[directory]).unwrap();
    assert!(found.len() >= 50, "only {} scripts", found.len());
    let mut mismatches = Vec::new();
    for path in found {
        let report = run_file(&path, &mut NoCode).unwrap();
        if report.outcome != Outcome::Pass {
            mismatches.push(format!("{}: {}", path.display(), report.outcome));
        }
    }
    assert!(mismatches.is_empty(), "{}", mismatches.join("\n"));
}
