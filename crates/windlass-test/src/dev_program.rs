//! An operator's command `dev` as a process.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use kube_client::Client;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use windlass_patience::stretched;
use windlass_runtime::client::{ClientBuilder, ConfigSource};

/// The beginning of the line that `dev` prints when the operator runs.
const RUNS: &str = "The operator runs.";

/// How long `dev` may take on an idle machine until the operator runs, and to end.
const LIMIT: Duration = Duration::from_secs(60);

/// An operator's program with the command `dev`, as on a terminal. The program starts an embedded control
/// plane, and is killed when the value is dropped.
///
/// ```no_run
/// # async fn example() {
/// use windlass_test::DevProgram;
///
/// // In an integration test: `env!("CARGO_BIN_EXE_my-operator")`.
/// let program = DevProgram::start("target/debug/my-operator").await;
/// assert!(program.said().contains(&"applied configmap/sample".to_owned()));
/// let client = program.client();
/// # drop(client);
/// assert!(program.interrupt().await.success());
/// # }
/// ```
pub struct DevProgram {
    process: Child,
    said: Vec<String>,
    client: Client,
    _directory: TempDir,
}

impl DevProgram {
    /// Starts `program dev`, and waits until the operator runs.
    ///
    /// # Panics
    /// The program cannot be started, ends, or does not run within a minute, [stretched](crate::stretched).
    pub async fn start(program: &str) -> Self {
        let directory =
            tempfile::tempdir().unwrap_or_else(|error| panic!("no folder for temporary files: {error}"));
        let kubeconfig = directory.path().join("kubeconfig");
        let mut command = Command::new(program);
        command.arg("dev").arg("--write-kubeconfig").arg(&kubeconfig);
        command.stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap_or_else(|error| panic!("{program} does not start: {error}"));
        let limit = stretched(LIMIT);
        let said = timeout(limit, until_it_runs(&mut process)).await;
        let said = said.unwrap_or_else(|_| panic!("the operator of {program} does not run after {limit:?}"));
        let source = ConfigSource { kubeconfig: Some(kubeconfig), ..ConfigSource::default() };
        let client = match source.load().await {
            Ok(config) => ClientBuilder::new(config).build(),
            Err(error) => Err(error),
        };
        let client = client.unwrap_or_else(|error| panic!("the kubeconfig of {program}: {error}"));
        Self { process, said, client, _directory: directory }
    }

    /// Returns the lines that the program printed until the operator ran.
    pub fn said(&self) -> &[String] {
        &self.said
    }

    /// Returns a client of the program's control plane, with the rights of an administrator.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Sends SIGINT, as Ctrl-C does, and waits for the end of the program.
    ///
    /// # Panics
    /// The program has ended already, or does not end within a minute, [stretched](crate::stretched).
    pub async fn interrupt(mut self) -> ExitStatus {
        let pid = self.process.id().unwrap_or_else(|| panic!("the program has ended")).to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status().await;
        assert!(sent.is_ok_and(|sent| sent.success()), "no signal could be sent to process {pid}");
        let limit = stretched(LIMIT);
        let ended = timeout(limit, self.process.wait()).await;
        let ended = ended.unwrap_or_else(|_| panic!("process {pid} runs {limit:?} after SIGINT"));
        ended.unwrap_or_else(|error| panic!("process {pid}: {error}"))
    }
}

async fn until_it_runs(process: &mut Child) -> Vec<String> {
    let Some(output) = process.stdout.take() else { panic!("the program has no output") };
    let mut lines = BufReader::new(output).lines();
    let mut said = Vec::new();
    while let Ok(Some(line)) = lines.next_line().await {
        if line.starts_with(RUNS) {
            // The program must be able to go on printing.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return said;
        }
        said.push(line);
    }
    panic!("the program has ended; it said:\n{}", said.join("\n"))
}
