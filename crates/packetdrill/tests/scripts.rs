//! The project's own conformance scripts, in `tests/packetdrill`.

use std::path::PathBuf;

use packetdrill::files::{run_file, scripts};
use packetdrill::run::Outcome;

#[test]
fn every_script_passes() {
    let directory = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/packetdrill"));
    let found = scripts(&[directory]).unwrap();
    assert!(found.len() >= 50, "only {} scripts", found.len());
    let mut departures = Vec::new();
    for path in found {
        let report = run_file(&path).unwrap();
        if report.outcome != Outcome::Pass {
            departures.push(format!("{}: {}", path.display(), report.outcome));
        }
    }
    assert!(departures.is_empty(), "{}", departures.join("\n"));
}
