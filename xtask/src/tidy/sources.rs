//! Checks source files: their length, their first line, and the use of `unsafe`.

use std::path::Path;

use super::Report;
use super::files::{read, rust_files, shown};
use crate::Result;
use crate::project::Package;

/// The number of lines above which a file is reported as a remark.
const LONG: usize = 600;

/// The crate and folder in which `unsafe` is allowed. The workspace's lint table denies it in the rest of the crate.
const MAY_USE_UNSAFE: (&str, &str) = ("windlass-cache", "src/scan");

pub(super) fn check(package: &Package, report: &mut Report) -> Result {
    let scanner = (package.name == MAY_USE_UNSAFE.0).then(|| package.folder().join(MAY_USE_UNSAFE.1));
    if scanner.is_none() {
        for target in package.targets.iter().filter(|target| target.ships()) {
            check_root(&target.src_path, report)?;
        }
    }
    for path in rust_files(&package.folder().join("src"))? {
        check_file(&path, report)?;
        let excused = scanner.as_ref().is_some_and(|scanner| path.starts_with(scanner));
        if !excused && lifts_the_lint(&read(&path)?) {
            report.errors.push(format!("{}: `unsafe` is allowed in {} only", shown(&path), MAY_USE_UNSAFE.1));
        }
    }
    Ok(())
}

/// Whether a file allows `unsafe` with an attribute.
fn lifts_the_lint(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start();
        line.starts_with('#')
            && line.contains("unsafe_code")
            && !line.contains("forbid(")
            && !line.contains("deny(")
    })
}

/// Checks that the root of a crate forbids `unsafe`.
fn check_root(path: &Path, report: &mut Report) -> Result {
    const WANTED: &str = "#![forbid(unsafe_code)]";
    if !read(path)?.lines().any(|line| line.trim() == WANTED) {
        report.errors.push(format!("{}: add {WANTED}", shown(path)));
    }
    Ok(())
}

fn check_file(path: &Path, report: &mut Report) -> Result {
    let text = read(path)?;
    if is_generated(&text) || is_test(path) {
        return Ok(());
    }
    if !text.starts_with("//!") {
        report
            .errors
            .push(format!("{}: start the file with a line `//! …` that describes the module", shown(path)));
    }
    let lines = text.lines().count();
    if lines > LONG {
        report.remarks.push(format!("{}: {lines} lines", shown(path)));
    }
    Ok(())
}

fn is_generated(text: &str) -> bool {
    text.lines().take(3).any(|line| line.contains("@generated"))
}

/// Whether a file is `tests.rs` or in a folder `tests`.
pub(super) fn is_test(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "tests.rs")
        || path.components().any(|component| component.as_os_str() == "tests")
}
