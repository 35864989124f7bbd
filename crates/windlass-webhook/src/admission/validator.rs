//! Validation: webhooks that allow or deny requests.

use std::{marker::PhantomData, sync::Arc};

use kube_core::admission::{AdmissionResponse, Operation};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    AdmissionContext,
    handler::{Admit, Call, allowed, denied, errored, with_notes},
};
use crate::{
    decode::{self, NEW, OLD},
    denial::{AdmissionDenial, BoxError},
};

/// Allows or denies requests for objects of a kind.
///
/// An error denies the request, and the text of the error reaches the client of the API server. See
/// [`AdmissionDenial`] for status codes and causes, and [`AdmissionContext::warn`] for warnings.
///
/// Any `async fn(AdmissionChange<K>, AdmissionContext) -> Result<(), E>` is a validator. For a validator with state,
/// or of a single operation, implement the trait for a struct. An operation without an implementation is
/// allowed.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass_webhook::{AdmissionContext, AdmissionDenial, FieldError, Validator};
///
/// struct Sizes {
///     most: usize,
/// }
///
/// impl Validator<ConfigMap> for Sizes {
///     type Error = AdmissionDenial;
///
///     async fn validate_create(&self, config: ConfigMap, cx: AdmissionContext) -> Result<(), AdmissionDenial> {
///         let keys = config.data.unwrap_or_default().len();
///         if keys > self.most {
///             let error = FieldError::invalid("data", keys, format_args!("must have at most {} keys", self.most));
///             return Err(AdmissionDenial::invalid::<ConfigMap>(cx.name(), [error]));
///         }
///         Ok(())
///     }
///
///     async fn validate_update(&self, old: ConfigMap, new: ConfigMap, cx: AdmissionContext) -> Result<(), AdmissionDenial> {
///         if old.data == new.data {
///             return Ok(());
///         }
///         self.validate_create(new, cx).await
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a validator of `{K}`",
    note = "a validator is an `async fn(AdmissionChange<{K}>, AdmissionContext) -> Result<(), E>` where `E: Into<BoxError>`, \
            or a type that implements `Validator<{K}>`"
)]
pub trait Validator<K: Send + 'static>: Send + Sync + 'static {
    /// The error: any type that converts into [`BoxError`]. See [`AdmissionDenial`].
    type Error: Into<BoxError>;

    /// Validates an object that is created. Default: allows.
    fn validate_create(
        &self,
        object: K,
        cx: AdmissionContext,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        drop((object, cx));
        async { Ok(()) }
    }

    /// Validates an update. Default: allows.
    fn validate_update(
        &self,
        old: K,
        new: K,
        cx: AdmissionContext,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        drop((old, new, cx));
        async { Ok(()) }
    }

    /// Validates a deletion. Called only if the webhook's operations include [`Operation::Delete`]. Default:
    /// allows.
    fn validate_delete(
        &self,
        object: K,
        cx: AdmissionContext,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        drop((object, cx));
        async { Ok(()) }
    }
}

/// A request to change an object, for validators that are functions.
#[derive(Clone, Debug, PartialEq)]
pub enum AdmissionChange<K> {
    /// The object is created.
    Create(K),
    /// The object is updated.
    Update {
        /// The stored object.
        old: K,
        /// The new object.
        new: K,
    },
    /// The object is deleted.
    Delete(K),
}

impl<K> AdmissionChange<K> {
    /// Returns the new object, or `None` for a deletion.
    pub fn new_object(&self) -> Option<&K> {
        match self {
            Self::Create(new) | Self::Update { new, .. } => Some(new),
            Self::Delete(_) => None,
        }
    }

    /// Returns the stored object, or `None` for a creation.
    pub fn old_object(&self) -> Option<&K> {
        match self {
            Self::Delete(old) | Self::Update { old, .. } => Some(old),
            Self::Create(_) => None,
        }
    }
}

impl<K, F, Fut, E> Validator<K> for F
where
    K: Send + 'static,
    F: Fn(AdmissionChange<K>, AdmissionContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), E>> + Send,
    E: Into<BoxError>,
{
    type Error = E;

    fn validate_create(&self, object: K, cx: AdmissionContext) -> impl Future<Output = Result<(), E>> + Send {
        self(AdmissionChange::Create(object), cx)
    }

    fn validate_update(
        &self,
        old: K,
        new: K,
        cx: AdmissionContext,
    ) -> impl Future<Output = Result<(), E>> + Send {
        self(AdmissionChange::Update { old, new }, cx)
    }

    fn validate_delete(&self, object: K, cx: AdmissionContext) -> impl Future<Output = Result<(), E>> + Send {
        self(AdmissionChange::Delete(object), cx)
    }
}

/// Erases the type of a validator.
pub(crate) fn validating<K, V>(validator: V) -> Admit
where
    K: DeserializeOwned + Send + 'static,
    V: Validator<K>,
{
    let validator = Arc::new(Validating::<K, V> { validator, kind: PhantomData });
    Arc::new(move |call| {
        let validator = validator.clone();
        Box::pin(async move { validator.admit(call).await })
    })
}

struct Validating<K, V> {
    validator: V,
    kind: PhantomData<fn() -> K>,
}

impl<K, V> Validating<K, V>
where
    K: DeserializeOwned + Send + 'static,
    V: Validator<K>,
{
    async fn admit(&self, call: Call) -> AdmissionResponse {
        let Call { request, object, old, extensions } = call;
        let change = match change::<K>(&request.operation, &object, &old) {
            Ok(Some(change)) => change,
            Ok(None) => return allowed(&request),
            Err(error) => return errored(400, error),
        };
        let cx = AdmissionContext::new(request, old, extensions);
        let (validator, own) = (&self.validator, cx.clone());
        let result = match change {
            AdmissionChange::Create(object) => validator.validate_create(object, own).await,
            AdmissionChange::Update { old, new } => validator.validate_update(old, new, own).await,
            AdmissionChange::Delete(object) => validator.validate_delete(object, own).await,
        };
        let response = match result {
            Ok(()) => allowed(cx.request()),
            Err(error) => denied(cx.request(), AdmissionDenial::from_error(&error.into())),
        };
        with_notes(response, cx.take_notes())
    }
}

/// Decodes the objects of a request. Returns `None` for a CONNECT request.
fn change<K: DeserializeOwned>(
    operation: &Operation,
    object: &Value,
    old: &Value,
) -> Result<Option<AdmissionChange<K>>, String> {
    Ok(Some(match operation {
        Operation::Create => AdmissionChange::Create(decode(NEW, object)?),
        Operation::Update => AdmissionChange::Update { new: decode(NEW, object)?, old: decode(OLD, old)? },
        Operation::Delete => AdmissionChange::Delete(decode(OLD, old)?),
        Operation::Connect => return Ok(None),
    }))
}

fn decode<K: DeserializeOwned>(what: &str, object: &Value) -> Result<K, String> {
    if object.is_null() {
        return Err("there is no content to decode".to_owned());
    }
    decode::decode(what, object)
}
