//! Control planes for tests, and [`eventually`].
//!
//! A [`TestCluster`] is a Kubernetes API server in the test's own process: it starts in milliseconds, belongs to the test's
//! runtime, and is gone with it. Tests share nothing, so they run side by side.
//!
//! ```
//! use std::time::Duration;
//!
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube_client::api::Api;
//! use windlass_test::{TestCluster, eventually};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let cluster = TestCluster::start().await;
//! let configs: Api<ConfigMap> = Api::default_namespaced(cluster.client());
//! eventually(Duration::from_secs(5), || async { configs.list(&Default::default()).await }).await;
//! # }
//! ```
#![forbid(unsafe_code)]

mod cluster;
mod eventually;
mod install;

pub use self::cluster::TestCluster;
pub use self::eventually::eventually;
