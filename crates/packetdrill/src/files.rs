//! Script files.

use std::path::{Path, PathBuf};

use crate::interpreter::Interpreter;
use crate::run::{Outcome, Report, run};

/// Returns the scripts in `paths`, sorted: files as given, and all `*.pkt` below directories. Links to directories
/// are not followed, since they can form circles.
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
        let entry = entry.map_err(failed)?;
        entries.push((entry.path(), entry.file_type().map_err(failed)?.is_dir()));
    }
    entries.sort();
    for (entry, is_directory) in entries {
        if is_directory {
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn links_to_directories_are_not_followed() {
        let folder = std::env::temp_dir().join(format!("longfat-scripts-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("one.pkt"), "").unwrap();
        std::os::unix::fs::symlink(&folder, folder.join("circle")).unwrap();
        let found = scripts(std::slice::from_ref(&folder)).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, [folder.join("one.pkt")]);
    }
}
