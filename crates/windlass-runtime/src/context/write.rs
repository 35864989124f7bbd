//! Writes, in the forms that are hard to get wrong.

use http::Request;
use kube_core::{Resource, ResourceExt};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::Context;
use crate::{
    client::request,
    error::{Error, Result},
    source::is_namespaced,
};

impl<K> Context<K> {
    /// Creates an object, and gives it back as the server made it.
    pub async fn create<C>(&self, object: C) -> Result<C>
    where
        C: Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static,
    {
        let target = Target::of(&object);
        let path = format!("{}?fieldManager={}", target.collection()?, self.field_manager());
        let created = request::exchange(self.client(), Request::post(path), JSON, &object).await;
        created.map_err(|e| e.while_doing(format_args!("creating {target}")))
    }

    /// Replaces an object; the server refuses if somebody else wrote it since it was read.
    pub async fn update<C>(&self, object: &C) -> Result<C>
    where
        C: Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static,
    {
        let target = Target::of(object);
        let path = format!("{}?fieldManager={}", target.path()?, self.field_manager());
        let updated = request::exchange(self.client(), Request::put(path), JSON, object).await;
        updated.map_err(|e| e.while_doing(format_args!("updating {target}")))
    }

    /// Server-side apply: makes the fields of `object` what they say, owned by this controller, and leaves all others alone.
    ///
    /// Fields that were applied before and are missing now are removed. Take care that `object` has no field that was only
    /// read: build it from what it must be.
    pub async fn apply<C>(&self, object: &C) -> Result<C>
    where
        C: Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static,
    {
        self.apply_to(object, "").await
    }

    /// Server-side apply of the status.
    pub async fn apply_status<C>(&self, object: &C) -> Result<C>
    where
        C: Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static,
    {
        self.apply_to(object, "/status").await
    }

    async fn apply_to<C>(&self, object: &C, subresource: &str) -> Result<C>
    where
        C: Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static,
    {
        let target = Target::of(object);
        let mut body = serde_json::to_value(object)?;
        body["apiVersion"] = json!(C::api_version(&()));
        body["kind"] = json!(C::kind(&()));
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let path =
            format!("{}{subresource}?fieldManager={}&force=true", target.path()?, self.field_manager());
        let applied =
            request::exchange(self.client(), Request::patch(path), "application/apply-patch+yaml", &body)
                .await;
        applied.map_err(|e| e.while_doing(format_args!("applying {target}")))
    }

    /// Deletes this very object: one that was created again under its name is left alone. Done if it is gone already.
    pub async fn delete<C>(&self, object: &C) -> Result<()>
    where
        C: Resource<DynamicType = ()> + 'static,
    {
        let target = Target::of(object);
        let mut options =
            json!({ "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background" });
        if let Some(uid) = object.uid() {
            options["preconditions"] = json!({ "uid": uid });
        }
        match request::exchange::<Value>(self.client(), Request::delete(target.path()?), JSON, &options).await
        {
            Ok(_) => Ok(()),
            // Gone, or another of that name: the object that was meant is no more.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => Err(error.while_doing(format_args!("deleting {target}"))),
        }
    }

    /// Makes the status of `object`, which was read, what `status` says; the rest of the object, and an object that was created
    /// again under its name, are left alone.
    ///
    /// Sends nothing when the status is that already. An object that is gone needs no status: that is no error.
    pub async fn update_status(&self, object: &K, status: impl Serialize) -> Result<()>
    where
        K: Resource<DynamicType = ()> + Serialize + 'static,
    {
        self.update_status_of(object, status).await
    }

    /// As [`update_status`](Self::update_status), of an object of another kind.
    pub async fn update_status_of<C>(&self, object: &C, status: impl Serialize) -> Result<()>
    where
        C: Resource<DynamicType = ()> + Serialize + 'static,
    {
        let wanted = without_nulls(serde_json::to_value(status)?);
        let current =
            without_nulls(serde_json::to_value(object)?.get("status").cloned().unwrap_or(Value::Null));
        if wanted == current {
            return Ok(());
        }
        let target = Target::of(object);
        let uid =
            object.uid().ok_or_else(|| Error::setup(format!("{target}: has no uid; give what was read")))?;
        let patch = json!([
            { "op": "test", "path": "/metadata/uid", "value": uid },
            { "op": "add", "path": "/status", "value": wanted },
        ]);
        let path = format!("{}/status?fieldManager={}", target.path()?, self.field_manager());
        match request::exchange::<Value>(
            self.client(),
            Request::patch(path),
            "application/json-patch+json",
            &patch,
        )
        .await
        {
            Ok(_) => Ok(()),
            // Gone, or created again: its successor's status is another's business.
            Err(error) if is_object_gone(&error, &target.name) || error.is_failed_test() => Ok(()),
            Err(error) if error.is_not_found() => Err(error.while_doing(format_args!(
                "writing the status of {target} (does its CRD declare `subresources: {{status: {{}}}}`?)"
            ))),
            Err(error) => Err(error.while_doing(format_args!("writing the status of {target}"))),
        }
    }

    fn field_manager(&self) -> &str {
        self.controller()
    }
}

pub(crate) const JSON: &str = "application/json";

/// "This object is not there", not "there is no such resource", which names no object.
fn is_object_gone(error: &Error, name: &str) -> bool {
    error.is_not_found()
        && error
            .status()
            .and_then(|status| status.details.as_ref())
            .is_some_and(|details| details.name == name)
}

/// Without members that are null, which the server would leave out too.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, without_nulls(v))).collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// Where an object is, for requests and messages.
pub(crate) struct Target {
    kind: String,
    namespace: Option<String>,
    name: String,
    collection: String,
    namespace_missing: bool,
}

impl Target {
    pub(crate) fn of<C: Resource<DynamicType = ()> + 'static>(object: &C) -> Self {
        let namespaced = is_namespaced::<C>();
        let namespace = object.namespace().filter(|_| namespaced);
        Self {
            kind: C::kind(&()).into_owned(),
            name: object
                .meta()
                .name
                .clone()
                .or_else(|| object.meta().generate_name.clone())
                .unwrap_or_default(),
            collection: C::url_path(&(), namespace.as_deref()),
            namespace_missing: namespaced && namespace.is_none(),
            namespace,
        }
    }

    pub(crate) fn collection(&self) -> Result<&str> {
        if self.namespace_missing {
            return Err(Error::setup(format!("{self}: metadata.namespace is not set")));
        }
        Ok(&self.collection)
    }

    pub(crate) fn path(&self) -> Result<String> {
        if self.name.is_empty() {
            return Err(Error::setup(format!("{self}: metadata.name is not set")));
        }
        Ok(format!("{}/{}", self.collection()?, self.name))
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}
