//! The components of a real cluster that the controllers stand in for. As in a real cluster, the components
//! own the fields that the controllers write.

use kube_client::Client;
use kube_client::api::{PatchParams, PostParams};
use tokio::sync::OnceCell;
use windlass_runtime::{Error, Result};

pub(crate) const KUBE_CONTROLLER_MANAGER: &str = "kube-controller-manager";
pub(crate) const KUBE_SCHEDULER: &str = "kube-scheduler";
pub(crate) const KUBELET: &str = "kubelet";

/// Returns the parameters of a create or an update by a component.
pub(crate) fn post(component: &str) -> PostParams {
    PostParams { field_manager: Some(component.to_owned()), ..PostParams::default() }
}

/// Returns the parameters of a patch by a component.
pub(crate) fn patch(component: &str) -> PatchParams {
    PatchParams { field_manager: Some(component.to_owned()), ..PatchParams::default() }
}

/// The version of the API server, read once. The feature gates of a component differ by version.
#[derive(Default)]
pub(crate) struct ServerVersion(OnceCell<u32>);

impl ServerVersion {
    /// Returns the minor version, as 37 for Kubernetes 1.37. Asks the server if the version is not known.
    pub(crate) async fn minor(&self, client: &Client) -> Result<u32> {
        let ask = || async {
            let version = client.apiserver_version().await.map_err(Error::from)?;
            // Some servers add a sign, as in `37+`.
            let digits = version.minor.trim_end_matches(|c: char| !c.is_ascii_digit());
            digits.parse().map_err(|_| {
                Error::other(format!("the server has the minor version {:?}, not a number", version.minor))
            })
        };
        self.0.get_or_try_init(ask).await.copied()
    }
}
