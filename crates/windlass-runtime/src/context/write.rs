//! Writes of a reconcile.

use std::marker::PhantomData;

use futures::{FutureExt as _, future::BoxFuture};
use http::Method;
use kube_core::ResourceExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, to_value};

use super::{Context, OperationResult, target::Target};
use crate::{
    client::{Call, JSON, JSON_PATCH, WithMetadata},
    discovery,
    error::{Error, Result},
    kind::{AsObject, Object},
    read_your_writes::{Uncertain, after_own_writes, note_own_write},
};

/// A replacement of a status. Awaiting the request sends the status. [`Context::update_status`] makes a
/// request.
#[must_use = "nothing is sent until the request is awaited"]
pub struct StatusRequest<'a> {
    cx: Context<()>,
    prepared: Result<NewStatus>,
    force: bool,
    borrowed: PhantomData<&'a ()>,
}

/// A status, and the object of the read.
struct NewStatus {
    target: Target,
    uid: String,
    resource_version: Option<String>,
    status: Value,
}

impl StatusRequest<'_> {
    /// Replaces the status even if another client wrote the object since the object was read.
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    async fn send(self) -> Result<OperationResult> {
        let Self { cx, prepared, force, .. } = self;
        let NewStatus { target, uid, resource_version, status } = prepared?;
        if cx.cached_status(&target, &uid)?.is_some_and(|cached| is_same(&cached, &status)) {
            return Ok(OperationResult::Unchanged);
        }
        let mut patch = vec![json!({ "op": "test", "path": "/metadata/uid", "value": uid })];
        let read = resource_version
            .filter(|version| !force && !version.is_empty())
            .map(|version| after_own_writes(&uid, version));
        if let Some(version) = &read {
            // The server compares the resource version with the version of the stored object.
            patch.push(json!({ "op": "add", "path": "/metadata/resourceVersion", "value": version }));
        }
        patch.push(json!({ "op": "add", "path": "/status", "value": status }));
        let call = target.patch("status", &[cx.field_manager()], JSON_PATCH, &patch)?;
        match cx.api().exchange::<WithMetadata>(call).await {
            Ok(updated) => {
                note_own_write(&uid, read.as_deref(), updated.metadata.resource_version.as_deref());
                Ok(OperationResult::Updated)
            }
            Err(error) if error.is_failed_test() => Ok(OperationResult::Replaced),
            Err(error) if error.is_not_found() => cx.without_status(&target, error).await,
            Err(error) => Err(error.while_doing(format_args!("writing the status of {target}"))),
        }
    }
}

impl<'a> IntoFuture for StatusRequest<'a> {
    type Output = Result<OperationResult>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.send().boxed()
    }
}

impl<K> Context<K> {
    /// Returns the status of the object that the cache shows, with the process's own writes; `None` if the kind has no cache of whole
    /// objects, or the cache shows no object with this uid.
    fn cached_status(&self, target: &Target, uid: &str) -> Result<Option<Value>> {
        let Some(cache) = self.shared.caches.whole(target.resource())? else { return Ok(None) };
        // A transform may have removed fields of the status.
        if cache.informer.options().transform.is_some() {
            return Ok(None);
        }
        let Some(cached) = cache.get(&target.key()).filter(|cached| cached.uid() == uid) else {
            return Ok(None);
        };
        let WithStatus { status } = serde_json::from_slice(&cached.json())?;
        Ok(Some(without_nulls(status)))
    }

    /// Creates an object, and returns the stored object.
    ///
    /// With `generate_name`, the server completes the name. If the response to such a create is lost, the
    /// object may exist: the next create with the same prefix asks the server, and fails with a conflict. The
    /// reconcile is then repeated with the caches' new state. A name that the controller computes needs no
    /// such care.
    ///
    /// # Errors
    /// The server refused the request; see [`Error::is_already_exists`].
    pub async fn create<C: Object + Serialize>(&self, object: C) -> Result<C> {
        let target = self.target(&object)?;
        let uncertain = Uncertain::of(|| target.collection(&[]), object.meta())?;
        self.settle_uncertain(&target, uncertain.as_ref()).await?;
        let path = target.collection(&[self.field_manager()])?;
        let observer = uncertain.as_ref().map(|uncertain| self.observer(uncertain));
        let call = Call::write(Method::POST, path, JSON, &object)?.on_unknown(observer);
        let created = self.api().exchange(call).await;
        created.map_err(|error| {
            if let Some(uncertain) = uncertain {
                self.note_uncertain(uncertain, &error);
            }
            error.while_doing(format_args!("creating {target}"))
        })
    }

    /// Replaces an object. The server refuses if the object was changed or replaced since the read
    /// ([`Error::is_conflict`]): the uid and the resource version are preconditions, unless removed from the
    /// object.
    ///
    /// # Errors
    /// The server refused the request, or `object` has only the metadata
    /// ([`PartialObjectMeta`](kube_core::metadata::PartialObjectMeta)): use [`patch`](Self::patch) or [`apply`](Self::apply).
    pub async fn update<C: Object + Serialize>(&self, object: &C) -> Result<C> {
        let target = self.target(object)?;
        target.check_is_whole::<C>()?;
        let path = target.path("", &[self.field_manager()])?;
        let updated = self.api().exchange::<C>(Call::write(Method::PUT, path, JSON, object)?).await;
        let updated = updated.map_err(|error| error.while_doing(format_args!("updating {target}")))?;
        let (read, written) = (object.meta(), updated.meta());
        if let Some(uid) = &written.uid {
            note_own_write(uid, read.resource_version.as_deref(), written.resource_version.as_deref());
        }
        Ok(updated)
    }

    /// Replaces the status of `object`, which was read and may be of any kind. The rest of the object is left alone, and so is another object that was created
    /// under the name of `object` since.
    ///
    /// Sends no request if the cached object already has the status. The status may be computed in place:
    /// `object` is not compared. A kind without a cache is always written.
    ///
    /// The server refuses the status if another client wrote the object since `object` was read
    /// ([`Error::is_conflict`]), and no field of another writer is lost. The reconcile is then repeated.
    /// [`force`](StatusRequest::force) replaces the status nevertheless. Two controllers that share a status
    /// use [`apply_status`](Self::apply_status).
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{Pod, PodStatus};
    /// # use windlass_runtime::{Context, Result};
    /// async fn fail(cx: &Context<Pod>, pod: &Pod) -> Result<()> {
    ///     let status = PodStatus { phase: Some("Failed".to_owned()), ..PodStatus::default() };
    ///     cx.update_status(pod, status).await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// The server refused the request, or the kind has no subresource `status`. A missing or replaced object is no error: the result names
    /// the reason.
    pub fn update_status<O, Form>(&self, object: &O, status: impl Serialize) -> StatusRequest<'_>
    where
        O: AsObject<Form, Object: Object + Serialize>,
    {
        StatusRequest {
            cx: Context::new(self.shared.clone()),
            prepared: self.prepare_status(object.as_object(), status),
            force: false,
            borrowed: PhantomData,
        }
    }

    fn prepare_status<O: Object>(&self, object: &O, status: impl Serialize) -> Result<NewStatus> {
        let target = self.target(object)?;
        let uid = object
            .uid()
            .ok_or_else(|| Error::setup(format!("{target}: has no uid; use the object that was read")))?;
        let resource_version = object.resource_version();
        Ok(NewStatus { target, uid, resource_version, status: without_nulls(to_value(status)?) })
    }

    /// Tells the two reasons apart for which a status is not found: the object is gone, or the kind has no
    /// status. The server answers both with the same error, but discovery, which every user may read, lists
    /// the served resources.
    async fn without_status(&self, target: &Target, error: Error) -> Result<OperationResult> {
        let status = discovery::serves_status(self.api(), target.resource()).await;
        match status {
            Ok(false) => Err(error.while_doing(format_args!(
                "writing the status of {target}: {} has no subresource `status`; its CRD needs `subresources: {{status: {{}}}}`, \
                 which `#[kube(status = \"…\")]` declares",
                target.resource().plural
            ))),
            _ if is_object_gone(&error, &target.name) => Ok(OperationResult::Gone),
            _ => Err(error.while_doing(format_args!("writing the status of {target}"))),
        }
    }
}

/// The status of an object; null if the object has no status.
#[derive(Deserialize)]
struct WithStatus {
    #[serde(default)]
    status: Value,
}

/// Returns whether "not found" names the object, and not a resource that is not served.
fn is_object_gone(error: &Error, name: &str) -> bool {
    error.is_not_found()
        && error
            .status()
            .and_then(|status| status.details.as_ref())
            .is_some_and(|details| details.name == name)
}

/// Returns whether the server stores two values in the same way: `1.0` is stored as `1`.
fn is_same(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Number(stored), Value::Number(wanted)) if stored.is_f64() != wanted.is_f64() => {
            stored.as_f64() == wanted.as_f64()
        }
        (Value::Array(stored), Value::Array(wanted)) => {
            stored.len() == wanted.len()
                && stored.iter().zip(wanted).all(|(stored, wanted)| is_same(stored, wanted))
        }
        (Value::Object(stored), Value::Object(wanted)) => {
            let is_stored = |(name, wanted)| stored.get(name).is_some_and(|stored| is_same(stored, wanted));
            stored.len() == wanted.len() && wanted.iter().all(is_stored)
        }
        _ => stored == wanted,
    }
}

/// Removes members that are null. The server drops such members too.
pub fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, without_nulls(v))).collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}
