//! The common parts of the tests.

use std::{collections::BTreeMap, fmt::Display, future::pending, time::Duration};

use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube_client::{
    Api, Client,
    api::{ListParams, PostParams},
};
use tokio::{sync::oneshot, task::JoinHandle};
use windlass_runtime::{Manager, Result};
use windlass_test::{TestCluster, stretched};

use crate::fault::Faults;

pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A manager at work.
pub(crate) struct Running {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<()>>,
}

pub(crate) fn run(manager: Manager) -> Running {
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async {
        if stopped.await.is_err() {
            pending::<()>().await;
        }
    };
    Running { stop: Some(stop), task: tokio::spawn(manager.run_until(stopped)) }
}

/// Runs a manager with exactly the declared rights.
pub(crate) async fn run_declared(cluster: &TestCluster, manager: Manager) -> Running {
    let account = cluster.restricted_account(&manager).await;
    run(manager.client(account.client()))
}

/// Runs a manager under faults, with exactly the declared rights.
pub(crate) async fn run_restricted(cluster: &TestCluster, faults: &Faults, manager: Manager) -> Running {
    faults.send_by(cluster.restricted_account(&manager).await.client());
    run(manager.client(faults.client()))
}

impl Running {
    /// Asks the manager to stop, and waits for the result.
    pub(crate) async fn stop(mut self) -> Result<()> {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        self.ended().await
    }

    /// Waits until the manager ends without a request.
    pub(crate) async fn ended(self) -> Result<()> {
        let ended = tokio::time::timeout(stretched(SOON), self.task).await;
        ended.expect("the manager ends").expect("the manager does not panic")
    }
}

pub(crate) fn config_map(name: &str) -> ConfigMap {
    ConfigMap { metadata: named(name), ..ConfigMap::default() }
}

pub(crate) fn secret(name: &str) -> Secret {
    Secret { metadata: named(name), ..Secret::default() }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), namespace: Some("default".to_owned()), ..ObjectMeta::default() }
}

pub(crate) async fn create_config_map(client: &Client, name: &str) -> ConfigMap {
    config_maps(client).create(&PostParams::default(), &config_map(name)).await.expect("created")
}

pub(crate) fn config_maps(client: &Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

pub(crate) fn secrets(client: &Client) -> Api<Secret> {
    Api::default_namespaced(client.clone())
}

pub(crate) async fn secret_count(client: &Client) -> usize {
    secrets(client).list(&ListParams::default()).await.expect("listed").items.len()
}

/// Returns the value of a counter or a gauge in OpenMetrics text, by the printed name and labels.
pub(crate) fn metric(text: &str, series: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// Returns success if both values are equal, else the found value. For `eventually`.
pub(crate) fn expect_eq<T: PartialEq + std::fmt::Debug>(
    is: T,
    wanted: T,
) -> std::result::Result<(), impl Display> {
    if is == wanted { Ok(()) } else { Err(format!("{is:?}, not {wanted:?}")) }
}

pub(crate) fn labelled(mut map: ConfigMap, key: &str, value: &str) -> ConfigMap {
    map.metadata.labels = Some(BTreeMap::from([(key.to_owned(), value.to_owned())]));
    map
}
