//! The folders of the control plane: in a cache outside of the source tree, by version.

use std::env;
use std::path::{Path, PathBuf};

use super::release::Release;
use crate::Result;

/// The environment variable that overrides the cache folder.
const CACHE: &str = "WINDLASS_CACHE_DIR";

/// The programs of a build.
pub(super) const PROGRAMS: [&str; 5] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"];

pub(super) struct Layout {
    pub(super) release: Release,
    folder: PathBuf,
    /// The name of the folder of the running instance.
    run: String,
}

/// Returns the folder for outputs that tasks can build again.
pub(crate) fn cache_folder() -> Result<PathBuf> {
    let under_home = || env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = env::var_os(CACHE).map(PathBuf::from).or_else(|| {
        let shared = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        Some(shared.or_else(under_home)?.join("windlass"))
    });
    let cache = cache.ok_or_else(|| format!("no cache folder: set HOME or {CACHE}"))?;
    Ok(std::path::absolute(cache)?)
}

impl Layout {
    pub(super) fn find(release: Release) -> Result<Self> {
        let folder = cache_folder()?.join("control-plane").join(release.kubernetes);
        Ok(Layout { release, folder, run: "run".to_owned() })
    }

    /// Returns the same programs with another folder for the running instance.
    pub(super) fn with_run(self, name: &str) -> Self {
        Layout { run: name.to_owned(), ..self }
    }

    /// Returns the folder of the programs. The folder works as KUBEBUILDER_ASSETS for envtest.
    pub(super) fn bin(&self) -> PathBuf {
        self.folder.join("bin")
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.bin().join(name)
    }

    pub(super) fn is_built(&self) -> bool {
        PROGRAMS.iter().all(|name| self.program(name).is_file())
    }

    /// Returns the folder for builds. The folder can be deleted after a build.
    pub(super) fn scratch(&self) -> PathBuf {
        self.folder.join("build")
    }

    /// Returns the folder of the running instance: data, certificates, logs, kubeconfig.
    pub(super) fn run(&self) -> PathBuf {
        self.folder.join(&self.run)
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.run().join("kubeconfig")
    }
}
