//! Writes of a reconcile.

use http::Request;
use kube_core::ResourceExt;
use serde::Serialize;
use serde_json::{Value, json, to_value};

use super::{Context, target::Target, uncertain_creates::Uncertain};
use crate::{
    client::request,
    discovery,
    error::{Error, Result},
    kind::{AsObject, Object},
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
    /// With `generate_name`, the server completes the name. If the answer to such a create is lost, the object may exist: the next
    /// create with the same prefix asks the server, and fails with a conflict so that the reconcile is repeated with what the caches
    /// show then. A name that the controller computes needs no such care.
    ///
    /// # Errors
    /// The server refused the request; see [`Error::is_already_exists`].
    pub async fn create<C: Object + Serialize>(&self, object: C) -> Result<C> {
        let target = self.target(&object)?;
        let uncertain = Uncertain::of(&target, object.meta())?;
        self.settle_uncertain(&target, uncertain.as_ref()).await?;
        let path = format!("{}?{}", target.collection()?, self.field_manager());
        let mut request = Request::post(path);
        if let Some(uncertain) = &uncertain {
            request = request.extension(uncertain.observer(&self.shared.uncertain_creates));
        }
        let created = request::exchange(self.client(), request, JSON, &object).await;
        created.map_err(|error| {
            if let Some(uncertain) = uncertain {
                uncertain.note(&error, &self.shared.uncertain_creates);
            }
            error.while_doing(format_args!("creating {target}"))
        })
    }

    /// Replaces an object. The server refuses if the object was written or replaced since it was read ([`Error::is_conflict`]): its
    /// uid and resource version are preconditions, unless they are removed from the object.
    ///
    /// # Errors
    /// The server refused the request.
    pub async fn update<C: Object + Serialize>(&self, object: &C) -> Result<C> {
        let target = self.target(object)?;
        let path = format!("{}?{}", target.path()?, self.field_manager());
        let updated = request::exchange(self.client(), Request::put(path), JSON, object).await;
        updated.map_err(|e| e.while_doing(format_args!("updating {target}")))
    }

    /// Writes the status of `object`, which was read. The rest of the object is left alone, and so is another object that was created
    /// under its name since.
    ///
    /// Sends nothing if the status is already so. It replaces the whole status: two controllers that share one use
    /// [`apply_status`](Self::apply_status).
    ///
    /// # Errors
    /// The server refused the request, or the kind has no subresource `status`. That the object is gone or was replaced is no error: the
    /// result says it.
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
    pub async fn update_status_of<O, Form>(&self, object: &O, status: impl Serialize) -> Result<StatusUpdate>
    where
        O: AsObject<Form, Object: Object + Serialize>,
    {
        let object = object.as_object();
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
            Err(error) if error.is_failed_test() => Ok(StatusUpdate::Replaced),
            Err(error) if error.is_not_found() => self.without_status(&target, error).await,
            Err(error) => Err(error.while_doing(format_args!("writing the status of {target}"))),
        }
    }

    /// Tells the two reasons apart for which a status is not found: the object is gone, or its kind has no status. The server answers both
    /// in the same words, but discovery, which every user may read, lists what is served.
    async fn without_status(&self, target: &Target, error: Error) -> Result<StatusUpdate> {
        let status = discovery::serves_status(self.client(), &target.resource).await;
        match status {
            Ok(false) => Err(error.while_doing(format_args!(
                "writing the status of {target}: {} has no subresource `status`; its CRD needs `subresources: {{status: {{}}}}`, \
                 which `#[kube(status = \"…\")]` declares",
                target.resource.plural
            ))),
            _ if is_object_gone(&error, &target.name) => Ok(StatusUpdate::Gone),
            _ => Err(error.while_doing(format_args!("writing the status of {target}"))),
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
