//! The monitors of the garbage collector: a watch for each resource in discovery.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::Client;
use kube_client::api::{Api, ListParams};
use kube_core::PartialObjectMeta;
use tokio::sync::oneshot;
use tokio::time::Instant;
use windlass_runtime::{Action, Context, Controller, KindRef, Reconciler, Result, Watch, source::Source};

use super::graph_builder::{GraphBuilder, ResourceKey, UpdateGraph};
use crate::resources::{self, Resource};

/// The only key of this controller.
const RESOURCES: &str = "resources";
/// How often discovery runs even if no CRD changes.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(30);

/// Keeps a watch for each resource.
pub(super) struct Monitors {
    graph_builder: Arc<GraphBuilder>,
    /// The watches. Dropping a watch stops the watch.
    open: Mutex<BTreeMap<ResourceKey, Monitor>>,
}

struct Monitor {
    resource: Arc<Resource>,
    /// True if a CustomResourceDefinition defines the resource.
    is_custom: bool,
    _until: oneshot::Sender<()>,
}

impl Monitors {
    pub(super) fn controller(graph_builder: Arc<GraphBuilder>) -> Controller<&'static str> {
        Controller::keyed::<()>("garbage-collector-monitors", Self { graph_builder, open: Mutex::default() })
            .watches::<PartialObjectMeta<CustomResourceDefinition>>(|_, _| Ok(vec![RESOURCES]))
            .source(Source::keys(stream::iter([RESOURCES])))
    }

    /// Closes the watches of resources that are no longer served, and opens watches of new resources.
    async fn update(&self, found: &[Arc<Resource>], client: &Client) -> Result<()> {
        let wanted: BTreeMap<ResourceKey, &Arc<Resource>> = found
            .iter()
            .filter(|resource| resource.watchable && resource.deletable && !resource.is_events())
            .map(|resource| ((resource.api.group.clone(), resource.api.plural.clone()), resource))
            .collect();
        let is_current = |(key, monitor): (&ResourceKey, &Monitor)| {
            wanted.get(key).is_some_and(|resource| **resource == monitor.resource)
        };
        let is_unchanged = {
            let open = self.open();
            open.len() == wanted.len() && open.iter().all(is_current)
        };
        if is_unchanged {
            return Ok(());
        }
        // Listed after the discovery: a definition that was deleted with a resource that is not served any more is not in the list.
        let definitions = defined_resources(client).await?;
        let mut open = self.open();
        let gone: Vec<ResourceKey> =
            open.iter().filter(|entry| !is_current(*entry)).map(|(key, _)| key.clone()).collect();
        for key in gone {
            if let Some(closed) = open.remove(&key) {
                self.graph_builder.end_list(&key);
                let mut graph = self.graph_builder.graph();
                let affected = if closed.is_custom && !definitions.contains(&key) {
                    graph.remove_deleted_resource(&closed.resource)
                } else {
                    graph.forget_resource(&closed.resource)
                };
                drop(graph);
                self.graph_builder.enqueue(affected);
            }
        }
        let unlisted = wanted.keys().filter(|key| !open.contains_key(*key)).cloned();
        self.graph_builder.begin_lists(unlisted, Instant::now());
        for (key, resource) in wanted {
            let is_custom = definitions.contains(&key);
            open.entry(key).or_insert_with(|| self.watch(resource.clone(), is_custom));
        }
        Ok(())
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<ResourceKey, Monitor>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self, resource: Arc<Resource>, is_custom: bool) -> Monitor {
        let (until, ended) = oneshot::channel::<()>();
        let handler = UpdateGraph { graph_builder: self.graph_builder.clone(), resource: resource.clone() };
        let metadata = KindRef::dynamic(&resource.api).metadata();
        let watch = Watch::with_handler(metadata, handler).without_reads();
        let graph_builder = self.graph_builder.clone();
        let key = (resource.api.group.clone(), resource.api.plural.clone());
        if let Some(handle) = self.graph_builder.handle().cloned() {
            tokio::spawn(async move {
                match handle.watch(watch).await {
                    Ok(id) => {
                        graph_builder.end_list(&key);
                        // The drop of the sender is the signal to stop, and the receiver returns an error.
                        let _ = ended.await;
                        handle.unwatch(id);
                    }
                    // The manager is stopping.
                    Err(error) if error.is_stopped() => {}
                    Err(error) => tracing::warn!(%error, "the garbage collector cannot watch a resource"),
                }
            });
        }
        Monitor { resource, is_custom, _until: until }
    }
}

/// Returns the resources that CustomResourceDefinitions define. A definition is named `PLURAL.GROUP`.
async fn defined_resources(client: &Client) -> Result<BTreeSet<ResourceKey>> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let list = definitions.list_metadata(&ListParams::default()).await?;
    let key = |definition: &PartialObjectMeta<CustomResourceDefinition>| {
        let (plural, group) = definition.metadata.name.as_deref()?.split_once('.')?;
        Some((group.to_owned(), plural.to_owned()))
    };
    Ok(list.items.iter().filter_map(key).collect())
}

impl Reconciler<(), &'static str> for Monitors {
    type Error = windlass_runtime::Error;

    async fn reconcile(&self, _: &'static str, cx: Context<()>) -> Result<Action> {
        let found: Vec<Arc<Resource>> =
            resources::discover(cx.client()).await?.into_iter().map(Arc::new).collect();
        self.graph_builder.set_kinds(&found);
        self.update(&found, cx.client()).await?;
        Ok(Action::requeue_after(DISCOVERY_INTERVAL))
    }
}
