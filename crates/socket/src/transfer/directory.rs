//! The directory that files are received into. Nothing is opened, created or renamed outside of it, no link is
//! followed, and no file is replaced.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// An open directory. The handle follows the directory when it or its parents are renamed.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    handle: rustix::fd::OwnedFd,
}

/// Result of opening a file that is not complete yet.
#[derive(Debug)]
pub enum Partial {
    /// Open for reading and writing, and locked against other transfers.
    Mine(File),
    /// In use by another transfer, or not a regular file.
    Taken,
}

impl Directory {
    /// Returns the path that it was opened by, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens `name` for reading if it is a regular file; `None` if it does not exist.
    ///
    /// # Errors
    /// The system's.
    pub fn open_existing(&self, name: &str) -> io::Result<Option<File>> {
        match self.open(name, false) {
            Ok(file) => Ok(file.metadata()?.is_file().then_some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) if is_link_error(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens or creates the partial file `name`.
    ///
    /// # Errors
    /// The system's.
    pub fn open_partial(&self, name: &str) -> io::Result<Partial> {
        let file = match self.open(name, true) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => match self.create(name) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(Partial::Taken),
                Err(error) => return Err(error),
            },
            Err(error) if is_link_error(&error) => return Ok(Partial::Taken),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(Partial::Taken),
            Err(error) => return Err(error),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Partial::Taken),
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Between opening and locking, another transfer may have completed and renamed it.
        if self.is_still(name, &file)? {
            Ok(Partial::Mine(file))
        } else {
            Ok(Partial::Taken)
        }
    }
}

fn is_link_error(error: &io::Error) -> bool {
    if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        return true;
    }
    matches!(error.kind(), ErrorKind::IsADirectory)
}

/// Returns the system's message without the error number.
#[must_use]
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

mod system {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use rustix::fs::{AtFlags, Mode, OFlags};
    use rustix::io::Errno;

    use super::{Directory, File, Path, io};

    impl Directory {
        /// Opens the directory at `path`.
        ///
        /// # Errors
        /// The system's: it is missing, or not a directory.
        pub fn new(path: &Path) -> io::Result<Self> {
            let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
            Ok(Self {
                path: path.to_owned(),
                handle: rustix::fs::open(path, flags, Mode::empty())?,
            })
        }

        pub(super) fn open(&self, name: &str, write: bool) -> io::Result<File> {
            let access = if write { OFlags::RDWR } else { OFlags::RDONLY };
            // Nonblocking, because opening a pipe would wait for its other end.
            let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            Ok(rustix::fs::openat(&self.handle, name, flags, Mode::empty())?.into())
        }

        pub(super) fn create(&self, name: &str) -> io::Result<File> {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
            Ok(rustix::fs::openat(&self.handle, name, flags, mode)?.into())
        }

        pub(super) fn is_still(&self, name: &str, file: &File) -> io::Result<bool> {
            let open = file.metadata()?;
            let named = match rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(named) => named,
                Err(Errno::NOENT) => return Ok(false),
                Err(error) => return Err(error.into()),
            };
            // Writing would change the file's other hard links, too.
            Ok(open.is_file()
                && open.nlink() == 1
                && open.ino() == named.st_ino as u64
                && open.dev() == named.st_dev as u64)
        }

        /// Renames `partial` to `name`; returns `false` if `name` exists.
        ///
        /// # Errors
        /// The system's.
        pub fn publish(&self, partial: &str, name: &str) -> io::Result<bool> {
            #[cfg(target_os = "linux")]
            {
                use rustix::fs::RenameFlags;
                match rustix::fs::renameat_with(
                    &self.handle,
                    partial,
                    &self.handle,
                    name,
                    RenameFlags::NOREPLACE,
                ) {
                    Ok(()) => return Ok(true),
                    Err(Errno::EXIST) => return Ok(false),
                    // This file system does not support exclusive renames.
                    Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            match rustix::fs::linkat(&self.handle, partial, &self.handle, name, AtFlags::empty()) {
                Ok(()) => self.remove(partial).map(|()| true),
                Err(Errno::EXIST) => Ok(false),
                Err(error) => Err(error.into()),
            }
        }

        /// Removes a file.
        ///
        /// # Errors
        /// The system's.
        pub fn remove(&self, name: &str) -> io::Result<()> {
            Ok(rustix::fs::unlinkat(&self.handle, name, AtFlags::empty())?)
        }

        /// Flushes directory entries to the disk.
        ///
        /// # Errors
        /// The system's.
        pub fn sync(&self) -> io::Result<()> {
            Ok(rustix::fs::fsync(&self.handle)?)
        }
    }

    /// Makes a file executable for everybody who may read it.
    ///
    /// # Errors
    /// The system's.
    pub fn make_executable(file: &File) -> io::Result<()> {
        let mut permissions = file.metadata()?.permissions();
        let mode = permissions.mode();
        permissions.set_mode(mode | (mode & 0o444) >> 2);
        file.set_permissions(permissions)
    }

    /// Whether anybody may execute a file.
    #[must_use]
    pub fn is_executable(metadata: &std::fs::Metadata) -> bool {
        metadata.permissions().mode() & 0o111 != 0
    }
}

pub use system::{is_executable, make_executable};

#[cfg(test)]
mod tests {
    use super::*;

    fn directory() -> (tempfile::TempDir, Directory) {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::new(place.path()).unwrap();
        (place, directory)
    }

    #[test]
    fn refuses_links_pipes_and_hard_links() {
        let (place, directory) = directory();
        let (_other, victim) = (
            tempfile::tempdir().unwrap(),
            tempfile::NamedTempFile::new().unwrap(),
        );
        std::os::unix::fs::symlink(victim.path(), place.path().join("link")).unwrap();
        std::os::unix::fs::symlink("/nonexistent/x", place.path().join("dangling")).unwrap();
        std::fs::create_dir(place.path().join("dir")).unwrap();
        std::fs::write(place.path().join("one"), b"1").unwrap();
        std::fs::hard_link(place.path().join("one"), place.path().join("two")).unwrap();
        for name in ["link", "dangling", "dir", "two"] {
            assert!(
                matches!(directory.open_partial(name), Ok(Partial::Taken)),
                "{name}"
            );
        }
        for name in ["link", "dangling", "dir", "missing"] {
            assert!(matches!(directory.open_existing(name), Ok(None)), "{name}");
        }
    }

    #[test]
    fn locks_a_partial_file_and_publishes_it_once() {
        let (place, directory) = directory();
        let Partial::Mine(mine) = directory.open_partial("p").unwrap() else {
            panic!()
        };
        assert!(matches!(directory.open_partial("p"), Ok(Partial::Taken)));
        assert!(directory.publish("p", "whole").unwrap());
        drop(mine);
        assert!(matches!(directory.open_partial("p"), Ok(Partial::Mine(_))));
        assert!(!directory.publish("p", "whole").unwrap());
        assert!(place.path().join("p").exists());
    }
}
