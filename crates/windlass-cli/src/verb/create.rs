//! `windlass create`

use clap::{Args, Subcommand};
use windlass_scaffold::{CreateApi, CreateWebhook, External, Folder, Gvk, Outcome, Plan, Project, Resource};

use super::foreign::ForeignArgs;
use super::write_args::WriteArgs;
use crate::error::Result;
use crate::output::Output;
use crate::project::Workspace;

/// Add a kind or webhooks to the project.
#[derive(Args)]
pub(crate) struct Create {
    #[command(subcommand)]
    command: CreateCommand,
}

#[derive(Subcommand)]
enum CreateCommand {
    Api(ApiArgs),
    Webhook(WebhookArgs),
}

/// A version of a kind.
#[derive(Args, Clone)]
pub(super) struct GvkArgs {
    /// The group, without the domain of the project.
    #[arg(long, value_name = "GROUP", default_value = "")]
    pub(super) group: String,

    /// The version: v1, v1beta1, v1alpha1.
    #[arg(long, value_name = "VERSION")]
    pub(super) version: String,

    /// The kind, in PascalCase.
    #[arg(long, value_name = "KIND")]
    pub(super) kind: String,
}

impl GvkArgs {
    pub(super) fn gvk(&self) -> Gvk {
        Gvk { group: self.group.clone(), version: self.version.clone(), kind: self.kind.clone() }
    }
}

/// The place of an external kind's type.
#[derive(Args, Clone)]
struct ExternalArgs {
    /// The Rust module of a type from another crate, such as cert_manager::v1.
    #[arg(long = "external-api-path", value_name = "MODULE")]
    module: Option<String>,

    /// The domain of the type's API group.
    #[arg(long = "external-api-domain", value_name = "DOMAIN", requires = "module", default_value = "")]
    domain: String,

    /// The crate of the type, with a version: cert-manager@1.2.
    #[arg(long = "external-api-module", value_name = "CRATE", requires = "module", default_value = "")]
    package: String,
}

impl ExternalArgs {
    fn external(&self) -> Option<External> {
        self.module.clone().map(|path| External {
            path,
            domain: self.domain.clone(),
            module: self.package.clone(),
        })
    }
}

/// Add a kind: the type, a controller and a sample.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass create api --group apps --version v1 --kind Website
  windlass create api --group apps --version v2 --kind Website --controller=false
  windlass create api --group apps --version v1 --kind Deployment --resource=false     # a controller of a built-in kind
  windlass create api --group apps --version v1 --kind Website --controller-name website-backup     # a second controller

Without --resource and --controller, both are made.")]
struct ApiArgs {
    #[command(flatten)]
    gvk: GvkArgs,

    /// The plural of the kind, in lower case. Default: by the rules of English.
    #[arg(long, value_name = "PLURAL")]
    plural: Option<String>,

    /// Make the type in the api crate. false: the kind is built in, or from another crate.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    resource: Option<bool>,

    /// Make a controller. Default: true, unless another version of the kind has a controller.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    controller: Option<bool>,

    /// Make a controller with this name. A kind can have several.
    #[arg(long, value_name = "NAME")]
    controller_name: Option<String>,

    /// Objects are in namespaces. Default: true, or as in the versions that the kind has.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    namespaced: Option<bool>,

    #[command(flatten)]
    external: ExternalArgs,

    /// Write the files of the kind again, even if they exist.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    force: bool,

    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    foreign: ForeignArgs,
}

/// Add webhooks to a kind.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass create webhook --group apps --version v1 --kind Website --defaulting --programmatic-validation
  windlass create webhook --group apps --version v2 --kind Website --conversion --spoke v1
  windlass create webhook --group core --version v1 --kind Pod --programmatic-validation     # of a built-in kind")]
struct WebhookArgs {
    #[command(flatten)]
    gvk: GvkArgs,

    /// A webhook that sets defaults.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    defaulting: bool,

    /// The path of that webhook. Default: /mutate-GROUP-VERSION-KIND.
    #[arg(long, value_name = "PATH")]
    defaulting_path: Option<String>,

    /// A webhook that validates.
    #[arg(long, alias = "validation", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    programmatic_validation: bool,

    /// The path of that webhook. Default: /validate-GROUP-VERSION-KIND.
    #[arg(long, value_name = "PATH")]
    validation_path: Option<String>,

    /// Conversion: this version is the hub, the storage version.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    conversion: bool,

    /// Versions to convert to and from the hub. Default: all other versions of the kind.
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    spoke: Vec<String>,

    /// The plural of the kind; by default the plural of `create api`.
    #[arg(long, hide = true)]
    plural: Option<String>,

    #[command(flatten)]
    external: ExternalArgs,

    /// Overwrite files that exist.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    force: bool,

    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    foreign: ForeignArgs,
}

impl Create {
    pub(crate) fn run(self, out: &mut Output) -> Result<()> {
        match self.command {
            CreateCommand::Api(args) => args.run(out),
            CreateCommand::Webhook(args) => args.run(out),
        }
    }
}

impl ApiArgs {
    fn run(self, out: &mut Output) -> Result<()> {
        self.foreign.explain();
        let workspace = Workspace::current()?;
        let request = CreateApi {
            group: self.gvk.group.clone(),
            version: self.gvk.version.clone(),
            kind: self.gvk.kind.clone(),
            plural: self.plural.clone(),
            resource: self.resource,
            controller: self.controller,
            controller_name: self.controller_name.clone(),
            namespaced: self.namespaced,
            external: self.external.external(),
            force: self.force,
        };
        let after = request.apply(&workspace.project)?;
        let before = request.forced(&workspace.project);
        let outcome = Plan::create(Some(&before), &after).force(self.force).run(&workspace.folder)?;
        let new = outcome.writes.actions().next().is_some();
        if finish(self.write, &outcome, &workspace.folder, out)?
            && new
            && let Some(made) = after.resource(&self.gvk.group, &self.gvk.version, &self.gvk.kind)
        {
            advise(&after, made, self.controller_name.as_deref(), out);
        }
        Ok(())
    }
}

/// Prints the next steps for a new kind.
fn advise(project: &Project, made: &Resource, controller: Option<&str>, out: &mut Output) {
    let group = if project.multigroup {
        format!("{}/", windlass_scaffold::name::module(&made.group))
    } else {
        String::new()
    };
    let module = made.module();
    out.line("");
    out.line("Next:");
    if let Some(external) = made.external.as_ref().filter(|external| !external.module.is_empty()) {
        out.line(format_args!("  cargo add {}", external.module));
    }
    if made.api {
        let mut others =
            project.versions(&made.group, &made.kind).filter(|other| other.version != made.version);
        let (path, version) = (format!("api/src/{group}{}/{module}.rs", made.version), &made.version);
        if others.any(|other| other.api) {
            out.line(format_args!("  {path} begins as a copy of the last version: change its fields"));
            let hub = project
                .versions(&made.group, &made.kind)
                .find(|other| other.version != made.version && !other.webhooks.spokes.is_empty());
            match hub {
                Some(hub) => out.line(format_args!(
                    "  windlass edit --kind {} --hub {} adds the conversion between {version} and {}",
                    made.kind, hub.version, hub.version
                )),
                None => out.line(format_args!(
                    "  windlass edit --kind {} --hub {version} moves controllers and webhooks to {version}",
                    made.kind
                )),
            }
        } else {
            out.line(format_args!("  {path} describes the kind: give it fields"));
        }
    }
    let controller = controller.map(windlass_scaffold::name::module);
    if let Some(module) = controller.or_else(|| made.controller.then_some(module)) {
        out.line(format_args!("  src/controllers/{group}{module}.rs has the function that is called for each object: give it logic"));
    }
    out.line("  windlass dev runs it on a cluster of its own, and windlass test tests it");
}

impl WebhookArgs {
    fn run(self, out: &mut Output) -> Result<()> {
        self.foreign.explain();
        let workspace = Workspace::current()?;
        let request = CreateWebhook {
            gvk: self.gvk.gvk(),
            defaulting: self.defaulting,
            defaulting_path: self.defaulting_path.clone(),
            validation: self.programmatic_validation,
            validation_path: self.validation_path.clone(),
            conversion: self.conversion,
            spokes: self.spoke.clone(),
            external: self.external.external(),
        };
        let after = request.apply(&workspace.project)?;
        let outcome =
            Plan::create(Some(&workspace.project), &after).force(self.force).run(&workspace.folder)?;
        finish(self.write, &outcome, &workspace.folder, out)?;
        Ok(())
    }
}

/// Writes or shows an outcome, and fails if the person has to resolve conflicts. Returns whether files were written.
pub(super) fn finish(write: WriteArgs, outcome: &Outcome, folder: &Folder, out: &mut Output) -> Result<bool> {
    let written = write.finish(&outcome.writes, folder, out)?;
    if !outcome.unmerged.is_empty() {
        let files = outcome.unmerged.join(", ");
        out.line(format_args!(
            "left as they are, because .windlass/base no longer has what was scaffolded: {files}"
        ));
    }
    if !outcome.kept.is_empty() {
        out.line(format_args!(
            "left as they are, because they were there before: {}",
            outcome.kept.join(", ")
        ));
    }
    if !outcome.old_names.is_empty() {
        out.line(format_args!("names that Windlass no longer has; docs/migrating.md lists all of them:"));
        outcome.old_names.iter().for_each(|line| out.line(line));
    }
    if written && !outcome.conflicts.is_empty() {
        return Err(format!(
            "your changes and those of the template are of the same lines; look for <<<<<<< in: {}",
            outcome.conflicts.join(", ")
        )
        .into());
    }
    Ok(written)
}
