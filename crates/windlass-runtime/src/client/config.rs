//! Finds the cluster: from flags, kubeconfig files, or the pod that the program runs in.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use http::Uri;
use kube_client::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::error::{Error, Result, chain};

/// Where to find the cluster. The fields are kubectl's flags.
///
/// The first existing source is used: the file `kubeconfig`; the files of the environment variable
/// `KUBECONFIG`, merged as kubectl merges files; if only `master` is set, that address without credentials;
/// the pod's service account; `~/.kube/config`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigSource {
    /// `--kubeconfig`: a file that replaces the files of `KUBECONFIG`.
    pub kubeconfig: Option<PathBuf>,
    /// `--context`: the context to use instead of the file's current context.
    pub context: Option<String>,
    /// `--master`: the address of the API server. The address overrides the kubeconfig.
    pub master: Option<String>,
}

impl ConfigSource {
    /// Loads the configuration.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or no source names a cluster. The message lists the sources.
    pub async fn load(&self) -> Result<kube_client::Config> {
        self.load_in(&|name| std::env::var_os(name)).await
    }

    /// Works like [`load`](Self::load), with other environment variables.
    pub(super) async fn load_in(
        &self,
        env: &(dyn Fn(&str) -> Option<OsString> + Sync),
    ) -> Result<kube_client::Config> {
        let mut config = self.without_master(env).await?;
        if let Some(master) = &self.master {
            config.cluster_url = parse_master(master)?;
        }
        Ok(config)
    }

    async fn without_master(
        &self,
        env: &(dyn Fn(&str) -> Option<OsString> + Sync),
    ) -> Result<kube_client::Config> {
        if let Some(path) = &self.kubeconfig {
            return self.resolve(read(path)?, &path.display().to_string()).await;
        }
        if let Some(files) = env("KUBECONFIG").filter(|files| !files.is_empty()) {
            let place = format!("KUBECONFIG={}", files.to_string_lossy());
            return self.resolve(read_merged(&files, &place)?, &place).await;
        }
        if let (Some(master), None) = (&self.master, &self.context) {
            return Ok(kube_client::Config::new(parse_master(master)?));
        }
        let home = env("HOME").map(PathBuf::from).unwrap_or_default().join(".kube").join("config");
        if env("KUBERNETES_SERVICE_HOST").is_some() && self.context.is_none() {
            match kube_client::Config::incluster() {
                Ok(config) => return Ok(config),
                Err(error) if home.exists() => {
                    let (error, file) = (chain(&error), home.display());
                    tracing::warn!(error, %file, "the pod has no service account; using the kubeconfig");
                }
                Err(error) => {
                    return Err(Error::setup(format!("the pod's service account: {}", chain(&error))));
                }
            }
        }
        if !home.exists() {
            return Err(Error::setup(format!(
                "no cluster is configured: --kubeconfig and --master are not given, KUBECONFIG is not set, this is not a \
                 pod, and {} does not exist",
                home.display()
            )));
        }
        self.resolve(read(&home)?, &home.display().to_string()).await
    }

    async fn resolve(&self, file: Kubeconfig, place: &str) -> Result<kube_client::Config> {
        if let Some(context) = &self.context
            && !file.contexts.iter().any(|known| known.name == *context)
        {
            return Err(Error::setup(format!("{place}: has no context {context:?}, only: {}", names(&file))));
        }
        if self.context.is_none() && file.current_context.is_none() {
            return Err(Error::setup(format!(
                "{place}: names no current context; choose one with --context: {}",
                names(&file)
            )));
        }
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let authority = authority_file(&file, self.context.as_ref());
        let config = kube_client::Config::from_custom_kubeconfig(file, &options).await;
        let mut config = config.map_err(|e| Error::setup(format!("{place}: {}", chain(&e))))?;
        config.root_cert_file = authority;
        Ok(config)
    }
}

/// Returns the file of the cluster's certificate authority. The client reads the file again after a change.
fn authority_file(file: &Kubeconfig, context: Option<&String>) -> Option<PathBuf> {
    let name = context.or(file.current_context.as_ref())?;
    let context = file.contexts.iter().find(|context| context.name == *name)?.context.as_ref()?;
    let cluster = file.clusters.iter().find(|cluster| cluster.name == context.cluster)?.cluster.as_ref()?;
    let is_inline = cluster.certificate_authority_data.as_ref().is_some_and(|data| !data.is_empty());
    cluster.certificate_authority.clone().filter(|path| !is_inline && !path.is_empty()).map(PathBuf::from)
}

/// Returns the names of the contexts of a file.
fn names(file: &Kubeconfig) -> String {
    let names: Vec<&str> = file.contexts.iter().map(|context| context.name.as_str()).collect();
    names.join(", ")
}

/// Reads a kubeconfig. An empty current context counts as none, as for kubectl, which leaves an empty text when the context is unset.
fn read(path: &Path) -> Result<Kubeconfig> {
    let mut file = Kubeconfig::read_from(path).map_err(|error| {
        let problem = match &error {
            // The text of this error repeats the path.
            KubeconfigError::ReadConfig(cause, _) => cause.to_string(),
            other => chain(other),
        };
        Error::setup(format!("kubeconfig {}: {problem}", path.display()))
    })?;
    file.current_context = file.current_context.filter(|name| !name.is_empty());
    Ok(file)
}

/// Merges kubeconfigs as kubectl does: files that do not exist are skipped, and earlier files win.
fn read_merged(files: &OsStr, place: &str) -> Result<Kubeconfig> {
    let paths = std::env::split_paths(files).filter(|path| !path.as_os_str().is_empty() && path.exists());
    let merged = paths.map(|path| read(&path)).reduce(|merged, next| {
        merged?.merge(next?).map_err(|e| Error::setup(format!("{place}: {}", chain(&e))))
    });
    merged.unwrap_or_else(|| Err(Error::setup(format!("{place}: none of these files exists"))))
}

fn parse_master(master: &str) -> Result<Uri> {
    let with_scheme = if master.contains("://") { master.to_owned() } else { format!("http://{master}") };
    with_scheme.parse().map_err(|e| Error::setup(format!("--master {master}: {e}")))
}
