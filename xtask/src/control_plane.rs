//! `cargo xtask control-plane`: a real Kubernetes control plane, built from Go modules, as a reference.
//!
//! The control plane consists of etcd, kube-apiserver and kube-controller-manager on loopback, with TLS and
//! RBAC, but without nodes.

mod build;
mod layout;
mod process;
mod reference;
mod release;
mod start;

use std::path::PathBuf;

use clap::Subcommand;

use crate::Result;
use layout::Layout;
pub(crate) use layout::cache_folder;
pub(crate) use process::{Lifetime, Process};
use release::Release;

pub(crate) use reference::Reference;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Release of Kubernetes, such as 1.36: each release has its own programs and its own instance
    #[arg(long, global = true, value_name = "RELEASE", default_value_t)]
    version: Release,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Build the programs into the cache unless the programs exist (needs Go; takes minutes)
    Build(BuildArgs),
    /// Start the control plane; write a kubeconfig when the API server is ready
    Start(StartArgs),
    /// Stop the control plane
    Stop,
    /// Show the built programs and the running instance (the default)
    Status,
}

#[derive(clap::Args)]
struct BuildArgs {
    /// Rebuild programs that exist
    #[arg(long)]
    force: bool,
}

#[derive(clap::Args)]
struct StartArgs {
    /// Port of the API server; 0 picks a free port
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Run kube-scheduler too
    #[arg(long)]
    scheduler: bool,
    /// Run the API server alone, without kube-controller-manager
    #[arg(long)]
    no_controllers: bool,
}

pub(crate) fn run(args: Args) -> Result {
    let layout = Layout::find(args.version)?;
    match args.action.unwrap_or(Action::Status) {
        Action::Build(args) => build::build(&layout, args.force),
        Action::Start(args) => {
            build::build(&layout, false)?;
            start::start(&layout, &args)
        }
        Action::Stop => start::stop(&layout),
        Action::Status => {
            start::status(&layout);
            Ok(())
        }
    }
}

/// Returns the kubeconfig of the started instance of the default release, if an instance was started.
pub(crate) fn kubeconfig() -> Option<PathBuf> {
    Some(Layout::find(Release::default()).ok()?.kubeconfig()).filter(|path| path.is_file())
}
