//! Checks that an operator takes no field from the user who applied an object.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::panic::Location;
use std::time::Duration;

use kube_client::Client;
use kube_client::api::{Api, DynamicObject, PatchParams};
use serde_json::Value;
use tokio::time::sleep;
use windlass_dev::{apply_manifest, read_manifests};
use windlass_runtime::Result;

use crate::operators::Operators;

/// The field manager of the user, as Helm 4 applies a release.
const USER: &str = "helm";

/// A finalizer of the user, which the operator must leave to the user.
const FINALIZER: &str = "user.example.com/keep";

/// The operator has done its work when the objects have not changed for so long.
const QUIET: Duration = Duration::from_secs(1);

/// The most time that the operator has for its work.
const LONGEST: Duration = Duration::from_secs(20);

/// Objects that a user has applied.
pub(crate) struct AppliedObjects {
    client: Client,
    caller: &'static Location<'static>,
    objects: Vec<AppliedObject>,
}

struct AppliedObject {
    api: Api<DynamicObject>,
    name: String,
    /// As the user applied the object.
    manifest: Value,
    /// The fields that the user owned after the apply.
    owned: BTreeSet<String>,
}

impl AppliedObjects {
    /// Applies the documents of a YAML text, each with a finalizer of the user.
    pub(crate) async fn apply(client: Client, yaml: &str, caller: &'static Location<'static>) -> Self {
        let mut this = Self { client, caller, objects: Vec::new() };
        if let Err(error) = this.apply_all(yaml).await {
            panic!("{caller}: {error}");
        }
        this
    }

    async fn apply_all(&mut self, yaml: &str) -> Result<()> {
        for mut manifest in read_manifests(yaml)? {
            manifest["metadata"]["finalizers"] = serde_json::json!([FINALIZER]);
            let parameters = PatchParams::apply(USER).force();
            let (api, object) = apply_manifest(&self.client, &manifest, &parameters).await?;
            let (name, owned) = (object.metadata.name.clone().unwrap_or_default(), fields_of(&object, USER));
            self.objects.push(AppliedObject { api, name, manifest, owned });
        }
        Ok(())
    }

    /// Waits until an operator has written to an object, and the objects change no more. An operator need not write to the objects, but
    /// then the wait is as long as possible.
    ///
    /// # Panics
    /// The objects still change at the end of the longest wait, a request was denied, or the last reconcile of a key failed.
    pub(crate) async fn wait_until_quiet(&self, operators: &Operators) {
        let (mut last, mut unchanged, mut spent) = (String::new(), Duration::ZERO, Duration::ZERO);
        let (pause, caller) = (QUIET / 10, self.caller);
        loop {
            sleep(pause).await;
            spent += pause;
            let (now, is_touched) = self.state().await;
            unchanged = if now == last { unchanged + pause } else { Duration::ZERO };
            last = now;
            let reasons = operators.reasons();
            if unchanged >= QUIET && is_touched && reasons.is_empty() {
                return;
            }
            if spent >= crate::stretched(LONGEST) {
                assert!(reasons.is_empty(), "{caller}: the operator does not work:{reasons}");
                assert!(
                    unchanged >= QUIET,
                    "{caller}: the operator still changes the objects after {LONGEST:?}"
                );
                return;
            }
        }
    }

    /// Returns the versions of the objects, and whether another manager owns a field of an object.
    async fn state(&self) -> (String, bool) {
        let (mut versions, mut is_touched) = (String::new(), false);
        for object in &self.objects {
            if let Ok(found) = object.api.get(&object.name).await {
                let _ = write!(versions, "{:?} ", found.metadata.resource_version);
                is_touched |= managers(&found).any(|manager| manager != USER);
            }
        }
        (versions, is_touched)
    }

    /// Returns what the user has lost: fields with other owners, and an apply that conflicts.
    pub(crate) async fn losses(&self) -> Vec<String> {
        let mut losses = Vec::new();
        for object in &self.objects {
            match object.api.get(&object.name).await {
                Ok(found) => losses.extend(object.losses(&found)),
                Err(error) => losses.push(format!("{}: {error}", object.name)),
            }
            // Without force, as an upgrade of a release.
            if let Err(error) =
                apply_manifest(&self.client, &object.manifest, &PatchParams::apply(USER)).await
            {
                losses.push(format!("{}: the next apply of the user fails: {error}", object.name));
            }
        }
        losses
    }

    /// Applies the objects without the finalizer of the user, which must go while other finalizers stay.
    pub(crate) async fn release(&self) -> Vec<String> {
        let mut losses = Vec::new();
        for AppliedObject { api, name, manifest, .. } in &self.objects {
            let before = api.get(name).await.map(finalizers).unwrap_or_default();
            let mut manifest = manifest.clone();
            if let Some(metadata) = manifest["metadata"].as_object_mut() {
                metadata.remove("finalizers");
            }
            let applied = apply_manifest(&self.client, &manifest, &PatchParams::apply(USER)).await;
            let after = applied.map(|(_, object)| finalizers(object)).unwrap_or_default();
            let wanted: Vec<_> = before.into_iter().filter(|finalizer| finalizer != FINALIZER).collect();
            if after != wanted {
                losses
                    .push(format!("{name}: has the finalizers {after:?} without the user's, not {wanted:?}"));
            }
        }
        losses
    }

    /// Panics with the losses of the user, if there are any.
    pub(crate) fn assert_none(&self, losses: &[String]) {
        let caller = self.caller;
        assert!(
            losses.is_empty(),
            "{caller}: the operator takes fields from the user {USER:?}:\n  {}",
            losses.join("\n  ")
        );
    }
}

impl AppliedObject {
    fn losses(&self, found: &DynamicObject) -> Vec<String> {
        let now = fields_of(found, USER);
        let lost = self.owned.difference(&now).map(|field| format!("{}: {field} is not owned", self.name));
        let mut losses: Vec<String> = lost.collect();
        let others: BTreeSet<&str> = managers(found).filter(|manager| *manager != USER).collect();
        for other in others {
            let shared = fields_of(found, other);
            let taken = self.owned.intersection(&shared);
            losses.extend(taken.map(|field| format!("{}: {field} is owned by {other:?}, too", self.name)));
        }
        losses
    }
}

fn finalizers(object: DynamicObject) -> Vec<String> {
    object.metadata.finalizers.unwrap_or_default()
}

fn managers(object: &DynamicObject) -> impl Iterator<Item = &str> {
    let entries = object.metadata.managed_fields.iter().flatten();
    entries.filter_map(|entry| entry.manager.as_deref())
}

/// Returns the fields of the spec, and the finalizers, that a manager owns. Fields are written as in `managedFields`, without prefixes.
fn fields_of(object: &DynamicObject, manager: &str) -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    for entry in object.metadata.managed_fields.iter().flatten() {
        let Some(set) = entry.fields_v1.as_ref().filter(|_| entry.manager.as_deref() == Some(manager)) else {
            continue;
        };
        collect(&set.0["f:spec"], "spec", &mut fields);
        collect(&set.0["f:metadata"]["f:finalizers"], "metadata.finalizers", &mut fields);
    }
    fields
}

/// Adds the paths of a set of fields. A path is owned if it is a leaf, or has the member `.`.
fn collect(set: &Value, path: &str, fields: &mut BTreeSet<String>) {
    let Value::Object(members) = set else { return };
    if members.is_empty() || members.contains_key(".") {
        fields.insert(path.to_owned());
    }
    for (name, member) in members.iter().filter(|(name, _)| *name != ".") {
        let path = match name.strip_prefix("f:") {
            Some(field) => format!("{path}.{field}"),
            None => format!("{path}[{}]", name.trim_start_matches(['k', 'v']).trim_start_matches(':')),
        };
        collect(member, &path, fields);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn owned_fields_are_read_from_managed_fields() {
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "a", "managedFields": [
                { "manager": "helm", "operation": "Apply", "fieldsV1": {
                    "f:metadata": { "f:finalizers": { "v:\"a\"": {} }, "f:labels": { "f:x": {} } },
                    "f:spec": { "f:containers": { "k:{\"name\":\"main\"}": { ".": {}, "f:image": {} } } } } },
                { "manager": "kubelet", "operation": "Update", "subresource": "status",
                    "fieldsV1": { "f:status": { "f:phase": {} } } },
                { "manager": "operator", "operation": "Update", "fieldsV1": {
                    "f:spec": { "f:containers": { "k:{\"name\":\"main\"}": { "f:image": {} } } } } },
            ] },
        }))
        .expect("a pod");
        let owned = fields_of(&object, "helm");
        let main = "spec.containers[{\"name\":\"main\"}]";
        let image = format!("{main}.image");
        assert_eq!(owned.iter().collect::<Vec<_>>(), ["metadata.finalizers[\"a\"]", main, &image]);
        assert!(fields_of(&object, "kubelet").is_empty());
        assert_eq!(fields_of(&object, "operator").into_iter().collect::<Vec<_>>(), [image]);
    }
}
