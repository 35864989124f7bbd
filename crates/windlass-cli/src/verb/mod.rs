//! The verbs, one file each.

mod cluster;
mod demo;

use clap::Subcommand;

use crate::error::Result;
use crate::voice::Voice;

/// What the command can do.
#[derive(Subcommand)]
pub(crate) enum Verb {
    Cluster(cluster::Cluster),
    Demo(demo::Demo),
}

impl Verb {
    /// Does it; returns when it is done.
    pub(crate) fn run(self, voice: &mut Voice) -> Result<()> {
        // The control plane is at rest most of the time: few threads keep it small, and two suffice to keep it quick.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let outcome = runtime.block_on(async {
            match self {
                Self::Cluster(cluster) => cluster.run(voice).await,
                Self::Demo(demo) => demo.run(voice).await,
            }
        });
        // Whatever still blocks a thread (a lookup, a file) must not hold up the end.
        runtime.shutdown_background();
        outcome
    }
}
