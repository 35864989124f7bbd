//! The versions of an object that webhooks are called with.

use std::borrow::Cow;

use serde_json::Value;

use super::Attributes;
use super::matching::Shown;
use crate::resource::Resource;
use crate::wire::ApiError;

impl Shown {
    /// The resource whose version the webhook sees.
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
    if !request.is_of_resource() || from.api_version() == to.api_version() {
        return Ok(Cow::Borrowed(object));
    }
    let failed = |error: ApiError| ApiError::internal(error);
    let mut object = object.clone();
    to.convert_from(from, &mut object).await.map_err(failed)?;
    Ok(Cow::Owned(object))
}

/// Converts an object of the version `from` to the version `to`, where it is.
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
