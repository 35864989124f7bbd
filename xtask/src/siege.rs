//! `cargo xtask siege`: runs the package windlass-siege in a release build.
//!
//! A separate package, because the program is built with the API server, and the tasks are not.

use std::process::Command;

use crate::{Result, project};

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// Arguments of the program; `--help` lists the arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub(crate) fn run(args: Args) -> Result {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--release", "--package", "windlass-siege", "--"])
        .args(args.arguments)
        .current_dir(project::root())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err("the server broke a limit, or the siege did not take place".into())
    }
}
