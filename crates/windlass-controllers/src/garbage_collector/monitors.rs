//! The monitors of the garbage collector: one watch for each resource that discovery lists.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::stream;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::discovery::ApiResource;
use tokio::sync::oneshot;
use tokio::time::Instant;
use windlass_runtime::informer::WatchOptions;
use windlass_runtime::{Action, Context, Controller, Reconciler, Result, Watch};

use super::graph_builder::{GraphBuilder, ResourceKey, UpdateGraph};
use crate::resources::{self, Resource};

/// The only key of this controller.
const RESOURCES: &str = "resources";
/// How often discovery runs even if no CRD changes.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(30);

/// Keeps one watch for each resource.
pub(super) struct Monitors {
    graph_builder: Arc<GraphBuilder>,
    /// The watches. Dropping one stops it.
    open: Mutex<BTreeMap<ResourceKey, Monitor>>,
}

struct Monitor {
    resource: Arc<Resource>,
    _until: oneshot::Sender<()>,
}

impl Monitors {
    pub(super) fn controller(graph_builder: Arc<GraphBuilder>) -> Controller<&'static str> {
        let definitions = ApiResource::erase::<CustomResourceDefinition>(&());
        Controller::keyed::<()>("garbage-collector-monitors", Self { graph_builder, open: Mutex::default() })
            .watches_metadata(definitions, |_, _| Ok(vec![RESOURCES]))
            .external(stream::iter([RESOURCES]))
    }

    fn update(&self, found: &[Arc<Resource>]) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted: BTreeMap<ResourceKey, &Arc<Resource>> = found
            .iter()
            .filter(|resource| resource.watchable && resource.deletable && !resource.is_events())
            .map(|resource| ((resource.api.group.clone(), resource.api.plural.clone()), resource))
            .collect();
        let gone: Vec<_> = open
            .iter()
            .filter(|(key, open)| wanted.get(*key).is_none_or(|resource| **resource != open.resource))
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            if let Some(closed) = open.remove(&key) {
                self.graph_builder.end_list(&key);
                let affected = self.graph_builder.graph().remove_resource(&closed.resource);
                self.graph_builder.enqueue(affected);
            }
        }
        let unlisted = wanted.keys().filter(|key| !open.contains_key(*key)).cloned();
        self.graph_builder.begin_lists(unlisted, Instant::now());
        for (key, resource) in wanted {
            open.entry(key).or_insert_with(|| self.open(resource.clone()));
        }
    }

    fn open(&self, resource: Arc<Resource>) -> Monitor {
        let (until, ended) = oneshot::channel::<()>();
        let handler = UpdateGraph { graph_builder: self.graph_builder.clone(), resource: resource.clone() };
        let metadata = WatchOptions::new().metadata_only();
        let watch = Watch::with_handler(resource.api.clone(), handler).options(metadata).events_only();
        let graph_builder = self.graph_builder.clone();
        let key = (resource.api.group.clone(), resource.api.plural.clone());
        if let Some(handle) = self.graph_builder.handle().cloned() {
            tokio::spawn(async move {
                match handle.watch(watch).await {
                    Ok(id) => {
                        graph_builder.end_list(&key);
                        // Returns an error when the sender is dropped, which is the signal to stop.
                        let _ = ended.await;
                        handle.unwatch(id);
                    }
                    // The manager is stopping.
                    Err(error) if error.is_stopped() => {}
                    Err(error) => tracing::warn!(%error, "the garbage collector cannot watch a resource"),
                }
            });
        }
        Monitor { resource, _until: until }
    }
}

impl Reconciler<(), &'static str> for Monitors {
    type Error = windlass_runtime::Error;

    async fn reconcile(&self, _: &'static str, cx: Context<()>) -> Result<Action> {
        let found: Vec<Arc<Resource>> =
            resources::discover(cx.client()).await?.into_iter().map(Arc::new).collect();
        self.graph_builder.set_kinds(&found);
        self.update(&found);
        Ok(Action::requeue_after(DISCOVERY_INTERVAL))
    }
}
