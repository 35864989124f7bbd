//! `windlass update`

use clap::Args;
use windlass_scaffold::{Outcome, Plan};

use super::create::finish;
use super::write_args::WriteArgs;
use crate::error::Result;
use crate::output::Output;
use crate::project::Workspace;

/// Bring the scaffolded files up to date with this version of windlass.
///
/// Files that you have not changed become the new template. In files that you have changed, your changes and
/// the template's changes are merged; conflicting changes stay in the file between <<<<<<< and >>>>>>>. Names of the API
/// that have changed are renamed in these files; uses in other files are printed with the new name.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass update --diff     # what would change
  windlass update")]
pub(crate) struct Update {
    /// Go on although there are changes that are not committed.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set)]
    force: bool,

    #[command(flatten)]
    write: WriteArgs,
}

impl Update {
    pub(crate) fn run(self, out: &mut Output) -> Result<()> {
        let workspace = Workspace::current()?;
        let mut after = workspace.project.clone();
        env!("CARGO_PKG_VERSION").clone_into(&mut after.windlass);
        let outcome = Plan::update(&workspace.project, &after).run(&workspace.folder)?;
        refuse_uncommitted(&workspace, &outcome, self.force || self.write.dry_run || self.write.diff)?;
        finish(self.write, &outcome, &workspace.folder, out)?;
        Ok(())
    }
}

/// Refuses to merge into files with uncommitted changes: the user could not tell the changes apart.
pub(super) fn refuse_uncommitted(workspace: &Workspace, outcome: &Outcome, allowed: bool) -> Result<()> {
    if allowed || outcome.writes.is_empty() {
        return Ok(());
    }
    let mut changed = workspace.folder.uncommitted().unwrap_or_default();
    if changed.is_empty() {
        return Ok(());
    }
    let more = changed.len().saturating_sub(3);
    changed.truncate(3);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Err(format!(
        "there are changes that are not committed: {}{more}. Commit them first, so that `git diff` shows what this changes, or add --force",
        changed.join(", ")
    )
    .into())
}
