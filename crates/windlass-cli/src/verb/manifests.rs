//! `windlass manifests`

use clap::Args;

use super::write_args::WriteArgs;
use crate::error::Result;
use crate::manifests::{Choices, ProjectManifests, Target, parse, size_warnings};
use crate::output::Output;
use crate::project::Workspace;

/// Write the manifests of the project: CRDs, rights, webhooks, the Deployment, and kustomizations.
///
/// The manifests come from the code: the operator is built and prints the declarations. Generated files below
/// config/ are written again or, if no longer needed, removed. The first line of a generated file says that
/// the file is generated; all other files are yours, and stay.
#[derive(Args)]
#[command(after_help = "\
PART is one of
  crd        config/crd: the CustomResourceDefinitions, each with all versions; crd:maxDescLen=N cuts descriptions
  rbac       config/rbac: the rights that the controllers declare, and roles for people; rbac:roleName=NAME
  webhook    config/webhook: the configurations of webhooks and their service
  all        all of config/ (the default)
  install    dist/install.yaml: all objects in one file, as `kubectl kustomize config/default` prints them
output:[PART:]dir=DIR, output:[PART:]artifacts:config=DIR, output:[PART:]stdout and output:[PART:]none say where to, as in controller-gen.

Examples:
  windlass manifests
  windlass manifests --diff
  windlass manifests rbac:roleName=manager-role crd webhook paths=\"./...\" output:crd:artifacts:config=config/crd/bases
  windlass manifests crd output:stdout | kubectl apply --server-side -f -
  windlass manifests install --image example.com/operator:v1")]
pub(crate) struct Manifests {
    /// The parts to write, in the words of controller-gen.
    #[arg(value_name = "PART")]
    words: Vec<String>,

    /// The image of the operator in the Deployment. Default: controller:latest.
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,

    #[command(flatten)]
    write: WriteArgs,
}

impl Manifests {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let request = parse(&self.words)?;
        let workspace = Workspace::current()?;
        // The output may be piped to kubectl.
        let mut progress = Output::stderr();
        for note in &request.notes {
            progress.line(format_args!("note: {note}"));
        }
        if request.parts.is_empty() {
            return Ok(());
        }
        let choices = Choices { image: self.image, namespace: None };
        let manifests = ProjectManifests::load(&workspace, &request, &choices, &mut progress).await?;
        for warning in size_warnings(&manifests.manifests.crds()) {
            progress.line(warning);
        }
        let printed = manifests.printed(&request);
        if !printed.is_empty() {
            out.line(printed.trim_end());
        }
        if request.parts.values().any(|target| matches!(target, Target::Project | Target::Folder(_))) {
            self.write.finish(&manifests.writes(&workspace, &request)?, &workspace.folder, out)?;
        }
        Ok(())
    }
}
