//! `windlass install` and `windlass uninstall`

use std::time::Duration;

use clap::Args;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, ResourceExt};
use tokio::time::{Instant, sleep};

use crate::error::Result;
use crate::output::Output;
use crate::project::{ClusterArgs, Operator, Workspace};
use crate::webhooks;

/// How long a CRD may take to go: its objects are deleted before it.
const GONE_WITHIN: Duration = Duration::from_secs(120);

/// Install the CRDs of the project in a cluster, and wait until it serves them.
///
/// They come from the code: the operator is built first. Objects that exist are kept.
#[derive(Args)]
pub(crate) struct Install {
    #[command(flatten)]
    cluster: ClusterArgs,
}

impl Install {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let workspace = Workspace::current()?;
        let cluster = self.cluster.connect(&workspace, out).await?;
        let operator = Operator::new(workspace.build(out).await?);
        let crds = operator.crds().await?;
        if crds.is_empty() {
            out.line("the project has no kinds of its own; create one with `windlass create api`");
        }
        for name in windlass_dev::install_crds(&cluster.client, &crds).await? {
            out.line(format_args!("installed {name}"));
        }
        Ok(())
    }
}

/// Delete the CRDs of the project from a cluster, and with them all objects of the kinds.
#[derive(Args)]
pub(crate) struct Uninstall {
    /// Accepted for the sake of Makefiles: a CRD that is not there is no error.
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    ignore_not_found: Option<bool>,

    #[command(flatten)]
    cluster: ClusterArgs,
}

impl Uninstall {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let workspace = Workspace::current()?;
        let cluster = self.cluster.connect(&workspace, out).await?;
        let operator = Operator::new(workspace.build(out).await?);
        webhooks::forget(&cluster.client, &workspace).await?;
        let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client);
        for crd in operator.crds().await? {
            let name = crd.name_any();
            match definitions.delete(&name, &DeleteParams::default()).await {
                Ok(_) => {
                    gone(&definitions, &name).await?;
                    out.line(format_args!("deleted {name}"));
                }
                Err(kube::Error::Api(status)) if status.code == 404 => {
                    out.line(format_args!("{name} is not installed"));
                }
                Err(error) => return Err(format!("deleting {name}: {error}").into()),
            }
        }
        Ok(())
    }
}

async fn gone(definitions: &Api<CustomResourceDefinition>, name: &str) -> Result<()> {
    let end = Instant::now() + GONE_WITHIN;
    while definitions.get_opt(name).await?.is_some() {
        if Instant::now() > end {
            return Err(format!(
                "{name} is not gone after {} s: objects of the kind have finalizers that nothing removes. Run the operator, or remove them",
                GONE_WITHIN.as_secs()
            )
            .into());
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
