//! Runs scripts, and all that lie below directories: a line each, and a total for each directory.

use std::collections::BTreeMap;
use std::path::PathBuf;

use packetdrill::files::{run_file, scripts};
use packetdrill::run::Outcome;

fn main() {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let mut totals: BTreeMap<String, [u32; 3]> = BTreeMap::new();
    for path in scripts(&paths).expect("readable paths") {
        let outcome = run_file(&path).expect("a readable script").outcome;
        println!("{}: {outcome}", path.display());
        let directory = path
            .parent()
            .map(|parent| parent.display().to_string())
            .unwrap_or_default();
        let column = match outcome {
            Outcome::Pass => 0,
            Outcome::Fail(_) | Outcome::Invalid { .. } => 1,
            Outcome::Unsupported { .. } => 2,
        };
        totals.entry(directory).or_default()[column] += 1;
    }
    for (directory, [passed, failed, unsupported]) in totals {
        println!("{directory}: {passed} passed, {failed} failed, {unsupported} unsupported");
    }
}
