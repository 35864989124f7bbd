//! Calls cargo.

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Output as Finished, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use tokio::process::Command;

use super::Workspace;
use crate::error::{Advice, Error, Result};
use crate::output::Output;

/// The duration of the first build on one core, in minutes: the dependencies of a project are about 200
/// crates.
const FIRST_BUILD_MINUTES: usize = 4;

/// A call of cargo in a project.
pub(crate) struct Cargo {
    command: Command,
    /// True if cargo leads a process group.
    has_group: bool,
}

impl Cargo {
    /// Returns a call of a subcommand. The output goes to the user.
    pub(crate) fn new(root: &Path, subcommand: &str) -> Self {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.arg(subcommand).current_dir(root).stdin(Stdio::null()).kill_on_drop(true);
        // A new process group, which is ended as a whole: a killed cargo leaves compilers and tests running.
        // In the foreground of a terminal, cargo stays in this group: cargo may ask for a passphrase, and the
        // terminal ends the whole group.
        let has_group = !std::io::stdin().is_terminal();
        if has_group {
            command.process_group(0);
        }
        Self { command, has_group }
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets a variable of the environment.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs cargo to the end, and returns cargo's output. Messages for the user go to stderr.
    pub(crate) async fn printed(mut self) -> Result<Vec<u8>> {
        self.command.stdout(Stdio::piped());
        let output = self.finish().await?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(format!("cargo ended with {}", output.status).into())
        }
    }

    /// Runs cargo to the end. Dropping the future ends cargo and all processes that cargo has started.
    pub(crate) async fn run(self) -> Result<()> {
        let status = self.finish().await?.status;
        if status.success() { Ok(()) } else { Err(format!("cargo ended with {status}").into()) }
    }

    async fn finish(mut self) -> Result<Finished> {
        let child = self.command.spawn().map_err(not_started)?;
        let leader = child.id().filter(|_| self.has_group).and_then(|id| Pid::from_raw(id.cast_signed()));
        let group = Group(leader);
        let finished = child.wait_with_output().await?;
        group.has_ended();
        Ok(finished)
    }
}

/// A process group that gets SIGTERM when the value is dropped.
struct Group(Option<Pid>);

impl Group {
    /// Forgets the group: the operating system may give the number to another group.
    fn has_ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // The group may have ended meanwhile.
            let _ = kill_process_group(leader, Signal::TERM);
        }
    }
}

fn not_started(error: std::io::Error) -> Error {
    Advice::new(
        format!("cannot run cargo: {error}"),
        "install Rust (https://rustup.rs), and put cargo on the PATH",
    )
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
    /// Prints the expected duration of the first build, if no crate is compiled yet.
    pub(crate) fn announce_first_build(&self, out: &mut Output) {
        if self.has_compiled() {
            return;
        }
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let minutes = FIRST_BUILD_MINUTES.div_ceil(cores);
        out.line(format_args!(
            "the first build compiles all dependencies: about {minutes} min with {cores} cores. Later builds take seconds"
        ));
    }

    /// Returns whether cargo has compiled a crate for this project.
    fn has_compiled(&self) -> bool {
        let named = ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"].into_iter().find_map(std::env::var_os);
        let target = self.root.join(named.unwrap_or_else(|| "target".into()));
        target.join("debug/.fingerprint").is_dir() || self.is_elsewhere()
    }

    /// Returns whether a configuration of cargo names another target folder.
    fn is_elsewhere(&self) -> bool {
        let mut files = self.root.ancestors().map(|folder| folder.join(".cargo/config.toml"));
        files.any(|file| std::fs::read_to_string(file).is_ok_and(|text| text.contains("target-dir")))
    }

    /// Builds the operator, and returns the path of the program. Cargo shows the progress on stderr.
    pub(crate) async fn build(&self, out: &mut Output) -> Result<PathBuf> {
        let name = &self.project.project_name;
        self.announce_first_build(out);
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
        let output = cargo.finish().await?;
        if !output.status.success() {
            return Err(Advice::new(
                format!("{name} does not compile"),
                "the messages of the compiler are above",
            ));
        }
        let program =
            program(&output.stdout, name).ok_or_else(|| format!("cargo built no program {name}"))?;
        out.line(format_args!("built {name} in {:.1} s", begun.elapsed().as_secs_f64()));
        Ok(program)
    }
}

/// Returns the path of the program in cargo's messages.
pub(crate) fn program(messages: &[u8], name: &str) -> Option<PathBuf> {
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
