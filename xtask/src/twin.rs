//! `cargo xtask twin`: runs the package windlass-twin, which compares the embedded API server with a real API
//! server.
//!
//! A separate package, because the program is built with the API server, and the tasks are not.

use std::process::Command;

use crate::control_plane;
use crate::{Result, project};

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// Arguments of the program; `--help` lists the arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Args {
    /// Returns arguments of the program.
    pub(crate) fn new<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Self {
        Self { arguments: arguments.into_iter().map(str::to_owned).collect() }
    }
}

pub(crate) fn run(args: Args) -> Result {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["run", "--quiet", "--package", "windlass-twin", "--"])
        .args(args.arguments)
        .current_dir(project::root());
    // The control plane that `cargo xtask control-plane` has started, unless the caller names another server.
    if std::env::var_os(KUBECONFIG).is_none()
        && let Some(kubeconfig) = control_plane::kubeconfig()
    {
        command.env(KUBECONFIG, kubeconfig);
    }
    if command.status()?.success() { Ok(()) } else { Err("the servers differ, or were not compared".into()) }
}

/// The environment variable that names the kubeconfig of the real server, as for the tests of the API server.
const KUBECONFIG: &str = "WINDLASS_TEST_KUBECONFIG";
