//! `cargo xtask control-plane`: a real Kubernetes control plane, built from its Go modules, to compare ours with.
//!
//! It is etcd, kube-apiserver and kube-controller-manager, on loopback, with TLS and RBAC; nothing runs Pods.

mod build;
mod layout;
mod process;
mod start;

use clap::Subcommand;

use crate::Result;
use layout::Layout;

/// The release that the truth is asked of, the same minor as the embedded server claims to be.
const KUBERNETES: &str = "1.36.3";
const ETCD: &str = "3.6.16";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Build the programs into the cache, if they are not there (takes minutes, once; needs Go)
    Build(BuildArgs),
    /// Start them, and write a kubeconfig when the API server is ready
    Start(StartArgs),
    /// Stop them
    Stop,
    /// Say what is built and what runs (as does no word at all)
    Status,
}

#[derive(clap::Args)]
struct BuildArgs {
    /// Build again what is there already
    #[arg(long)]
    force: bool,
}

#[derive(clap::Args)]
struct StartArgs {
    /// Port of the API server; by default any free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Run kube-scheduler, too
    #[arg(long)]
    scheduler: bool,
}

pub(crate) fn run(args: Args) -> Result {
    let layout = Layout::find()?;
    match args.action.unwrap_or(Action::Status) {
        Action::Build(args) => build::build(&layout, args.force),
        Action::Start(args) => {
            build::build(&layout, false)?;
            start::start(&layout, args.port, args.scheduler)
        }
        Action::Stop => start::stop(&layout),
        Action::Status => {
            start::status(&layout);
            Ok(())
        }
    }
}
