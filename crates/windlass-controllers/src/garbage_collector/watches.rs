//! The watches of the collector: one for each resource that discovery offers, kept in line with the CRDs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::stream;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::discovery::ApiResource;
use tokio::sync::oneshot;
use windlass_runtime::informer::WatchOptions;
use windlass_runtime::{Action, Context, Controller, Reconciler, Result, Watch};

use super::observer::{Observe, Observer};
use crate::resources::{self, Resource};

/// The one key of this controller.
const ALL: &str = "resources";
/// How often discovery is read though no CRD changed.
const EVERY: Duration = Duration::from_secs(30);

/// Keeps one watch for each resource.
pub(super) struct Watches {
    observer: Arc<Observer>,
    /// Dropping the sender ends the watch.
    open: Mutex<BTreeMap<(String, String), Open>>,
}

struct Open {
    resource: Arc<Resource>,
    _until: oneshot::Sender<()>,
}

impl Watches {
    pub(super) fn controller(observer: Arc<Observer>) -> Controller<&'static str> {
        let definitions = ApiResource::erase::<CustomResourceDefinition>(&());
        Controller::keyed::<()>("garbage-collector-watches", Self { observer, open: Mutex::default() })
            .watches_metadata(definitions, |_, _| Ok(vec![ALL]))
            .external(stream::iter([ALL]))
    }

    fn update(&self, found: &[Arc<Resource>]) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted: BTreeMap<(String, String), &Arc<Resource>> = found
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
                let dirty = self.observer.graph().remove_resource(&closed.resource);
                self.observer.enqueue(dirty);
            }
        }
        for (key, resource) in wanted {
            open.entry(key).or_insert_with(|| self.open(resource.clone()));
        }
    }

    fn open(&self, resource: Arc<Resource>) -> Open {
        let (until, ended) = oneshot::channel::<()>();
        let handler = Observe { observer: self.observer.clone(), resource: resource.clone() };
        let metadata = WatchOptions::new().metadata_only();
        let watch = Watch::with_handler(resource.api.clone(), handler).options(metadata).events_only();
        if let Some(handle) = self.observer.handle().cloned() {
            tokio::spawn(async move {
                match handle.watch(watch).await {
                    Ok(id) => {
                        // Ends with an error when the sender is dropped, which is what it is for.
                        let _ = ended.await;
                        handle.unwatch(id);
                    }
                    // Nothing is missing that anybody still looks at.
                    Err(error) if error.is_stopped() => {}
                    Err(error) => tracing::warn!(%error, "the garbage collector cannot watch a resource"),
                }
            });
        }
        Open { resource, _until: until }
    }
}

impl Reconciler<(), &'static str> for Watches {
    type Error = windlass_runtime::Error;

    async fn reconcile(&self, _: &'static str, cx: Context<()>) -> Result<Action> {
        let found: Vec<Arc<Resource>> =
            resources::discover(cx.client()).await?.into_iter().map(Arc::new).collect();
        self.observer.set_kinds(&found);
        self.update(&found);
        Ok(Action::requeue_after(EVERY))
    }
}
