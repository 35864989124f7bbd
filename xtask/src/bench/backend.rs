//! The API servers that are compared: ours and kube-apiserver with etcd. Only one of them runs at a time.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::Result;
use crate::control_plane::Reference;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Ours,
    /// kube-apiserver with etcd, without controllers; etcd does not wait for the disk.
    Real,
}

/// A running server. Dropping the value stops the server's processes.
pub(crate) enum ApiServer {
    Ours { process: Child, kubeconfig: PathBuf },
    Real(Reference),
}

impl ApiServer {
    /// Starts a server and waits until the server answers. `program` is our benchmark program; our server is
    /// beside the program.
    pub(crate) fn start(backend: Backend, program: &Path) -> Result<Self> {
        match backend {
            Backend::Real => Ok(ApiServer::Real(Reference::start("bench")?)),
            Backend::Ours => {
                let mut command = Command::new(program.with_file_name("api-server"));
                let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
                let kubeconfig =
                    std::env::temp_dir().join(format!("windlass-bench-{}.kubeconfig", process.id()));
                let out = process.stdout.take().ok_or("cannot read the output of our server")?;
                let server = ApiServer::Ours { process, kubeconfig: kubeconfig.clone() };
                // The kubeconfig ends with an empty line.
                let mut text = String::new();
                for line in BufReader::new(out).lines() {
                    let line = line?;
                    if line.is_empty() {
                        break;
                    }
                    text += &line;
                    text.push('\n');
                }
                if text.is_empty() {
                    return Err("our server did not start; run `api-server` beside `bench` to see why".into());
                }
                fs::write(&kubeconfig, text)?;
                Ok(server)
            }
        }
    }

    /// Returns the path of an administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        match self {
            ApiServer::Ours { kubeconfig, .. } => kubeconfig.clone(),
            ApiServer::Real(reference) => reference.kubeconfig(),
        }
    }

    /// Returns the ids of the processes with counted time and memory.
    pub(crate) fn processes(&self) -> Vec<u32> {
        match self {
            ApiServer::Ours { process, .. } => vec![process.id()],
            ApiServer::Real(reference) => reference.processes(),
        }
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        if let ApiServer::Ours { process, kubeconfig } = self {
            let _ = process.kill();
            let _ = process.wait();
            let _ = fs::remove_file(kubeconfig);
        }
    }
}
