//! A compiled program with the files that the program needs to start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use windlass_image::Platform;
use windlass_image::build::Files;

use super::elf::{self, Needs};
use crate::error::{Advice, Result};

/// The most libraries of a program.
const MOST: usize = 200;

/// Libraries that glibc opens by name, to look up hosts. Since glibc 2.34, the C library contains these
/// libraries.
const HOST_LOOKUP: [&str; 2] = ["libnss_files.so.2", "libnss_dns.so.2"];

/// Adds a program at a path, and the loader and libraries of the program. Returns the number of libraries.
pub(super) fn add(files: &mut Files, path: &str, program: &Path, platform: &Platform) -> Result<usize> {
    files.copy(path, 0o755, program);
    let needs = read(program)?;
    let Some(loader) = &needs.loader else { return Ok(0) };
    let folders = folders(platform);
    files.copy(loader, 0o755, &found(loader, &folders).ok_or_else(|| missing(loader, program))?);
    let mut libraries: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut waiting = needs.libraries;
    while let Some(name) = waiting.pop() {
        if libraries.contains_key(&name) || loader.ends_with(&format!("/{name}")) {
            continue;
        }
        let file = found(&name, &folders).ok_or_else(|| missing(&name, program))?;
        waiting.extend(read(&file)?.libraries);
        libraries.insert(name, file);
        if libraries.len() > MOST {
            return Err(format!("{} needs more than {MOST} libraries", program.display()).into());
        }
    }
    for name in HOST_LOOKUP {
        libraries.extend(found(name, &folders).map(|file| (name.to_owned(), file)));
    }
    for (name, file) in &libraries {
        // The loader of the machine looks in the folders of the machine.
        let is_cross = !is_host(platform);
        let target = if is_cross { format!("lib/{name}") } else { file.to_string_lossy().into_owned() };
        files.copy(&target, 0o755, file);
    }
    Ok(libraries.len())
}

fn is_host(platform: &Platform) -> bool {
    platform.architecture == Platform::host().architecture
}

fn read(file: &Path) -> Result<Needs> {
    let bytes = std::fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    elf::needs(&bytes)
        .ok_or_else(|| format!("{} is no program for Linux with 64 bits", file.display()).into())
}

/// Returns the folders with the libraries of a platform.
fn folders(platform: &Platform) -> Vec<PathBuf> {
    let triple = format!("{}-linux-gnu", platform.rust_architecture().trim_end_matches("gc"));
    let folders = if is_host(platform) {
        vec![
            format!("/lib/{triple}"),
            format!("/usr/lib/{triple}"),
            "/lib64".into(),
            "/usr/lib64".into(),
            "/lib".into(),
            "/usr/lib".into(),
        ]
    } else {
        vec![format!("/usr/{triple}/lib"), format!("/usr/{triple}/lib64"), format!("/lib/{triple}")]
    };
    folders.into_iter().map(PathBuf::from).collect()
}

/// Returns the file of a library or of the loader. The name of the loader is a path.
fn found(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let file_name = Path::new(name).file_name()?;
    folders.iter().map(|folder| folder.join(file_name)).find(|file| file.is_file())
}

fn missing(name: &str, program: &Path) -> crate::error::Error {
    Advice::new(
        format!("the library {name} of {} is not on this machine", program.display()),
        "link statically: `rustup target add` the musl target of the platform and install a C compiler for musl",
    )
}
