//! Tests of operators on an embedded control plane.
//!
//! A [`TestCluster`] is a Kubernetes API server in the test's process. A cluster starts in milliseconds,
//! belongs to the test's tokio runtime, and stops with the runtime. Tests share no state and can run in
//! parallel.
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
//! [`TestCluster::run`] runs an operator's manager, [`TestCluster::run_restricted`] with exactly the
//! manager's declared rights, and [`eventually`] waits for any other condition.
//! [`TestCluster::check_ownership`] checks that an operator takes no field from the user of the operator. [`Faults`] stand between a
//! client and a server, and a [`Scenario`] runs an operator under faults many times. A [`DevProgram`] is an
//! operator's command `dev`. A [`FakeCluster`](fake::FakeCluster) is a
//! cheap cluster for tests of one reconcile at a time.
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
mod dev_program;
pub mod fake;
mod scenario;
mod unshared_fields;

mod cluster;
mod faults;

mod clock;
mod install;
mod operator_log;
mod ownership;
mod wait;

mod operators;

mod rights;

mod eventually;
mod running;

mod reconcile_errors;

pub use self::clock::TestClock;
pub use self::cluster::{TestCluster, TestClusterBuilder};
pub use self::dev_program::DevProgram;
pub use self::eventually::eventually;
pub use self::faults::{Fault, FaultRule, Faults};
pub use self::rights::{RestrictedAccount, RestrictedManager, RightsReport};
pub use self::running::RunningManager;
pub use self::scenario::{Scenario, ScenarioRun};
pub use self::unshared_fields::unshared_fields;
pub use windlass_apiserver::{Identity, Listen, RunningListener, ServerCertificate};
pub use windlass_patience::stretched;
