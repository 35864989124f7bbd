//! `windlass delete`

use clap::{Args, Subcommand};
use windlass_scaffold::{DeleteApi, DeleteWebhook, Plan};

use super::create::{GvkArgs, finish};
use super::foreign::ForeignArgs;
use super::write_args::WriteArgs;
use crate::error::Result;
use crate::output::Output;
use crate::project::Workspace;

/// Remove a kind or webhooks from the project.
///
/// Files that were changed by hand are deleted only if the files are in git.
#[derive(Args)]
pub(crate) struct Delete {
    #[command(subcommand)]
    command: DeleteCommand,
}

#[derive(Subcommand)]
enum DeleteCommand {
    Api(ApiArgs),
    Webhook(WebhookArgs),
}

/// Remove a version of a kind, together with the controller, the webhooks and the sample.
#[derive(Args)]
struct ApiArgs {
    #[command(flatten)]
    gvk: GvkArgs,

    /// Delete changed files that are not committed.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    force: bool,

    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    foreign: ForeignArgs,
}

/// Remove webhooks of a kind: the named webhooks, or all.
#[derive(Args)]
struct WebhookArgs {
    #[command(flatten)]
    gvk: GvkArgs,

    /// The webhook that sets defaults.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    defaulting: bool,

    /// The webhook that validates.
    #[arg(long, alias = "validation", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    programmatic_validation: bool,

    /// The conversion.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    conversion: bool,

    /// Delete changed files that are not committed.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    force: bool,

    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    foreign: ForeignArgs,
}

impl Delete {
    pub(crate) fn run(self, out: &mut Output) -> Result<()> {
        let workspace = Workspace::current()?;
        let (after, force, write) = match &self.command {
            DeleteCommand::Api(args) => {
                args.foreign.explain();
                (DeleteApi { gvk: args.gvk.gvk() }.apply(&workspace.project)?, args.force, args.write)
            }
            DeleteCommand::Webhook(args) => {
                args.foreign.explain();
                let request = DeleteWebhook {
                    gvk: args.gvk.gvk(),
                    defaulting: args.defaulting,
                    validation: args.programmatic_validation,
                    conversion: args.conversion,
                };
                (request.apply(&workspace.project)?, args.force, args.write)
            }
        };
        let outcome = Plan::create(Some(&workspace.project), &after).force(force).run(&workspace.folder)?;
        finish(write, &outcome, &workspace.folder, out)?;
        Ok(())
    }
}
