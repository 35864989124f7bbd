//! `windlass install` and `windlass uninstall`

use std::time::Duration;

use clap::Args;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, ListParams, PartialObjectMeta, ResourceExt};
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::error::{Advice, Result};
use crate::manifests::{ProjectManifests, Request};
use crate::output::Output;
use crate::project::{ClusterArgs, Operator, Workspace, warn_of_rules};
use crate::webhooks;

/// The limit for a CRD to go: the server deletes the objects first.
const GONE_WITHIN: Duration = Duration::from_secs(120);

/// The time after which a line names the remaining objects.
const QUIET: Duration = Duration::from_secs(2);

/// The time between two lines about the remaining objects.
const REPORT: Duration = Duration::from_secs(15);

/// How many objects a line names.
const NAMED: usize = 5;

/// Install the CRDs of the project in a cluster, and wait until it serves them.
///
/// The operator is built first, because the CRDs come from the code. `windlass manifests` writes the same CRDs, and kubectl may apply them
/// before or after. Objects that exist are kept. A conversion that `windlass run` has set is kept, too.
#[derive(Args)]
pub(crate) struct Install {
    #[command(flatten)]
    cluster: ClusterArgs,
}

impl Install {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let workspace = Workspace::current()?;
        let cluster = self.cluster.connect(&workspace, out).await?;
        let project = ProjectManifests::load(&workspace, &Request::default(), None, out).await?;
        let definitions: Vec<Value> = project.manifests.crds().into_iter().cloned().collect();
        if definitions.is_empty() {
            out.line("the project has no kinds of its own; create one with `windlass create api`");
        }
        for name in windlass_dev::install_definitions(&cluster.client, &definitions).await? {
            out.line(format_args!("installed {name}"));
        }
        warn_of_rules(&cluster, &project.inventory.crds, out).await
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
        let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
        for crd in operator.crds().await? {
            let name = crd.name_any();
            let Some(installed) = definitions.get_opt(&name).await? else {
                out.line(format_args!("{name} is not installed"));
                continue;
            };
            webhooks::forget_conversion(&cluster.client, &installed).await?;
            match definitions.delete(&name, &DeleteParams::default()).await {
                Ok(_) => gone(&cluster.client, &installed, out).await?,
                // Deleted in the meantime.
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(format!("deleting {name}: {error}").into()),
            }
            out.line(format_args!("deleted {name}"));
        }
        Ok(())
    }
}

/// Waits until a CRD is gone. Names the remaining objects after two seconds.
async fn gone(client: &Client, crd: &CustomResourceDefinition, out: &mut Output) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = crd.name_any();
    let begun = Instant::now();
    let mut report_at = begun + QUIET;
    let mut waited_for = String::new();
    while definitions.get_opt(&name).await?.is_some() {
        if Instant::now() > report_at {
            waited_for = remaining(client, crd).await;
            out.line(format_args!("{name} waits for {waited_for}"));
            out.line(format_args!("  {}", hint(crd)));
            report_at = Instant::now() + REPORT;
        }
        if begun.elapsed() > GONE_WITHIN {
            let seconds = GONE_WITHIN.as_secs();
            return Err(Advice::new(
                format!("{name} is not gone after {seconds} s: it waits for {waited_for}"),
                hint(crd),
            ));
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Says how finalizers are removed.
fn hint(crd: &CustomResourceDefinition) -> String {
    let namespace = if crd.spec.scope == "Namespaced" { " --namespace NAMESPACE" } else { "" };
    format!(
        "the operator removes its finalizers: run it with `windlass run`. Without the operator: kubectl patch {} NAME{namespace} --type merge \
         --patch '{{\"metadata\":{{\"finalizers\":null}}}}'",
        crd.name_any()
    )
}

/// Names the objects of a CRD, with the finalizers of each object.
async fn remaining(client: &Client, crd: &CustomResourceDefinition) -> String {
    let stored = crd.spec.versions.iter().find(|version| version.storage);
    let stored = stored.map(|version| version.name.as_str()).unwrap_or_default();
    match webhooks::objects(client, crd, stored).list_metadata(&ListParams::default()).await {
        Ok(list) => {
            let named: Vec<String> = list.items.iter().take(NAMED).map(with_finalizers).collect();
            let more = list.items.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            format!("objects: {}{more}", named.join(", "))
        }
        Err(error) => format!("objects that cannot be listed: {error}"),
    }
}

fn with_finalizers(object: &PartialObjectMeta<DynamicObject>) -> String {
    let key = match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    };
    match object.finalizers() {
        [] => format!("{key} (no finalizers)"),
        finalizers => format!("{key} (finalizers {})", finalizers.join(", ")),
    }
}
