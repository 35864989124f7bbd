//! `windlass bundle`

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use jiff::Timestamp;
use serde_json::Value;
use windlass_codegen::bundle::{self, Details};
use windlass_codegen::manifests::documents;
use windlass_scaffold::{Disk, Writes};

use super::write_args::WriteArgs;
use crate::error::Result;
use crate::manifests::{Choices, ProjectManifests, Request, generated_files};
use crate::output::Output;
use crate::project::Workspace;

/// The folder of the samples.
const SAMPLES: &str = "config/samples";

/// Write a bundle of the operator for the Operator Lifecycle Manager (OLM) to bundle/, and bundle.Dockerfile.
///
/// The bundle comes from the code. Texts for people (description, icon, maintainers) are in config/manifests/bases/, a file of yours that the
/// first bundle writes. `createdAt` is SOURCE_DATE_EPOCH or the time of the last commit, and changes only with the rest of the bundle.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass bundle --version 1.2.0 --image registry.example.com/website:v1.2.0
  windlass bundle --version 1.2.0 --channels stable,candidate --default-channel stable
  operator-sdk bundle validate bundle")]
pub(crate) struct Bundle {
    /// The version of the operator. Default: the version in Cargo.toml.
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,

    /// The channels of the bundle.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "alpha")]
    channels: Vec<String>,

    /// The channel of installations that name no channel.
    #[arg(long, value_name = "NAME")]
    default_channel: Option<String>,

    /// The image of the operator. Default: controller:latest.
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,

    #[command(flatten)]
    write: WriteArgs,
}

impl Bundle {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let workspace = Workspace::current()?;
        let choices = Choices { image: self.image.clone(), namespace: None };
        let project =
            ProjectManifests::load(&workspace, &Request::default(), &choices, &mut Output::stderr()).await?;
        let name = workspace.project.project_name.clone();
        let mut writes = Writes::new();
        let (details, base) = self.details(&workspace, &project)?;
        if let Some(base) = base {
            writes.write(&workspace.folder, bundle::base_path(&name), base)?;
        }
        let mut files = bundle::files(&project.inventory, &project.options, &details)?;
        let path = bundle::service_version_path(&name);
        if let (Some(earlier), Some(new)) = (workspace.folder.read(&path)?, files.get_mut(&path))
            && let Some(kept) = bundle::keep_created_at(&earlier, new)
        {
            *new = kept;
        }
        let dockerfile = files.remove("bundle.Dockerfile");
        writes.extend(generated_files(&workspace.folder, "bundle", files)?);
        if let Some(text) = dockerfile {
            let files = [("bundle.Dockerfile".to_owned(), text)].into();
            writes.extend(generated_files(&workspace.folder, "bundle.Dockerfile", files)?);
        }
        self.write.finish(&writes, &workspace.folder, out)?;
        Ok(())
    }

    /// Returns the facts of the bundle, and the text of the base if the project has none yet.
    fn details(
        &self,
        workspace: &Workspace,
        project: &ProjectManifests,
    ) -> Result<(Details, Option<String>)> {
        let name = &workspace.project.project_name;
        let base_path = bundle::base_path(name);
        let (text, is_new) = match workspace.folder.read(&base_path)? {
            Some(text) => (text, false),
            None => (bundle::base(name, name), true),
        };
        let base = documents(&text).map_err(|error| format!("{base_path}: {error}"))?;
        let mut details = Details::default();
        details.version = match &self.version {
            Some(version) => version.trim_start_matches('v').to_owned(),
            None => workspace.package()?.version,
        };
        details.channels.clone_from(&self.channels);
        details.default_channel.clone_from(&self.default_channel);
        details.created_at = created_at(&workspace.root)?;
        details.samples = samples(workspace, project)?;
        details.base = base.into_iter().next().unwrap_or_default();
        let earlier = workspace.folder.read(&bundle::service_version_path(name))?;
        details.replaces = earlier.and_then(|earlier| bundle::replaced(&earlier, name, &details.version));
        Ok((details, is_new.then_some(text)))
    }
}

/// Returns the sample objects of the project's kinds: the objects of config/samples, or else the samples that
/// the operator declares.
fn samples(workspace: &Workspace, project: &ProjectManifests) -> Result<Vec<Value>> {
    let mut texts = Vec::new();
    for path in workspace.folder.list(SAMPLES)?.iter().filter(|path| {
        Path::new(path).extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
    }) {
        texts.extend(workspace.folder.read(path)?.map(|text| (path.clone(), text)));
    }
    if texts.is_empty() {
        let declared = project.inventory.samples.iter();
        texts = declared.map(|text| ("the operator's sample".to_owned(), text.clone())).collect();
    }
    let mut samples = Vec::new();
    for (path, text) in texts {
        let objects = documents(&text).map_err(|error| format!("{path}: {error}"))?;
        samples.extend(objects.into_iter().filter(|object| is_owned(object, project)));
    }
    Ok(samples)
}

fn is_owned(object: &Value, project: &ProjectManifests) -> bool {
    let group = object["apiVersion"].as_str().and_then(|version| Some(version.split_once('/')?.0));
    project
        .inventory
        .crds
        .iter()
        .any(|crd| Some(crd.spec.group.as_str()) == group && object["kind"] == *crd.spec.names.kind)
}

/// Returns the time of the bundle: `SOURCE_DATE_EPOCH`, the time of the last commit, or now.
fn created_at(root: &Path) -> Result<String> {
    let seconds = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text
            .trim()
            .parse()
            .map_err(|_| format!("SOURCE_DATE_EPOCH is a number of seconds since 1970, not {text:?}"))?,
        Err(_) => match committed_at(root) {
            Some(seconds) => seconds,
            None => i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())?,
        },
    };
    Ok(Timestamp::from_second(seconds)?.to_string())
}

fn committed_at(root: &Path) -> Option<i64> {
    let mut command = Command::new("git");
    command
        .arg("-C")
        .arg(root)
        .args(["log", "-1", "--format=%ct"])
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
