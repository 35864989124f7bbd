//! An API server of the reference for a benchmark, beside the instance of `cargo xtask control-plane start`.

use std::fs;
use std::path::PathBuf;

use super::StartArgs;
use super::layout::Layout;
use super::process::Lifetime;
use super::release::Release;
use super::start::{Instance, launch};
use crate::Result;

/// A running kube-apiserver with an etcd that does not wait for the disk. Dropping the value stops both
/// programs and deletes the files of both.
pub(crate) struct Reference {
    layout: Layout,
    instance: Instance,
}

impl Reference {
    /// Starts both in a folder of the cache with this name. The programs have to be built already.
    pub(crate) fn start(name: &str) -> Result<Self> {
        let layout = Layout::find(Release::default())?.with_run(name);
        if !layout.is_built() {
            return Err("kube-apiserver is not built; `cargo xtask control-plane build` builds it from source, with Go".into());
        }
        if let Some(instance) = Instance::running(&layout) {
            let ids: Vec<String> = instance.processes.iter().map(|process| process.id.to_string()).collect();
            return Err(format!(
                "another benchmark runs kube-apiserver, or left it running: end the processes {}",
                ids.join(" and ")
            )
            .into());
        }
        let args = StartArgs { port: 0, scheduler: false, no_controllers: true };
        let instance = launch(&layout, &args, Lifetime::Attached)?;
        Ok(Reference { layout, instance })
    }

    /// Returns the path of the administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.layout.kubeconfig()
    }

    /// Returns the process ids of etcd and kube-apiserver.
    pub(crate) fn processes(&self) -> Vec<u32> {
        self.instance.processes.iter().map(|process| process.id).collect()
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        for process in self.instance.processes.iter().rev() {
            if let Err(error) = process.stop() {
                eprintln!("{error}");
            }
        }
        let _ = fs::remove_dir_all(self.layout.run());
    }
}
