//! `windlass install` and `windlass uninstall`

use clap::Args;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, ResourceExt};
use serde_json::Value;

use super::confirm::{confirm, of_objects};
use crate::deploy::count_objects;
use crate::error::{Advice, Result};
use crate::manifests::{Choices, ProjectManifests, Request};
use crate::output::Output;
use crate::project::{ClusterArgs, Operator, Workspace};
use crate::remaining::Remaining;
use crate::webhooks;

/// Install the CRDs of the project in a cluster, and wait until the cluster serves the CRDs.
///
/// The operator is built first, because the CRDs come from the code. `windlass manifests` writes the same
/// CRDs, and kubectl may apply that output before or after. Objects that exist are kept. A conversion that
/// `windlass run` has set is kept, too.
#[derive(Args)]
pub(crate) struct Install {
    #[command(flatten)]
    cluster: ClusterArgs,
}

impl Install {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let workspace = Workspace::current()?;
        let cluster = self.cluster.connect(&workspace, out).await?;
        let project =
            ProjectManifests::load(&workspace, &Request::default(), &Choices::default(), out).await?;
        let definitions: Vec<Value> = project.manifests.crds().into_iter().cloned().collect();
        if definitions.is_empty() {
            out.line("the project has no kinds of its own; create one with `windlass create api`");
        }
        for name in windlass_dev::install_definitions(&cluster.client, &definitions).await? {
            out.line(format_args!("installed {name}"));
        }
        Ok(())
    }
}

/// Delete the CRDs of the project from a cluster, and thereby all objects of the kinds.
///
/// Asks before the command deletes objects. Without a terminal, objects are deleted only with --yes.
#[derive(Args)]
pub(crate) struct Uninstall {
    /// Delete objects of the project's kinds without a question.
    #[arg(long, short)]
    yes: bool,

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
        let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
        let mut installed = Vec::new();
        for crd in operator.crds().await? {
            let name = crd.name_any();
            match definitions.get_opt(&name).await? {
                Some(crd) => installed.push(crd),
                None => out.line(format_args!("{name} is not installed")),
            }
        }
        if !self.yes {
            let hint = "delete the CRDs and all objects with --yes";
            let counted = count_objects(&cluster.client, &installed).await;
            let count =
                counted.map_err(|error| Advice::new(format!("counting the objects: {error}"), hint))?;
            if count > 0 {
                confirm(&of_objects(count), hint)?;
            }
        }
        webhooks::forget(&cluster.client, &workspace).await?;
        for crd in &installed {
            Remaining::of(&cluster.client, crd).delete(out).await?;
        }
        Ok(())
    }
}
