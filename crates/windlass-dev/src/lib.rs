//! A Kubernetes control plane in the process of an operator. `windlass cluster` and an operator's command
//! `dev` run the control plane.
//!
//! [`ControlPlane`] is an API server on the loopback address and the controllers of a cluster, with a kubeconfig for kubectl. For tests,
//! `windlass-test` has a cluster that needs no port.
//!
//! ```no_run
//! use windlass_dev::ControlPlane;
//!
//! # async fn example() -> windlass_runtime::Result<()> {
//! let mut plane = ControlPlane::start(0).await?;
//! plane.write_kubeconfig(".windlass/kubeconfig".as_ref())?;
//! plane.start_controllers();
//! println!("kubectl --kubeconfig .windlass/kubeconfig get nodes   # {}", plane.url());
//! plane.stop().await;
//! # Ok(()) }
//! ```
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
mod control_plane;
mod kubectl_name;
mod manifests;
mod shell_word;

mod kubeconfig_file;
mod running_nodes;

mod nodes;

pub use self::{
    control_plane::{ControlPlane, ControlPlaneOptions, PodRunner},
    kubeconfig_file::{KubeconfigWriteError, write as write_kubeconfig},
    kubectl_name::kubectl_name,
    manifests::{apply_manifest, apply_manifests, read_manifests},
    shell_word::shell_word,
};
pub use windlass_apiserver::{KubernetesVersion, UnknownKubernetesVersion};
pub use windlass_runtime::crds::{REPLACED_CONVERSION, install_crds, install_definitions, set_conversion};
