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
//! | command | effect |
//! |---|---|
//! | `run`, or none | runs the operator |
//! | `dev` | runs the operator on an embedded control plane, in this process; needs the feature `dev` |
//! | `crds` | prints the CRDs that were added with `Manager::crd`, as YAML |
//! | `config-schema` | prints the JSON schema of the file that `--config` reads |
//! | `manifests` | prints the operator's declarations, including rights and webhooks; `windlass manifests` reads the output. Hidden in `--help` |
//!
//! An operator with its own flags derives `clap::Args` for a struct of flags; the commands and the flags of
//! [`ManagerArgs`] stay:
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
//! An operator with its own command line flattens [`ManagerArgs`] into the command line, and calls
//! [`ManagerArgs::init_logging`] and [`FromArgs::with_args`].
//!
//! With the feature `opentelemetry`, spans and metrics are sent to the collector that the environment
//! variables name.

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

/// Returns an error of the command line without the usage, which does not name keys of a file or directives of a filter.
fn refusal(kind: clap::error::ErrorKind, text: impl std::fmt::Display) -> clap::Error {
    clap::Error::raw(kind, format_args!("{text}\n\nFor more information, try '--help'.\n"))
}
