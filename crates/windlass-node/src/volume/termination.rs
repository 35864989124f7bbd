//! The termination message of a container.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The longest termination message, in bytes.
pub const TERMINATION_MESSAGE_BYTES: u64 = 4096;

/// Reads the termination message that a container has written to `path`, the source of the mount at `/dev/termination-log`. Returns at most
/// 4096 bytes. A missing file is an empty message. A container's link or pipe is not followed.
pub fn read_termination_message(path: &Path) -> io::Result<String> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        file => file?,
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} is no file", path.display())));
    }
    let mut text = Vec::new();
    file.take(TERMINATION_MESSAGE_BYTES).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_and_a_link_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("message");
        assert_eq!(read_termination_message(&path).unwrap(), "");
        std::fs::write(&path, "x".repeat(5000)).unwrap();
        assert_eq!(read_termination_message(&path).unwrap().len(), 4096);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
        assert!(read_termination_message(&link).is_err());
    }
}
