//! Waits on typed objects.

use std::any::TypeId;
use std::fmt::{Display, Write};
use std::panic::Location;
use std::time::Duration;

use kube_client::Client;
use kube_client::api::{Api, ApiResource, DynamicObject};
use kube_core::{NamespaceResourceScope, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::eventually::keep_trying;
use crate::operators::Operators;

/// A wait for an object: the place of the object, the limit of the wait, and the managers that end the wait
/// early on failure.
pub(crate) struct Wait<'a> {
    pub(crate) client: Client,
    pub(crate) operators: &'a Operators,
    pub(crate) limit: Duration,
    pub(crate) caller: &'static Location<'static>,
}

impl Wait<'_> {
    pub(crate) async fn for_object<K>(self, key: String, condition: impl Fn(&K) -> bool) -> K
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + 'static,
    {
        let (api, name) = self.locate::<K>(&key);
        let attempt = || async {
            self.panic_if_a_manager_failed();
            let found = api.get(&name).await.map_err(|error| describe(&error))?;
            let object = decode::<K>(&found).map_err(|why| format!("{key}: {why}"))?;
            if condition(&object) { Ok(object) } else { Err(format!("{key} is {}", summary(&found))) }
        };
        keep_trying(self.limit, attempt, || self.operators.reasons(), self.caller).await
    }

    pub(crate) async fn until_gone<K>(self, key: String)
    where
        K: Resource<DynamicType = ()> + 'static,
    {
        let (api, name) = self.locate::<K>(&key);
        let attempt = || async {
            self.panic_if_a_manager_failed();
            match api.get_opt(&name).await {
                Ok(None) => Ok(()),
                Ok(Some(found)) => Err(format!("{key} still exists: {}", summary(&found))),
                Err(error) => Err(describe(&error)),
            }
        };
        keep_trying(self.limit, attempt, || self.operators.reasons(), self.caller).await;
    }

    fn panic_if_a_manager_failed(&self) {
        if let Some(failure) = self.operators.failure() {
            panic!("{}: the manager failed: {failure}", self.caller);
        }
    }

    /// Returns the client for the object's kind and namespace, and the object's name.
    fn locate<K>(&self, key: &str) -> (Api<DynamicObject>, String)
    where
        K: Resource<DynamicType = ()> + 'static,
    {
        let resource = ApiResource::erase::<K>(&());
        let namespaced = TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>();
        match (key.split_once('/'), namespaced) {
            (Some((namespace, name)), true) => {
                (Api::namespaced_with(self.client.clone(), namespace, &resource), name.to_owned())
            }
            (None, true) => (Api::default_namespaced_with(self.client.clone(), &resource), key.to_owned()),
            (None, false) => (Api::all_with(self.client.clone(), &resource), key.to_owned()),
            (Some(_), false) => panic!(
                "{}: {} is cluster-scoped, so its key is a name alone, not `{key}`",
                self.caller, resource.kind
            ),
        }
    }
}

fn describe(error: &kube_client::Error) -> String {
    match error {
        kube_client::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

fn decode<K>(object: &DynamicObject) -> Result<K, String>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let decoded = serde_json::to_value(object).and_then(serde_json::from_value);
    decoded.map_err(|error| format!("does not decode as {}: {}", K::kind(&()), without_value(&error)))
}

/// Drops the value from serde's message: the value may be a secret.
fn without_value(error: &impl Display) -> String {
    let text = error.to_string();
    match (text.starts_with("invalid "), text.rfind("expected ")) {
        (true, Some(at)) => text[at..].to_owned(),
        _ => text,
    }
}

/// Describes an object's state without content: versions, deletion, finalizers, and the numbers, phase and
/// conditions of the status.
fn summary(object: &DynamicObject) -> String {
    let metadata = &object.metadata;
    let mut out = format!("at resourceVersion {}", metadata.resource_version.as_deref().unwrap_or("unknown"));
    if let Some(generation) = metadata.generation {
        let _ = write!(out, ", generation {generation}");
    }
    if let Some(time) = &metadata.deletion_timestamp {
        let _ = write!(out, ", terminating since {}", time.0);
    }
    if !object.finalizers().is_empty() {
        let _ = write!(out, ", finalizers [{}]", object.finalizers().join(", "));
    }
    let Some(status) = object.data.get("status").and_then(Value::as_object) else { return out };
    for (field, value) in status {
        if value.is_number() || field == "phase" {
            let _ = write!(out, ", {field} {value}");
        }
    }
    if let Some(conditions) = status.get("conditions").and_then(Value::as_array) {
        let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        let shown = conditions.iter().map(|condition| {
            let (kind, status) = (text(condition, "type"), text(condition, "status"));
            match text(condition, "reason") {
                reason if reason.is_empty() => format!("{kind}={status}"),
                reason => format!("{kind}={status} ({reason})"),
            }
        });
        let _ = write!(out, ", conditions [{}]", shown.collect::<Vec<_>>().join(", "));
    }
    out
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_summary_has_what_a_test_waits_for_and_no_contents() {
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "example.com/v1", "kind": "Backup",
            "metadata": {
                "name": "a", "resourceVersion": "7", "generation": 2, "finalizers": ["example.com/purge"],
                "annotations": {"password": "hunter2"},
            },
            "spec": {"password": "hunter2"},
            "status": {
                "replicas": 3, "phase": "Running", "password": "hunter2",
                "conditions": [
                    {"type": "Ready", "status": "False", "reason": "Waiting", "message": "hunter2"},
                    {"type": "Synced", "status": "True"},
                ],
            },
        }))
        .expect("an object");
        assert_eq!(
            summary(&object),
            "at resourceVersion 7, generation 2, finalizers [example.com/purge], phase \"Running\", replicas 3, \
             conditions [Ready=False (Waiting), Synced=True]"
        );
    }

    #[test]
    fn a_decode_error_does_not_quote_the_value() {
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
            "spec": {"containers": "hunter2"},
        }))
        .expect("an object");
        let why = decode::<Pod>(&object).expect_err("no containers");
        assert_eq!(why, "does not decode as Pod: expected a sequence");
    }
}
