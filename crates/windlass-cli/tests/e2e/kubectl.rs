//! Real kubectls: found on the PATH and beside the real file there.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

use tempfile::TempDir;

use crate::process::{Windlass, patience};

/// A kubectl with a control plane.
pub(crate) struct Kubectl {
    program: PathBuf,
    windlass: Windlass,
    home: TempDir,
}

/// Runs a test with the kubectl of the PATH. Without a kubectl, prints a message.
pub(crate) fn with_kubectl(test: impl FnOnce(&Kubectl)) {
    match on_path() {
        Some(program) => test(&Kubectl::new(program, Windlass::cluster(&[]))),
        None => missing(),
    }
}

/// Prints, past the test harness, which hides output of tests, that a test was skipped.
pub(crate) fn missing() {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "NOT TESTED for want of kubectl on the PATH: {test}");
}

/// The kubectl of the PATH.
pub(crate) fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join("kubectl")).find(|program| program.is_file())
}

/// Returns `kubectl.1.29` to `kubectl.1.33` beside the real file of the kubectl on the PATH, and the kubectl
/// of `WINDLASS_TEST_KUBECTL`.
pub(crate) fn others() -> Vec<PathBuf> {
    let beside = on_path().and_then(|program| program.canonicalize().ok());
    let directory = beside.as_deref().and_then(Path::parent).map(Path::to_owned);
    let siblings = directory
        .into_iter()
        .flat_map(|directory| (29..=33).map(move |minor| directory.join(format!("kubectl.1.{minor}"))));
    let named = std::env::var_os("WINDLASS_TEST_KUBECTL").map(PathBuf::from);
    siblings.chain(named).filter(|program| program.is_file()).collect()
}

impl Kubectl {
    pub(crate) fn new(program: PathBuf, windlass: Windlass) -> Self {
        Self { program, windlass, home: tempfile::tempdir().unwrap() }
    }

    /// The kubeconfig of the administrator.
    pub(crate) fn kubeconfig(&self) -> String {
        self.windlass.kubeconfig().display().to_string()
    }

    /// The command, not started yet.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env("KUBECONFIG", self.windlass.kubeconfig())
            .env("HOME", self.home.path())
            .current_dir(self.home.path());
        command
    }

    /// Runs kubectl to the end, with `input` on stdin.
    pub(crate) fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A kubectl that does not read the input closes stdin.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().unwrap()
    }

    /// Returns the output of a successful command.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        self.ok_with(arguments, "")
    }

    /// The same with `input` on stdin.
    #[track_caller]
    pub(crate) fn ok_with(&self, arguments: &[&str], input: &str) -> String {
        let output = self.run(arguments, input);
        assert!(output.status.success(), "{} {arguments:?}\n{}", self.program.display(), show(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// `kubectl apply -f -`.
    #[track_caller]
    pub(crate) fn apply(&self, manifest: &str) -> String {
        self.ok_with(&["apply", "-f", "-"], manifest)
    }

    /// Returns the error output of a failed command.
    #[track_caller]
    pub(crate) fn fails(&self, arguments: &[&str], input: &str) -> String {
        let output = self.run(arguments, input);
        assert!(!output.status.success(), "{arguments:?} must fail\n{}", show(&output));
        String::from_utf8(output.stderr).unwrap()
    }

    /// Repeats a command until the output is `expected`.
    #[track_caller]
    pub(crate) fn until(&self, arguments: &[&str], expected: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + patience();
        loop {
            let output = self.run(arguments, "");
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            if output.status.success() && expected(&printed) {
                return printed;
            }
            assert!(Instant::now() < end, "never as expected: {arguments:?}\n{}", show(&output));
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    /// Starts a command that prints continuously: `get -w`.
    pub(crate) fn follow(&self, arguments: &[&str]) -> Followed {
        let mut child =
            self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (told, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if told.send(line).is_err() {
                    break;
                }
            }
        });
        Followed { child, lines, said: Vec::new() }
    }

    /// Writes a file into kubectl's directory, and returns the path of the file.
    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        let path = self.home.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }
}

fn show(output: &Output) -> String {
    format!(
        "{}\nstdout: {}\nstderr: {}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// A kubectl that goes on printing; killed when dropped.
pub(crate) struct Followed {
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
}

impl Followed {
    /// Waits for a line that contains all `parts`.
    #[track_caller]
    pub(crate) fn until(&mut self, parts: &[&str]) -> String {
        let end = Instant::now() + patience();
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            self.said.push(line.clone());
            if parts.iter().all(|part| line.contains(part)) {
                return line;
            }
        }
        panic!("no line with {parts:?}:\n{}", self.said.join("\n"));
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
