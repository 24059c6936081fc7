//! The directory that files are received into. Nothing is opened, created or renamed outside of it, no link is
//! followed, and no file is replaced.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::name;

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

mod system {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use rustix::fs::{AtFlags, Mode, OFlags};
    use rustix::io::Errno;

    use rustix::fd::OwnedFd;

    use super::{Directory, File, Path, io, name};

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
            let (parent, name) = self.parent(name, false)?;
            Ok(rustix::fs::openat(&parent, name, flags, Mode::empty())?.into())
        }

        /// Opens the folder of a path, one component after another: no link leads outside. With `create`, missing
        /// folders are created.
        fn parent<'a>(&self, path: &'a str, create: bool) -> io::Result<(OwnedFd, &'a str)> {
            let (folders, name) = name::split(path);
            let mut handle = self.handle.try_clone()?;
            for folder in folders.split_terminator('/') {
                // Offers were checked already; this holds whoever calls.
                if matches!(folder, "" | "." | "..") {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
                let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                if create {
                    match rustix::fs::mkdirat(&handle, folder, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                handle = rustix::fs::openat(&handle, folder, flags, Mode::empty())?;
            }
            Ok((handle, name))
        }

        /// Returns the bytes that this user may still write to the disk of the directory.
        ///
        /// # Errors
        /// The system's.
        pub fn free(&self) -> io::Result<u64> {
            let disk = rustix::fs::fstatvfs(&self.handle)?;
            Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
        }

        pub(super) fn create(&self, name: &str) -> io::Result<File> {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
            let (parent, name) = self.parent(name, true)?;
            Ok(rustix::fs::openat(&parent, name, flags, mode)?.into())
        }

        pub(super) fn is_still(&self, name: &str, file: &File) -> io::Result<bool> {
            let open = file.metadata()?;
            let (parent, name) = self.parent(name, false)?;
            let named = match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
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

        /// Renames `partial` to `name` in the same folder; returns `false` if `name` exists.
        ///
        /// # Errors
        /// The system's.
        pub fn publish(&self, partial: &str, name: &str) -> io::Result<bool> {
            let (parent, new) = self.parent(name, false)?;
            let (_, old) = name::split(partial);
            #[cfg(target_os = "linux")]
            {
                use rustix::fs::RenameFlags;
                match rustix::fs::renameat_with(&parent, old, &parent, new, RenameFlags::NOREPLACE) {
                    Ok(()) => return Ok(true),
                    Err(Errno::EXIST) => return Ok(false),
                    // This file system does not support exclusive renames.
                    Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            match rustix::fs::linkat(&parent, old, &parent, new, AtFlags::empty()) {
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
            let (parent, name) = self.parent(name, false)?;
            Ok(rustix::fs::unlinkat(&parent, name, AtFlags::empty())?)
        }

        /// Flushes the entries of the folder of `name` to the disk.
        ///
        /// # Errors
        /// The system's.
        pub fn sync(&self, name: &str) -> io::Result<()> {
            let (parent, _) = self.parent(name, false)?;
            Ok(rustix::fs::fsync(&parent)?)
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
    fn folders_are_created_and_links_to_folders_are_not_followed() {
        let (place, directory) = directory();
        let outside = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), place.path().join("link")).unwrap();
        std::fs::write(place.path().join("file"), b"1").unwrap();
        for path in ["link/x", "a/../../x", "file/x"] {
            assert!(directory.open_partial(path).is_err(), "{path}");
            assert!(!matches!(directory.open_existing(path), Ok(Some(_))), "{path}");
        }
        let Partial::Mine(_file) = directory.open_partial("a/b/p").unwrap() else {
            panic!()
        };
        assert!(directory.publish("a/b/p", "a/b/whole").unwrap());
        directory.sync("a/b/whole").unwrap();
        assert!(place.path().join("a/b/whole").exists());
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
        assert!(directory.free().unwrap() > 0);
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
