//! The command as a separate process.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use windlass_patience::stretched;

/// How long anything may take before a test gives up. Builds on busy machines are slow; a hang is longer.
pub(crate) fn patience() -> Duration {
    stretched(Duration::from_secs(60))
}

/// Returns the command with arguments, not started yet.
pub(crate) fn windlass(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(arguments).env_remove("RUST_LOG").env_remove("KUBECONFIG");
    command
}

/// A running `windlass`, killed when dropped.
pub(crate) struct Windlass {
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
    directory: TempDir,
}

impl Windlass {
    /// Starts the command in an empty directory.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_with_stdin(arguments, Stdio::null())
    }

    /// Starts the command in an empty directory, with this standard input.
    pub(crate) fn start_with_stdin(arguments: &[&str], stdin: Stdio) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = windlass(arguments);
        command.current_dir(directory.path());
        Self::spawn(command, directory, stdin)
    }

    /// Starts a command in the directory that the command has set.
    pub(crate) fn of(command: Command) -> Self {
        Self::spawn(command, tempfile::tempdir().unwrap(), Stdio::null())
    }

    fn spawn(mut command: Command, directory: TempDir, stdin: Stdio) -> Self {
        let mut child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (told, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if told.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, lines, said: Vec::new(), directory }
    }

    /// A cluster that is ready to serve.
    pub(crate) fn cluster(arguments: &[&str]) -> Self {
        let mut windlass = Self::start(&[&["cluster"], arguments].concat());
        windlass.until("kubeconfig: ");
        windlass
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join(".windlass/kubeconfig")
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line that contains `part`.
    #[track_caller]
    pub(crate) fn until(&mut self, part: &str) {
        self.until_all(&[part]);
    }

    /// Waits until each part was in a line, in any order.
    #[track_caller]
    pub(crate) fn until_all(&mut self, parts: &[&str]) {
        let end = Instant::now() + patience();
        let mut missing = parts.to_vec();
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            missing.retain(|part| !line.contains(part));
            self.said.push(line);
            if missing.is_empty() {
                return;
            }
        }
        let _ = self.child.kill();
        panic!("no line with {missing:?}; it said:\n{}\n{}", self.said.join("\n"), self.complaints());
    }

    /// Sends a signal: `INT`, `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Returns the lines of the output until now.
    pub(crate) fn said(&self) -> &[String] {
        &self.said
    }

    /// Reads the lines that follow, to the end of the output.
    pub(crate) fn rest(&mut self) -> String {
        let rest: Vec<String> = self.lines.iter().collect();
        rest.join("\n")
    }

    /// Returns whether the process runs.
    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Closes the write end of the pipe to standard input.
    pub(crate) fn close_stdin(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits for the end of the process.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let end = Instant::now() + patience();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "it does not end; it said:\n{}", self.said.join("\n"));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the next line on stderr.
    pub(crate) fn next_log_line(&mut self) -> String {
        let stderr = self.child.stderr.as_mut().unwrap();
        let (mut line, mut byte) = (Vec::new(), [0]);
        // Byte by byte: `complaints` reads the rest of stderr.
        while stderr.read_exact(&mut byte).is_ok() && byte != *b"\n" {
            line.push(byte[0]);
        }
        String::from_utf8_lossy(&line).into_owned()
    }

    /// Returns the whole stderr of the ended process.
    pub(crate) fn complaints(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut text);
        }
        text
    }
}

impl Drop for Windlass {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
