//! The workspace in the description of `cargo metadata`: folder, packages and dependencies.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::Result;

/// Returns the root folder of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// A member of the workspace.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
    /// The registries for the package; an empty list for a package that is never published.
    pub(crate) publish: Option<Vec<String>>,
}

/// An entry of a `[dependencies]` table.
#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Option<String>,
    pub(crate) optional: bool,
    /// The allowed versions; `*` for a dependency with only a path.
    pub(crate) req: String,
}

/// A target of a package: a library, binary, test, …
#[derive(Deserialize)]
pub(crate) struct Target {
    pub(crate) kind: Vec<String>,
    pub(crate) src_path: PathBuf,
}

impl Package {
    /// Returns whether releases have the package.
    pub(crate) fn is_published(&self) -> bool {
        self.publish.as_ref().is_none_or(|registries| !registries.is_empty())
    }

    pub(crate) fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new("."))
    }
}

impl Target {
    /// Returns whether the target is a library, proc macro or binary, not a test or an example.
    pub(crate) fn ships(&self) -> bool {
        self.kind.iter().any(|kind| matches!(kind.as_str(), "lib" | "proc-macro" | "bin"))
    }
}

/// Returns the members of the workspace, sorted by name.
pub(crate) fn packages() -> Result<Vec<Package>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version=1", "--offline"])
        .current_dir(root())
        .output()
        .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let mut packages = serde_json::from_slice::<Metadata>(&output.stdout)?.packages;
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(packages)
}
