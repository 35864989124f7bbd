//! Handlers of raw admission requests, and the common form of all handlers.

use std::sync::Arc;

use futures::future::BoxFuture;
use http::Extensions;
use kube_core::{
    DynamicObject,
    admission::{AdmissionRequest, AdmissionResponse},
    response::Status,
};
use serde_json::Value;

use super::context::Notes;
use crate::{
    decode::{NEW, OLD, decode},
    denial::AdmissionDenial,
};

/// Answers admission requests of any kind.
///
/// Any `async fn(AdmissionRequest<DynamicObject>) -> AdmissionResponse` is a handler. The types are kube's;
/// [`Patched`] computes a patch from a changed object.
///
/// ```
/// use kube_core::{DynamicObject, admission::{AdmissionRequest, AdmissionResponse}};
/// use windlass_webhook::{AdmissionWebhook, Webhooks};
///
/// async fn no_exec(request: AdmissionRequest<DynamicObject>) -> AdmissionResponse {
///     let response = AdmissionResponse::from(&request);
///     match request.user_info.username.as_deref() {
///         Some("admin") => response,
///         _ => response.deny("only admin may execute commands in pods"),
///     }
/// }
/// # let _ = Webhooks::new().admission(AdmissionWebhook::validating("/no-exec", no_exec));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not handle admission requests",
    note = "a handler is an `async fn(AdmissionRequest<DynamicObject>) -> AdmissionResponse`, or a type that implements \
            `AdmissionHandler`"
)]
pub trait AdmissionHandler: Send + Sync + 'static {
    /// Answers a request.
    fn handle(
        &self,
        request: AdmissionRequest<DynamicObject>,
    ) -> impl Future<Output = AdmissionResponse> + Send;
}

impl<F, Fut> AdmissionHandler for F
where
    F: Fn(AdmissionRequest<DynamicObject>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = AdmissionResponse> + Send,
{
    fn handle(
        &self,
        request: AdmissionRequest<DynamicObject>,
    ) -> impl Future<Output = AdmissionResponse> + Send {
        self(request)
    }
}

/// Adds the difference between two states of an object to a response, as a JSON patch.
pub trait Patched: Sized {
    /// Sets the patch that makes `changed` of `original`. Without a difference there is no patch.
    #[must_use]
    fn patched(self, original: &Value, changed: &Value) -> Self;
}

impl Patched for AdmissionResponse {
    fn patched(self, original: &Value, changed: &Value) -> Self {
        let patch = json_patch::diff(original, changed);
        if patch.0.is_empty() {
            return self;
        }
        // kube-core uses another version of json-patch: pass the patch as JSON.
        let patch = serde_json::to_value(&patch).and_then(serde_json::from_value);
        let (uid, types) = (self.uid.clone(), self.types.clone());
        match patch {
            Ok(patch) => self.with_patch(patch).unwrap_or_else(|error| {
                let mut response = errored(500, error.to_string());
                (response.uid, response.types) = (uid, types);
                response
            }),
            Err(error) => errored(500, error.to_string()),
        }
    }
}

/// A decoded request. The objects are unchanged JSON of the API server; a missing object is `null`.
pub(crate) struct Call {
    pub(crate) request: AdmissionRequest<DynamicObject>,
    pub(crate) object: Value,
    pub(crate) old: Value,
    /// The values that the webhooks were given with `Webhooks::extension`.
    pub(crate) extensions: Arc<Extensions>,
}

pub(crate) type AdmitFuture = BoxFuture<'static, AdmissionResponse>;

/// A handler with an erased type.
pub(crate) type Admit = Arc<dyn Fn(Call) -> AdmitFuture + Send + Sync>;

pub(crate) fn handling(handler: impl AdmissionHandler) -> Admit {
    let handler = Arc::new(handler);
    Arc::new(move |call: Call| {
        let handler = handler.clone();
        Box::pin(async move {
            let Call { mut request, object, old, .. } = call;
            let decoded = (|| {
                request.object = decode_dynamic(NEW, &object)?;
                request.old_object = decode_dynamic(OLD, &old)?;
                Ok::<_, String>(request)
            })();
            match decoded {
                Ok(request) => handler.handle(request).await,
                Err(error) => errored(400, error),
            }
        })
    })
}

fn decode_dynamic(what: &str, object: &Value) -> Result<Option<DynamicObject>, String> {
    match object {
        Value::Null => Ok(None),
        object => decode(what, object).map(Some),
    }
}

/// Returns a denial for a request that failed. The caller sets the uid.
pub(crate) fn errored(code: u16, message: impl Into<String>) -> AdmissionResponse {
    let mut response = AdmissionResponse::invalid("");
    response.result = Status { code, message: message.into(), ..Status::default() };
    response
}

/// Returns an allowing response.
pub(crate) fn allowed(request: &AdmissionRequest<DynamicObject>) -> AdmissionResponse {
    AdmissionResponse::from(request)
}

pub(crate) fn denied(
    request: &AdmissionRequest<DynamicObject>,
    denial: AdmissionDenial,
) -> AdmissionResponse {
    let mut response = AdmissionResponse::from(request);
    response.allowed = false;
    response.result = denial.into_status();
    response
}

pub(crate) fn with_notes(mut response: AdmissionResponse, notes: Notes) -> AdmissionResponse {
    if !notes.warnings.is_empty() {
        response.warnings.get_or_insert_default().extend(notes.warnings);
    }
    response.audit_annotations.extend(notes.audit_annotations);
    response
}
