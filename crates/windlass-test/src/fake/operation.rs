//! Writes, by the rules of the API server.

use serde_json::{Value, json};
use windlass_runtime::ObjectKey;

use super::{
    metadata,
    owners::Manager,
    status::{self, StatusResult, bad_request, failure, uid_precondition},
    storage::Storage,
};
use windlass_runtime::{
    detached::{GroupResource, without_nulls},
    env::Env,
};

/// The attempts to find a free generated name.
const NAME_ATTEMPTS: usize = 8;

/// The part of an object that a write changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Everything but the status.
    Main,
    /// The status.
    Status,
    /// The finalizers in the `spec` of a namespace.
    Finalize,
    /// Everything: changes that the test makes.
    Everything,
}

/// One write.
pub(super) struct Operation<'a> {
    pub(super) storage: &'a mut Storage,
    pub(super) env: &'a Env,
    pub(super) resource: &'a GroupResource,
    /// The field manager of the write.
    pub(super) manager: &'a Manager,
    pub(super) dry_run: bool,
    /// True if the dependents of an object are deleted with the object.
    pub(super) collects_garbage: bool,
}

/// The end of a deletion.
pub(super) enum Deletion {
    /// The object is gone; the value is the last state.
    Gone(Value),
    /// Finalizers hold the object.
    Held(Value),
}

impl Operation<'_> {
    /// Creates an object. The status is dropped.
    pub(super) fn create(&mut self, namespace: Option<&str>, object: &Value) -> StatusResult<Value> {
        let mut object = without_nulls(object.clone());
        Self::expect_namespace(namespace, &mut object)?;
        if !metadata::text(&object, "resourceVersion").is_empty() {
            return Err(failure(500, "", "resourceVersion should not be set on objects to be created"));
        }
        self.set_types(&mut object);
        metadata::begin(&mut object, self.env)?;
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        let prefix = metadata::text(&object, "generateName").to_owned();
        let generated = metadata::text(&object, "name").is_empty();
        if generated && prefix.is_empty() {
            let kind = self.storage.kind_of(self.resource).kind;
            let why = "metadata.name: Required value: name or generateName is required";
            return Err(status::invalid(self.resource, &kind, "", why));
        }
        for _ in 0..NAME_ATTEMPTS {
            if generated {
                metadata::set(&mut object, "name", metadata::generated_name(&prefix, self.env))?;
            }
            if self.storage.get(self.resource, &metadata::key_of(&object)).is_none() {
                return Ok(if self.dry_run {
                    object
                } else {
                    self.storage.put(self.resource, object, self.manager)
                });
            }
            if !generated {
                break;
            }
        }
        Err(status::already_exists(self.resource, metadata::text(&object, "name")))
    }

    /// Replaces a part of an object. Removes a terminating object without finalizers.
    pub(super) fn replace(&mut self, key: &ObjectKey, part: Part, object: &Value) -> StatusResult<Value> {
        let old = self.current(key)?;
        let mut new = without_nulls(object.clone());
        if part != Part::Everything {
            Self::expect_key(key, &mut new)?;
            self.expect_version(&old, &new)?;
        }
        new = take_part(part, &old, new);
        self.set_types(&mut new);
        metadata::keep(&mut new, &old)?;
        if new == old {
            return Ok(old);
        }
        if metadata::is_deleting(&old) && part != Part::Everything {
            self.expect_no_new_finalizer(&old, &new)?;
        }
        if content(&new) != content(&old) {
            metadata::next_generation(&mut new)?;
        }
        if self.dry_run {
            return Ok(new);
        }
        if metadata::is_deleting(&old) && !is_held(self.resource, &new) {
            self.remove(key, &Value::Null);
            return Ok(new);
        }
        Ok(self.storage.put(self.resource, new, self.manager))
    }

    /// Deletes an object, or marks an object with finalizers as terminating.
    pub(super) fn delete(&mut self, key: &ObjectKey, options: &Value) -> StatusResult<Deletion> {
        let mut object = self.current(key)?;
        self.expect_preconditions(&object, &options["preconditions"])?;
        if !is_held(self.resource, &object) {
            if !self.dry_run {
                self.remove(key, options);
            }
            return Ok(Deletion::Gone(object));
        }
        if metadata::is_deleting(&object) {
            return Ok(Deletion::Held(object));
        }
        metadata::mark_deleted(&mut object, self.env.now())?;
        if !self.dry_run {
            object = self.storage.put(self.resource, object, self.manager);
        }
        Ok(Deletion::Held(object))
    }

    /// Removes an object at once, regardless of finalizers.
    pub(super) fn remove(&mut self, key: &ObjectKey, options: &Value) -> Option<Value> {
        let last = self.storage.remove(self.resource, key)?;
        if self.collects_garbage && options["propagationPolicy"] != "Orphan" {
            self.delete_dependents(metadata::text(&last, "uid"));
        }
        Some(last)
    }

    /// Deletes the objects that have no owner left.
    fn delete_dependents(&mut self, uid: &str) {
        let exists =
            |owner: &str| self.storage.all().any(|(_, _, object)| metadata::text(object, "uid") == owner);
        let dependents = self.storage.all().filter(|(_, _, object)| {
            metadata::owners(object).any(|owner| owner == uid) && !metadata::owners(object).any(exists)
        });
        let dependents: Vec<_> =
            dependents.map(|(resource, key, _)| (resource.clone(), key.clone())).collect();
        for (resource, key) in dependents {
            let mut operation = Operation { storage: self.storage, resource: &resource, ..*self };
            // A dependent of another dependent may be gone already.
            let _ = operation.delete(&key, &Value::Null);
        }
    }

    fn current(&self, key: &ObjectKey) -> StatusResult<Value> {
        let object = self.storage.get(self.resource, key).cloned();
        object.ok_or_else(|| status::not_found(self.resource, key.name()))
    }

    /// Adds missing `apiVersion` and `kind`.
    fn set_types(&self, object: &mut Value) {
        let kind = self.storage.kind_of(self.resource);
        let Some(fields) = object.as_object_mut() else { return };
        if kind.version.is_empty() {
            return;
        }
        fields.entry("apiVersion").or_insert_with(|| json!(kind.api_version));
        fields.entry("kind").or_insert_with(|| json!(kind.kind));
    }

    /// Sets the namespace of the path, and refuses an object that names another namespace.
    fn expect_namespace(namespace: Option<&str>, object: &mut Value) -> StatusResult<()> {
        let named = metadata::of_mut(object)?.get("namespace").and_then(Value::as_str);
        if named.is_some_and(|named| Some(named) != namespace) {
            return Err(bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        metadata::set(object, "namespace", namespace)
    }

    fn expect_key(key: &ObjectKey, object: &mut Value) -> StatusResult<()> {
        Self::expect_namespace(key.namespace(), object)?;
        let name = metadata::text(object, "name");
        if name == key.name() {
            return Ok(());
        }
        let url_name = key.name();
        Err(bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({url_name})"
        )))
    }

    /// Refuses an object with another uid or resource version than the current object.
    fn expect_version(&self, old: &Value, new: &Value) -> StatusResult<()> {
        let name = metadata::text(old, "name");
        let (wanted, found) = (metadata::text(new, "uid"), metadata::text(old, "uid"));
        if !wanted.is_empty() && wanted != found {
            return Err(uid_precondition(self.resource, name, wanted, found));
        }
        let (wanted, found) =
            (metadata::text(new, "resourceVersion"), metadata::text(old, "resourceVersion"));
        if wanted.is_empty() && is_custom(self.resource) {
            let why = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
            return Err(status::invalid(self.resource, &self.resource.resource, name, why));
        }
        if wanted.is_empty() || wanted == found { Ok(()) } else { Err(status::modified(self.resource, name)) }
    }

    fn expect_preconditions(&self, object: &Value, conditions: &Value) -> StatusResult<()> {
        let name = metadata::text(object, "name");
        // The real server names the kind here where a resource belongs.
        let kind = self.storage.kind_of(self.resource);
        let kind = GroupResource { group: kind.group, resource: kind.kind };
        let found = metadata::text(object, "uid");
        if let Some(wanted) = conditions["uid"].as_str().filter(|wanted| *wanted != found) {
            let why = format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({found}). The object might have \
                 been deleted and then recreated"
            );
            return Err(status::conflict(&kind, name, &why));
        }
        let found = metadata::text(object, "resourceVersion");
        let Some(wanted) = conditions["resourceVersion"].as_str().filter(|wanted| *wanted != found) else {
            return Ok(());
        };
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({found}). \
             The object might have been modified"
        );
        Err(status::conflict(&kind, name, &why))
    }

    fn expect_no_new_finalizer(&self, old: &Value, new: &Value) -> StatusResult<()> {
        let known: Vec<_> = metadata::finalizers(old).collect();
        let Some(added) = metadata::finalizers(new).find(|finalizer| !known.contains(finalizer)) else {
            return Ok(());
        };
        let kind = self.storage.kind_of(self.resource).kind;
        let why = format!(
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new \
             finalizers []string{{{added:?}}}"
        );
        Err(status::invalid(self.resource, &kind, metadata::text(old, "name"), &why))
    }
}

/// Returns the new object, with the parts of the old object that the write does not change.
fn take_part(part: Part, old: &Value, new: Value) -> Value {
    let (mut result, field, value) = match part {
        Part::Everything => return new,
        Part::Main => {
            let status = old["status"].clone();
            (new, "status", status)
        }
        Part::Status => (old.clone(), "status", new["status"].clone()),
        Part::Finalize => {
            let mut spec = old["spec"].clone();
            spec["finalizers"] = new["spec"]["finalizers"].clone();
            (old.clone(), "spec", without_nulls(spec))
        }
    };
    if let Some(fields) = result.as_object_mut() {
        if value.is_null() {
            fields.remove(field);
        } else {
            fields.insert(field.to_owned(), value);
        }
    }
    result
}

/// Returns the fields that the generation counts.
fn content(object: &Value) -> Vec<(&String, &Value)> {
    let fields = object.as_object().into_iter().flatten();
    fields.filter(|(name, _)| !matches!(name.as_str(), "metadata" | "status")).collect()
}

/// Returns whether finalizers hold an object that is deleted.
fn is_held(resource: &GroupResource, object: &Value) -> bool {
    let is_namespace = resource.group.is_empty() && resource.resource == "namespaces";
    metadata::finalizers(object).next().is_some()
        || (is_namespace && object["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty()))
}

/// The groups of the built-in kinds with a dot in the name. The group of a CRD always has a dot, and may end with `k8s.io`.
const BUILT_IN: [&str; 18] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Returns whether a CRD defines a resource, judged by the group.
pub(super) fn is_custom(resource: &GroupResource) -> bool {
    resource.group.contains('.') && !BUILT_IN.contains(&resource.group.as_str())
}
