//! A shell that a reader types into.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::{Result, project};

/// The time limit of a block, including compilation.
const PATIENCE: Duration = Duration::from_secs(900);

/// The time between two looks at whether bash still runs.
const LOOK: Duration = Duration::from_secs(1);

/// A running bash. The output of bash and of bash's children is one stream of lines.
pub(super) struct Shell {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    /// The lines since the block before the last.
    said: Vec<String>,
    folder: PathBuf,
    blocks: usize,
}

impl Shell {
    /// Starts bash in a folder, with `windlass` on the PATH.
    pub(super) fn start(folder: &Path, windlass: &Path, target: &Path) -> Result<Self> {
        let path = format!("{}:{}", windlass.display(), std::env::var("PATH").unwrap_or_default());
        let (reader, writer) = std::io::pipe()?;
        let mut child = Command::new("bash")
            .current_dir(folder)
            .env("PATH", path)
            .env("CARGO_TARGET_DIR", target)
            .env("CARGO_NET_OFFLINE", "true")
            .env("WINDLASS_IMAGES", folder.join(".images"))
            // A reader depends on the released crates.
            .env("WINDLASS_CHECKOUT", project::root().canonicalize()?)
            // The reader's name in commits.
            .envs(["AUTHOR", "COMMITTER"].map(|role| (format!("GIT_{role}_NAME"), "reader")))
            .envs(["AUTHOR", "COMMITTER"].map(|role| (format!("GIT_{role}_EMAIL"), "reader@example.com")))
            .env_remove("KUBECONFIG")
            // Set for this workspace; a project must not need the variable.
            .env_remove("K8S_OPENAPI_ENABLED_VERSION")
            .stdin(Stdio::piped())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0)
            .spawn()?;
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(std::result::Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut input = child.stdin.take().ok_or("bash has no input")?;
        writeln!(input, "set -e")?;
        Ok(Self { child, input, lines, said: Vec::new(), folder: folder.to_owned(), blocks: 0 })
    }

    /// Types commands, waits for the end, and for lines that contain the expected texts.
    pub(super) fn run(&mut self, commands: &str, expected: &[String]) -> Result {
        self.blocks += 1;
        let mark = format!("__block_{}_is_done__", self.blocks);
        self.said.clear();
        let typed = commands.trim_end();
        // The folder may have changed; `write` needs the present folder.
        write!(self.input, "{typed}\necho {mark} \"$PWD\"\n")?;
        let mut missing: Vec<&str> = expected.iter().map(String::as_str).collect();
        missing.push(&mark);
        let end = Instant::now() + PATIENCE;
        while !missing.is_empty() {
            let Some(line) = self.next_line(end) else {
                let tail: Vec<&str> = self.said.iter().rev().take(60).rev().map(String::as_str).collect();
                return Err(format!(
                    "after\n{typed}\nthese did not appear: {missing:?}\nit said:\n{}",
                    tail.join("\n")
                )
                .into());
            };
            println!("   {line}");
            if let Some((_, folder)) = line.split_once(&format!("{mark} ")) {
                self.folder = PathBuf::from(folder);
            }
            missing.retain(|part| !line.contains(part));
            self.said.push(line);
        }
        Ok(())
    }

    /// Returns the next line. Returns `None` if no line comes until `end`, or if bash has ended: children of
    /// bash may keep the output open.
    fn next_line(&mut self, end: Instant) -> Option<String> {
        while Instant::now() < end {
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => return Some(line),
                Err(RecvTimeoutError::Timeout) if matches!(self.child.try_wait(), Ok(None)) => {}
                Err(_) => return None,
            }
        }
        None
    }

    /// Writes a file of the project.
    pub(super) fn write(&self, path: &str, text: &str) -> Result {
        Ok(fs::write(self.folder.join(path), text)?)
    }

    /// Ends bash and all children of bash.
    pub(super) fn end(mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-TERM", "--", &group]).status();
        drop(self.input);
        let _ = self.child.wait();
    }
}
