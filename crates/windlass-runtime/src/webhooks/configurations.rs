//! The webhook configurations of the cluster, as watches show them.

use std::time::Duration;

use futures::future::select_all;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube_client::Client;
use kube_core::ApiResource;
use serde_json::Value;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use crate::{
    error::{Error, Result},
    informer::{CacheOptions, InformerError, SharedInformer, SharedInformerFactory},
    supervisor::Supervisor,
};

/// The longest wait for the first list, and for the watch to show a write.
const WATCH_LIMIT: Duration = Duration::from_secs(5);

/// How often a first list that has not ended is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// The webhook configurations of the cluster.
pub(super) struct Configurations {
    informers: Vec<SharedInformer>,
}

/// Tells when a watch has shown more.
pub(super) struct Progress(Vec<watch::Receiver<u64>>);

impl Configurations {
    /// Starts the watches. The watches end when the value is dropped.
    pub(super) fn watch(client: Client, seed: u64, supervisor: Supervisor) -> Result<Self, InformerError> {
        let factory = SharedInformerFactory::supervised(client.into(), seed, supervisor);
        let kinds = [
            ApiResource::erase::<MutatingWebhookConfiguration>(&()),
            ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
        ];
        let informers = kinds.iter().map(|kind| factory.share(kind, CacheOptions::new()));
        let informers = informers.collect::<Result<_, _>>()?;
        factory.start();
        Ok(Self { informers })
    }

    /// Returns the configurations, each with its plural and its name.
    ///
    /// # Errors
    /// The first list of a kind has not ended in time, or an object does not decode.
    pub(super) async fn all(&self) -> Result<Vec<(String, String, Value)>> {
        let mut all = Vec::new();
        for informer in &self.informers {
            let plural = &informer.resource().plural;
            first_list(informer)
                .await
                .map_err(|reason| Error::other(reason).while_doing(format_args!("reading {plural}")))?;
            for object in informer.store().list() {
                let value = object.decode::<Value>().map_err(Error::other)?;
                all.push((plural.clone(), object.name().to_owned(), value.as_ref().clone()));
            }
        }
        Ok(all)
    }

    /// Waits until the watches show a written object; not longer than some seconds.
    pub(super) async fn shown(&self, plural: &str, written: &Value) {
        let revision =
            written["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok());
        let informer = self.informers.iter().find(|informer| informer.resource().plural == plural);
        if let Some((informer, revision)) = informer.zip(revision) {
            let _ = timeout(WATCH_LIMIT, informer.seen(revision)).await;
        }
    }

    /// Returns what tells of changes after now.
    pub(super) fn progress(&self) -> Progress {
        Progress(self.informers.iter().map(SharedInformer::progress).collect())
    }
}

/// Waits until the first list has ended. Returns the reason if the list fails, or takes too long.
async fn first_list(informer: &SharedInformer) -> Result<(), String> {
    let begun = Instant::now();
    while timeout(LOOK, informer.synced()).await.is_err() {
        if let Some(reason) = informer.last_failure() {
            return Err(reason);
        }
        if begun.elapsed() >= WATCH_LIMIT {
            return Err("the server did not answer".to_owned());
        }
    }
    Ok(())
}

impl Progress {
    /// Waits until a watch has shown more.
    pub(super) async fn changed(&mut self) {
        let changes = self.0.iter_mut().map(|progress| Box::pin(progress.changed()));
        // The informers live as long as the issuer, which waits.
        let _ = select_all(changes).await;
    }
}
