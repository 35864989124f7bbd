//! `windlass completions`

use clap::Args;
use clap_complete::Shell;

use crate::error::Result;
use crate::output::Output;

/// Print completions for a shell.
#[derive(Args)]
#[command(after_help = "\
Examples:
  source <(windlass completions bash)
  windlass completions zsh > \"${fpath[1]}/_windlass\"
  windlass completions fish > ~/.config/fish/completions/windlass.fish
  windlass completions powershell | Out-String | Invoke-Expression")]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, out: &mut Output) -> Result<()> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut crate::command(), "windlass", &mut text);
        out.line(String::from_utf8(text)?.trim_end());
        Ok(())
    }
}
