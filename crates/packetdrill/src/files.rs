//! Script files.

use std::path::{Path, PathBuf};

use crate::interpreter::Interpreter;
use crate::run::{Outcome, Report, run};

/// Returns the scripts in `paths`, sorted: files as given, and all `*.pkt` below directories.
///
/// # Errors
/// The first path that cannot be read, with the reason.
pub fn scripts(paths: &[PathBuf]) -> Result<Vec<PathBuf>, (PathBuf, std::io::Error)> {
    let mut found = Vec::new();
    for path in paths {
        let metadata = std::fs::metadata(path).map_err(|error| (path.clone(), error))?;
        if metadata.is_dir() {
            below(path, &mut found)?;
        } else {
            found.push(path.clone());
        }
    }
    Ok(found)
}

fn below(directory: &Path, found: &mut Vec<PathBuf>) -> Result<(), (PathBuf, std::io::Error)> {
    let failed = |error| (directory.to_owned(), error);
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        entries.push(entry.map_err(failed)?.path());
    }
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            below(&entry, found)?;
        } else if entry.extension().is_some_and(|extension| extension == "pkt") {
            found.push(entry);
        }
    }
    Ok(())
}

/// Runs a script file.
///
/// # Errors
/// If the file cannot be read.
pub fn run_file(path: &Path, interpreter: &mut dyn Interpreter) -> std::io::Result<Report> {
    let bytes = std::fs::read(path)?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => run(&text, interpreter),
        Err(_) => Report {
            outcome: Outcome::Invalid {
                line: 1,
                message: "the file is not UTF-8 text".to_owned(),
            },
            printed: Vec::new(),
        },
    })
}
