//! A project of `windlass init`: the folder, the operator, and the cluster of the operator.

mod cargo;
mod cluster;
mod left_behind;
mod operator;
mod package;

use std::path::{Path, PathBuf};

use windlass_scaffold::{Disk, Folder, Project, STATE};

pub(crate) use self::cargo::{Cargo, program};
pub(crate) use self::cluster::{
    Cluster, ClusterArgs, LOCAL_KUBECONFIG, local_kubeconfig, running_server, warn_of_replaced,
};
pub(crate) use self::operator::{Child, Operator};
use crate::error::{Advice, Result};

/// The folder and the state of a project.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) folder: Folder,
    pub(crate) project: Project,
}

impl Workspace {
    /// Returns the project of the current folder.
    pub(crate) fn current() -> Result<Self> {
        Self::find(&std::env::current_dir()?)
    }

    /// Returns the closest folder with `windlass.toml`, from `start` upwards.
    pub(crate) fn root(start: &Path) -> Option<&Path> {
        start.ancestors().find(|folder| folder.join(STATE).is_file())
    }

    /// Returns the project of the closest folder with `windlass.toml`, from `start` upwards.
    pub(crate) fn find(start: &Path) -> Result<Self> {
        let root = Self::root(start).ok_or_else(|| {
            let message = format!(
                "{} is not in a project: neither the folder nor a folder above has {STATE}",
                start.display()
            );
            Advice::new(message, "begin a project with `windlass init`")
        })?;
        let folder = Folder::new(root);
        let text = folder.read(STATE)?.unwrap_or_default();
        Ok(Self { root: root.to_owned(), folder, project: Project::parse(&text)? })
    }
}
