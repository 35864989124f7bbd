//! `windlass undeploy`

use std::collections::BTreeSet;

use clap::Args;
use kube::ResourceExt;

use super::confirm::{confirm, of_objects};
use crate::deploy::{Found, Removal, Target, count_objects};
use crate::error::{Advice, Result};
use crate::manifests::{Choices, ProjectManifests, Request};
use crate::output::Output;
use crate::project::{ClusterArgs, Workspace};
use crate::remaining::Remaining;
use crate::webhooks;

/// Remove the deployed operator from a cluster: first the objects of the operator's kinds, then the operator,
/// then the CRDs.
///
/// The operator runs until the finalizers of all objects are done; a line names the remaining objects.
#[derive(Args)]
pub(crate) struct Undeploy {
    /// Keep the CRDs of the project, and all objects of the kinds.
    #[arg(long)]
    keep_crds: bool,

    /// Delete objects of the project's kinds without a question.
    #[arg(long, short)]
    yes: bool,

    /// Delete the CRDs, and with them all objects of the kinds, although deployments of the project in other
    /// namespaces need the CRDs.
    #[arg(long, conflicts_with = "keep_crds")]
    delete_shared_crds: bool,

    /// Accepted for the sake of Makefiles: an object that is not there is no error.
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    ignore_not_found: Option<bool>,

    #[command(flatten)]
    cluster: ClusterArgs,
}

impl Undeploy {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let workspace = Workspace::current()?;
        let cluster = self.cluster.connect(&workspace, out).await?;
        let target = Target::new(&workspace.project.project_name, self.cluster.namespace.as_deref());
        let choices = Choices { image: None, namespace: self.cluster.namespace.clone() };
        let project = ProjectManifests::load(&workspace, &Request::default(), &choices, out).await?;
        let removal = Removal::new(&cluster.client, &target);
        let definitions = removal.definitions(&project.manifests.crds()).await?;
        let objects = removal.objects(&project.manifests.objects()).await?;
        self.check(&target, &objects, &removal.others().await?)?;
        if !self.keep_crds {
            self.confirm(count_objects(&cluster.client, &definitions).await?)?;
            webhooks::forget(&cluster.client, &workspace).await?;
            removal.delete_custom_resources(&definitions, out).await?;
        }
        removal.delete_objects(&objects, out).await?;
        if self.keep_crds {
            definitions.iter().for_each(|crd| out.line(format_args!("kept {}", crd.name_any())));
            return Ok(());
        }
        for crd in &definitions {
            Remaining::of(&cluster.client, crd).delete(out).await?;
        }
        Ok(())
    }

    /// Checks that the command removes nothing of other deployments.
    ///
    /// # Errors
    ///
    /// The namespace has no deployment, but `others` have, or `others` need the CRDs.
    fn check(&self, target: &Target, objects: &[Found], others: &BTreeSet<String>) -> Result<()> {
        if others.is_empty() {
            return Ok(());
        }
        let namespaces = others.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        if objects.is_empty() {
            let Target { namespace, .. } = target;
            return Err(Advice::new(
                format!(
                    "namespace {namespace} has no deployment of the project; deployed in namespace {namespaces}"
                ),
                "name the namespace of a deployment with --namespace",
            ));
        }
        if self.keep_crds || self.delete_shared_crds {
            return Ok(());
        }
        Err(Advice::new(
            format!(
                "the project is also deployed in namespace {namespaces}, where the CRDs and their objects are in use"
            ),
            "keep both with --keep-crds, or delete both with --delete-shared-crds",
        ))
    }

    /// Asks whether objects may be deleted.
    fn confirm(&self, count: usize) -> Result<()> {
        if self.yes || count == 0 {
            return Ok(());
        }
        confirm(
            &of_objects(count),
            "delete the CRDs and all objects with --yes, or keep both with --keep-crds",
        )
    }
}
