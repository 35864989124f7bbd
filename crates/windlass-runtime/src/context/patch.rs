//! Patches objects.

use futures::{FutureExt as _, future::BoxFuture};
use kube_core::params::Patch;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, to_value};
use windlass_cache::ObjectKey;

use super::{Context, Target, preconditions::Preconditions};
use crate::{
    client::{APPLY_PATCH, JSON_PATCH, MERGE_PATCH, decode},
    error::{Error, Result},
    kind::Object,
    kind_ref::IntoKind,
};

/// A patch. Awaiting the request sends the patch. [`Context::patch`] makes a request.
#[must_use = "nothing is sent until the request is awaited"]
pub struct PatchRequest<'a, T> {
    cx: Context<()>,
    prepared: Result<Prepared>,
    preconditions: Preconditions,
    response: std::marker::PhantomData<fn(&'a ()) -> T>,
}

struct Prepared {
    target: Target,
    subresource: String,
    format: Format,
    body: Value,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl<K> Context<K> {
    /// Patches the object of kind `C` under a key, and returns the stored object. `Patch::Apply` forces
    /// conflicts.
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
    pub fn patch<C, P>(&self, key: &ObjectKey, patch: &Patch<P>) -> PatchRequest<'_, C>
    where
        C: Object,
        P: Serialize,
    {
        self.patch_request(self.target_of_key::<C>(key), patch)
    }

    /// Works like [`patch`](Self::patch), for any [kind](crate::KindRef): known only at run time, or returning
    /// only the metadata.
    ///
    /// # Errors
    /// The server refused the request.
    pub fn patch_of<I, P>(&self, kind: I, key: &ObjectKey, patch: &Patch<P>) -> PatchRequest<'_, I::Object>
    where
        I: IntoKind<Object: DeserializeOwned>,
        P: Serialize,
    {
        let kind = kind.into_kind().kind;
        self.patch_request(Ok(Target::of_kind(kind, key.namespace(), key.name())), patch)
    }

    fn patch_request<T, P: Serialize>(
        &self,
        target: Result<Target>,
        patch: &Patch<P>,
    ) -> PatchRequest<'_, T> {
        PatchRequest {
            cx: Context::new(self.shared.clone()),
            prepared: target.and_then(|target| Prepared::new(target, patch)),
            preconditions: Preconditions::default(),
            response: std::marker::PhantomData,
        }
    }
}

impl Prepared {
    fn new<P: Serialize>(target: Target, patch: &Patch<P>) -> Result<Self> {
        let (format, body) = match patch {
            Patch::Apply(body) => (Format::Apply, to_value(body)?),
            Patch::Json(steps) => (Format::Json, to_value(steps)?),
            Patch::Merge(body) => (Format::Merge, to_value(body)?),
            Patch::Strategic(body) => (Format::Strategic, to_value(body)?),
            _ => return Err(Error::setup(format!("{target}: this sort of patch is not supported"))),
        };
        Ok(Self { target, subresource: String::new(), format, body })
    }
}

impl<'a, T: DeserializeOwned> PatchRequest<'a, T> {
    /// Patches the subresource `status` instead of the object. The server returns the object.
    pub fn status(self) -> Self {
        self.subresource("status")
    }

    /// Patches a subresource instead of the object. `R` is the type of the response: `Scale` for the subresource `scale`.
    ///
    /// ```
    /// # use k8s_openapi::api::{apps::v1::Deployment, autoscaling::v1::Scale, core::v1::ConfigMap};
    /// # use windlass_runtime::{Context, ObjectKey, Result};
    /// use kube_core::params::Patch;
    /// use serde_json::json;
    ///
    /// async fn scale(cx: &Context<ConfigMap>, key: &ObjectKey) -> Result<Scale> {
    ///     let patch = Patch::Merge(json!({ "spec": { "replicas": 3 } }));
    ///     cx.patch::<Deployment, _>(key, &patch).subresource("scale").await
    /// }
    /// ```
    pub fn subresource<R: DeserializeOwned>(self, name: &str) -> PatchRequest<'a, R> {
        let Self { cx, prepared, preconditions, .. } = self;
        let prepared = prepared.map(|prepared| Prepared { subresource: name.to_owned(), ..prepared });
        PatchRequest { cx, prepared, preconditions, response: std::marker::PhantomData }
    }

    /// Fails with a [conflict](Error::is_conflict) if the object has another uid.
    pub fn if_uid(mut self, uid: impl Into<String>) -> Self {
        self.preconditions.uid = Some(uid.into());
        self
    }

    /// Fails with a [conflict](Error::is_conflict) if the object has another resource version.
    pub fn if_resource_version(mut self, version: impl Into<String>) -> Self {
        self.preconditions.resource_version = Some(version.into());
        self
    }

    async fn send(self) -> Result<T> {
        let Prepared { target, subresource, format, mut body } = self.prepared?;
        match (format, &mut body) {
            (Format::Json, Value::Array(steps)) => drop(steps.splice(0..0, self.preconditions.tests())),
            _ => self.preconditions.put_into(&mut body),
        }
        let (content_type, force, doing) = match format {
            Format::Apply => (APPLY_PATCH, "force=true", "applying"),
            Format::Json => (JSON_PATCH, "", "patching"),
            Format::Merge => (MERGE_PATCH, "", "patching"),
            Format::Strategic => ("application/strategic-merge-patch+json", "", "patching"),
        };
        let call = target.patch(&subresource, &[self.cx.field_manager(), force], content_type, &body)?;
        let reply = self.cx.api().call(call).await;
        let patched = reply.and_then(|reply| {
            self.preconditions.note_own_write(&reply);
            decode(&reply)
        });
        patched
            .map_err(|error| self.preconditions.explain(error).while_doing(format_args!("{doing} {target}")))
    }
}

impl<'a, T: DeserializeOwned + 'a> IntoFuture for PatchRequest<'a, T> {
    type Output = Result<T>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.send().boxed()
    }
}
