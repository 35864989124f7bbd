//! The subcommands, one file each.

mod assets;
mod cluster;
mod demo;
mod kubeconfig;

use clap::Subcommand;
use tokio::runtime::Builder;

use crate::error::Result;
use crate::output::Output;

/// A subcommand with its arguments.
#[derive(Subcommand)]
pub(crate) enum Verb {
    Assets(assets::Assets),
    Cluster(cluster::Cluster),
    Demo(demo::Demo),
    Kubeconfig(kubeconfig::UserKubeconfig),
}

impl Verb {
    /// Runs the subcommand to its end.
    pub(crate) fn run(self, out: &mut Output) -> Result<()> {
        // The control plane is idle most of the time: two threads keep it small and still responsive.
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let result = runtime.block_on(async {
            match self {
                Self::Assets(assets) => assets.run(out),
                Self::Cluster(cluster) => cluster.run(out).await,
                Self::Demo(demo) => demo.run(out).await,
                Self::Kubeconfig(kubeconfig) => kubeconfig.run(out).await,
            }
        });
        // A blocking task, such as a name lookup, must not delay the exit.
        runtime.shutdown_background();
        result
    }
}
