//! `PUT`: replaces an object.

use http::{Response, StatusCode};
use serde_json::Value;

use super::options::WriteOptions;
use super::{Call, write};
use crate::body::Body;
use crate::meta;
use crate::wire::ApiError;

pub(super) async fn update(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    call.negotiate()?;
    let options = WriteOptions::parse(&call.query, "UpdateOptions")?;
    let mut object = call.decode(options)?;
    expect_name(call, &object)?;
    let view = call.state.store.view();
    let may_create = call.route.subresource.is_empty() && call.resource.strategy.create_on_update();
    if may_create && view.get(&call.resource.storage, &call.key()).is_none() {
        if !meta::uid(&object).is_empty() {
            return Err(write::other_uid(call, meta::uid(&object), ""));
        }
        meta::set(&mut object, "name", Some(call.route.name.clone().into()));
        let stored = write::create(call, object, options).await?;
        return call.object(StatusCode::CREATED, &stored).await;
    }
    let stored = write::update(call, options, |_, _| Ok(object.clone())).await?;
    call.object(StatusCode::OK, &stored).await
}

/// Checks that an object has the name in the path.
pub(super) fn expect_name(call: &Call<'_>, object: &Value) -> Result<(), ApiError> {
    let name = meta::name(object);
    if name.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            call.route.name
        )));
    }
    if name != call.route.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.route.name
        )));
    }
    Ok(())
}
