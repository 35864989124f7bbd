//! Go modules: downloads, and copies to run their tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;

/// Downloads a module, such as `sigs.k8s.io/controller-runtime@v0.25.2`, and copies the module to `target`.
pub(crate) fn copy(module: &str, target: &Path) -> Result {
    let source = download(module)?;
    if target.exists() {
        fs::remove_dir_all(target)?;
    }
    copy_folder(&source, target)
}

/// Downloads a module, and returns the folder of the module in the cache of the Go tools.
pub(crate) fn download(module: &str) -> Result<PathBuf> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", module])
        .output()
        .map_err(|error| format!("cannot run go: {error}"))?;
    let downloaded: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let folder = downloaded["Dir"].as_str().ok_or_else(|| format!("{module}: {downloaded}"))?;
    Ok(PathBuf::from(folder))
}

/// Copies the content of files, and not their permissions: the cache of the Go tools is read-only.
pub(crate) fn copy_folder(source: &Path, target: &Path) -> Result {
    fs::create_dir_all(target)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let target = target.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::write(&target, fs::read(entry.path())?)?;
            make_scripts_executable(&target)?;
        }
    }
    Ok(())
}

/// Modules are packed without permissions; some tests start scripts.
#[cfg(unix)]
fn make_scripts_executable(path: &Path) -> Result {
    use std::os::unix::fs::PermissionsExt;
    if path.extension().is_some_and(|extension| extension == "sh") {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn make_scripts_executable(_path: &Path) -> Result {
    Ok(())
}
