//! `windlass edit`

use std::path::PathBuf;

use clap::Args;
use windlass_scaffold::{Hub, License, Plan};

use super::create::finish;
use super::foreign::ForeignArgs;
use super::init::{license, license_text};
use super::update::refuse_uncommitted;
use super::write_args::WriteArgs;
use crate::error::Result;
use crate::output::Output;
use crate::project::Workspace;

/// Change settings of the project. Files move, and are merged with your changes.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass edit --multigroup          # a folder for each group
  windlass edit --namespaced          # an operator of one namespace
  windlass edit --kind Website --hub v2     # controllers, webhooks and conversions use v2
  windlass edit --license none")]
pub(crate) struct Edit {
    /// A folder for each group of kinds.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    multigroup: Option<bool>,

    /// An operator of a single namespace.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    namespaced: Option<bool>,

    /// The license: apache2 or none.
    #[arg(long, value_name = "LICENSE", value_parser = license)]
    license: Option<License>,

    /// Use the text of this file as the license.
    #[arg(long, value_name = "FILE", conflicts_with = "license")]
    license_file: Option<PathBuf>,

    /// The owner of the copyright.
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,

    /// Make this version the hub: objects are stored in this version, other versions are converted, and
    /// controllers and webhooks use this version.
    #[arg(long, value_name = "VERSION")]
    hub: Option<String>,

    /// The kind of --hub. Default: every kind that has the version.
    #[arg(long, value_name = "KIND", requires = "hub")]
    kind: Option<String>,

    /// The group of --hub, without the domain of the project. Default: every group.
    #[arg(long, value_name = "GROUP", requires = "hub")]
    group: Option<String>,

    /// Go on although there are changes that are not committed.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    force: bool,

    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    foreign: ForeignArgs,
}

impl Edit {
    pub(crate) fn run(self, out: &mut Output) -> Result<()> {
        self.foreign.explain();
        let workspace = Workspace::current()?;
        let text = self.license_file.as_deref().map(license_text).transpose()?;
        let request = windlass_scaffold::Edit {
            multigroup: self.multigroup,
            namespaced: self.namespaced,
            license: text.as_ref().map(|_| License::Custom).or(self.license),
            owner: self.owner.clone(),
            hub: self.hub.clone().map(|version| Hub {
                version,
                kind: self.kind.clone(),
                group: self.group.clone(),
            }),
        };
        let after = request.apply(&workspace.project)?;
        let plan = Plan::update(&workspace.project, &after).force(self.force);
        let new_header =
            request.license.is_some() || request.owner.is_some() && after.license != License::Custom;
        let header = after.license.header(after.owner.as_deref(), super::year(), text.as_deref());
        let plan = if new_header { plan.header(header) } else { plan };
        let outcome = plan.run(&workspace.folder)?;
        refuse_uncommitted(&workspace, &outcome, self.force || self.write.dry_run || self.write.diff)?;
        finish(self.write, &outcome, &workspace.folder, out)?;
        Ok(())
    }
}
