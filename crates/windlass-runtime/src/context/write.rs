//! Writes of a reconcile.

use http::Request;
use kube_core::{ApiResource, ResourceExt, params::Patch};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json, to_value};
use windlass_cache::ObjectKey;

use super::{Context, Target};
use crate::{
    client::request,
    error::{Error, Result},
    kind::{Kind, Object},
};

/// The effect of [`Context::update_status`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusUpdate {
    /// The status was written.
    Written,
    /// The status was already so. No request was sent.
    Unchanged,
    /// The object is gone. Nothing was written.
    Gone,
    /// The object was deleted, and another one of its name exists. Nothing was written.
    Replaced,
}

impl<K> Context<K> {
    /// Creates an object, and returns it as the server stores it.
    ///
    /// # Errors
    /// The server refused the request; see [`Error::is_already_exists`].
    pub async fn create<C: Object + Serialize>(&self, object: C) -> Result<C> {
        let target = self.target(&object)?;
        let path = format!("{}?{}", target.collection()?, self.field_manager());
        let created = request::exchange(self.client(), Request::post(path), JSON, &object).await;
        created.map_err(|e| e.while_doing(format_args!("creating {target}")))
    }

    /// Replaces an object. The server refuses if the object was written since it was read ([`Error::is_conflict`]).
    ///
    /// # Errors
    /// The server refused the request.
    pub async fn update<C: Object + Serialize>(&self, object: &C) -> Result<C> {
        let target = self.target(object)?;
        let path = format!("{}?{}", target.path()?, self.field_manager());
        let updated = request::exchange(self.client(), Request::put(path), JSON, object).await;
        updated.map_err(|e| e.while_doing(format_args!("updating {target}")))
    }

    /// Server-side apply: sets the fields of `object`, owned by this controller, and leaves all other fields alone.
    ///
    /// Fields that this controller applied before and that are missing now are removed. `object` must have only fields that this
    /// controller is responsible for: build it anew instead of changing one that was read. A type of `k8s_openapi` may serialize more
    /// than was set; to apply single fields, use a [`DynamicObject`](kube_core::DynamicObject) or [`patch`](Self::patch) with
    /// `Patch::Apply`.
    ///
    /// # Errors
    /// The server refused the request.
    pub async fn apply<C: Object + Serialize>(&self, object: &C) -> Result<C> {
        self.apply_to(object, "").await
    }

    /// Server-side apply of the status.
    ///
    /// # Errors
    /// The server refused the request.
    pub async fn apply_status<C: Object + Serialize>(&self, object: &C) -> Result<C> {
        self.apply_to(object, "/status").await
    }

    async fn apply_to<C: Object + Serialize>(&self, object: &C, subresource: &str) -> Result<C> {
        let target = self.target(object)?;
        let mut body = to_value(object)?;
        body["apiVersion"] = json!(target.api_version);
        body["kind"] = json!(target.kind);
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        self.send_patch(&target, subresource, &Patch::Apply(body)).await
    }

    /// Patches the object of kind `C` under a key, and returns it as the server stores it. `Patch::Apply` forces conflicts.
    ///
    /// ```
    /// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
    /// # use windlass_runtime::{Context, ObjectKey, Result};
    /// use kube_core::params::Patch;
    /// use serde_json::json;
    ///
    /// async fn scale(cx: &Context<ConfigMap>, key: &ObjectKey) -> Result<()> {
    ///     cx.patch::<Deployment, _>(key, &Patch::Merge(json!({ "spec": { "replicas": 3 } }))).await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// The server refused the request.
    pub async fn patch<C, P>(&self, key: &ObjectKey, patch: &Patch<P>) -> Result<C>
    where
        C: Object,
        P: Serialize,
    {
        self.send_patch(&self.target_of_key::<C>(key)?, "", patch).await
    }

    /// As [`patch`](Self::patch), of a kind that is known only at run time.
    ///
    /// # Errors
    /// The server refused the request.
    pub async fn patch_dynamic<C, P>(
        &self,
        resource: &ApiResource,
        key: &ObjectKey,
        patch: &Patch<P>,
    ) -> Result<C>
    where
        C: Object,
        P: Serialize,
    {
        let target = Target::new(&Kind::dynamic(resource.clone()), key.namespace(), key.name());
        self.send_patch(&target, "", patch).await
    }

    /// As [`patch`](Self::patch), of a subresource of an object of kind `C`. Returns what the server responds with: the object for
    /// `status`, a `Scale` for `scale`.
    ///
    /// # Errors
    /// The server refused the request.
    pub async fn patch_subresource<C, T, P>(
        &self,
        key: &ObjectKey,
        subresource: &str,
        patch: &Patch<P>,
    ) -> Result<T>
    where
        C: Object,
        T: DeserializeOwned,
        P: Serialize,
    {
        self.send_patch(&self.target_of_key::<C>(key)?, &format!("/{subresource}"), patch).await
    }

    async fn send_patch<T, P>(&self, target: &Target, subresource: &str, patch: &Patch<P>) -> Result<T>
    where
        T: DeserializeOwned,
        P: Serialize,
    {
        let (content_type, force, doing, body) = match patch {
            Patch::Apply(body) => {
                ("application/apply-patch+yaml", "&force=true", "applying", to_value(body)?)
            }
            Patch::Json(steps) => ("application/json-patch+json", "", "patching", to_value(steps)?),
            Patch::Merge(body) => ("application/merge-patch+json", "", "patching", to_value(body)?),
            Patch::Strategic(body) => {
                ("application/strategic-merge-patch+json", "", "patching", to_value(body)?)
            }
            _ => return Err(Error::setup(format!("{target}: this sort of patch is not supported"))),
        };
        let path = format!("{}{subresource}?{}{force}", target.path()?, self.field_manager());
        let patched = request::exchange(self.client(), Request::patch(path), content_type, &body).await;
        patched.map_err(|e| e.while_doing(format_args!("{doing} {target}")))
    }

    /// Deletes exactly this object: another one that was created under its name since is left alone. Succeeds if the object is gone.
    ///
    /// Dependents are deleted in the background (`propagationPolicy: Background`).
    ///
    /// # Errors
    /// The server refused the request.
    pub async fn delete<C: Object>(&self, object: &C) -> Result<()> {
        let target = self.target(object)?;
        let mut options =
            json!({ "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background" });
        if let Some(uid) = object.uid() {
            options["preconditions"] = json!({ "uid": uid });
        }
        match request::exchange::<Value>(self.client(), Request::delete(target.path()?), JSON, &options).await
        {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() || is_uid_conflict(&error, object.uid().as_deref()) => Ok(()),
            Err(error) => Err(error.while_doing(format_args!("deleting {target}"))),
        }
    }

    /// Writes the status of `object`, which was read. The rest of the object is left alone, and so is another object that was created
    /// under its name since.
    ///
    /// Sends nothing if the status is already so. It replaces the whole status: two controllers that share one use
    /// [`apply_status`](Self::apply_status).
    ///
    /// # Errors
    /// The server refused the request. That the object is gone or was replaced is no error: the result says it.
    pub async fn update_status(&self, object: &K, status: impl Serialize) -> Result<StatusUpdate>
    where
        K: Object + Serialize,
    {
        self.update_status_of(object, status).await
    }

    /// As [`update_status`](Self::update_status), of an object of another kind.
    ///
    /// # Errors
    /// As [`update_status`](Self::update_status).
    pub async fn update_status_of<C>(&self, object: &C, status: impl Serialize) -> Result<StatusUpdate>
    where
        C: Object + Serialize,
    {
        let wanted = without_nulls(to_value(status)?);
        let current = without_nulls(to_value(object)?.get("status").cloned().unwrap_or(Value::Null));
        if wanted == current {
            return Ok(StatusUpdate::Unchanged);
        }
        let target = self.target(object)?;
        let uid = object
            .uid()
            .ok_or_else(|| Error::setup(format!("{target}: has no uid; use the object that was read")))?;
        let patch = json!([
            { "op": "test", "path": "/metadata/uid", "value": uid },
            { "op": "add", "path": "/status", "value": wanted },
        ]);
        let path = format!("{}/status?{}", target.path()?, self.field_manager());
        let content_type = "application/json-patch+json";
        match request::exchange::<Value>(self.client(), Request::patch(path), content_type, &patch).await {
            Ok(_) => Ok(StatusUpdate::Written),
            Err(error) if is_object_gone(&error, &target.name) => Ok(StatusUpdate::Gone),
            Err(error) if error.is_failed_test() => Ok(StatusUpdate::Replaced),
            Err(error) if error.is_not_found() => Err(error.while_doing(format_args!(
                "writing the status of {target} (does its CRD declare `subresources: {{status: {{}}}}`?)"
            ))),
            Err(error) => Err(error.while_doing(format_args!("writing the status of {target}"))),
        }
    }

    /// The query parameter that names the writer.
    pub(crate) fn field_manager(&self) -> String {
        form_urlencoded::Serializer::new(String::new())
            .append_pair("fieldManager", &self.shared.field_manager)
            .finish()
    }
}

pub(crate) const JSON: &str = "application/json";

/// Whether "not found" names the object, and not a resource that is not served.
fn is_object_gone(error: &Error, name: &str) -> bool {
    error.is_not_found()
        && error
            .status()
            .and_then(|status| status.details.as_ref())
            .is_some_and(|details| details.name == name)
}

/// Whether a deletion failed because the object under the name has another uid.
fn is_uid_conflict(error: &Error, uid: Option<&str>) -> bool {
    error.is_conflict()
        && uid.is_some_and(|uid| {
            error
                .status()
                .is_some_and(|status| status.message.contains("UID") && status.message.contains(uid))
        })
}

/// Removes members that are null, which the server drops too.
pub(crate) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, without_nulls(v))).collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}
