//! Background processes.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::Result;

/// The time that a process has to exit before it is killed.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A background process.
#[derive(Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) id: u32,
}

/// How long processes run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// Until they are stopped, after the task has ended.
    #[default]
    Detached,
    /// No longer than the task: Ctrl-C ends them too.
    Attached,
}

impl Process {
    /// Starts a process that writes its output to `NAME.log`.
    pub(crate) fn spawn(
        program: &Path,
        arguments: &[String],
        folder: &Path,
        lifetime: Lifetime,
    ) -> Result<Self> {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let log = File::create(folder.join(format!("{name}.log")))?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // Its own process group keeps Ctrl-C at the terminal away from it.
        #[cfg(unix)]
        if lifetime == Lifetime::Detached {
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
        }
        let child = command.spawn().map_err(|error| format!("cannot run {}: {error}", program.display()))?;
        Ok(Process { name, id: child.id() })
    }

    /// Whether the process runs. Its name is compared too, because the id may have been reused.
    pub(crate) fn runs(&self) -> bool {
        let output = Command::new("ps").args(["-p", &self.id.to_string(), "-o", "stat=,args="]).output();
        output.is_ok_and(|output| {
            let line = String::from_utf8_lossy(&output.stdout).into_owned();
            line.contains(&self.name) && !line.trim_start().starts_with('Z')
        })
    }

    /// Terminates the process: SIGTERM, then SIGKILL after a timeout.
    pub(crate) fn stop(&self) -> Result {
        if !self.runs() {
            return Ok(());
        }
        self.signal("TERM")?;
        let start = Instant::now();
        while self.runs() {
            if start.elapsed() > TIMEOUT {
                self.signal("KILL")?;
                return Err(format!("{} ({}) did not exit and was killed", self.name, self.id).into());
            }
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn signal(&self, signal: &str) -> Result {
        let status = Command::new("kill").args([&format!("-{signal}"), &self.id.to_string()]).status()?;
        // The process may have exited by itself.
        if status.success() || !self.runs() {
            Ok(())
        } else {
            Err(format!("cannot stop {}", self.name).into())
        }
    }

    /// Returns the last ten lines of its log.
    pub(crate) fn log_tail(&self, folder: &Path) -> String {
        let text = fs::read_to_string(folder.join(format!("{}.log", self.name))).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }
}
