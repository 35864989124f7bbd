//! The program of the operator.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{ChildStdin, Command};
use windlass_codegen::Inventory;

use super::left_behind::{self, Record};
use super::{Cluster, Workspace};
use crate::error::Result;
use crate::output::Output;

/// The time that an operator has to shut down before SIGKILL.
const GRACE: Duration = Duration::from_secs(35);

/// The variable of the operator's flag `--stop-with-stdin`. An operator of an earlier version, without the flag, ignores the variable.
const STOP_WITH_STDIN: &str = "WINDLASS_STOP_WITH_STDIN";

/// The program of the operator.
pub(crate) struct Operator {
    program: PathBuf,
}

impl Operator {
    pub(crate) fn new(program: PathBuf) -> Self {
        Self { program }
    }

    /// Returns the output of a command of the operator. The command needs no cluster.
    pub(crate) async fn ask(&self, args: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.args(args).stdin(Stdio::null()).env_remove("RUST_LOG").kill_on_drop(true);
        let output = command
            .output()
            .await
            .map_err(|error| format!("cannot run {}: {error}", self.program.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let args = args.join(" ");
            return Err(format!(
                "{} {args} failed ({}): {}",
                self.program.display(),
                output.status,
                said.trim()
            )
            .into());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Returns the operator's CRDs.
    pub(crate) async fn crds(&self) -> Result<Vec<CustomResourceDefinition>> {
        let text = self.ask(&["crds"]).await?;
        Ok(serde_saphyr::from_multiple(&text)?)
    }

    /// Returns the declarations of the operator.
    pub(crate) async fn inventory(&self) -> Result<Inventory> {
        Ok(Inventory::parse(&self.ask(&["manifests"]).await?)?)
    }

    /// Starts the operator on a cluster, with flags of this command and of the person. Operators that a killed command left are ended before.
    ///
    /// The operator stops when standard input ends, and this process holds the other end: the operating
    /// system closes the pipe even if this process is killed.
    pub(crate) async fn start(
        &self,
        workspace: &Workspace,
        cluster: &Cluster,
        own: &[OsString],
        args: &[String],
        out: &mut Output,
    ) -> Result<Child> {
        left_behind::end_all(&workspace.root, out).await?;
        let mut command = Command::new(&self.program);
        command.arg("run").args(cluster.flags()).args(own).args(args).kill_on_drop(true);
        command.stdin(Stdio::piped()).env(STOP_WITH_STDIN, "true");
        // A new process group: Ctrl-C reaches only this process, which passes a single signal to the
        // operator. A second signal would end the operator at once.
        command.process_group(0);
        let mut child =
            command.spawn().map_err(|error| format!("cannot run {}: {error}", self.program.display()))?;
        let record = child.id().map(|pid| Record::write(&workspace.root, pid)).transpose()?.flatten();
        // `Child::wait` would close the pipe if the pipe stayed in `child`.
        let pipe = child.stdin.take();
        Ok(Child { process: child, _pipe: pipe, _record: record })
    }
}

/// An operator that runs. Dropping a child kills the operator.
pub(crate) struct Child {
    process: tokio::process::Child,
    _pipe: Option<ChildStdin>,
    _record: Option<Record>,
}

impl Child {
    /// Waits until the operator ends without a request.
    pub(crate) async fn ended(&mut self) -> Result<ExitStatus> {
        Ok(self.process.wait().await?)
    }

    /// Returns whether the operator has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    /// Asks the operator to shut down, and waits for the end.
    pub(crate) async fn stop(&mut self) -> Result<ExitStatus> {
        if let Some(pid) = self.process.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            // The operator may have ended meanwhile.
            let _ = kill_process(pid, Signal::TERM);
        }
        if let Ok(status) = tokio::time::timeout(GRACE, self.process.wait()).await {
            return Ok(status?);
        }
        self.process.kill().await?;
        Ok(self.process.wait().await?)
    }
}
