//! Which cluster: kubeconfig files, flags, or the pod this runs in.

use std::path::PathBuf;

use http::Uri;
use kube_client::config::{KubeConfigOptions, Kubeconfig};

use crate::error::{Error, Result};

/// Where to find the cluster, in the words of kubectl's flags.
///
/// In this order: `kubeconfig` if given; else, with only `master` given, that address without credentials; else the
/// files of `KUBECONFIG`, merged as kubectl merges them; else the pod's service account; else `~/.kube/config`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigSource {
    /// `--kubeconfig`: one file, read instead of those of `KUBECONFIG`.
    pub kubeconfig: Option<PathBuf>,
    /// `--context`: the context to use instead of the file's current one.
    pub context: Option<String>,
    /// `--master`: the API server's address, in place of the one in the kubeconfig.
    pub master: Option<String>,
}

impl ConfigSource {
    /// Reads it. Fails with the names of the places that were tried.
    pub async fn load(&self) -> Result<kube_client::Config> {
        let mut config = self.without_master().await?;
        if let Some(master) = &self.master {
            config.cluster_url = parse_master(master)?;
        }
        Ok(config)
    }

    async fn without_master(&self) -> Result<kube_client::Config> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        if let Some(path) = &self.kubeconfig {
            let file = Kubeconfig::read_from(path).map_err(|e| {
                Error::setup(format!("kubeconfig {}: {}", path.display(), crate::error::chain(&e)))
            })?;
            return resolve(file, &options, &path.display().to_string()).await;
        }
        if let Some(files) = std::env::var_os("KUBECONFIG").filter(|files| !files.is_empty()) {
            let place = format!("KUBECONFIG={}", files.to_string_lossy());
            let merged = Kubeconfig::from_env()
                .map_err(|e| Error::setup(format!("{place}: {}", crate::error::chain(&e))))?
                .ok_or_else(|| Error::setup(format!("{place}: names no file")))?;
            return resolve(merged, &options, &place).await;
        }
        if let (Some(master), None) = (&self.master, &self.context) {
            return Ok(kube_client::Config::new(parse_master(master)?));
        }
        if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() && self.context.is_none() {
            return kube_client::Config::incluster().map_err(|e| {
                Error::setup(format!("the pod's service account: {}", crate::error::chain(&e)))
            });
        }
        let home = std::env::home_dir().unwrap_or_default().join(".kube").join("config");
        if !home.exists() {
            return Err(Error::setup(format!(
                "no cluster to talk to: --kubeconfig and --master are not given, KUBECONFIG is not set, this is not a pod, \
                 and {} does not exist",
                home.display()
            )));
        }
        let file = Kubeconfig::read_from(&home).map_err(|e| {
            Error::setup(format!("kubeconfig {}: {}", home.display(), crate::error::chain(&e)))
        })?;
        resolve(file, &options, &home.display().to_string()).await
    }
}

async fn resolve(file: Kubeconfig, options: &KubeConfigOptions, place: &str) -> Result<kube_client::Config> {
    kube_client::Config::from_custom_kubeconfig(file, options)
        .await
        .map_err(|e| Error::setup(format!("{place}: {}", crate::error::chain(&e))))
}

fn parse_master(master: &str) -> Result<Uri> {
    let with_scheme = if master.contains("://") { master.to_owned() } else { format!("http://{master}") };
    with_scheme.parse().map_err(|e| Error::setup(format!("--master {master}: {e}")))
}
