//! The changes of the operator's objects in the cluster, in a line each.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::{apps, batch, core};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::core::ApiResource;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use windlass_runtime::Delta;
use windlass_runtime::informer::{CacheOptions, DeltaSubscription, HandlerOptions, SharedInformerFactory};

use crate::error::Result;

/// Watches the kinds of a project, and the objects that objects of these kinds own.
pub(super) struct Changes {
    client: Client,
    sender: UnboundedSender<String>,
    lines: UnboundedReceiver<String>,
    known: Arc<Known>,
    watches: Option<Watches>,
}

/// The uids of the objects with a printed creation. The objects are listed again when the set of kinds
/// changes.
#[derive(Default)]
struct Known(Mutex<BTreeSet<String>>);

impl Known {
    /// Returns whether to print a change: every change except the creation of a known object.
    fn is_news(&self, delta: &Delta) -> bool {
        let mut uids = self.0.lock();
        match delta {
            Delta::Added { object, .. } => uids.insert(object.uid().to_owned()),
            Delta::Updated { .. } => true,
            Delta::Deleted { last, .. } => {
                uids.remove(last.uid());
                true
            }
        }
    }
}

/// Guards of watches. Dropping a guard ends the watch.
struct Watches {
    _factory: SharedInformerFactory,
    _watches: Vec<DeltaSubscription>,
}

impl Changes {
    pub(super) fn new(client: Client) -> Self {
        let (sender, lines) = unbounded_channel();
        Self { client, sender, lines, known: Arc::default(), watches: None }
    }

    /// Watches these kinds from now on, in place of the earlier kinds.
    pub(super) fn watch(&mut self, crds: &[CustomResourceDefinition]) -> Result<()> {
        let factory = SharedInformerFactory::new(self.client.clone(), Duration::ZERO);
        let groups: BTreeSet<String> = crds.iter().map(|crd| crd.spec.group.clone()).collect();
        let own = crds.iter().filter_map(served).map(|resource| (resource, None));
        let owned = dependents().into_iter().map(|resource| (resource, Some(groups.clone())));
        let mut watches = Vec::new();
        for (resource, owners) in own.chain(owned) {
            let informer = factory.informer(&resource, CacheOptions::new())?;
            let (sender, kind) = (self.sender.clone(), resource.kind.to_lowercase());
            let known = Arc::clone(&self.known);
            let describe = move |delta: &Delta| {
                if known.is_news(delta)
                    && let Some(line) = line(&kind, owners.as_ref(), delta)
                {
                    // The receiver is dropped when the session ends.
                    let _ = sender.send(line);
                }
            };
            watches.push(informer.subscribe(describe, HandlerOptions::default()));
        }
        factory.start();
        self.watches = Some(Watches { _factory: factory, _watches: watches });
        Ok(())
    }

    /// Returns the next line.
    pub(super) async fn next(&mut self) -> String {
        match self.lines.recv().await {
            Some(line) => line,
            // `self` has a sender, too.
            None => std::future::pending().await,
        }
    }
}

/// Returns the built-in kinds that operators usually make.
fn dependents() -> Vec<ApiResource> {
    vec![
        ApiResource::erase::<core::v1::Pod>(&()),
        ApiResource::erase::<core::v1::Service>(&()),
        ApiResource::erase::<core::v1::ConfigMap>(&()),
        ApiResource::erase::<core::v1::PersistentVolumeClaim>(&()),
        ApiResource::erase::<apps::v1::Deployment>(&()),
        ApiResource::erase::<apps::v1::StatefulSet>(&()),
        ApiResource::erase::<apps::v1::DaemonSet>(&()),
        ApiResource::erase::<batch::v1::Job>(&()),
    ]
}

/// Returns the storage version of a CRD, as a kind to watch.
fn served(crd: &CustomResourceDefinition) -> Option<ApiResource> {
    let version = crd.spec.versions.iter().find(|version| version.storage)?;
    Some(ApiResource {
        group: crd.spec.group.clone(),
        version: version.name.clone(),
        api_version: format!("{}/{}", crd.spec.group, version.name),
        kind: crd.spec.names.kind.clone(),
        plural: crd.spec.names.plural.clone(),
    })
}

/// Describes a change. With `owners`, only changes of objects that an object of these groups controls.
fn line(kind: &str, owners: Option<&BTreeSet<String>>, delta: &Delta) -> Option<String> {
    let (old, new) = match delta {
        Delta::Added { object, .. } => (None, object.decode::<Value>().ok()?),
        Delta::Updated { old, new, .. } => (old.decode::<Value>().ok(), new.decode::<Value>().ok()?),
        Delta::Deleted { last, .. } => {
            let last = last.decode::<Value>().ok()?;
            return is_shown(&last, owners).then(|| shown(kind, &last, "deleted"));
        }
    };
    if !is_shown(&new, owners) {
        return None;
    }
    let what = match old {
        None => "created".to_owned(),
        Some(old) => changed(&old, &new)?,
    };
    Some(shown(kind, &new, &what))
}

fn is_shown(object: &Value, owners: Option<&BTreeSet<String>>) -> bool {
    let Some(groups) = owners else { return true };
    let references = object["metadata"]["ownerReferences"].as_array();
    references.into_iter().flatten().any(|owner| {
        let group = owner["apiVersion"].as_str().and_then(|version| version.split_once('/'));
        group.is_some_and(|(group, _)| groups.contains(group))
    })
}

fn shown(kind: &str, object: &Value, what: &str) -> String {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("cluster: {kind} {namespace}/{name}: {what}"),
        None => format!("cluster: {kind} {name}: {what}"),
    }
}

/// Describes the most important difference between two states.
fn changed(old: &Value, new: &Value) -> Option<String> {
    let differs = |path: &str| old.pointer(path) != new.pointer(path);
    if differs("/metadata/deletionTimestamp") {
        return Some("deletion requested".to_owned());
    }
    if differs("/status/phase") {
        return new.pointer("/status/phase").and_then(Value::as_str).map(str::to_owned);
    }
    let parts = [
        ("/spec", "spec"),
        ("/data", "data"),
        ("/status", "status"),
        ("/metadata/labels", "labels"),
        ("/metadata/annotations", "annotations"),
        ("/metadata/finalizers", "finalizers"),
    ];
    let changed: Vec<&str> = parts.iter().filter(|(path, _)| differs(path)).map(|(_, name)| *name).collect();
    if changed.is_empty() { None } else { Some(format!("{} changed", changed.join(" and "))) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_names_what_is_different() {
        let pod = |phase: &str, label: &str| json!({ "metadata": { "labels": { "a": label } }, "status": { "phase": phase } });
        assert_eq!(changed(&pod("Pending", "x"), &pod("Running", "x")).as_deref(), Some("Running"));
        assert_eq!(changed(&pod("Running", "x"), &pod("Running", "y")).as_deref(), Some("labels changed"));
        assert_eq!(changed(&pod("Running", "x"), &pod("Running", "x")), None);
    }

    #[test]
    fn only_what_the_projects_objects_own_is_shown() {
        let owned = |version: &str| json!({ "metadata": { "ownerReferences": [{ "apiVersion": version }] } });
        let groups = BTreeSet::from(["foo.abc.com".to_owned()]);
        assert!(is_shown(&owned("foo.abc.com/v1"), Some(&groups)));
        assert!(!is_shown(&owned("apps/v1"), Some(&groups)));
        assert!(!is_shown(&json!({}), Some(&groups)));
        assert!(is_shown(&json!({}), None));
    }
}
