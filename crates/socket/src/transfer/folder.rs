//! The files of a folder to send.

use std::path::{Path, PathBuf};

use crate::system_error::plain;

/// Files of a folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Paths, with the names that start with the folder's own, in the order of their names.
    pub files: Vec<(PathBuf, String)>,
    /// Links, pipes and other entries that are neither files nor folders.
    pub skipped: u64,
}

/// Lists the files of `folder` and of the folders in it. Links are not followed.
///
/// # Errors
/// The path that cannot be read, and why.
pub fn list(folder: &Path) -> Result<Listing, (PathBuf, String)> {
    let failed = |path: &Path, error: &std::io::Error| (path.to_owned(), plain(error));
    // "." and "photos/.." have names, too.
    let whole = folder.canonicalize().map_err(|error| failed(folder, &error))?;
    let name = whole
        .file_name()
        .ok_or_else(|| (folder.to_owned(), "has no name".to_owned()))?;
    let mut listing = Listing::default();
    let mut open = vec![(folder.to_owned(), name.to_string_lossy().into_owned())];
    while let Some((path, name)) = open.pop() {
        let entries = std::fs::read_dir(&path).map_err(|error| failed(&path, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| failed(&path, &error))?;
            let kind = entry.file_type().map_err(|error| failed(&entry.path(), &error))?;
            let name = format!("{name}/{}", entry.file_name().to_string_lossy());
            if kind.is_dir() {
                open.push((entry.path(), name));
            } else if kind.is_file() {
                listing.files.push((entry.path(), name));
            } else {
                listing.skipped += 1;
            }
        }
    }
    listing.files.sort_by(|(_, a), (_, b)| a.cmp(b));
    Ok(listing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_files_without_following_links() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("photos");
        std::fs::create_dir_all(folder.join("2024/empty")).unwrap();
        for name in ["b.jpg", "2024/a.jpg", ".hidden"] {
            std::fs::write(folder.join(name), name).unwrap();
        }
        std::os::unix::fs::symlink("/etc", folder.join("link")).unwrap();
        let listing = list(&folder.join("../photos")).unwrap();
        let names: Vec<&str> = listing.files.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["photos/.hidden", "photos/2024/a.jpg", "photos/b.jpg"]);
        assert_eq!(listing.skipped, 1);
        assert!(list(&place.path().join("missing")).is_err());
    }
}
