//! Calls cargo.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use serde::Deserialize;
use tokio::process::Command;

use super::Workspace;
use crate::error::Result;
use crate::output::Output;

/// A call of cargo in a project.
pub(crate) struct Cargo {
    command: Command,
}

impl Cargo {
    /// Returns a call with a subcommand, whose output goes to the person.
    pub(crate) fn new(root: &Path, subcommand: &str) -> Self {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.arg(subcommand).current_dir(root).stdin(Stdio::null()).kill_on_drop(true);
        Self { command }
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Runs it to its end.
    pub(crate) async fn run(mut self) -> Result<()> {
        let status = self.command.status().await.map_err(not_started)?;
        if status.success() { Ok(()) } else { Err(format!("cargo ended with {status}").into()) }
    }
}

fn not_started(error: std::io::Error) -> String {
    format!("cannot run cargo: {error}. Install Rust (https://rustup.rs), and put cargo on the PATH")
}

/// A line of `cargo build --message-format=json`.
#[derive(Deserialize)]
struct Message {
    reason: String,
    executable: Option<PathBuf>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

impl Workspace {
    /// Builds the operator, and returns the path of the program. Cargo shows its progress on stderr.
    pub(crate) async fn build(&self, out: &mut Output) -> Result<PathBuf> {
        let name = &self.project.project_name;
        let begun = Instant::now();
        out.line(format_args!("building {name}"));
        // The operator is the package of the root folder.
        let mut cargo = Cargo::new(&self.root, "build").args([
            "--bin",
            name,
            "--message-format",
            "json-render-diagnostics",
        ]);
        cargo.command.stdout(Stdio::piped());
        let output = cargo.command.spawn().map_err(not_started)?.wait_with_output().await?;
        if !output.status.success() {
            return Err(format!("{name} does not compile; the messages are above").into());
        }
        let program =
            program(&output.stdout, name).ok_or_else(|| format!("cargo built no program {name}"))?;
        out.line(format_args!("built {name} in {:.1} s", begun.elapsed().as_secs_f64()));
        Ok(program)
    }
}

/// Returns the path of the program in cargo's messages.
fn program(messages: &[u8], name: &str) -> Option<PathBuf> {
    let lines = messages.split(|byte| *byte == b'\n');
    let messages = lines.filter_map(|line| serde_json::from_slice::<Message>(line).ok());
    let artifacts = messages.filter(|message| message.reason == "compiler-artifact");
    let is_it = |target: &Target| target.name == name && target.kind.iter().any(|kind| kind == "bin");
    let mut programs = artifacts.filter(|artifact| artifact.target.as_ref().is_some_and(is_it));
    programs.find_map(|artifact| artifact.executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_the_binary_of_its_name() {
        let messages =
            br#"{"reason":"compiler-artifact","target":{"name":"serde","kind":["lib"]},"executable":null}
not json
{"reason":"compiler-artifact","target":{"name":"op","kind":["bin"]},"executable":"/a b/op"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(program(messages, "op"), Some(PathBuf::from("/a b/op")));
        assert_eq!(program(messages, "serde"), None);
    }
}
