//! Background processes.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use windlass_patience::stretched;

use crate::Result;

/// The time that a process has to exit before SIGKILL.
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
    /// Until `stop`, even after the end of the task.
    #[default]
    Detached,
    /// No longer than the task: Ctrl-C ends the process too.
    Attached,
}

impl Process {
    /// Starts a process with output to `NAME.log`.
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
        // A separate process group keeps Ctrl-C at the terminal away from the process.
        #[cfg(unix)]
        if lifetime == Lifetime::Detached {
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
        }
        let child = command.spawn().map_err(|error| format!("cannot run {}: {error}", program.display()))?;
        Ok(Process { name, id: child.id() })
    }

    /// Returns whether the process runs. The name of the process is compared too, because the id may have
    /// been reused.
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
        // The process may have exited already.
        if status.success() || !self.runs() {
            Ok(())
        } else {
            Err(format!("cannot stop {}", self.name).into())
        }
    }

    /// Waits until the process listens at a port of the loopback address, for `limit` on an idle machine.
    /// `logs` are further log files of the process in `folder`.
    ///
    /// # Errors
    /// The process ended, or the limit has passed. The error has the time that was waited and the ends of the logs.
    pub(crate) fn wait_for_port(&self, port: u16, limit: Duration, folder: &Path, logs: &[&str]) -> Result {
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = !self.runs();
            if ended || start.elapsed() > stretched(limit) {
                let state =
                    if ended { "ended".to_owned() } else { format!("does not listen at port {port}") };
                let output = format!("{}.log", self.name);
                let logs = std::iter::once(output.as_str()).chain(logs.iter().copied());
                let logs: String = logs.map(|log| shown(&folder.join(log))).collect();
                let waited = start.elapsed().as_secs_f64();
                let _ = self.stop();
                return Err(format!("the process {state} after {waited:.1} s{logs}").into());
            }
            sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Returns the last ten lines of the log.
    pub(crate) fn log_tail(&self, folder: &Path) -> String {
        tail(&folder.join(format!("{}.log", self.name)))
    }
}

/// Returns the name and the last lines of a log.
fn shown(log: &Path) -> String {
    match tail(log) {
        lines if lines.is_empty() => format!("\n{} is empty", log.display()),
        lines => format!("\nthe end of {}:\n{lines}", log.display()),
    }
}

/// Returns the last ten lines of a file.
fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the error of a shell script that never listens.
    fn error_of(name: &str, script: &str, limit: Duration) -> String {
        let folder = std::env::temp_dir().join(format!("windlass-xtask-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let arguments = ["-c".to_owned(), script.to_owned()];
        let process = Process::spawn(Path::new("sh"), &arguments, &folder, Lifetime::Detached).unwrap();
        let error = process.wait_for_port(1, limit, &folder, &["own.log"]).unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        error.replace(&folder.display().to_string(), "FOLDER")
    }

    #[test]
    fn a_process_that_does_not_listen_is_reported_with_the_time_and_its_logs() {
        let slow = error_of("slow", "echo starting; sleep 60", Duration::from_millis(300));
        let (head, rest) = slow.split_once('\n').unwrap();
        assert!(
            head.starts_with("the process does not listen at port 1 after ") && head.ends_with(" s"),
            "{slow}"
        );
        assert_eq!(rest, "the end of FOLDER/sh.log:\nstarting\nFOLDER/own.log is empty");
        let dead = error_of("dead", "echo broken; echo why > own.log; exit 1", Duration::from_secs(30));
        assert!(dead.starts_with("the process ended after "), "{dead}");
        assert!(
            dead.ends_with("the end of FOLDER/sh.log:\nbroken\nthe end of FOLDER/own.log:\nwhy"),
            "{dead}"
        );
    }
}
