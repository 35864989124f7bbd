//! `windlass version`

use clap::Args;

use crate::output::Output;

/// The version of the control plane's Kubernetes API.
const KUBERNETES: &str = "1.36";

/// Print the version of windlass, and the version of the control plane's Kubernetes API.
#[derive(Args)]
pub(crate) struct Version {}

impl Version {
    pub(crate) fn run(out: &mut Output) {
        let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
        out.line(format_args!(
            "windlass {} (Kubernetes {KUBERNETES}, {system}/{machine})",
            env!("CARGO_PKG_VERSION")
        ));
    }
}
