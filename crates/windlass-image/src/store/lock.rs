//! Locks between processes.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use crate::{Error, Result};

/// A lock on a file, released on drop. On a file system without locks, the lock excludes no process.
#[derive(Debug)]
pub(crate) struct FileLock {
    _file: File,
}

impl FileLock {
    /// Waits for the exclusive lock.
    pub(crate) fn exclusive(path: &Path) -> Result<Self> {
        let file = open(path)?;
        match file.lock() {
            Err(error) if is_failure(&error) => Err(Error::storage("lock", path, error)),
            _ => Ok(Self { _file: file }),
        }
    }

    /// Waits for a shared lock.
    pub(crate) fn shared(path: &Path) -> Result<Self> {
        let file = open(path)?;
        match file.lock_shared() {
            Err(error) if is_failure(&error) => Err(Error::storage("lock", path, error)),
            _ => Ok(Self { _file: file }),
        }
    }

    /// Returns the exclusive lock, or `None` if another process has the lock or the file system has no locks.
    pub(crate) fn try_exclusive(path: &Path) -> Result<Option<Self>> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::Error(error)) if is_failure(&error) => Err(Error::storage("lock", path, error)),
            Err(_) => Ok(None),
        }
    }
}

fn open(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    options.open(path).map_err(|error| Error::storage("open", path, error))
}

/// Returns whether an error says more than that the file system has no locks.
fn is_failure(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let without = [Errno::NOSYS, Errno::NOLCK, Errno::OPNOTSUPP, Errno::NOTSUP, Errno::INVAL];
    let is_unsupported = error.kind() == std::io::ErrorKind::Unsupported;
    !is_unsupported && !without.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
