//! Defaulting: webhooks that change objects.

use std::{cell::LazyCell, marker::PhantomData, sync::Arc};

use kube_core::admission::{AdmissionResponse, Operation};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    AdmissionContext, Patched,
    handler::{Admit, Call, allowed, denied, errored, with_notes},
};
use crate::{
    decode::{NEW, decode},
    denial::{AdmissionDenial, BoxError},
    json::{apply_changes, keeps_order, remove_new_nulls},
};

/// Sets defaults of objects before the API server stores the objects.
///
/// A defaulter is called for every operation that the webhook's rules select, except a deletion. The method
/// gets the object and returns the object, changed or unchanged; an error denies the request. Only changed
/// fields are sent to the API server, so that fields that the Rust type does not know are kept.
///
/// Any `async fn(K, AdmissionContext) -> Result<K, E>` is a defaulter. For a defaulter with state, implement
/// the trait for a struct:
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass_webhook::{AdmissionContext, Defaulter, AdmissionDenial};
///
/// struct Labels {
///     team: String,
/// }
///
/// impl Defaulter<ConfigMap> for Labels {
///     type Error = AdmissionDenial;
///
///     async fn default(&self, mut config: ConfigMap, _: AdmissionContext) -> Result<ConfigMap, AdmissionDenial> {
///         let labels = config.metadata.labels.get_or_insert_default();
///         labels.entry("team".to_owned()).or_insert_with(|| self.team.clone());
///         Ok(config)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a defaulter of `{K}`",
    note = "a defaulter is an `async fn({K}, AdmissionContext) -> Result<{K}, E>` where `E: Into<BoxError>`, \
            or a type that implements `Defaulter<{K}>`"
)]
pub trait Defaulter<K>: Send + Sync + 'static {
    /// The error: any type that converts into [`BoxError`]. See [`AdmissionDenial`].
    type Error: Into<BoxError>;

    /// Returns the object with defaults.
    fn default(&self, object: K, cx: AdmissionContext)
    -> impl Future<Output = Result<K, Self::Error>> + Send;
}

impl<K, F, Fut, E> Defaulter<K> for F
where
    F: Fn(K, AdmissionContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<K, E>> + Send,
    E: Into<BoxError>,
{
    type Error = E;

    fn default(&self, object: K, cx: AdmissionContext) -> impl Future<Output = Result<K, E>> + Send {
        self(object, cx)
    }
}

/// Erases the type of a defaulter. With `prune`, fields that the Rust type does not have are removed from the object.
pub(crate) fn defaulting<K, D>(defaulter: D, prune: bool) -> Admit
where
    K: DeserializeOwned + Serialize + Send + 'static,
    D: Defaulter<K>,
{
    let defaulter = Arc::new(Defaulting::<K, D> { defaulter, prune, kind: PhantomData });
    Arc::new(move |call| {
        let defaulter = defaulter.clone();
        Box::pin(async move { defaulter.admit(call).await })
    })
}

struct Defaulting<K, D> {
    defaulter: D,
    prune: bool,
    kind: PhantomData<fn() -> K>,
}

impl<K, D> Defaulting<K, D>
where
    K: DeserializeOwned + Serialize + Send + 'static,
    D: Defaulter<K>,
{
    async fn admit(&self, call: Call) -> AdmissionResponse {
        let Call { request, object: original, old, extensions } = call;
        if request.operation == Operation::Delete {
            return allowed(&request);
        }
        if original.is_null() {
            return errored(400, "there is no content to decode");
        }
        let object: K = match decode(NEW, &original) {
            Ok(object) => object,
            Err(error) => return errored(400, error),
        };
        let before = match serde_json::to_value(&object) {
            Ok(before) => before,
            Err(error) => return errored(500, error.to_string()),
        };
        let cx = AdmissionContext::new(request, old, extensions);
        let result = self.defaulter.default(object, cx.clone()).await;
        let notes = cx.take_notes();
        let response = match result {
            Ok(object) => match serde_json::to_value(&object) {
                Ok(after) => {
                    let changed = self.changed(&original, &before, &after);
                    allowed(cx.request()).patched(&original, &changed)
                }
                Err(error) => errored(500, error.to_string()),
            },
            Err(error) => denied(cx.request(), AdmissionDenial::from_error(&error.into())),
        };
        with_notes(response, notes)
    }

    fn changed(&self, original: &Value, before: &Value, after: &Value) -> Value {
        let keeps_order = LazyCell::new(|| keeps_order::<K>(original, before));
        let mut changed =
            if self.prune { after.clone() } else { apply_changes(original, before, after, &|| *keeps_order) };
        remove_new_nulls::<K>(original, &mut changed);
        changed
    }
}
