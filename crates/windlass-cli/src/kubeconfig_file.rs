//! The kubeconfig on disk: for its owner's eyes only, and never half-written.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where it could not be written, and why.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the kubeconfig {}: {source}. Choose another place with --kubeconfig FILE", path.display())]
pub(crate) struct Unwritable {
    path: PathBuf,
    source: io::Error,
}

/// Writes `text` to `path` with mode 0600, making the directory if need be.
///
/// Whoever reads the file meanwhile sees the old one or the new one.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Unwritable> {
    replace(path, text).map_err(|source| Unwritable { path: path.to_owned(), source })
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let name =
        path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names no file"))?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    if path.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
    }
    let draft = directory.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn it_is_for_its_owner_only_even_where_another_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/er/kubeconfig");
        write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn an_error_says_where_why_and_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        for path in [file.join("kubeconfig"), directory.path().to_owned(), PathBuf::from("/")] {
            let said = write(&path, "text").unwrap_err().to_string();
            assert!(said.contains(&path.display().to_string()), "{said}");
            assert!(said.contains("--kubeconfig"), "{said}");
        }
    }
}
