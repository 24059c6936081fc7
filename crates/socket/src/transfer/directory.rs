//! The directory that files are received into: nothing is ever opened, made or renamed outside of it,
//! no link is followed, and no file is replaced.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A directory. On Unix it is held open, so that it stays the same one whatever is renamed above it.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    #[cfg(unix)]
    handle: rustix::fd::OwnedFd,
}

/// What became of an attempt to open a file that is kept until it is whole.
#[derive(Debug)]
pub enum Partial {
    /// It is open for reading and writing, and locked: nobody else of this program writes to it.
    Mine(File),
    /// Another transfer has it, or it is no plain file.
    Taken,
}

impl Directory {
    /// The path that it was opened by, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens `name` for reading if it is a plain file; `None` if there is none.
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

    /// Opens or makes the file that is kept as `name` until it is whole.
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
        // Between opening and locking, another transfer may have completed it and given it its name.
        if self.is_still(name, &file)? {
            Ok(Partial::Mine(file))
        } else {
            Ok(Partial::Taken)
        }
    }
}

fn is_link_error(error: &io::Error) -> bool {
    #[cfg(unix)]
    if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        return true;
    }
    matches!(error.kind(), ErrorKind::IsADirectory)
}

/// The system's error without its number.
#[must_use]
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(unix)]
mod system {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use rustix::fs::{AtFlags, Mode, OFlags};
    use rustix::io::Errno;

    use super::{Directory, File, Path, io};

    impl Directory {
        /// Opens the directory at `path`.
        ///
        /// # Errors
        /// The system's: it is missing, or no directory.
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
            // A second name for the file would be changed with it.
            Ok(open.is_file()
                && open.nlink() == 1
                && open.ino() == named.st_ino as u64
                && open.dev() == named.st_dev as u64)
        }

        /// Gives `partial` its `name`; `false` if something has that name already.
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
                    // A file system that cannot.
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

        /// Brings new names to the disk.
        ///
        /// # Errors
        /// The system's.
        pub fn sync(&self) -> io::Result<()> {
            Ok(rustix::fs::fsync(&self.handle)?)
        }
    }

    /// Lets those run a file who may read it.
    ///
    /// # Errors
    /// The system's.
    pub fn make_executable(file: &File) -> io::Result<()> {
        let mut permissions = file.metadata()?.permissions();
        let mode = permissions.mode();
        permissions.set_mode(mode | (mode & 0o444) >> 2);
        file.set_permissions(permissions)
    }

    /// Whether anybody may run a file.
    #[must_use]
    pub fn is_executable(metadata: &std::fs::Metadata) -> bool {
        metadata.permissions().mode() & 0o111 != 0
    }
}

#[cfg(not(unix))]
mod system {
    use std::fs::OpenOptions;

    use super::{Directory, ErrorKind, File, Path, io};

    impl Directory {
        /// Opens the directory at `path`.
        ///
        /// # Errors
        /// The system's: it is missing, or no directory.
        pub fn new(path: &Path) -> io::Result<Self> {
            if !std::fs::metadata(path)?.is_dir() {
                return Err(ErrorKind::NotADirectory.into());
            }
            Ok(Self {
                path: path.to_owned(),
            })
        }

        pub(super) fn open(&self, name: &str, write: bool) -> io::Result<File> {
            let path = self.path.join(name);
            if !path.symlink_metadata()?.is_file() {
                return Err(ErrorKind::IsADirectory.into());
            }
            OpenOptions::new().read(true).write(write).open(path)
        }

        pub(super) fn create(&self, name: &str) -> io::Result<File> {
            let path = self.path.join(name);
            OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .open(path)
        }

        pub(super) fn is_still(&self, _: &str, file: &File) -> io::Result<bool> {
            Ok(file.metadata()?.is_file())
        }

        /// Gives `partial` its `name`; `false` if something has that name already.
        ///
        /// # Errors
        /// The system's.
        pub fn publish(&self, partial: &str, name: &str) -> io::Result<bool> {
            let (from, to) = (self.path.join(partial), self.path.join(name));
            match std::fs::hard_link(&from, to) {
                Ok(()) => std::fs::remove_file(from).map(|()| true),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(error),
            }
        }

        /// Removes a file.
        ///
        /// # Errors
        /// The system's.
        pub fn remove(&self, name: &str) -> io::Result<()> {
            std::fs::remove_file(self.path.join(name))
        }

        /// Brings new names to the disk; here the system does so by itself.
        ///
        /// # Errors
        /// None.
        pub fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Files are not marked as programs on this system.
    ///
    /// # Errors
    /// None.
    pub fn make_executable(_: &File) -> io::Result<()> {
        Ok(())
    }

    /// Files are not marked as programs on this system.
    #[must_use]
    pub fn is_executable(_: &std::fs::Metadata) -> bool {
        false
    }
}

pub use system::{is_executable, make_executable};

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn directory() -> (tempfile::TempDir, Directory) {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::new(place.path()).unwrap();
        (place, directory)
    }

    #[test]
    fn links_pipes_and_second_names_are_not_written_to() {
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
    fn a_partial_file_has_one_owner_and_a_name_is_given_once() {
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
