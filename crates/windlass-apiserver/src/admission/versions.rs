//! The versions of an object that webhooks are called with.

use std::borrow::Cow;

use serde_json::Value;
use windlass_schema::go_quote;

use super::Attributes;
use super::matching::Shown;
use crate::resource::Resource;
use crate::wire::ApiError;

impl Shown {
    /// Returns the resource in the version that the webhook sees.
    pub(super) fn resource<'a>(&'a self, request: &Attributes<'a>) -> &'a Resource {
        match self {
            Self::AsRequested => request.resource,
            Self::As(resource) => resource,
        }
    }
}

/// Converts an object of the version `from` to the version `to`.
pub(super) async fn convert<'a>(
    request: &Attributes<'_>,
    object: &'a Value,
    from: &Resource,
    to: &Resource,
) -> Result<Cow<'a, Value>, ApiError> {
    if !request.is_of_resource() {
        return Ok(Cow::Borrowed(object));
    }
    if from.api_version() == to.api_version() {
        return Ok(Cow::Borrowed(object));
    }
    let failed = |error: ApiError| ApiError::internal(error);
    let mut object = object.clone();
    to.convert_from(from, &mut object).await.map_err(failed)?;
    Ok(Cow::Owned(object))
}

/// Returns the reason why an object could not be converted, without the words of the error for clients.
pub(super) fn reason(error: &ApiError) -> &str {
    let details = error.status().details.as_ref();
    let cause = details.and_then(|details| details.causes.first());
    cause.map_or(&error.status().message, |cause| &cause.message)
}

/// Checks that a custom resource still has the version `from`, because a patch may have changed the version.
pub(super) fn expect_version(
    request: &Attributes<'_>,
    object: &Value,
    from: &Resource,
    to: &Resource,
) -> Result<(), ApiError> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if !request.is_of_resource() || !from.is_custom() || version == from.api_version() {
        return Ok(());
    }
    if version.is_empty() {
        return Err(ApiError::internal("Object 'apiVersion' is missing in 'object has no apiVersion field'"));
    }
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let wanted = go_quote(to.api_version());
    let why = format!(
        "{group}/{version}, Kind={kind} is unstructured and is not suitable for converting to {wanted}"
    );
    Err(ApiError::internal(why))
}

/// Converts an object of the version `from` to the version `to`, in place.
pub(super) async fn convert_in_place(
    request: &Attributes<'_>,
    object: &mut Value,
    from: &Resource,
    to: &Resource,
) -> Result<(), ApiError> {
    let converted = match convert(request, object, from, to).await? {
        Cow::Borrowed(_) => return Ok(()),
        Cow::Owned(converted) => converted,
    };
    *object = converted;
    Ok(())
}
