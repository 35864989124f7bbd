//! `windlass undeploy`

use std::io::{self, IsTerminal};

use clap::Args;
use kube::ResourceExt;

use crate::deploy::{Removal, Target};
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
            self.confirm(removal.count(&definitions).await?)?;
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

    /// Asks whether objects may be deleted.
    fn confirm(&self, count: usize) -> Result<()> {
        if self.yes || count == 0 {
            return Ok(());
        }
        let message =
            format!("the cluster has {count} objects of the project's kinds, which would be deleted");
        let hint = "delete them with --yes, or keep them with --keep-crds";
        if !io::stdin().is_terminal() {
            return Err(Advice::new(message, hint));
        }
        Output::stderr().line(format_args!("{message}. Delete them? [y/N]"));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        if matches!(answer.trim(), "y" | "Y" | "yes") {
            Ok(())
        } else {
            Err(Advice::new("nothing was deleted", hint))
        }
    }
}
