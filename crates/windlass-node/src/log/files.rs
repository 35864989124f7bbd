//! The files of a log.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The most files of a log.
pub(super) const MOST_FILES: usize = 5;

/// Returns the path of a file of a log: 0 is the newest file.
pub(super) fn numbered(path: &Path, number: usize) -> PathBuf {
    if number == 0 {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// Renames each file to the next number and removes the oldest.
pub(crate) fn rotate(path: &Path) -> io::Result<()> {
    for number in (0..MOST_FILES - 1).rev() {
        match fs::rename(numbered(path, number), numbered(path, number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Removes all files of a log. A log without files is no error.
pub fn remove(path: &Path) -> io::Result<()> {
    for number in 0..MOST_FILES {
        match fs::remove_file(numbered(path, number)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
