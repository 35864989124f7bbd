//! The program of the operator.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;
use windlass_codegen::Inventory;

use super::Cluster;
use crate::error::Result;

/// How long an operator may take to shut down before it is killed.
const GRACE: Duration = Duration::from_secs(35);

/// The program of the operator.
pub(crate) struct Operator {
    program: PathBuf,
}

impl Operator {
    pub(crate) fn new(program: PathBuf) -> Self {
        Self { program }
    }

    /// Returns what a command of the operator prints. The command needs no cluster.
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

    /// Returns what the operator declares.
    pub(crate) async fn inventory(&self) -> Result<Inventory> {
        Ok(Inventory::parse(&self.ask(&["manifests"]).await?)?)
    }

    /// Starts it on a cluster, with flags of ours and of the person.
    pub(crate) fn start(&self, cluster: &Cluster, own: &[OsString], args: &[String]) -> Result<Child> {
        let mut command = Command::new(&self.program);
        command.arg("run").args(cluster.flags()).args(own).args(args).stdin(Stdio::null()).kill_on_drop(true);
        // A group of its own: Ctrl-C reaches this process only, which passes it on once. A second one would end the operator at once.
        command.process_group(0);
        let child =
            command.spawn().map_err(|error| format!("cannot run {}: {error}", self.program.display()))?;
        Ok(Child(child))
    }
}

/// An operator that runs. It is killed when it is dropped.
pub(crate) struct Child(tokio::process::Child);

impl Child {
    /// Waits until it ends by itself.
    pub(crate) async fn ended(&mut self) -> Result<ExitStatus> {
        Ok(self.0.wait().await?)
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Asks it to shut down, and waits until it has.
    pub(crate) async fn stop(&mut self) -> Result<ExitStatus> {
        if let Some(pid) = self.0.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::TERM);
        }
        if let Ok(status) = tokio::time::timeout(GRACE, self.0.wait()).await {
            return Ok(status?);
        }
        self.0.kill().await?;
        Ok(self.0.wait().await?)
    }
}
