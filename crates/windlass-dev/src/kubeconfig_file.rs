//! Writes the kubeconfig atomically, readable only by the user.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// The kubeconfig could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the kubeconfig {}: {source}. Choose another path with --kubeconfig FILE; the command dev of an operator has --write-kubeconfig FILE", path.display())]
pub struct KubeconfigWriteError {
    path: PathBuf,
    source: io::Error,
}

/// Writes `text` to `path` with mode 0600, and creates missing directories.
///
/// A concurrent reader sees either the old or the new content.
///
/// # Errors
/// The file or its directory cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), KubeconfigWriteError> {
    replace(path, text).map_err(|source| KubeconfigWriteError { path: path.to_owned(), source })
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it is not the path of a file"))?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    if path.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
    }
    // Other users may have the right to write to the directory: the draft is a new file with an unpredictable
    // name.
    let mut draft = tempfile::Builder::new()
        .prefix(&format!(".{}.", name.to_string_lossy()))
        .permissions(fs::Permissions::from_mode(0o600))
        .tempfile_in(directory)?;
    draft.write_all(text.as_bytes())?;
    draft.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn an_existing_file_is_replaced_and_only_its_owner_may_read_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/er/kubeconfig");
        write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn nothing_is_written_through_a_link_that_somebody_left() {
        let directory = tempfile::tempdir().unwrap();
        let (path, theirs) = (directory.path().join("kubeconfig"), directory.path().join("theirs"));
        fs::write(&theirs, "theirs").unwrap();
        symlink(&theirs, directory.path().join(format!(".kubeconfig.{}", std::process::id()))).unwrap();
        symlink(&theirs, &path).unwrap();
        write(&path, "secret").unwrap();
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(&path).unwrap(), "secret");
    }

    #[test]
    fn an_error_has_the_path_and_the_option() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        for path in [file.join("kubeconfig"), directory.path().to_owned(), PathBuf::from("/")] {
            let said = write(&path, "text").unwrap_err().to_string();
            assert!(said.contains(&path.display().to_string()), "{said}");
            assert!(said.contains("--kubeconfig FILE") && said.contains("--write-kubeconfig FILE"), "{said}");
        }
    }
}
