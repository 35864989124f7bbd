//! What the tests have in common.

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

/// Runs a manager with exactly the rights that it declares.
pub(crate) async fn run_declared(cluster: &TestCluster, manager: Manager) -> Running {
    let account = cluster.restricted_account(&manager).await;
    run(manager.client(account.client()))
}

/// Runs a manager whose requests meet faults, with exactly the rights that it declares.
pub(crate) async fn run_restricted(cluster: &TestCluster, faults: &Faults, manager: Manager) -> Running {
    faults.send_by(cluster.restricted_account(&manager).await.client());
    run(manager.client(faults.client()))
}

impl Running {
    /// Asks it to stop, and waits for its word.
    pub(crate) async fn stop(mut self) -> Result<()> {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        self.ended().await
    }

    /// Waits until it ends by itself.
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

/// The value of a counter or a gauge in OpenMetrics text, by its name and labels as they are printed.
pub(crate) fn metric(text: &str, series: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// For `eventually`: success when both are equal, else what there is.
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
