//! Where everything lies: in a cache outside of the source tree, by version.

use std::env;
use std::path::{Path, PathBuf};

use super::KUBERNETES;
use crate::Result;

/// Overrides the folder for caches, as in the rest of Windlass.
const CACHE: &str = "WINDLASS_CACHE_DIR";

/// The programs that a build makes.
pub(super) const PROGRAMS: [&str; 5] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"];

pub(super) struct Layout {
    folder: PathBuf,
}

impl Layout {
    pub(super) fn find() -> Result<Self> {
        let under_home = || env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
        let cache = env::var_os(CACHE).map(PathBuf::from).or_else(|| {
            let shared = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
            Some(shared.or_else(under_home)?.join("windlass"))
        });
        let cache = cache.ok_or_else(|| format!("no folder for caches: set HOME or {CACHE}"))?;
        Ok(Layout { folder: std::path::absolute(cache)?.join("control-plane").join(KUBERNETES) })
    }

    /// The programs: the folder that KUBEBUILDER_ASSETS names for envtest.
    pub(super) fn bin(&self) -> PathBuf {
        self.folder.join("bin")
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.bin().join(name)
    }

    pub(super) fn is_built(&self) -> bool {
        PROGRAMS.iter().all(|name| self.program(name).is_file())
    }

    /// Where modules are built; nothing in it is needed afterwards.
    pub(super) fn scratch(&self) -> PathBuf {
        self.folder.join("build")
    }

    /// What the running instance keeps: data, certificates, logs, its kubeconfig.
    pub(super) fn run(&self) -> PathBuf {
        self.folder.join("run")
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.run().join("kubeconfig")
    }
}
