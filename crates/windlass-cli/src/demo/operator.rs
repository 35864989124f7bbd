//! The operator of the demo: the CRD, the controller, the sample.

use std::time::Duration;

use custom_pod::{CustomPod, CustomPodSpec};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use kube::core::{CustomResourceExt, ResourceExt};
use kube::{Client, Error as KubeError};
use tokio::task::JoinHandle;
use windlass_runtime::Manager;

use super::changes::{self, LineSender};
use super::tour::SAMPLE;
use crate::error::Result;

/// The limit for the server to serve a new CRD.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(10);

/// The running operator. Dropping it aborts it.
pub(super) struct Operator {
    running: JoinHandle<windlass_runtime::Result<()>>,
}

impl Operator {
    /// Starts the operator. If `lines` is given, each change of a CustomPod or pod is sent to it.
    pub(super) fn start(client: Client, lines: Option<LineSender>) -> Self {
        let mut manager = Manager::new(client).controller(custom_pod::controller());
        if let Some(lines) = lines {
            manager = manager.controller(changes::controller(lines));
        }
        Self { running: tokio::spawn(manager.run_until(std::future::pending())) }
    }

    /// Waits until the operator ends, which it does only if it fails.
    pub(super) async fn ended(&mut self) -> Result<()> {
        Ok((&mut self.running).await??)
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// Installs the CRD and waits until its resources are served.
pub(super) async fn install(client: &Client) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = CustomPod::crd();
    definitions.create(&PostParams::default(), &definition).await?;
    let name = definition.name_any();
    let established = async {
        loop {
            let conditions = definitions.get(&name).await?.status.and_then(|status| status.conditions);
            if conditions.into_iter().flatten().any(|c| c.type_ == "Established" && c.status == "True") {
                return Ok::<_, KubeError>(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    match tokio::time::timeout(ESTABLISHED_WITHIN, established).await {
        Ok(outcome) => Ok(outcome?),
        Err(_) => Err(format!("the CRD {name} was not established within {ESTABLISHED_WITHIN:?}").into()),
    }
}

/// Creates the sample CustomPod with one replica.
pub(super) async fn create_sample(client: &Client) -> Result<()> {
    let sample = CustomPod::new(SAMPLE, CustomPodSpec { replicas: 1 });
    Api::<CustomPod>::default_namespaced(client.clone()).create(&PostParams::default(), &sample).await?;
    Ok(())
}
