//! Scripts on disk.

use std::path::{Path, PathBuf};

use crate::run::{Outcome, Report, run};

/// The scripts that `paths` name, sorted: files as they are, directories with all `*.pkt` below them.
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
    let told = |error| (directory.to_owned(), error);
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(told)? {
        entries.push(entry.map_err(told)?.path());
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

/// Runs the script in a file.
///
/// # Errors
/// Where the file cannot be read.
pub fn run_file(path: &Path) -> std::io::Result<Report> {
    let bytes = std::fs::read(path)?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => run(&text),
        Err(_) => Report {
            outcome: Outcome::Invalid {
                line: 1,
                message: "the file is no text".to_owned(),
            },
            printed: Vec::new(),
        },
    })
}
