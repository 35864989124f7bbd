//! Flags of the verbs that write files.

use clap::Args;
use windlass_scaffold::{Action, Folder, Writes};

use crate::error::Result;
use crate::output::Output;

/// Flags that only show files instead of writing files.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct WriteArgs {
    /// List the files that would be written, and write no file.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Show the changes as a diff, and write no file.
    #[arg(long)]
    pub(crate) diff: bool,
}

impl WriteArgs {
    /// Writes the files, or shows the changes. Returns whether the files were written.
    pub(crate) fn finish(self, writes: &Writes, folder: &Folder, out: &mut Output) -> Result<bool> {
        if self.diff {
            let diff = writes.diff();
            if !diff.is_empty() {
                out.line(diff.trim_end());
            }
            return Ok(false);
        }
        if !self.dry_run {
            writes.apply(folder)?;
        }
        let mut any = false;
        for (action, path) in writes.actions() {
            any = true;
            if self.dry_run {
                out.line(format_args!("would {} {path}", infinitive(action)));
            } else {
                out.line(format_args!("{} {path}", action.done()));
            }
        }
        if !any {
            out.line("nothing to write: everything is up to date");
        }
        Ok(!self.dry_run)
    }
}

fn infinitive(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Change => "change",
        Action::Remove => "remove",
    }
}
