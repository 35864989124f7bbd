//! The command line of an operator, in the words of kubebuilder and kubectl.
//!
//! `Manager::from_args()` reads the flags, sets up logging, and returns a manager whose `run` obeys the command:
//!
//! ```no_run
//! use windlass::prelude::*;
//!
//! #[tokio::main]
//! async fn main() -> Result<()> {
//!     Manager::from_args().run().await
//! }
//! ```
//!
//! | command | what it does |
//! |---|---|
//! | `run`, or none | runs the operator |
//! | `dev` | runs it on a control plane of its own, in this process; needs the feature `dev` |
//! | `crds` | prints the CRDs that were added with `Manager::crd`, as YAML |
//! | `config-schema` | prints the JSON schema of the file that `--config` reads |
//! | `manifests` | prints what the operator declares, its rights and webhooks among it, as JSON; `windlass manifests` reads it. Hidden in `--help` |
//!
//! An operator with flags of its own derives `clap::Args` for them; the commands and the flags of [`ManagerArgs`] stay:
//!
//! ```no_run
//! use windlass::prelude::*;
//!
//! /// Keeps backups of databases.
//! #[derive(clap::Args)]
//! struct BackupArgs {
//!     /// Where to store backups
//!     #[arg(long, default_value = "http://store:9000")]
//!     store: String,
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<()> {
//!     let (manager, args) = Manager::from_args_with::<BackupArgs>();
//!     tracing::info!(args.store);
//!     manager.run().await
//! }
//! ```
//!
//! An operator with a command line of its own flattens [`ManagerArgs`] into it, and calls
//! [`ManagerArgs::init_logging`] and [`FromArgs::with_args`].
//!
//! With the feature `opentelemetry`, spans and metrics are sent to a collector, if the environment names one.

mod args;
mod command;
mod config_file;
mod crds;
mod dev;
mod logging;
mod manifests;
mod standard_input;
mod telemetry;
mod zap;

#[cfg(test)]
mod tests;

pub use self::{
    args::{BindAddress, LogFormat, ManagerArgs},
    command::FromArgs,
    zap::{TimeEncoding, ZapArgs, ZapEncoder, ZapLevel},
};
