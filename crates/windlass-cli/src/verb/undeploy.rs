//! `windlass undeploy`

use std::collections::BTreeSet;

use clap::Args;
use kube::ResourceExt;

use super::confirm::{confirm, of_objects};
use crate::deploy::{Removal, Target, count_objects};
use crate::error::Result;
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
        if !self.keep_crds {
            let count = count_objects(&cluster.client, &definitions).await?;
            self.confirm(count, &removal.others().await?)?;
            webhooks::forget(&cluster.client, &workspace).await?;
            removal.delete_custom_resources(&definitions, out).await?;
        }
        removal.delete_objects(&project.manifests.objects(), out).await?;
        if self.keep_crds {
            definitions.iter().for_each(|crd| out.line(format_args!("kept {}", crd.name_any())));
            return Ok(());
        }
        for crd in &definitions {
            Remaining::of(&cluster.client, crd).delete(out).await?;
        }
        Ok(())
    }

    /// Asks whether objects may be deleted, and CRDs that other deployments need.
    fn confirm(&self, count: usize, others: &BTreeSet<String>) -> Result<()> {
        let mut reasons = Vec::new();
        if !others.is_empty() {
            let namespaces = others.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            reasons.push(format!("the project is also deployed in namespace {namespaces} (see --namespace)"));
        }
        if count > 0 {
            reasons.push(of_objects(count));
        }
        if self.yes || reasons.is_empty() {
            return Ok(());
        }
        confirm(
            &reasons.join(", and "),
            "delete the CRDs and all objects with --yes, or keep both with --keep-crds",
        )
    }
}
