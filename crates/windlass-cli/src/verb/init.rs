//! `windlass init`

use std::path::{Path, PathBuf};
use std::{env, fs};

use clap::Args;
use windlass_scaffold::{Disk, Folder, License, Plan, Project, STATE};

use super::create::finish;
use super::foreign::ForeignArgs;
use super::write_args::WriteArgs;
use crate::error::Result;
use crate::manifests::new_project_files;
use crate::output::Output;

/// Begin a project in this folder: a workspace with a crate for the kinds and a crate for the operator.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass init --domain example.com
  windlass init --domain example.com --license apache2 --owner \"Ann\" --repo github.com/ann/my-operator

Then: windlass create api --group apps --version v1 --kind Website")]
pub(crate) struct Init {
    /// The domain: the end of the API group of each kind.
    #[arg(long, value_name = "DOMAIN", default_value = "my.domain")]
    domain: String,

    /// The name of the project. Default: that of the folder, in lower case.
    #[arg(long, value_name = "NAME")]
    project_name: Option<String>,

    /// The address of the repository, such as github.com/ann/my-operator.
    #[arg(long, value_name = "ADDRESS")]
    repo: Option<String>,

    /// The owner of the copyright.
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,

    /// The license: apache2 or none.
    #[arg(long, value_name = "LICENSE", default_value = "apache2", value_parser = license)]
    license: License,

    /// Use the text of this file as the license, at the head of all files of code.
    #[arg(long, value_name = "FILE", conflicts_with = "license")]
    license_file: Option<PathBuf>,

    /// A folder for each group of kinds.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    multigroup: bool,

    /// An operator of a single namespace, with a Role instead of a ClusterRole.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    namespaced: bool,

    /// Depend on this checkout of Windlass instead of the released crates.
    #[arg(long, value_name = "CHECKOUT", env = "WINDLASS_CHECKOUT")]
    path: Option<PathBuf>,

    /// Overwrite files that exist.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    force: bool,

    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    foreign: ForeignArgs,
}

impl Init {
    pub(crate) fn run(self, out: &mut Output) -> Result<()> {
        self.foreign.explain();
        let root = env::current_dir()?;
        let folder = Folder::new(&root);
        let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let checkout = self.path.as_deref().map(checkout).transpose()?;
        let text = self.license_file.as_deref().map(license_text).transpose()?;
        let request = windlass_scaffold::Init {
            domain: self.domain.clone(),
            name: self.project_name.clone(),
            repo: self.repo.clone(),
            owner: self.owner.clone(),
            license: if text.is_some() { License::Custom } else { self.license },
            multigroup: self.multigroup,
            namespaced: self.namespaced,
            path: checkout.clone(),
        };
        let project = request.project(&name)?;
        let existing = folder.read(STATE)?.map(|text| Project::parse(&text)).transpose()?;
        if let Some(existing) = &existing {
            same(existing, &project)?;
        }
        let header = project.license.header(project.owner.as_deref(), super::year(), text.as_deref());
        let wanted = existing.as_ref().unwrap_or(&project);
        let plan = Plan::create(existing.as_ref(), wanted);
        let plan = if existing.is_some() { plan } else { plan.header(header) };
        let mut outcome = plan.force(self.force).run(&folder)?;
        // The versions that this checkout is tested with.
        if let Some(lock) =
            checkout.map(|checkout| checkout.join("Cargo.lock")).filter(|_| !root.join("Cargo.lock").exists())
            && let Ok(lock) = fs::read_to_string(lock)
        {
            outcome.writes.write(&folder, "Cargo.lock", lock)?;
        }
        if existing.is_none() {
            let mut files = new_project_files(&project)?;
            // A file that is there is the user's.
            files.retain(|path, _| !root.join(path).exists());
            outcome.writes.generated(&folder, "config", files)?;
        }
        if finish(self.write, &outcome, &folder, out)? && existing.is_none() {
            out.line("");
            out.line(format_args!(
                "The project {} is ready. Next: windlass create api --group GROUP --version v1 --kind KIND",
                project.project_name
            ));
        }
        Ok(())
    }
}

/// Refuses to begin a project again with other settings.
fn same(existing: &Project, wanted: &Project) -> Result<()> {
    let settings = |project: &Project| {
        let Project { domain, project_name, repo, owner, license, multigroup, namespaced, .. } =
            project.clone();
        (domain, project_name, repo, owner, license, multigroup, namespaced)
    };
    if settings(existing) == settings(wanted) {
        return Ok(());
    }
    let name = &existing.project_name;
    Err(format!(
        "this folder has the project {name} already, with other settings; change it with `windlass edit`"
    )
    .into())
}

/// Checks the path of a checkout, and makes the path absolute.
fn checkout(path: &Path) -> Result<PathBuf> {
    let full = path.canonicalize().map_err(|error| format!("--path {}: {error}", path.display()))?;
    if full.join("crates/windlass/Cargo.toml").is_file() {
        return Ok(full);
    }
    Err(format!("--path {}: not a checkout of Windlass: the folder has no crates/windlass", path.display())
        .into())
}

pub(super) fn license(text: &str) -> Result<License, String> {
    match text {
        "apache2" => Ok(License::Apache2),
        "none" => Ok(License::None),
        _ => Err("expected apache2 or none; another license is given as a text with --license-file FILE"
            .to_owned()),
    }
}

pub(super) fn license_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| format!("--license-file {}: {error}", path.display()).into())
}
