//! The command `dev`.

use std::path::PathBuf;

use clap::{ArgAction, Args};
#[cfg(not(feature = "dev"))]
use windlass_runtime::Error;
use windlass_runtime::{Manager, Result};

#[cfg(feature = "dev")]
use self::session::DevSession;

/// The flags of `dev`.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub(super) struct DevArgs {
    /// Port of 127.0.0.1 for the API server; 0 chooses a free port
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// File to write the kubeconfig of the control plane to
    #[arg(long, value_name = "FILE", default_value = ".windlass/kubeconfig")]
    write_kubeconfig: PathBuf,
    /// Let simulated pods wait for missing ConfigMaps and Secrets, and for the delays of probes
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = ArgAction::Set
    )]
    strict: bool,
    /// YAML file of objects to apply instead of the operator's samples; can be repeated
    #[arg(long, value_name = "FILE")]
    apply: Vec<PathBuf>,
}

/// Runs the operator on an embedded control plane.
#[cfg(feature = "dev")]
pub(super) async fn dev(args: DevArgs, manager: Manager) -> Result<()> {
    let operator = session::Declared::of(&manager);
    DevSession::start(args, operator).await?.run(manager).await
}

#[cfg(not(feature = "dev"))]
pub(super) fn dev(_: DevArgs, _: Manager) -> std::future::Ready<Result<()>> {
    std::future::ready(Err(Error::other(
        "this program was built without a control plane; build it with the feature `dev` of the crate `windlass`",
    )))
}

#[cfg(feature = "dev")]
mod session {
    use std::{collections::BTreeSet, fs, path::PathBuf};

    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use windlass_dev::{ControlPlane, apply_manifests, install_crds, kubectl_name, shell_word};
    use windlass_runtime::{Error, Manager, Result};

    use super::DevArgs;
    use crate::cli::logging::warnings_only;

    /// A control plane with the operator's CRDs and samples.
    pub(super) struct DevSession {
        plane: ControlPlane,
    }

    impl DevSession {
        pub(super) async fn start(args: DevArgs, operator: Declared) -> Result<Self> {
            let mut plane = ControlPlane::start(args.port).await?;
            plane.set_strict(args.strict);
            plane.write_kubeconfig(&args.write_kubeconfig)?;
            let path = shell_word(&args.write_kubeconfig);
            say(format_args!(
                "A Kubernetes control plane is ready at {} ({} ms).",
                plane.url(),
                plane.startup_time().as_millis()
            ));
            say(format_args!("  kubectl --kubeconfig {path} get {}", operator.kinds));
            plane.start_controllers_logging_to(warnings_only())?;
            plane.wait_until_ready().await?;
            let client = plane.client();
            for name in install_crds(&client, &operator.crds).await? {
                say(format_args!("installed {name}"));
            }
            for yaml in samples(&args.apply, operator.samples)? {
                for object in apply_manifests(&client, &yaml).await? {
                    say(format_args!("applied {object}"));
                }
            }
            say("The operator runs. Ctrl-C stops it; all state is in memory and is lost at the end.");
            Ok(Self { plane })
        }

        /// Runs the operator to the end.
        pub(super) async fn run(mut self, manager: Manager) -> Result<()> {
            let running = manager.client(self.plane.client()).run();
            let result = tokio::select! {
                biased;
                result = running => result,
                failed = self.plane.controllers_failed() => failed,
            };
            self.plane.stop().await;
            result
        }
    }

    /// The declarations of an operator.
    pub(super) struct Declared {
        crds: Vec<CustomResourceDefinition>,
        samples: Vec<String>,
        /// The watched and defined kinds, for a kubectl command in the output.
        kinds: String,
    }

    impl Declared {
        pub(super) fn of(manager: &Manager) -> Self {
            let watches = manager.controllers().into_iter().flat_map(|controller| controller.watches);
            let watched = watches.map(|kind| kubectl_name(&kind.group, &kind.plural));
            let own = manager.crds().iter().map(|crd| kubectl_name(&crd.spec.group, &crd.spec.names.plural));
            let kinds: BTreeSet<String> = watched.chain(own).collect();
            let kinds = if kinds.is_empty() { vec!["all".to_owned()] } else { kinds.into_iter().collect() };
            Self {
                crds: manager.crds().to_vec(),
                samples: manager.samples().to_vec(),
                kinds: kinds.join(","),
            }
        }
    }

    /// Returns the texts of the samples: of the files, if there are any.
    fn samples(files: &[PathBuf], samples: Vec<String>) -> Result<Vec<String>> {
        if files.is_empty() {
            return Ok(samples);
        }
        let read = |file: &PathBuf| {
            fs::read_to_string(file)
                .map_err(|error| Error::other(format!("cannot read {}: {error}", file.display())))
        };
        files.iter().map(read).collect()
    }

    /// Prints a line for the person at the terminal. A closed pipe is not an error.
    fn say(line: impl std::fmt::Display) {
        use std::io::Write;
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}
