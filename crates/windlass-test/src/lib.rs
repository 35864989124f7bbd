//! Tests of operators on a control plane of their own.
//!
//! A [`TestCluster`] is a Kubernetes API server in the test's process. It starts in milliseconds, belongs to the test's
//! tokio runtime, and stops with it. Tests share nothing, so they can run in parallel.
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use kube_client::api::{Api, DeleteParams, PostParams};
//! use serde_json::json;
//! use windlass_test::TestCluster;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let cluster = TestCluster::with_controllers().await;
//! let pods: Api<Pod> = Api::default_namespaced(cluster.client());
//! let pod = json!({ "metadata": { "name": "a" }, "spec": { "containers": [{ "name": "main", "image": "busybox" }] } });
//! let pod = serde_json::from_value(pod).expect("a pod");
//! pods.create(&PostParams::default(), &pod).await.expect("created");
//!
//! let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
//! cluster.wait_for::<Pod>("default/a", |pod| phase(pod).as_deref() == Some("Running")).await;
//! pods.delete("a", &DeleteParams::default()).await.expect("deleted");
//! cluster.gone::<Pod>("default/a").await;
//! # }
//! ```
//!
//! [`TestCluster::run`] runs an operator's manager, and [`eventually`] waits for anything else.
#![forbid(unsafe_code)]

mod cluster;
mod eventually;
mod install;
mod running;
mod wait;

pub use self::cluster::TestCluster;
pub use self::eventually::eventually;
pub use self::running::RunningManager;
pub use windlass_apiserver::Identity;
