//! Deletes objects.

use futures::{FutureExt as _, future::BoxFuture};
use http::Method;
use kube_core::{ResourceExt as _, params::PropagationPolicy};
use serde_json::json;

use super::{Context, Target, preconditions::Preconditions};
use crate::{
    client::{Call, JSON},
    error::{Error, Result},
    kind::{AsObject, Object},
};

/// A deletion. Awaiting the request sends the deletion. [`Context::delete`] makes a request.
#[must_use = "nothing is deleted until the request is awaited"]
pub struct DeleteRequest<'a> {
    cx: Context<()>,
    target: Result<Target>,
    preconditions: Preconditions,
    /// The resource version of the object that the caller has.
    read_at: Option<String>,
    propagation: PropagationPolicy,
    grace_period: Option<u32>,
    lifetime: std::marker::PhantomData<&'a ()>,
}

impl<K> Context<K> {
    /// Deletes exactly this object: a newer object of the same name is left alone. Succeeds if the object is
    /// gone.
    ///
    /// Dependents are deleted in the background; see [`DeleteRequest::propagation`].
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    /// # use windlass_runtime::{Context, Result};
    /// async fn remove(cx: &Context<ConfigMap>, idle: &Pod, job: &Pod) -> Result<()> {
    ///     cx.delete(idle).await?;
    ///     // Only if it is as it was read.
    ///     cx.delete(job).if_unchanged().grace_period(0).await
    /// }
    /// ```
    ///
    /// # Errors
    /// The server refused the request.
    pub fn delete<O, Form>(&self, object: &O) -> DeleteRequest<'_>
    where
        O: AsObject<Form, Object: Object>,
    {
        let object = object.as_object();
        DeleteRequest {
            cx: Context::new(self.shared.clone()),
            target: self.target(object),
            preconditions: Preconditions { uid: object.uid(), resource_version: None },
            read_at: object.resource_version(),
            propagation: PropagationPolicy::Background,
            grace_period: None,
            lifetime: std::marker::PhantomData,
        }
    }
}

impl DeleteRequest<'_> {
    /// Fails with a [conflict](Error::is_conflict) if the object has changed since the read.
    pub fn if_unchanged(mut self) -> Self {
        self.preconditions.resource_version = self.read_at.clone();
        self
    }

    /// Sets the fate of the dependents. Default: `Background`, dependents are deleted after the object.
    /// `Foreground`: the object is deleted after the dependents. `Orphan`: dependents stay.
    pub fn propagation(mut self, policy: PropagationPolicy) -> Self {
        self.propagation = policy;
        self
    }

    /// Sets the grace period in seconds. Default: the grace period of the kind, 30 s for pods.
    pub fn grace_period(mut self, seconds: u32) -> Self {
        self.grace_period = Some(seconds);
        self
    }

    async fn send(self) -> Result<()> {
        let target = self.target?;
        let mut options =
            json!({ "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": self.propagation });
        if let Some(preconditions) = self.preconditions.of_delete() {
            options["preconditions"] = preconditions;
        }
        if let Some(seconds) = self.grace_period {
            options["gracePeriodSeconds"] = json!(seconds);
        }
        let call = Call::write(Method::DELETE, target.path("", &[])?, JSON, &options)?;
        let uid = self.preconditions.uid.as_deref();
        match self.cx.api().call(call).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() || is_uid_conflict(&error, uid) => Ok(()),
            Err(error) => Err(error.while_doing(format_args!("deleting {target}"))),
        }
    }
}

impl<'a> IntoFuture for DeleteRequest<'a> {
    type Output = Result<()>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.send().boxed()
    }
}

/// Returns whether a deletion failed because the object under the name has another uid.
fn is_uid_conflict(error: &Error, uid: Option<&str>) -> bool {
    error.is_conflict()
        && uid.is_some_and(|uid| {
            error
                .status()
                .is_some_and(|status| status.message.contains("UID") && status.message.contains(uid))
        })
}
