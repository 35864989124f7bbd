//! `windlass deploy`

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::process::Command;
use windlass_codegen::manifests::documents;

use crate::deploy::{Applier, Mode, Setting, Target, deployed_kinds, pin, prune, wait};
use crate::error::{Advice, Result};
use crate::manifests::{Choices, ProjectManifests, Request};
use crate::output::Output;
use crate::project::{Cluster, ClusterArgs, Workspace};

/// Deploy the operator to a cluster: CRDs, rights, webhooks and the Deployment, as `config/default` composes them.
///
/// The operator is built first, because the manifests come from the code; files of config/ that you keep by
/// hand replace generated files. Objects are applied by server-side apply and labelled with the project's
/// name; objects of an earlier deployment to the same namespace that the project no longer has are deleted, except CRDs
/// and namespaces. No file is written to config/.
#[derive(Args)]
#[command(after_help = "\
Keys of --set are the values of `windlass chart`: manager.replicas, manager.args (adds an argument), manager.env.NAME,
manager.nodeSelector.LABEL, manager.resources.limits.RESOURCE, manager.resources.requests.RESOURCE, manager.image.pullPolicy and
manager.priorityClassName.

Examples:
  windlass deploy --image registry.example.com/website:v1
  windlass deploy --image registry.example.com/website:v1 --diff
  windlass deploy --image registry.example.com/website:v1 --set manager.replicas=2 --set manager.env.LOG_LEVEL=debug
  windlass deploy --image registry.example.com/website:v1 --kustomize deploy       # an overlay of your own")]
pub(crate) struct Deploy {
    /// The image of the operator. Pinned by digest, if the local store or the registry knows the image.
    /// Default: the image in config/manager/manager.yaml if you keep that file by hand, else
    /// controller:latest.
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,

    /// Change a field of the Deployment, this time. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Setting>,

    /// Deploy the objects that kustomize builds from this folder, such as an overlay of config/default. Needs
    /// kustomize or kubectl.
    #[arg(long, short = 'k', value_name = "DIR", conflicts_with = "namespace")]
    kustomize: Option<PathBuf>,

    /// Ask the cluster for the changes, without any change.
    #[arg(long)]
    dry_run: bool,

    /// Show the differences between the cluster and the project, without any change.
    #[arg(long)]
    diff: bool,

    /// Do not wait until the pods of the operator are ready.
    #[arg(long)]
    no_wait: bool,

    /// How long to wait until the pods of the operator are ready, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u64,

    #[command(flatten)]
    cluster: ClusterArgs,
}

impl Deploy {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let workspace = Workspace::current()?;
        let cluster = self.cluster.connect(&workspace, out).await?;
        let name = &workspace.project.project_name;
        let project = self.load(&workspace, out).await?;
        let (target, mut objects) = match &self.kustomize {
            Some(folder) => {
                let objects = built(folder).await?;
                (Target::of_built(name, &objects), objects)
            }
            None => (Target::new(name, self.cluster.namespace.as_deref()), project.manifests.objects()),
        };
        self.set(&cluster, &target, &mut objects, out).await?;
        target.label(&mut objects);

        let mode = match (self.diff, self.dry_run) {
            (true, _) => Mode::Diff,
            (false, true) => Mode::DryRun,
            (false, false) => Mode::Apply,
        };
        let kinds = deployed_kinds(&cluster.client, &target).await?;
        let applied = Applier::new(&cluster.client, &target, mode).apply(&objects, out).await?;
        prune(&cluster.client, &target, &kinds, &applied, mode, out).await?;
        if mode == Mode::Apply && !self.no_wait {
            wait(&cluster.client, &target, &objects, Duration::from_secs(self.timeout), out).await?;
        }
        Ok(())
    }

    async fn load(&self, workspace: &Workspace, out: &mut Output) -> Result<ProjectManifests> {
        let choices = Choices { image: self.image.clone(), namespace: self.cluster.namespace.clone() };
        ProjectManifests::load(workspace, &Request::default(), &choices, out).await
    }

    /// Sets the fields of the Deployment that the command line names.
    async fn set(
        &self,
        cluster: &Cluster,
        target: &Target,
        objects: &mut [Value],
        out: &mut Output,
    ) -> Result<()> {
        let Some(container) = target.container(objects) else {
            if self.image.is_none() && self.set.is_empty() {
                return Ok(());
            }
            return Err(Advice::new(
                "the objects have no Deployment of the operator with a container `manager`, which --image and --set change",
                "keep the names of config/manager in the overlay, or deploy without the two flags",
            ));
        };
        if let Some(image) = &self.image {
            container["image"] = json!(image);
        }
        let image = container["image"].as_str().unwrap_or_default().to_owned();
        if image == "controller:latest" {
            out.line("note: the image controller:latest is a placeholder; name the image of the operator with --image");
        }
        if let Some(digest) = pin(&image, cluster.is_embedded().await?).await {
            let pinned = format!("{image}@{digest}");
            container["image"] = json!(pinned);
            out.line(format_args!("image: {pinned}"));
        } else {
            out.line(format_args!("image: {image}"));
        }
        self.set.iter().for_each(|setting| setting.apply(target, objects));
        Ok(())
    }
}

/// Returns the objects that kustomize builds from a folder.
async fn built(folder: &std::path::Path) -> Result<Vec<Value>> {
    for (program, words) in [("kustomize", vec!["build"]), ("kubectl", vec!["kustomize"])] {
        let mut command = Command::new(program);
        let output = command.args(words).arg(folder).stdin(Stdio::null()).kill_on_drop(true).output().await;
        match output {
            Ok(output) if output.status.success() => {
                return Ok(documents(&String::from_utf8(output.stdout)?)?);
            }
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                return Err(format!("{program} cannot build {}: {}", folder.display(), said.trim()).into());
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("cannot run {program}: {error}").into()),
        }
    }
    Err(Advice::new(
        format!("cannot build {}: neither kustomize nor kubectl is installed", folder.display()),
        "install one of the two, or deploy without --kustomize",
    ))
}
