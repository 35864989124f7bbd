//! The cluster that a verb works on.

use std::ffi::OsString;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use kube::Client;
use windlass_runtime::client::{ClientBuilder, ConfigSource};

use super::Workspace;
use crate::error::{Advice, Result};
use crate::output::Output;

/// The kubeconfig of `windlass cluster` and `windlass dev`, in the folder of the project.
pub(crate) const LOCAL_KUBECONFIG: &str = ".windlass/kubeconfig";

/// Returns the default path of the kubeconfig of a cluster: in the folder of the project, or outside of a project in the current folder. The
/// path is relative in the current folder.
pub(crate) fn local_kubeconfig() -> Result<PathBuf> {
    let folder = std::env::current_dir()?;
    let above = Workspace::root(&folder).filter(|root| *root != folder);
    Ok(above.map_or_else(|| LOCAL_KUBECONFIG.into(), |root| root.join(LOCAL_KUBECONFIG)))
}

/// A part of the version of an embedded API server.
const EMBEDDED: &str = "+windlass-";

/// How long the server of the local kubeconfig may take to accept a connection.
const PROBE: Duration = Duration::from_millis(500);

/// The cluster. Without flags: KUBECONFIG; else the running cluster of `windlass cluster` or `windlass dev`
/// in this project; else ~/.kube/config.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArgs {
    /// Use this kubeconfig. Default: KUBECONFIG; else .windlass/kubeconfig of a running cluster; else
    /// ~/.kube/config.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Use this context of the kubeconfig instead of the current context.
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// Work in this namespace.
    #[arg(long, short, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}

impl ClusterArgs {
    /// Returns whether a flag names a cluster.
    pub(crate) fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// Finds the cluster, and prints the cluster's address.
    pub(crate) async fn connect(&self, workspace: &Workspace, out: &mut Output) -> Result<Cluster> {
        let local = workspace.root.join(LOCAL_KUBECONFIG);
        let by_environment = std::env::var_os("KUBECONFIG").is_some_and(|files| !files.is_empty());
        let use_local = !self.is_named() && !by_environment && running_server(&local).is_some();
        let kubeconfig = if use_local { Some(local) } else { self.kubeconfig.clone() };
        let source =
            ConfigSource { kubeconfig: kubeconfig.clone(), context: self.context.clone(), master: None };
        let config = match source.load().await {
            Err(error) if !self.is_named() && !by_environment => {
                let hint =
                    "start a cluster with `windlass cluster`, or name a kubeconfig with --kubeconfig FILE";
                return Err(Advice::new(error.to_string(), hint));
            }
            loaded => loaded?,
        };
        let place = match (&kubeconfig, by_environment) {
            (Some(file), _) => file.strip_prefix(&workspace.root).unwrap_or(file).display().to_string(),
            (None, true) => "KUBECONFIG".to_owned(),
            (None, false) => "~/.kube/config".to_owned(),
        };
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        out.line(format_args!("cluster: {server} ({place})"));
        let client = ClientBuilder::new(config).build()?;
        Ok(Cluster {
            client,
            server,
            kubeconfig,
            context: self.context.clone(),
            namespace: self.namespaces(workspace),
        })
    }

    /// Returns the namespace to watch: the namespace of the flag, or `default` for a project with a single
    /// namespace.
    pub(crate) fn namespaces(&self, workspace: &Workspace) -> Option<String> {
        self.namespace.clone().or_else(|| workspace.project.namespaced.then(|| "default".to_owned()))
    }
}

/// A cluster, as a client here and as flags for the operator.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    /// The URL of the API server.
    pub(crate) server: String,
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) context: Option<String>,
    pub(crate) namespace: Option<String>,
}

impl Cluster {
    /// Returns the operator's flags for this cluster.
    pub(super) fn flags(&self) -> Vec<OsString> {
        let mut flags = Vec::new();
        let mut add = |flag: &str, value: Option<OsString>| {
            if let Some(value) = value {
                flags.extend([flag.into(), value]);
            }
        };
        add("--kubeconfig", self.kubeconfig.clone().map(Into::into));
        add("--context", self.context.clone().map(Into::into));
        add("--namespace", self.namespace.clone().map(Into::into));
        flags
    }
}

/// Returns the URL of a kubeconfig's server, if the server accepts connections: the file outlives the
/// cluster.
pub(crate) fn running_server(kubeconfig: &Path) -> Option<String> {
    let text = std::fs::read_to_string(kubeconfig).ok()?;
    let server = text.lines().find_map(|line| line.trim().trim_start_matches("- ").strip_prefix("server:"));
    let url = server?.trim().trim_matches('"');
    let host = url.split_once("://")?.1.trim_end_matches('/');
    let mut addresses = host.to_socket_addrs().ok()?;
    let is_running = addresses.any(|address| TcpStream::connect_timeout(&address, PROBE).is_ok());
    is_running.then(|| url.to_owned())
}

impl Cluster {
    /// Returns whether the API server belongs to `windlass cluster` or `windlass dev`.
    pub(crate) async fn is_embedded(&self) -> Result<bool> {
        Ok(self.client.apiserver_version().await?.git_version.contains(EMBEDDED))
    }
}

/// Warns if a kubeconfig that is about to be written names another running cluster.
pub(crate) fn warn_of_replaced(kubeconfig: &Path, shown: &Path, out: &mut Output) {
    if let Some(server) = running_server(kubeconfig) {
        let file = shown.display();
        out.line(format_args!(
            "note: another cluster runs, {server}; {file} was its kubeconfig, and is that of this one now"
        ));
    }
}
