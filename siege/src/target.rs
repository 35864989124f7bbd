//! The server under attack.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use windlass_apiserver::{Listen, RunningListener, Server};

use crate::Result;
use crate::client::Client;
use crate::usage::Process;

/// Serves until standard input closes, and writes a kubeconfig.
///
/// # Errors
/// No port is free, or the file cannot be written.
pub async fn serve(kubeconfig: &Path) -> Result {
    let server = Server::builder().build()?;
    let listening = server.listen(Listen::default()).await?;
    std::fs::write(kubeconfig, listening.kubeconfig())?;
    println!("kubeconfig: {}", kubeconfig.display());
    let input = || std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    tokio::task::spawn_blocking(input).await??;
    listening.shutdown().await;
    Ok(())
}

/// A server, and the administrator of the server.
pub struct Target {
    /// The administrator.
    pub admin: Client,
    host: Host,
}

enum Host {
    /// A program that this process has started.
    Program { child: Child, folder: PathBuf },
    /// A server in this process.
    Embedded { _server: Server, listening: Box<RunningListener> },
}

impl Target {
    /// Starts a server as a process: `windlass cluster --bare`, or without `program`, [`serve`] of this program.
    ///
    /// # Errors
    /// The program does not start.
    pub async fn start(program: Option<&Path>) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("windlass-siege-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let kubeconfig = folder.join("kubeconfig");
        let own = std::env::current_exe()?;
        let mut command = Command::new(program.unwrap_or(&own));
        match program {
            Some(_) => command.args(["cluster", "--bare", "--until-stdin-closes", "--kubeconfig"]),
            None => command.arg("serve"),
        };
        let mut child = command
            .arg(&kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("cannot start the server: {error}"))?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let ready = async {
            while let Some(line) = lines.next_line().await? {
                if line.starts_with("kubeconfig:") {
                    return Ok(());
                }
            }
            Err::<(), Box<dyn std::error::Error + Send + Sync>>("the server ended at the start".into())
        };
        tokio::time::timeout(Duration::from_secs(60), ready)
            .await
            .map_err(|_| "the server is not ready")??;
        // The rest of the output is read, so that the server never waits for this process.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let admin = Client::of_kubeconfig(&std::fs::read_to_string(&kubeconfig)?)?;
        Ok(Self { admin, host: Host::Program { child, folder } })
    }

    /// Starts a server in this process. The memory and the processor time of such a server are not measured.
    ///
    /// # Errors
    /// No port is free.
    pub async fn embedded() -> Result<Self> {
        let server = Server::builder().build()?;
        let listening = server.listen(Listen::default()).await?;
        let admin = Client::of_kubeconfig(listening.kubeconfig())?;
        Ok(Self { admin, host: Host::Embedded { _server: server, listening: Box::new(listening) } })
    }

    /// Returns the process of the server; `None` for a server in this process.
    pub(crate) fn process(&self) -> Option<Process> {
        match &self.host {
            Host::Program { child, .. } => child.id().map(Process),
            Host::Embedded { .. } => None,
        }
    }

    /// Stops the server.
    pub async fn stop(self) {
        match self.host {
            Host::Program { mut child, folder } => {
                drop(child.stdin.take());
                if tokio::time::timeout(Duration::from_secs(20), child.wait()).await.is_err() {
                    let _ = child.kill().await;
                }
                let _ = std::fs::remove_dir_all(folder);
            }
            Host::Embedded { listening, .. } => listening.shutdown().await,
        }
    }
}
