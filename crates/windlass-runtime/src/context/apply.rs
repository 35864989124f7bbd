//! Server-side apply.

use std::sync::Arc;

use futures::{FutureExt as _, future::BoxFuture};
use http::StatusCode;
use kube_core::TypeMeta;
use serde::Serialize;
use serde_json::{Value, json, to_value};
use windlass_apply::ApplyConfiguration;

use super::{Context, OperationResult, Target, WriteResult, preconditions::Preconditions};
use crate::{
    client::{APPLY_PATCH, decode, path::GroupResource},
    error::{Error, Result},
    kind::Object,
    kind_ref::IntoKind,
    lister::Lister,
    read_your_writes::{LastApplied, Part, Slot},
};

/// A server-side apply. Awaiting the request sends the apply. [`Context::apply`] makes a request.
#[must_use = "nothing is sent until the request is awaited"]
pub struct ApplyRequest<'a, O> {
    cx: Context<()>,
    prepared: Result<Prepared>,
    force: bool,
    preconditions: Preconditions,
    response: std::marker::PhantomData<fn(&'a ()) -> O>,
}

/// The configuration, and the target of the apply.
struct Prepared {
    target: Target,
    body: Value,
    subresource: String,
}

impl<K> Context<K> {
    /// Server-side apply: creates or changes an object so that the object has the fields of the
    /// configuration. This controller owns these fields from then on; all other fields are left alone. Fields
    /// that the controller applied before and that are missing now are removed.
    ///
    /// **Forces conflicts**, unlike `kubectl apply --server-side`: a field that another manager owns, a person with `kubectl edit` for
    /// instance, gets the value of the configuration, and this controller owns the field from then on.
    /// [`force(false)`](ApplyRequest::force) makes such a field an error, which [`Error::field_conflicts`] details. The field manager is
    /// the controller's name.
    ///
    /// **Nothing is sent** if this controller applied the same configuration before and the object has not
    /// changed since: the kind is declared, and the cache shows the object of the last apply. Changes of the
    /// status and of `managedFields` do not count. The first apply of a configuration by a process is always
    /// sent.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass_runtime::{Context, Result, owner::Owned};
    /// use windlass_apply::{ApplyConfiguration as _, apps::v1::deployment};
    ///
    /// async fn scale(cx: &Context<ConfigMap>, parent: &ConfigMap) -> Result<()> {
    ///     let web = deployment("web", "default").label("app", "web").replicas(3).controlled_by(parent)?;
    ///     let web = cx.apply(&web).await?;
    ///     tracing::info!(generation = web.metadata.generation, operation = ?web.operation, "applied");
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// The configuration has no name, or the server refused the request.
    pub fn apply<C>(&self, configuration: &C) -> ApplyRequest<'_, C::Object>
    where
        C: ApplyConfiguration,
        C::Object: Object,
    {
        self.apply_part(configuration, "")
    }

    /// Server-side apply of the status. Forces conflicts, as [`apply`](Self::apply) does. Two controllers that write one status own the fields that each of them sets, and do not
    /// overwrite each other.
    ///
    /// Only the status of the configuration is sent: a configuration can serve both this method and
    /// [`apply`](Self::apply). **Nothing is sent** if this controller applied the same status before and the
    /// object's status has not changed since.
    ///
    /// # Errors
    /// The object does not exist, or the server refused the request.
    pub fn apply_status<C>(&self, configuration: &C) -> ApplyRequest<'_, C::Object>
    where
        C: ApplyConfiguration,
        C::Object: Object,
    {
        self.apply_part(configuration, "status")
    }

    /// Server-side apply of a subresource of the object of a [kind](crate::KindRef) that has the configuration's name and namespace. Forces
    /// conflicts, as [`apply`](Self::apply) does.
    ///
    /// ```
    /// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
    /// # use windlass_runtime::{Context, Result, kind};
    /// use windlass_apply::autoscaling::v1::{scale, scale_spec};
    ///
    /// async fn scale_down(cx: &Context<ConfigMap>) -> Result<()> {
    ///     let none = scale("web", "default").spec(scale_spec().replicas(0));
    ///     cx.apply_subresource(kind::<Deployment>(), "scale", &none).await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// The object does not exist, or the server refused the request.
    pub fn apply_subresource<S>(
        &self,
        kind: impl IntoKind,
        subresource: &str,
        configuration: &S,
    ) -> ApplyRequest<'_, S::Object>
    where
        S: ApplyConfiguration,
        S::Object: Object,
    {
        let (kind, meta) = (kind.into_kind().kind, configuration.meta());
        let target =
            Target::of_kind(kind, meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default());
        let prepared = to_value(configuration).map_err(Error::from);
        self.apply_request(prepared.map(|body| Prepared {
            target,
            body,
            subresource: subresource.to_owned(),
        }))
    }

    /// Works like [`apply`](Self::apply), for an object instead of a configuration. Forces conflicts. The
    /// controller owns every field that the object serializes.
    ///
    /// Build a new object instead of changing an object that was read. A type of `k8s_openapi` serializes
    /// more than was set (an empty `Deployment` has a selector and a template).
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn apply_object<C: Object + Serialize>(&self, object: &C) -> ApplyRequest<'_, C> {
        let prepared = to_value(object)
            .map_err(Error::from)
            .and_then(|body| Ok(Prepared { target: self.target(object)?, body, subresource: String::new() }));
        self.apply_request(prepared)
    }

    fn apply_part<C>(&self, configuration: &C, subresource: &str) -> ApplyRequest<'_, C::Object>
    where
        C: ApplyConfiguration,
        C::Object: Object,
    {
        let prepared = to_value(configuration).map_err(Error::from).and_then(|mut body| {
            if subresource == "status" {
                body = only_status(&body);
            }
            let target = self.target_of_types::<C::Object>(|| types_of(&body), configuration.meta())?;
            Ok(Prepared { target, body, subresource: subresource.to_owned() })
        });
        self.apply_request(prepared)
    }

    fn apply_request<O>(&self, prepared: Result<Prepared>) -> ApplyRequest<'_, O> {
        ApplyRequest {
            cx: Context::new(self.shared.clone()),
            prepared,
            force: true,
            preconditions: Preconditions::default(),
            response: std::marker::PhantomData,
        }
    }
}

impl<O: Object> ApplyRequest<'_, O> {
    /// Sets whether the apply takes over fields that other managers own. Default: true. With `false`, the apply fails with a
    /// [conflict](Error::is_field_conflict) if another manager owns a field with another value.
    pub fn force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    /// Fails with a [conflict](Error::is_conflict) if the object has another uid, or does not exist.
    pub fn if_uid(mut self, uid: impl Into<String>) -> Self {
        self.preconditions.uid = Some(uid.into());
        self
    }

    /// Fails with a [conflict](Error::is_conflict) if the object has another resource version.
    pub fn if_resource_version(mut self, version: impl Into<String>) -> Self {
        self.preconditions.resource_version = Some(version.into());
        self
    }

    async fn send(self) -> Result<WriteResult<O>> {
        let Self { cx, prepared, force, preconditions, .. } = self;
        let Prepared { target, mut body, subresource } = prepared?;
        complete(&mut body, &target, &subresource);
        preconditions.put_into(&mut body);

        let memory = cx.shared.caches.journal().applies();
        // The memory compares no status of the main resource: an apply of a status there is always sent.
        let has_status = subresource.is_empty() && body.get("status").is_some_and(|status| !status.is_null());
        let part = Part::of(&subresource).filter(|_| preconditions.resource_version.is_none() && !has_status);
        let slot = Slot::new(&target, &subresource, cx.field_manager());
        let hash = memory.hash(&body);
        if let Some(part) = part
            && let Some(cache) = cx.shared.caches.whole(target.resource())?
            && let Some(cached) = cache.get(&target.key())
            && memory.is_current(&slot, hash, part, &cached)
            && let Ok(Some(object)) = Lister::new(cache).get(&target.key())
        {
            return Ok(WriteResult { object, operation: OperationResult::Unchanged });
        }
        // If the request fails, the effect of the apply is not known.
        memory.forget(&slot);

        let force = if force { "force=true" } else { "" };
        let call = target.patch(&subresource, &[cx.field_manager(), force], APPLY_PATCH, &body)?;
        let (status, response) =
            cx.api().call_with_status(call).await.map_err(|error| {
                preconditions.explain(error).while_doing(format_args!("applying {target}"))
            })?;
        preconditions.note_own_write(&response);
        if let Some(part) = part {
            memory.remember(slot, LastApplied::of(&response, hash, part, memory));
        }
        let operation = match status {
            StatusCode::CREATED => OperationResult::Created,
            _ => OperationResult::Updated,
        };
        Ok(WriteResult { object: Arc::new(decode(&response)?), operation })
    }
}

impl<'a, O: Object> IntoFuture for ApplyRequest<'a, O> {
    type Output = Result<WriteResult<O>>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.send().boxed()
    }
}

/// Returns the API version and kind that a body names.
fn types_of(body: &Value) -> Option<TypeMeta> {
    Some(TypeMeta {
        api_version: body["apiVersion"].as_str()?.to_owned(),
        kind: body["kind"].as_str()?.to_owned(),
    })
}

/// Sets the required members of an applied object, and removes forbidden members.
fn complete(body: &mut Value, target: &Target, subresource: &str) {
    if matches!(subresource, "" | "status") {
        body["apiVersion"] = json!(target.resource().api_version);
        body["kind"] = json!(target.resource().kind);
    }
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// Keeps only the identity and the status of the object.
fn only_status(body: &Value) -> Value {
    let mut kept = json!({ "apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": {} });
    for field in ["name", "namespace", "uid", "resourceVersion"] {
        if let Some(value) = body["metadata"].get(field) {
            kept["metadata"][field] = value.clone();
        }
    }
    if let Some(status) = body.get("status") {
        kept["status"] = status.clone();
    }
    kept
}

impl Slot {
    fn new(target: &Target, subresource: &str, field_manager: &str) -> Self {
        Self {
            field_manager: field_manager.to_owned(),
            resource: GroupResource::of(target.resource()),
            key: target.key(),
            subresource: subresource.to_owned(),
        }
    }
}
