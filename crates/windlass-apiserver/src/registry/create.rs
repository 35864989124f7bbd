//! `POST`: creates an object.

use http::{Response, StatusCode};

use super::options::WriteOptions;
use super::{Call, write};
use crate::body::Body;
use crate::meta;
use crate::wire::ApiError;

pub(super) async fn create(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    let options = WriteOptions::parse(&call.query, "CreateOptions")?;
    let object = call.decode(options)?;
    if !meta::resource_version(&object).is_empty() {
        return Err(ApiError::unexplained("resourceVersion should not be set on objects to be created"));
    }
    let stored = write::create(call, object, options).await?;
    call.object(StatusCode::CREATED, &stored).await
}
