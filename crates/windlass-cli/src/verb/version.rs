//! `windlass version`

use clap::Args;
use windlass_dev::KubernetesVersion;

use crate::output::Output;

/// Print the version of windlass, and the version of the control plane's Kubernetes API.
#[derive(Args)]
pub(crate) struct Version {}

impl Version {
    pub(crate) fn run(out: &mut Output) {
        let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
        out.line(format_args!(
            "windlass {} (Kubernetes {}, {system}/{machine})",
            env!("CARGO_PKG_VERSION"),
            KubernetesVersion::default()
        ));
    }
}
