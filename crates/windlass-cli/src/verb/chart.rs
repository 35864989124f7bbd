//! `windlass chart`

use clap::Args;
use windlass_codegen::chart::{self, Details};

use super::write_args::WriteArgs;
use crate::error::Result;
use crate::manifests::{Choices, ProjectManifests, Request, generated_files};
use crate::output::Output;
use crate::project::Workspace;

/// The folder of the chart.
const FOLDER: &str = "dist/chart";

/// Write a Helm chart of the operator to dist/chart.
///
/// The chart comes from the code, like the manifests, with the names of values of kubebuilder's charts. A file of the chart without the line
/// that says that the file is generated is yours, and stays. `windlass manifests` is not needed before.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass chart --image registry.example.com/website:v1
  helm install website dist/chart --namespace website-system --create-namespace
  helm upgrade website dist/chart --namespace website-system --set manager.replicas=2")]
pub(crate) struct Chart {
    /// The version of the chart and of the operator. Default: the version in Cargo.toml.
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,

    /// The default image of the operator. Default: controller:latest.
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,

    #[command(flatten)]
    write: WriteArgs,
}

impl Chart {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let workspace = Workspace::current()?;
        let choices = Choices { image: self.image, namespace: None };
        let project =
            ProjectManifests::load(&workspace, &Request::default(), &choices, &mut Output::stderr()).await?;
        let package = workspace.package()?;
        let details = Details {
            version: self.version.unwrap_or(package.version),
            description: package.description.unwrap_or_default(),
        };
        let files = chart::files(&project.inventory, &project.options, &details)?;
        let files = files.into_iter().map(|(path, text)| (format!("{FOLDER}/{path}"), text)).collect();
        let writes = generated_files(&workspace.folder, FOLDER, files)?;
        self.write.finish(&writes, &workspace.folder, out)?;
        Ok(())
    }
}
